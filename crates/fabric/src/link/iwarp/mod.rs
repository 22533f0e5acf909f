//! The link between hosts: iWARP over TCP, in user space.
//!
//! | of the fabric | on the wire |
//! |---|---|
//! | a peer | one TCP connection, made by MPA with a hello in the private data |
//! | a cookie | a steering tag, bound by a send before its first use; no round trip |
//! | put | RDMA write; a read of length zero behind it says that it was carried out |
//! | get, atomic | RDMA read, atomic |
//! | a message | a send |
//! | a refusal | a send that overtakes the answer |
//! | close | a send of goodbye, then the end of the stream; an end without goodbye is a death |
//!
//! A name is `HOST:PORT`, or `HOST:PORT/SERVICE` where several listeners share a port, or `in-place/SERVICE` for lines over streams
//! that the caller has connected. Nothing here is mapped: every access
//! of a peer passes through the engine, which checks tag, bounds and rights of each segment, and through the node, which
//! checks the cookie. What does not keep to the protocol ends its own connection and no other.
//!
//! Requests and messages go out on the thread that makes them. What arrives is carried out by whoever polls; a node on
//! this link keeps a thread that polls while the program does not.

mod address;
mod answers;
mod asks;
pub mod control;
mod holding;
mod hosting;
mod input;
mod lent;
mod listeners;
mod memory;
mod network;
mod outgoing;
mod polling;
mod reception;
mod session;
mod socket;
mod state;
mod timer;

pub use self::network::{HostNetwork, Network};

use std::{
    collections::BTreeMap,
    net::IpAddr,
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc, RwLock,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use sidestep_iwarp::BufferId;
use sidestep_shm::doorbell::{Doorbell, Sleeper};
use sidestep_sys::{
    clock,
    lock::{Mutex, MutexGuard},
};

use self::{
    address::Address,
    holding::Holding,
    lent::Lent,
    listeners::Listeners,
    polling::Polling,
    session::{Around, Origin, Session},
    socket::Route,
    state::State,
    timer::Timer,
};
use crate::{
    cookie::Cookie,
    error::{CloseReason, Error, Result},
    link::{Capabilities, KERNEL, Link, LinkOptions, MAX_GATHERED, PeerNumber, Request, Target, Ticket},
    protocol::MAX_PRIVATE,
    region::RegionSlice,
};

/// iWARP over TCP.
#[derive(Debug)]
pub struct IwarpLink {
    options: LinkOptions,
    network: Arc<dyn Network>,
    began: u64,
    sessions: RwLock<BTreeMap<PeerNumber, Arc<Session>>>,
    listeners: Mutex<Listeners>,
    next_peer: AtomicU32,
    /// Every stream and listener, the timer and the bell.
    ready: Sleeper,
    timer: Timer,
    /// Rung when a session has something to report that its stream does not tell.
    bell: Doorbell,
    due: Mutex<Vec<Arc<Session>>>,
    is_due: AtomicBool,
    holding: Holding,
    /// The core on which the last packets were received.
    peer_core: AtomicU32,
    /// Held by the thread that polls: what a peer sent is handled in order.
    polling: Mutex<Box<Polling>>,
    /// A stream ends no sleep.
    is_muted: AtomicBool,
}

/// The most bytes of one put or get.
const MAX_TRANSFER: usize = 128 * 1024;
const MAX_MESSAGE: usize = MAX_PRIVATE + 128;
/// Tokens; sessions have their number.
const BELL: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;

impl IwarpLink {
    /// A link for this process.
    pub fn new(options: LinkOptions) -> Result<IwarpLink> {
        Self::on(options, Arc::new(HostNetwork))
    }

    /// A link on a given network.
    pub fn on(options: LinkOptions, network: Arc<dyn Network>) -> Result<IwarpLink> {
        options.check()?;
        let ready = Sleeper::new()?;
        let began = clock::now();
        let timer = Timer::new(began, &ready, TIMER)?;
        let bell = Doorbell::new()?;
        ready.add_doorbell(bell.as_fd(), BELL)?;
        Ok(IwarpLink {
            options,
            network,
            began,
            sessions: RwLock::default(),
            listeners: Mutex::new(Listeners::new()?),
            next_peer: AtomicU32::new(1),
            ready,
            timer,
            bell,
            due: Mutex::default(),
            is_due: AtomicBool::new(false),
            holding: Holding::default(),
            peer_core: AtomicU32::new(u32::MAX),
            polling: Mutex::default(),
            is_muted: AtomicBool::new(false),
        })
    }

    /// What it was made with.
    pub fn options(&self) -> &LinkOptions {
        &self.options
    }

    fn around(&self) -> Around<'_> {
        Around { ready: &self.ready, began: self.began }
    }

    fn session(&self, peer: PeerNumber) -> Result<Arc<Session>> {
        let sessions = self.sessions.read().expect("no panic in session table");
        // It was there when its number was given out, and it ends by itself or with its process.
        sessions.get(&peer).cloned().ok_or(Error::Closed(CloseReason::Died))
    }

    fn add(&self, origin: Origin, socket: OwnedFd) -> Result<Arc<Session>> {
        let id = PeerNumber(self.next_peer.fetch_add(1, Ordering::Relaxed));
        let (around, socket) = (self.around(), Arc::new(socket));
        self.network.opened(&socket);
        let state = match origin {
            Origin::Accepted | Origin::Adopted => State::respond(id, &self.options, around.now()),
            Origin::Named(_) | Origin::Alone => State::initiate(id, &self.options, around.now())?,
        };
        // Before the stream can tell anything of it.
        let mut sessions = self.sessions.write().expect("no panic in session table");
        let session = Arc::new(Session::new(id, origin, socket, state, around)?);
        sessions.insert(id, session.clone());
        drop(sessions);
        self.timer.set(session.timeout());
        Ok(session)
    }

    fn remove(&self, session: &Session) {
        session.leave(&self.ready);
        self.sessions.write().expect("no panic in session table").remove(&session.id);
    }

    fn ask<'a>(
        &self,
        peer: PeerNumber,
        ask: impl FnOnce(&mut State) -> Result<Option<(BufferId, Lent<'a>)>>,
    ) -> Result<()> {
        let session = self.session(peer)?;
        if session.request(self.around(), ask)? {
            self.holding.add(session);
        }
        Ok(())
    }

    /// Makes the next poll look at a session.
    fn make_due(&self, session: Arc<Session>) {
        self.due.lock().expect("no panic in a list of sessions").push(session);
        self.is_due.store(true, Ordering::Release);
        self.bell.ring();
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().expect("no panic in a table of listeners")
    }
}

impl Link for IwarpLink {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            scheme: "iwarp",
            distant: true,
            served: true,
            gathers: true,
            max_transfer: MAX_TRANSFER,
            max_message: MAX_MESSAGE,
        }
    }

    fn listen(&self, name: &str) -> Result<()> {
        self.listeners().add(name, &*self.network, &self.ready)
    }

    fn unlisten(&self, name: &str) {
        self.listeners().remove(name, &self.ready);
    }

    fn connect(&self, name: &str) -> Result<PeerNumber> {
        let address = Address::parse(name)?;
        let sessions = self.sessions.read().expect("no panic in session table");
        let known = sessions.values().find(|session| session.origin.is_named(address.text) && session.is_live());
        if let Some(session) = known {
            return Ok(session.id);
        }
        drop(sessions);
        let route = Route { network: &*self.network, from: None, limit: self.options.setup_timeout };
        let socket = socket::connect(&route, &address.resolve()?, name, &self.options)?;
        Ok(self.add(Origin::Named(address.text.to_string()), socket)?.id)
    }

    fn connect_from(&self, name: &str, from: IpAddr, deadline: u64) -> Result<PeerNumber> {
        let left = Duration::from_nanos(deadline.saturating_sub(clock::now()));
        let limit = left.min(self.options.setup_timeout);
        let route = Route { network: &*self.network, from: Some(from), limit };
        let socket = socket::connect(&route, &Address::parse(name)?.resolve()?, name, &self.options)?;
        Ok(self.add(Origin::Alone, socket)?.id)
    }

    fn adopt(&self, stream: OwnedFd, begins: bool) -> Result<PeerNumber> {
        socket::adopt(&stream, &self.options)?;
        Ok(self.add(if begins { Origin::Alone } else { Origin::Adopted }, stream)?.id)
    }

    fn address(&self, peer: PeerNumber) -> Option<IpAddr> {
        socket::peer_address(&self.session(peer).ok()?.socket)
    }

    fn local_name(&self, _peer: PeerNumber, name: &str) -> Option<String> {
        self.listeners().local_name(name)
    }

    fn is_here(&self, peer: PeerNumber) -> bool {
        self.session(peer).is_ok_and(|session| session.is_live())
    }

    fn post(&self, peer: PeerNumber, bytes: &[u8]) -> Result<()> {
        check("message", "at most 4224 bytes", bytes.len(), MAX_MESSAGE)?;
        self.session(peer)?.post(bytes, self.around())
    }

    fn request(&self, peer: PeerNumber, ticket: Ticket, cookie: &Cookie, request: Request<'_>) -> Result<()> {
        let len = match request {
            Request::Put { bytes, .. } => bytes.len(),
            Request::Get { len, .. } => len,
            Request::Map | Request::Atomic { .. } => 0,
        };
        check("transfer", "at most 131072 bytes", len, MAX_TRANSFER)?;
        self.ask(peer, |state| state.request(ticket, cookie, request))
    }

    /// Memory that no peer can write is sent from where it lies; of other memory, a copy is if it gets a checksum.
    fn put(&self, peer: PeerNumber, ticket: Ticket, cookie: &Cookie, offset: u64, source: &RegionSlice) -> Result<()> {
        check("transfer", "at most 262144 bytes", source.len(), MAX_GATHERED)?;
        let lent = Lent::Part(&source.core().data, source.offset(), source.len());
        let mut still = None;
        self.ask(peer, |state| {
            still = source.hold_still();
            state.put(ticket, cookie, offset, lent, still.is_some())
        })
    }

    fn poll(&self, target: &dyn Target, kernel: bool) -> bool {
        let Ok(mut polling) = self.polling.try_lock() else { return false };
        self.look_around(&mut polling, target, kernel)
    }

    /// Memory tells only what this side does itself.
    fn has_news(&self) -> bool {
        self.is_due.load(Ordering::Acquire)
    }

    fn shares_core(&self, core: u32) -> bool {
        self.peer_core.load(Ordering::Relaxed) == core
    }

    fn watch(&self, sleeper: &Arc<Sleeper>) -> Result<()> {
        Ok(sleeper.add_level(self.ready.as_fd(), KERNEL)?)
    }

    /// The kernel tells of all news; what is held back does not wait for a sleeper.
    fn set_sleeping(&self, sleeping: bool) {
        if sleeping {
            // SeqCst: pairs with `attend`, after which the sleepers are looked for.
            if self.is_muted.load(Ordering::SeqCst) {
                self.unmute(&mut self.polling.lock().expect("no panic while polling"));
            }
            self.holding.release(self.around(), false);
        }
    }

    fn attend(&self) -> bool {
        !self.is_muted.load(Ordering::Relaxed)
            && self.polling.try_lock().is_ok_and(|mut polling| self.mute(&mut polling))
    }

    fn push(&self) {
        if !self.holding.is_empty() {
            self.holding.release(self.around(), true);
        }
    }

    fn close(&self, peer: PeerNumber, reason: CloseReason) {
        let Ok(session) = self.session(peer) else { return };
        if session.close(reason, self.around()) {
            self.timer.set(session.timeout());
            self.make_due(session);
        }
    }
}

fn check(what: &'static str, must: &'static str, value: usize, limit: usize) -> Result<()> {
    if value > limit {
        return Err(Error::Size { what, must, value });
    }
    Ok(())
}
