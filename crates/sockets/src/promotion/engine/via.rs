//! How a stream comes to a link: who asks proves over shared memory that it holds its end ([`super::proof`]), as for a ring, and
//! is given a ticket, and where the NIC of the other process is. It connects a VI there, and names the stream by the
//! ticket, in the discriminator of its own address. Then both tell where their boards are.
//!
//! The NIC is on the engine's own node, which has a second link for it if that is iWARP: whoever sleeps at the engine's node is
//! woken by both. Anybody on the host can connect to its port then; a request without a ticket is refused.

use std::{
    collections::{HashMap, HashSet},
    io,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use sidestep_sys::{lock::Mutex, signal::without_signals};

use sidestep_fabric::{Endpoint, Error, LinkOptions, Node};
use sidestep_stream::carrier::{
    Host, Work,
    via::{self, Call, Caller, Link, Port, Refusal},
};

use super::{Engine, HANDSHAKE, notice_of, of_key, proof, proof::Notice, random, short_of};
use crate::{
    config::{self, Device, config},
    kernel::{
        address::Key,
        signal::{self, Inside},
    },
    readiness::jump,
    registry::{Identity, reason::Reason},
    streams::{Place, Stage, Stream, lock},
};

/// The VIA side of an engine.
#[derive(Debug)]
pub struct Exchange {
    port: Port,
    pending: Mutex<Vec<Pending>>,
    /// Tickets that were given out, each with the own key of its stream.
    tickets: Mutex<HashMap<Ticket, Key>>,
    /// Processes without a NIC.
    without: Mutex<HashSet<Identity>>,
}

/// What names a stream to the NIC of its other end.
pub type Ticket = [u64; 2];

/// A link on its way to its stream.
#[derive(Debug)]
struct Pending {
    stream: u32,
    key: Key,
    step: Step,
}

#[derive(Debug)]
enum Step {
    /// The other process was asked for a ticket.
    Asked { endpoint: Endpoint, identity: Identity, proof: Notice },
    /// The link is being connected, by the side that asked.
    Calling(Call),
    /// It is connected.
    Connected(Arc<Link>),
}

/// This process: somebody else's program, whose handlers and allocator are its own.
static HOST: Host = Host { is_sandboxed: super::is_disabled, may_start, start };

/// What is answered by a process without a NIC.
pub const NO_NIC: &[u8] = &[0];
/// The second word of a question; that of a stream's is 0.
const QUESTION: u64 = 1;
const QUESTION_LEN: usize = 8 * 8;
const ANSWER_LEN: usize = 4 * 8;
/// Tickets and processes that are remembered.
const MOST_TICKETS: usize = 4096;
const MOST_WITHOUT: usize = 1024;
/// The link over which processes find each other.
const RENDEZVOUS_LINK: &str = "shm";
/// Where ports are tried: those that are given to anybody.
const FIRST_PORT: u16 = 49_152;
const PORTS: u64 = 11_000;
const TRIES: usize = 64;
/// How long a connection between two NICs may take to be made.
const SETUP: Duration = Duration::from_secs(1);

impl Exchange {
    /// Of an engine with this identity, if its streams are to go over VIA.
    pub fn start(node: &Node, identity: Identity) -> Option<Exchange> {
        if config().carrier == config::Carrier::Ring {
            return None;
        }
        let places: Vec<_> = match config().nic {
            Device::Shm => vec![via::Place::Process(identity.0)],
            Device::Iwarp => (0..TRIES).filter_map(|_| random()).map(|[random, _]| any_number(random)).collect(),
        };
        let port = Port::open(node, scheme(), places, config().sovia, &HOST)?;
        let (pending, tickets, without) = (Mutex::default(), Mutex::default(), Mutex::default());
        Some(Exchange { port, pending, tickets, without })
    }

    /// Asks the process at the other end of a stream. `false`: it does not speak VIA.
    pub fn ask(&self, engine: &Engine, place: &Place, stream: &Stream, identity: Identity) -> bool {
        if lock(&self.pending).iter().any(|pending| pending.key == place.key) {
            return true;
        }
        let Some(proof) = notice_of(identity).filter(|_| !lock(&self.without).contains(&identity)) else {
            return false;
        };
        let asked = engine.node.begin_connect_with(&format!("shm:{}", identity.name()), |peer| {
            engine.put_notice(peer, stream)?;
            Ok(question(&place.key))
        });
        match asked {
            Ok(endpoint) => {
                let step = Step::Asked { endpoint, identity, proof };
                lock(&self.pending).push(Pending { stream: stream.index, key: place.key, step });
            }
            Err(error) => {
                proof::take_back(stream.fd());
                if let Error::Memory(error) = error {
                    short_of(stream, &error);
                }
            }
        }
        true
    }

    /// A ticket for whoever has proven that it holds the end with this key.
    pub fn ticket(&self, key: &Key) -> Option<Vec<u8>> {
        let ticket = random()?;
        let mut tickets = lock(&self.tickets);
        tickets.retain(|_, own| *own != key.reversed());
        if tickets.len() >= MOST_TICKETS {
            return None;
        }
        tickets.insert(ticket, key.reversed());
        let port = match self.port.place() {
            via::Place::Process(_) => 0,
            via::Place::Number(number) => number.into(),
        };
        Some([HANDSHAKE, ticket[0], ticket[1], port].iter().flat_map(|word| word.to_le_bytes()).collect())
    }

    /// A stream needs no link any more: the peer may have its end already, and is told.
    pub fn forget(&self, key: &Key) {
        lock(&self.pending).retain(|pending| pending.key != *key);
        lock(&self.tickets).retain(|_, own| own != key);
    }

    /// Takes up requests and answers that have come.
    pub fn pump(&self, engine: &Engine) {
        while let Some(caller) = self.port.poll() {
            self.answer(engine, caller);
        }
        self.see_to_pending(engine);
    }

    /// Goes on with links on their way.
    pub fn see_to_pending(&self, engine: &Engine) {
        let waiting = std::mem::take(&mut *lock(&self.pending));
        if waiting.is_empty() {
            return;
        }
        let kept: Vec<_> = waiting.into_iter().filter_map(|pending| self.go_on(engine, pending)).collect();
        lock(&self.pending).extend(kept);
    }

    fn answer(&self, engine: &Engine, caller: Caller) {
        let ticket = read_discriminator(caller.name());
        let Some(own) = ticket.and_then(|ticket| lock(&self.tickets).remove(&ticket)) else { return };
        let Some(stream) = engine.awaiting(&own) else { return };
        match self.port.answer(caller) {
            Ok(link) => {
                // Who has a ticket has seen the notice of this process.
                proof::take_back(stream.fd());
                lock(&self.pending).push(Pending { stream: stream.index, key: own, step: Step::Connected(link) });
            }
            Err(Refusal::Memory(error)) => short_of(stream, &error),
            Err(Refusal::Gone) => {}
            Err(Refusal::Other) => stream.set_reason(Reason::Resources),
        }
    }

    /// One look at a link on its way. `Some`: it is not there yet.
    fn go_on(&self, engine: &Engine, mut pending: Pending) -> Option<Pending> {
        let stream = of_key(pending.stream, &pending.key)?;
        if stream.stage() != Stage::Offered {
            proof::take_back(stream.fd());
            return None;
        }
        pending.step = match pending.step {
            Step::Asked { endpoint, identity, proof } => match endpoint.is_connected() {
                Ok(false) => Step::Asked { endpoint, identity, proof },
                Ok(true) => {
                    // Nothing is connected here: no process of ours answers so.
                    proof::take_back(stream.fd());
                    stream.set_reason(Reason::Refused);
                    return None;
                }
                Err(error) => {
                    proof::take_back(stream.fd());
                    let is_proven = || engine.board.has(&pending.key.reversed(), proof);
                    self.answered(stream, identity, error, is_proven)?
                }
            },
            Step::Calling(call) => match call.poll() {
                Ok(Err(call)) => Step::Calling(call),
                Ok(Ok(link)) => Step::Connected(link),
                Err(_) => {
                    // Refused, or gone: the next try comes later.
                    stream.set_reason(Reason::Refused);
                    return None;
                }
            },
            step => step,
        };
        let Step::Connected(link) = &pending.step else { return Some(pending) };
        if link.is_ready() {
            engine.forget(&pending.key);
            stream.carried(via::carry(&engine.node, link));
            return None;
        }
        link.check().then_some(pending)
    }

    /// The other process has answered: with a ticket, if all is well.
    fn answered(
        &self,
        stream: &Stream,
        identity: Identity,
        error: Error,
        is_proven: impl FnOnce() -> bool,
    ) -> Option<Step> {
        let Error::Refused { private } = error else {
            stream.set_reason(Reason::Refused);
            return None;
        };
        if private == NO_NIC {
            return self.do_without(stream, identity);
        }
        let Some((ticket, port)) = read_ticket(&private) else {
            stream.set_reason(Reason::Refused);
            return None;
        };
        if !is_proven() {
            stream.set_reason(Reason::Unproven);
            return None;
        }
        let place = if port == 0 { via::Place::Process(identity.0) } else { via::Place::Number(port) };
        // Where there is no memory for a link, there may be some for rings; if not, that tells both ends.
        self.port
            .call(place, &discriminator(&ticket))
            .map_or_else(|_| self.do_without(stream, identity), |call| Some(Step::Calling(call)))
    }

    /// From now on rings are made with this process.
    fn do_without(&self, stream: &Stream, identity: Identity) -> Option<Step> {
        let mut without = lock(&self.without);
        if without.len() >= MOST_WITHOUT {
            without.clear();
        }
        without.insert(identity);
        stream.try_soon();
        None
    }
}

/// A handler may have interrupted the program's allocator; and one of the program's own may hold its lock from before a `fork`
/// until after it. A program that has shut itself in may end by leaving its only thread.
fn may_start() -> bool {
    !super::is_disabled() && !jump::is_in_handler() && !signal::is_quiet()
}

/// Starts a thread in which no handler of the program's ever runs.
fn start(name: &str, run: Work) -> io::Result<JoinHandle<()>> {
    let run = move || {
        let _inside = Inside::enter();
        run();
    };
    without_signals(|| thread::Builder::new().name(name.into()).spawn(run))
}

/// One of the numbers that are given to anybody.
fn any_number(random: u64) -> via::Place {
    via::Place::Number(FIRST_PORT + (random % PORTS) as u16)
}

/// A node of the fabric for an engine: on shared memory, where processes find each other, and on the link of the NIC if that
/// is another.
pub fn node() -> Option<Node> {
    let other = Some(scheme()).filter(|scheme| config().carrier != config::Carrier::Ring && *scheme != RENDEZVOUS_LINK);
    let with_other = other.and_then(|other| {
        let options = LinkOptions { setup_timeout: SETUP, ..LinkOptions::default() };
        Node::open(&[RENDEZVOUS_LINK, other], &options).ok()
    });
    with_other.or_else(|| Node::new().ok())
}

/// The scheme of the link that the NIC is on.
fn scheme() -> &'static str {
    match config().nic {
        Device::Shm => RENDEZVOUS_LINK,
        Device::Iwarp => "iwarp",
    }
}

fn question(key: &Key) -> Vec<u8> {
    [HANDSHAKE, QUESTION].into_iter().chain(key.to_words()).flat_map(u64::to_le_bytes).collect()
}

/// Reads a question for a ticket: the key of who asks.
pub fn read_question(bytes: &[u8]) -> Option<Key> {
    let words = words(bytes, QUESTION_LEN)?;
    if words[..2] != [HANDSHAKE, QUESTION] {
        return None;
    }
    Some(Key::from_words(words[2..].try_into().ok()?))
}

/// Reads the answer: a ticket, and a port.
pub fn read_ticket(bytes: &[u8]) -> Option<(Ticket, u16)> {
    let words = words(bytes, ANSWER_LEN)?;
    let port = u16::try_from(words[3]).ok()?;
    (words[0] == HANDSHAKE).then_some(([words[1], words[2]], port))
}

fn discriminator(ticket: &Ticket) -> Vec<u8> {
    [HANDSHAKE, ticket[0], ticket[1]].into_iter().flat_map(u64::to_le_bytes).collect()
}

fn read_discriminator(bytes: &[u8]) -> Option<Ticket> {
    let words = words(bytes, 3 * 8)?;
    (words[0] == HANDSHAKE).then_some([words[1], words[2]])
}

/// The words of bytes that are as many as they should be.
fn words(bytes: &[u8], len: usize) -> Option<Vec<u64>> {
    let words = || bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
    (bytes.len() == len).then(|| words().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_answers_and_discriminators_come_back() {
        let key = Key { namespace: 7, local: "127.0.0.1:4000".parse().unwrap(), remote: "[::1]:80".parse().unwrap() };
        assert_eq!(read_question(&question(&key)), Some(key));
        assert_eq!(read_question(&question(&key)[..60]), None);
        assert_eq!(read_question(&[0; QUESTION_LEN]), None);
        let bytes = discriminator(&[7 << 40, 8]);
        assert_eq!(read_discriminator(&bytes), Some([7 << 40, 8]));
        assert_eq!(read_discriminator(&bytes[..20]), None);
        let answer = |port: u64| [HANDSHAKE, 1, 2, port].into_iter().flat_map(u64::to_le_bytes).collect::<Vec<_>>();
        assert_eq!(read_ticket(&answer(50_000)), Some(([1, 2], 50_000)));
        assert_eq!(read_ticket(&answer(70_000)), None);
        assert_eq!(read_ticket(NO_NIC), None);
    }
}
