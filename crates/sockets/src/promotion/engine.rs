//! The engine of a process: its node on the fabric, its place in the registry, and the handshake that gives a stream a
//! carrier.
//!
//! One end of a connection asks, the other waits to be asked ([`Key::asks`]). Who asks finds the other's process in the
//! registry and connects to it on the fabric; private data carry the key of the connection and the block of its ring.
//! Who is asked checks its own descriptor and answers with its own block. Each side proves that it holds its end ([`proof`]).
//! Nobody waits: both look at their next calls.
//!
//! A forked child has an engine of its own; the parent's is left alone.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use sidestep_fabric::{ChannelOptions, Endpoint, Error, Listener, Node, PeerId, Request, channel::Half};
use sidestep_shm::{Word64, passing::MAX_NUMBER};
use sidestep_stream::carrier::ring;
use sidestep_sys::{clock, lock::Mutex, user};

use self::{fitness::fit, notices::Notices, proof::Notice};
use crate::{
    config::{self, config},
    descriptors::{numbers, table},
    kernel::{self, address::Key},
    promotion::orders::Orders,
    registry::{self, Identity, Process, Registry, reason::Reason},
    streams::{Place, Stage, Stream, lock},
    tap::Tap,
};

mod current;
mod fitness;
mod guests;
mod notices;
pub mod proof;
mod via;
mod words;

pub use current::{
    after_fork, disable, engine, is_disabled, renew, running, see_to_links, see_to_service, told_kernel,
};
pub use words::{HANDSHAKE, read_answer, read_hello, read_question, read_ticket};

/// The engine of this process.
#[derive(Debug)]
pub struct Engine {
    /// Its node.
    pub node: Node,
    /// The registry of this user.
    pub registry: Arc<Registry>,
    /// This process in it.
    pub process: Process,
    /// What its user has ordered by hand.
    pub orders: Orders,
    /// Who sees what its streams write.
    pub tap: Tap,
    /// How often it has told a peer something by way of the kernel.
    kernel_news: Word64,
    identity: Identity,
    /// The user that this process was as it made the engine.
    pub user: u32,
    listener: Listener,
    via: Option<via::Exchange>,
    /// Streams that wait to be asked.
    awaited: Mutex<HashMap<Key, u32>>,
    /// Streams that have asked.
    asked: Mutex<Vec<Asked>>,
    /// What stands on sockets.
    notices: Notices,
    /// When the fabric was last looked at.
    pumped: AtomicU64,
}

#[derive(Debug)]
struct Asked {
    stream: u32,
    key: Key,
    endpoint: Endpoint,
    half: Half,
    /// What must stand on the socket at the other end when the answer has come.
    proof: Notice,
}

/// Time between two looks at the fabric by calls that go to the kernel anyway.
const PUMP_NS: u64 = 20_000;
/// More than an engine or a connection takes of the heap: for some sizes of blocks it takes a slab of 64 KiB, aligned, each.
const RESERVE: usize = 4 << 20;
/// The first word of the identity of a process that has a rendezvous: the second one is all that differs in their names.
const RENDEZVOUS: u64 = 1;

/// Whether the process can have as much memory as an engine or a connection takes: where some is missing in the middle of it,
/// the program would be ended.
fn has_memory() -> bool {
    let mut room = Vec::<u8>::new();
    // Not left out because nobody uses it.
    std::hint::black_box(&mut room).try_reserve_exact(RESERVE).is_ok()
}

impl Engine {
    fn start() -> Option<Engine> {
        if !has_memory() {
            return None;
        }
        let user = user::own()?;
        guests::begin();
        if !numbers::choose() {
            return None;
        }
        let node = via::node()?;
        let identity = Identity([RENDEZVOUS, random()?[0] & MAX_NUMBER | 1]);
        let listener = node.listen(&format!("shm:{}", identity.name())).ok()?;
        let registry = registry::file::of_user()?;
        let process = registry.enter(identity, kernel::process())?;
        Some(Engine {
            kernel_news: registry.kernel_news(process),
            orders: Orders::of(&registry),
            tap: Tap::default(),
            registry,
            process,
            identity,
            user,
            listener,
            via: via::Exchange::start(&node, identity),
            node,
            awaited: Mutex::default(),
            asked: Mutex::default(),
            notices: Notices::default(),
            pumped: AtomicU64::new(0),
        })
    }

    /// The process is about to be where no thread of the engine may be.
    pub fn end_threads(&self) {
        self.node.end_service();
        sidestep_stream::carrier::end_timer();
    }

    /// A stream waits to be asked.
    pub fn await_peer(&self, place: &Place, stream: &Stream) {
        lock(&self.awaited).insert(place.key, stream.index);
        self.registry.set_willing(place.entry, true);
        self.expect_guest(place, stream);
    }

    /// A stream waits no more, neither to be asked nor for an answer: a peer that has answered sees that this side is gone.
    pub fn forget(&self, key: &Key) {
        lock(&self.awaited).remove(key);
        let given_up: Vec<Asked> = lock(&self.asked).extract_if(.., |asked| asked.key == *key).collect();
        given_up.iter().filter_map(|asked| of_key(asked.stream, key)).for_each(|stream| proof::take_back(stream.fd()));
        if let Some(via) = &self.via {
            via.forget(key);
        }
    }

    /// Looks at the fabric, unless it was looked at just now. `true`: it did.
    pub fn pump(&self) -> bool {
        let now = clock::now();
        let last = self.pumped.load(Ordering::Relaxed);
        if now.wrapping_sub(last) < PUMP_NS {
            return false;
        }
        self.pumped.store(now, Ordering::Relaxed);
        self.node.progress_kernel();
        while let Some(request) = self.listener.poll() {
            self.answer(request);
        }
        self.collect();
        if let Some(via) = &self.via {
            via.pump(self);
        }
        self.notices.clear_if_due(now);
        true
    }

    /// This side of a channel for a stream, if there is memory for all that goes with it.
    fn lend(&self, peer: PeerId) -> Result<Half, Error> {
        if !has_memory() {
            let limit = sidestep_shm::Error::Limit {
                what: "carry a stream",
                limit: "memory",
                source: rustix::io::Errno::NOMEM,
            };
            return Err(Error::Memory(limit));
        }
        let capacity = config().affordable_ring(config().rings[0]);
        Half::new(&self.node, peer, ChannelOptions { capacity, ..ChannelOptions::default() })
    }

    /// Looks for the process at the other end of a stream, and asks it.
    pub fn ask(&self, place: &Place, stream: &Stream) {
        if lock(&self.asked).iter().any(|asked| asked.key == place.key) {
            return;
        }
        let known = self.registry.find(&place.key.reversed());
        let Some(identity) = known.or_else(|| self.find_guest(&place.key)) else { return };
        match fit(stream, place) {
            Ok(()) => {}
            Err(None) => return,
            Err(Some(reason)) => return stream.stay(reason),
        }
        let Some(proof) = notice_of(identity) else { return };
        if clock::now() < SHORT_UNTIL.load(Ordering::Relaxed) {
            return stream.set_reason(Reason::Memory);
        }
        let via = self.via.as_ref().filter(|_| known.is_some() && wants_via(stream));
        if via.is_some_and(|via| via.ask(self, place, stream, identity)) {
            return;
        }
        let mut own = None;
        let mut connect = || {
            self.node.begin_connect_with(&format!("shm:{}", identity.name()), |peer| {
                self.put_notice(peer, stream)?;
                let half = self.lend(peer)?;
                let hello = words::hello(&place.key, &half.spec());
                own = Some(half);
                Ok(hello)
            })
        };
        let started = if known.is_some() { connect() } else { guests::while_asking(connect) };
        let (endpoint, half) = match (started, own) {
            (Ok(endpoint), Some(half)) => (endpoint, half),
            (failed, _) => {
                proof::take_back(stream.fd());
                match failed {
                    Err(Error::Memory(error)) => short_of(stream, &error),
                    Err(Error::NobodyListens(_)) => self.registry.sweep_one(identity),
                    _ => {}
                }
                return;
            }
        };
        half.keep_with(&endpoint);
        lock(&self.asked).push(Asked { stream: stream.index, key: place.key, endpoint, half, proof });
    }

    /// Says on a stream's socket that the line to this peer is where it is asked for.
    fn put_notice(&self, peer: PeerId, stream: &Stream) -> Result<(), Error> {
        let caller = self.node.peer(peer).caller().ok_or(Error::Unsupported("a line without a number"))?;
        let put = Notice::Asker(caller).put(stream.fd());
        put.then_some(()).ok_or(Error::Unsupported("a connection whose rate its program has set"))
    }

    /// Takes up the answers that have come.
    fn collect(&self) {
        let mut answered = Vec::new();
        {
            let mut asked = lock(&self.asked);
            let mut at = 0;
            while at < asked.len() {
                if matches!(asked[at].endpoint.is_connected(), Ok(false)) {
                    at += 1;
                } else {
                    answered.push(asked.swap_remove(at));
                }
            }
        }
        for asked in answered {
            let Some(stream) = of_key(asked.stream, &asked.key) else { continue };
            // Who has answered has seen it.
            proof::take_back(stream.fd());
            if stream.stage() != Stage::Offered {
                continue;
            }
            if asked.endpoint.is_connected().is_err() {
                // Refused, or gone: the next try comes later.
                stream.set_reason(Reason::Refused);
                continue;
            }
            let answer = asked.endpoint.private();
            let Some(theirs) = read_answer(&answer) else {
                stream.stay(Reason::Version);
                continue;
            };
            if !self.notices.have(&asked.key.reversed(), asked.proof) {
                stream.set_reason(Reason::Unproven);
                continue;
            }
            match ring::Joined::new(&asked.endpoint, &asked.half, &theirs) {
                Ok(joined) => {
                    let guest = Some(asked.endpoint.peer()).filter(|peer| self.is_guest(*peer));
                    stream.carried(&asked.key, joined.with(asked.endpoint), guest);
                }
                Err(_) => stream.stay(Reason::Resources),
            }
        }
    }

    /// The stream that waits to be asked under this key, if it may be promoted now.
    fn awaiting(&self, own: &Key) -> Option<&'static Stream> {
        let waiting = lock(&self.awaited).get(own).copied();
        let stream = waiting.and_then(table::stream_at).filter(|stream| stream.stage() == Stage::Offered)?;
        let place = stream.known_place().filter(|place| place.key == *own)?;
        match fit(stream, &place) {
            Ok(()) => Some(stream),
            Err(None) => None,
            Err(Some(reason)) => {
                stream.stay(reason);
                None
            }
        }
    }

    /// The same, if who asks has proven that it holds the other end; then the stream says that this process answers.
    fn proven(&self, request: &Request, own: &Key) -> Option<&'static Stream> {
        let stream = self.awaiting(own)?;
        let caller = self.node.peer(request.peer()?).caller()?;
        if !self.notices.have(&own.reversed(), Notice::Asker(caller)) {
            stream.set_reason(Reason::Unproven);
            return None;
        }
        if !notice_of(self.identity)?.put(stream.fd()) {
            stream.stay(Reason::Option);
            return None;
        }
        self.notices.posted(stream, own);
        Some(stream)
    }

    /// Someone asks for a link.
    fn answer_for_via(&self, request: Request, key: &Key) {
        let is_guest = request.peer().is_none_or(|peer| self.is_guest(peer));
        let answer = match self.via.as_ref().filter(|_| !is_guest) {
            None => words::NO_NIC.to_vec(),
            Some(via) => self.proven(&request, &key.reversed()).and_then(|_| via.ticket(key)).unwrap_or_default(),
        };
        // A process that cannot be told is gone.
        let _ = request.refuse(&answer);
    }

    /// Someone asks for a carrier.
    fn answer(&self, request: Request) {
        if let Some(key) = read_question(request.private()) {
            return self.answer_for_via(request, &key);
        }
        let Some((key, theirs)) = read_hello(request.private()) else {
            let _ = request.refuse(&[]);
            return;
        };
        let own = key.reversed();
        let Some(stream) = self.proven(&request, &own) else { return };
        let mut parts = None;
        let accepted = request.accept_with(|endpoint| {
            let half = self.lend(endpoint.peer())?;
            half.keep_with(endpoint);
            let answer = words::answer(&half.spec());
            parts = Some(ring::Joined::new(endpoint, &half, &theirs)?);
            Ok(answer)
        });
        match (accepted, parts) {
            (Ok(endpoint), Some(joined)) => {
                self.forget(&own);
                let guest = Some(endpoint.peer()).filter(|peer| self.is_guest(*peer));
                stream.carried(&own, joined.with(endpoint), guest);
            }
            (Err(Error::Memory(error)), _) => short_of(stream, &error),
            _ => {}
        }
    }
}

/// A stream, if its number still leads to the same connection.
fn of_key(index: u32, key: &Key) -> Option<&'static Stream> {
    table::stream_at(index).filter(|stream| stream.known_place().is_some_and(|place| place.key == *key))
}

/// What stands on a socket that a process answers for. `None`: it has no rendezvous.
fn notice_of(Identity([kind, number]): Identity) -> Option<Notice> {
    (kind == RENDEZVOUS && number <= MAX_NUMBER).then_some(Notice::Asked(number))
}

fn random() -> Option<[u64; 2]> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).ok()?;
    let bits = u128::from_ne_bytes(bytes);
    Some([(bits >> 64) as u64, bits as u64])
}

/// Until then this process asks nobody, since it had no memory for a carrier. A try in vain costs kernel memory for a while, too: a
/// connection, and a thread that closes it. In a small control group many of them in a row were the end of the process.
static SHORT_UNTIL: AtomicU64 = AtomicU64::new(0);
/// How long that is: several times as long as an answer of `sys::budget` holds.
const SHORT_NS: u64 = 100_000_000;

/// Something is short for a stream: it may be tried again later.
fn short_of(stream: &Stream, error: &sidestep_shm::Error) {
    if let sidestep_shm::Error::Limit { source, .. } = error {
        let of_memory = matches!(*source, rustix::io::Errno::NOSPC | rustix::io::Errno::NOMEM);
        if of_memory {
            SHORT_UNTIL.store(clock::now() + SHORT_NS, Ordering::Relaxed);
        }
        stream.set_reason(if of_memory { Reason::Memory } else { Reason::Resources });
    }
}

/// Whether a stream is to go over VIA, if it can: where both kinds of carriers are wanted, every second time.
fn wants_via(stream: &Stream) -> bool {
    config().carrier != config::Carrier::Both || stream.carriage.partings.load(Ordering::Relaxed) % 2 == 0
}
