//! A link that wraps a link: everything between two nodes goes over cards of so many kilobytes.
//!
//! ```text
//!   node ── put, get, atomic, post ──▶ words ──▶ data link ── messages of the link underneath ──▶ data link ──▶ words
//!                                                                                                      │
//!                 node ◀── place, fetch, atomic ◀── all there ◀── descriptor, pages ◀── lookup ◀───────┘
//!                                                                     │ missed: dropped; the host fills; the peer is asked again
//! ```
//!
//! It is named `vmmc:NAME`, or with the link underneath `vmmc:shm:NAME`. Nothing is mapped: every access to a region passes the
//! owner's card, which looks the region up as a buffer and the range as pages. What was missed, and all that came behind it, is
//! dropped, and asked for again when the host has filled the caches at the end of the poll: the link underneath loses nothing, so
//! the receiver always knows what it lacks, and no timer is needed. A peer that is gone sends nothing again: what it sent last is
//! taken without the caches then, from the host's memory, so that a miss loses nothing.

mod arriving;
mod line;
mod lookup;
mod performing;
mod words;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use sidestep_fabric::cookie::Cookie;
use sidestep_fabric::error::CloseReason;
use sidestep_fabric::link::{self, Capabilities, Link, LinkOptions, Outcome, PeerNumber, Request, Target, Ticket};
use sidestep_fabric::{Error as FabricError, Result as FabricResult};
use sidestep_shm::doorbell::Sleeper;

use crate::board::{Board, Kind};
use crate::card::Counters;
use crate::config::Config;
use crate::data_link::Arrival;
use crate::error::Result;
use crate::packet::{self, Body, Packet, SEGMENT};
use arriving::Arriving;
use line::{Asked, Line};
use lookup::Caches;
use performing::{is_there, perform};
use words::{Ask, Word};

/// A link on a card.
#[derive(Debug)]
pub struct VmmcLink {
    inner: Box<dyn Link>,
    config: Config,
    state: Mutex<State>,
    polling: Mutex<()>,
    /// Whether something could not be sent.
    stuck: AtomicBool,
    counters: Arc<Mutex<Counters>>,
    /// Where they are shown to other processes; without memory for it they are not.
    board: Option<Board>,
}

#[derive(Debug)]
struct State {
    lines: BTreeMap<PeerNumber, Line>,
    caches: Caches,
}

/// What a link has counted; it outlives the link.
#[derive(Debug, Clone)]
pub struct LinkCounters(Arc<Mutex<Counters>>);

impl LinkCounters {
    /// The counts at this moment.
    #[must_use]
    pub fn read(&self) -> Counters {
        *self.0.lock().expect("no panic in a link")
    }
}

/// From now on this process opens links of the scheme `vmmc` by name, each a card of these parameters over shared memory: `Node::open`
/// with that scheme, the NIC `vmmc` of VIA, and addresses of RPC that begin with `vmmc:`. Once in a process.
pub fn provide(config: Config) -> Result<()> {
    config.check()?;
    config.check_has_caches()?;
    link::provide(SCHEME, move |options| {
        let card = VmmcLink::new(link::open("shm", options)?, config);
        let card = card.map_err(|_| FabricError::Unsupported("a card of these parameters"))?;
        Ok(Box::new(card))
    })?;
    Ok(())
}

/// Whether a link heeds these bytes in a packet: a peer that says anything else has broken the protocol.
#[must_use]
pub fn is_word(bytes: &[u8]) -> bool {
    Word::parse(bytes).is_some()
}

/// What is handed to the node when no lock is held.
enum Delivery {
    Message(Vec<u8>),
    Completed(Ticket, Outcome),
}

impl VmmcLink {
    /// A card on a link of a scheme, such as `shm`.
    pub fn open(scheme: &str, config: Config) -> Result<VmmcLink> {
        VmmcLink::new(link::open(scheme, &LinkOptions::default())?, config)
    }

    /// Wraps a link; the card has the caches of the parameters.
    pub fn new(inner: Box<dyn Link>, config: Config) -> Result<VmmcLink> {
        config.check()?;
        config.check_has_caches()?;
        let state = State { lines: BTreeMap::new(), caches: Caches::new(&config) };
        let (state, polling, stuck) = (Mutex::new(state), Mutex::new(()), AtomicBool::new(false));
        let board = Board::new(Kind::Link, inner.capabilities().scheme, &config).ok();
        Ok(VmmcLink { inner, config, state, polling, stuck, counters: Arc::default(), board })
    }

    /// Where hits and misses are counted.
    #[must_use]
    pub fn counters(&self) -> LinkCounters {
        LinkCounters(self.counters.clone())
    }

    fn link(&self) -> &dyn Link {
        &*self.inner
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic in a link")
    }

    /// The name for the link underneath, which may begin with its scheme.
    fn inner_name<'n>(&self, name: &'n str) -> &'n str {
        let scheme = self.link().capabilities().scheme;
        name.strip_prefix(scheme).and_then(|rest| rest.strip_prefix(':')).unwrap_or(name)
    }

    fn with_line(&self, peer: PeerNumber, say: impl FnOnce(&mut Line)) -> FabricResult<()> {
        let mut state = self.state();
        let line = state.lines.entry(peer).or_insert_with(|| Line::new(self.config.link));
        line.check_room()?;
        say(line);
        self.transmit(line, peer, false)
    }

    fn transmit(&self, line: &mut Line, peer: PeerNumber, all: bool) -> FabricResult<()> {
        let sent = line.transmit(self.link(), peer, all);
        if line.is_stuck() {
            self.stuck.store(true, Ordering::Release);
        }
        sent
    }

    /// Takes a packet, and says what the node is to be told. An error is a peer that broke the protocol.
    fn take(&self, target: &dyn Target, peer: PeerNumber, bytes: &[u8]) -> Result<Vec<Delivery>, &'static str> {
        let mut state = self.state();
        let State { lines, caches } = &mut *state;
        let line = lines.entry(peer).or_insert_with(|| Line::new(self.config.link));
        let mut deliveries = Vec::new();
        match packet::parse(bytes).ok_or("a packet that is none")? {
            Packet::Ack(ack) => line.link.handle_ack(0, ack),
            Packet::Nack(ack) => line.link.handle_nack(0, ack),
            Packet::Numbered { number, ack, body: Body::Message(word) } => {
                line.link.handle_ack(0, ack);
                let word = Word::parse(&word).ok_or("a word that is none")?;
                match line.link.handle_number(number) {
                    Arrival::Again => {}
                    Arrival::Early => drop(line.passed_over.insert(number, word)),
                    Arrival::Next => {
                        let mut counters = self.counters.lock().expect("no panic in a link");
                        if is_there(caches, &mut counters, target, peer, &word) {
                            line.link.accept();
                            line.passed_over.remove(&number);
                            drop(counters);
                            deliveries = perform(line, target, peer, word)?;
                        } else {
                            counters.dropped += 1;
                            line.missed = true;
                            line.link.pass_over();
                            line.passed_over.insert(number, word);
                        }
                    }
                }
                if line.passed_over.len() > MOST_PASSED_OVER {
                    return Err("more packets than a window has");
                }
            }
            Packet::Numbered { .. } => return Err("a packet of a card, not of a link"),
        }
        // What it makes room for.
        let _ = self.transmit(line, peer, false);
        Ok(deliveries)
    }

    /// The peer is gone: what it sent before and was passed over is taken, then every request there ends.
    fn end(&self, target: &dyn Target, peer: PeerNumber, reason: CloseReason) -> Vec<Delivery> {
        let Some(mut line) = self.state().lines.remove(&peer) else { return Vec::new() };
        let mut deliveries = Vec::new();
        // In order: numbers rise without a gap from the first that was missed.
        for word in std::mem::take(&mut line.passed_over).into_values() {
            deliveries.extend(perform(&mut line, target, peer, word).unwrap_or_default());
        }
        let ended = line.end(reason).into_iter();
        deliveries.extend(ended.map(|(ticket, outcome)| Delivery::Completed(ticket, outcome)));
        deliveries
    }

    /// The host fills what was missed, and what was dropped for it is asked for again.
    fn resolve(&self) -> bool {
        let mut state = self.state();
        let State { lines, caches } = &mut *state;
        caches.resolve();
        let retry = self.stuck.swap(false, Ordering::AcqRel);
        let mut any = false;
        for (peer, line) in lines {
            let missed = std::mem::take(&mut line.missed);
            if missed {
                line.link.want_again();
            }
            if missed || retry {
                any |= missed;
                let _ = self.transmit(line, *peer, false);
            }
        }
        any
    }

    fn count_resent(&self) {
        let resent = self.state().lines.values().map(|line| line.link.resent()).sum();
        let mut counters = self.counters.lock().expect("no panic in a link");
        counters.resent = resent;
        if let Some(board) = &self.board {
            board.show(&counters);
        }
    }
}

impl Link for VmmcLink {
    fn capabilities(&self) -> Capabilities {
        let inner = self.link().capabilities();
        // Peers wait for this side's card, and what it asks for again must be sent also while the program does not poll.
        Capabilities { scheme: SCHEME, served: true, gathers: false, max_message: MOST_MESSAGE, ..inner }
    }

    fn listen(&self, name: &str) -> FabricResult<()> {
        self.link().listen(self.inner_name(name))
    }

    fn unlisten(&self, name: &str) {
        self.link().unlisten(self.inner_name(name));
    }

    fn connect(&self, name: &str) -> FabricResult<PeerNumber> {
        self.link().connect(self.inner_name(name))
    }

    fn local_name(&self, peer: PeerNumber, name: &str) -> Option<String> {
        let inner = self.inner_name(name);
        // A name without the scheme of the link underneath is the same name.
        self.link().local_name(peer, inner).or_else(|| (inner != name).then(|| inner.to_owned()))
    }

    fn post(&self, peer: PeerNumber, bytes: &[u8]) -> FabricResult<()> {
        if bytes.len() > MOST_MESSAGE {
            let (what, must) = ("message", "at most 4224 bytes");
            return Err(sidestep_fabric::Error::Size { what, must, value: bytes.len() });
        }
        self.with_line(peer, |line| {
            let count = bytes.len().div_ceil(SEGMENT).max(1);
            for at in 0..count {
                let bytes = bytes[at * SEGMENT..bytes.len().min((at + 1) * SEGMENT)].to_vec();
                line.say(&Word::Message { last: at + 1 == count, bytes });
            }
        })
    }

    fn request(&self, peer: PeerNumber, ticket: Ticket, cookie: &Cookie, request: Request<'_>) -> FabricResult<()> {
        let cookie = *cookie;
        self.with_line(peer, |line| {
            let ask = |line: &mut Line, ask| line.say(&Word::Ask { ticket, cookie, ask });
            let asked = match request {
                Request::Map => {
                    ask(line, Ask::Map);
                    Asked::Map
                }
                Request::Put { offset, bytes } => {
                    let count = bytes.len().div_ceil(SEGMENT).max(1);
                    for at in 0..count {
                        let end = bytes.len().min((at + 1) * SEGMENT);
                        let (offset, left) = (offset.wrapping_add((at * SEGMENT) as u64), (bytes.len() - end) as u64);
                        ask(line, Ask::Put { offset, left, bytes: bytes[at * SEGMENT..end].to_vec() });
                    }
                    Asked::Put
                }
                Request::Get { offset, len } => {
                    let count = len.div_ceil(SEGMENT).max(1);
                    for at in 0..count {
                        let piece = (len - at * SEGMENT).min(SEGMENT) as u32;
                        let offset = offset.wrapping_add((at * SEGMENT) as u64);
                        ask(line, Ask::Get { offset, len: piece, last: at + 1 == count });
                    }
                    Asked::Get(Vec::with_capacity(len))
                }
                Request::Atomic { offset, atomic } => {
                    ask(line, Ask::Atomic { offset, atomic });
                    Asked::Atomic
                }
            };
            line.asked.insert(ticket, asked);
        })
        .inspect_err(|_| {
            if let Some(line) = self.state().lines.get_mut(&peer) {
                line.asked.remove(&ticket);
            }
        })
    }

    fn is_here(&self, peer: PeerNumber) -> bool {
        self.link().is_here(peer)
    }

    fn poll(&self, target: &dyn Target, kernel: bool) -> bool {
        let Ok(_polling) = self.polling.try_lock() else { return false };
        let mut any = self.link().poll(&Arriving { target, link: self }, kernel);
        any |= self.resolve();
        if any {
            self.count_resent();
        }
        any
    }

    fn has_news(&self) -> bool {
        self.link().has_news()
    }

    fn is_full(&self) -> bool {
        self.stuck.load(Ordering::Acquire) || self.link().is_full()
    }

    fn shares_core(&self, core: u32) -> bool {
        self.link().shares_core(core)
    }

    fn watch(&self, sleeper: &Arc<Sleeper>) -> FabricResult<()> {
        self.link().watch(sleeper)
    }

    fn set_sleeping(&self, sleeping: bool) {
        self.link().set_sleeping(sleeping);
    }

    fn attend(&self) -> bool {
        self.link().attend()
    }

    fn push(&self) {
        self.link().push();
    }

    fn caller(&self, peer: PeerNumber) -> Option<u64> {
        self.link().caller(peer)
    }

    fn close(&self, peer: PeerNumber, reason: CloseReason) {
        if let Some(line) = self.state().lines.get_mut(&peer) {
            let _ = self.transmit(line, peer, true);
        }
        self.link().close(peer, reason);
    }
}

/// The first part of names.
const SCHEME: &str = "vmmc";
/// The longest message: as long as that of the other links.
const MOST_MESSAGE: usize = 4224;
/// What a peer may send behind a packet that was dropped: more than any window and what is sent when a link closes.
const MOST_PASSED_OVER: usize = 16384;
