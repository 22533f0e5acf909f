//! How a stream comes to a link: who asks proves over shared memory that it holds its end ([`super::proof`]), as for a ring, and
//! is given a ticket, and where the NIC of the other process is. It connects a VI there, and names the stream by the
//! ticket, in the discriminator of its own address. Then both tell where their boards are.
//!
//! The NIC is on the engine's own node, which has a second link for it if that is iWARP or a card: whoever sleeps at the engine's
//! node is woken by both. With iWARP anybody on the host can connect to its port; a request without a ticket is refused.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use sidestep_sys::lock::Mutex;

use sidestep_fabric::{Endpoint, Error, LinkOptions, Node};
use sidestep_stream::carrier::{
    Host,
    via::{self, Call, Caller, Link, Port, Refusal},
};

use super::{
    Engine, guests, notice_of, of_key,
    proof::{self, Notice},
    random, short_of,
    words::{self, Ticket},
};
use crate::{
    config::{self, Device, config},
    kernel::{address::Key, signal},
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

/// A link on its way to its stream.
#[derive(Debug)]
struct Pending {
    id: u64,
    stream: u32,
    key: Key,
    /// `None` while a thread goes on with it.
    step: Option<Step>,
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
static HOST: Host = Host { is_sandboxed: super::is_disabled, may_start };

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
            Device::Shm | Device::Vmmc => vec![place_of(identity)],
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
            Ok(words::question(&place.key))
        });
        match asked {
            Ok(endpoint) => {
                self.await_link(stream, place.key, Step::Asked { endpoint, identity, proof });
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
            via::Place::Number(number) => number,
        };
        Some(words::ticket(&ticket, port))
    }

    /// A stream needs no link any more: the peer may have its end already, and is told.
    pub fn forget(&self, key: &Key) {
        let forgotten: Vec<_> = lock(&self.pending).extract_if(.., |pending| pending.key == *key).collect();
        drop(forgotten);
        lock(&self.tickets).retain(|_, own| own != key);
    }

    /// Takes up requests and answers that have come.
    pub fn pump(&self, engine: &Engine) {
        while let Some(caller) = self.port.poll() {
            self.answer(engine, caller);
        }
        self.see_to_pending(engine);
    }

    /// Goes on with links on their way. They stay in the list meanwhile: nobody asks for another one, and who forgets one does.
    pub fn see_to_pending(&self, engine: &Engine) {
        let taken = |pending: &mut Pending| Some((pending.id, pending.stream, pending.key, pending.step.take()?));
        let waiting: Vec<_> = lock(&self.pending).iter_mut().filter_map(taken).collect();
        for (id, stream, key, step) in waiting {
            let step = self.go_on(engine, stream, &key, step);
            let mut all = lock(&self.pending);
            match step {
                Some(step) => {
                    if let Some(pending) = all.iter_mut().find(|pending| pending.id == id) {
                        pending.step = Some(step);
                    }
                }
                None => all.retain(|pending| pending.id != id),
            }
        }
    }

    /// A link is on its way to this stream, in the place of any other.
    fn await_link(&self, stream: &Stream, key: Key, step: Step) {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let id = LAST.fetch_add(1, Ordering::Relaxed);
        let mut all = lock(&self.pending);
        let former: Vec<_> = all.extract_if(.., |pending| pending.key == key).collect();
        all.push(Pending { id, stream: stream.index, key, step: Some(step) });
        drop(all);
        drop(former);
    }

    fn answer(&self, engine: &Engine, caller: Caller) {
        let ticket = words::read_discriminator(caller.name());
        let Some(own) = ticket.and_then(|ticket| lock(&self.tickets).remove(&ticket)) else { return };
        let Some(stream) = engine.awaiting(&own) else { return };
        match self.port.answer(caller) {
            Ok(link) => {
                // Who has a ticket has seen the notice of this process.
                proof::take_back(stream.fd());
                self.await_link(stream, own, Step::Connected(link));
            }
            Err(Refusal::Memory(error)) => short_of(stream, &error),
            Err(Refusal::Gone) => {}
            Err(Refusal::Other) => stream.set_reason(Reason::Resources),
        }
    }

    /// One look at a link on its way. `Some`: it is not there yet.
    fn go_on(&self, engine: &Engine, stream: u32, key: &Key, step: Step) -> Option<Step> {
        let stream = of_key(stream, key)?;
        if stream.stage() != Stage::Offered {
            proof::take_back(stream.fd());
            return None;
        }
        let step = match step {
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
                    let is_proven = || engine.notices.have(&key.reversed(), proof);
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
        let Step::Connected(link) = &step else { return Some(step) };
        if link.is_ready() {
            engine.forget(key);
            stream.carried(key, via::carry(&engine.node, link), None);
            return None;
        }
        link.check().then_some(step)
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
        if private == words::NO_NIC {
            return self.do_without(stream, identity);
        }
        let Some((ticket, port)) = words::read_ticket(&private) else {
            stream.set_reason(Reason::Refused);
            return None;
        };
        if !is_proven() {
            stream.set_reason(Reason::Unproven);
            return None;
        }
        let place = if port == 0 { place_of(identity) } else { via::Place::Number(port) };
        // Where there is no memory for a link, there may be some for rings; if not, that tells both ends.
        self.port
            .call(place, &words::discriminator(&ticket))
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

/// Before a wait: sends what links hold.
pub use via::timer::send_held;

/// A handler may have interrupted the program's allocator; and one of the program's own may hold its lock from before a `fork`
/// until after it. A program that has shut itself in may end by leaving its only thread.
pub fn may_start() -> bool {
    !super::is_disabled() && !jump::is_in_handler() && !signal::is_quiet()
}

/// Where the port of a process without a number is: elsewhere on a card, so that two processes with different NICs do not meet.
fn place_of(identity: Identity) -> via::Place {
    let [first, second] = identity.0;
    via::Place::Process([first, if config().nic == Device::Vmmc { !second } else { second }])
}

/// One of the numbers that are given to anybody.
fn any_number(random: u64) -> via::Place {
    via::Place::Number(FIRST_PORT + (random % PORTS) as u16)
}

/// A node of the fabric for an engine: on shared memory, where processes find each other, and on the link of the NIC if that
/// is another.
pub fn node() -> Option<Node> {
    let options = LinkOptions { admits: guests::admits, ..LinkOptions::default() };
    let with_other = other_link().and_then(|other| {
        let options = LinkOptions { setup_timeout: SETUP, ..options };
        Node::open_unserved(&[RENDEZVOUS_LINK, other], &options).ok()
    });
    with_other.or_else(|| Node::open(&[RENDEZVOUS_LINK], &options).ok())
}

/// The link of the NIC, if that is another than the one over which processes find each other.
pub fn other_link() -> Option<&'static str> {
    Some(scheme()).filter(|scheme| config().carrier != config::Carrier::Ring && *scheme != RENDEZVOUS_LINK)
}

/// The scheme of the link that the NIC is on.
fn scheme() -> &'static str {
    match config().nic {
        Device::Shm => RENDEZVOUS_LINK,
        Device::Iwarp => "iwarp",
        Device::Vmmc => "vmmc",
    }
}
