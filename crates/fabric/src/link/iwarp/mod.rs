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
//! A name is `HOST:PORT`, or `HOST:PORT/SERVICE` where several listeners share a port. Nothing here is mapped: every access
//! of a peer passes through the engine, which checks tag, bounds and rights of each segment, and through the node, which
//! checks the cookie. What does not keep to the protocol ends its own connection and no other.
//!
//! Requests and messages go out on the thread that makes them. What arrives is carried out by whoever polls; a node on
//! this link keeps a thread that polls while the program does not.

mod address;
mod answers;
mod asks;
pub mod control;
mod cord;
mod holding;
mod input;
mod listeners;
mod memory;
mod network;
mod options;
mod session;
mod socket;
mod state;
mod timer;

pub use self::{
    cord::Cord,
    network::{HostNetwork, Network},
    options::IwarpOptions,
};

use std::{
    collections::BTreeMap,
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc, Mutex, MutexGuard, RwLock,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use sidestep_shm::{
    clock,
    doorbell::{Doorbell, Sleeper, Tokens},
};

use self::{
    address::Address,
    holding::Holding,
    listeners::{LISTENER, Listeners},
    session::{Around, Found, Session},
    state::State,
    timer::Timer,
};
use crate::{
    cookie::{Cookie, RegionId},
    error::{CloseReason, Error, Result},
    link::{Capabilities, KERNEL, Link, PeerId, Request, Target, Ticket},
    protocol::MAX_PRIVATE,
    tripwire::Access,
};

/// iWARP over TCP.
#[derive(Debug)]
pub struct IwarpLink {
    options: IwarpOptions,
    network: Arc<dyn Network>,
    began: u64,
    sessions: Arc<RwLock<BTreeMap<PeerId, Arc<Session>>>>,
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
    /// The core on which the last packets were received, and how often a peer was heard.
    peer_core: AtomicU32,
    heard: AtomicU32,
    /// Held by the thread that polls: what a peer sent is handled in order.
    polling: Mutex<Polling>,
}

#[derive(Debug, Default)]
struct Polling {
    tokens: Tokens,
    /// The session that was heard last: the next news is most likely its own, and a read tells sooner than a look at all
    /// descriptors.
    hot: Option<Arc<Session>>,
    /// Polls since all descriptors were looked at.
    partial: u32,
}

/// The most bytes of one put or get.
const MAX_TRANSFER: usize = 128 * 1024;
const MAX_MESSAGE: usize = MAX_PRIVATE + 128;
/// Peers that may be in set-up; a further one takes the place of the first.
const MAX_SILENT: usize = 128;
/// Peers accepted in one poll.
const ACCEPTS_A_POLL: usize = 16;
/// Polls of one session before all descriptors are looked at again.
const PARTIAL_POLLS: u32 = 8;
/// A peer is heard so often before its core is looked at again.
const HEARD_A_LOOK: u32 = 16;
/// Tokens; sessions have their number.
const BELL: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;

impl IwarpLink {
    /// A link for this process.
    pub fn new(options: IwarpOptions) -> Result<IwarpLink> {
        Self::on(options, Arc::new(HostNetwork))
    }

    /// A link on a given network.
    pub fn on(options: IwarpOptions, network: Arc<dyn Network>) -> Result<IwarpLink> {
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
            sessions: Arc::default(),
            listeners: Mutex::new(Listeners::new()?),
            next_peer: AtomicU32::new(1),
            ready,
            timer,
            bell,
            due: Mutex::default(),
            is_due: AtomicBool::new(false),
            holding: Holding::default(),
            peer_core: AtomicU32::new(u32::MAX),
            heard: AtomicU32::new(0),
            polling: Mutex::default(),
        })
    }

    /// Holds all streams of the link, for tests that cut them.
    pub fn cord(&self) -> Cord {
        Cord { sessions: self.sessions.clone() }
    }

    /// What it was made with.
    pub fn options(&self) -> &IwarpOptions {
        &self.options
    }

    fn around(&self) -> Around<'_> {
        Around { ready: &self.ready, now: Duration::from_nanos(clock::now() - self.began) }
    }

    fn session(&self, peer: PeerId) -> Result<Arc<Session>> {
        let sessions = self.sessions.read().expect("no panic in session table");
        // It was there when its number was given out, and it ends by itself or with its process.
        sessions.get(&peer).cloned().ok_or(Error::Closed(CloseReason::Died))
    }

    fn add(&self, name: Option<String>, socket: OwnedFd) -> Result<Arc<Session>> {
        let id = PeerId(self.next_peer.fetch_add(1, Ordering::Relaxed));
        let around = self.around();
        let state = match name {
            Some(_) => State::initiate(id, &self.options, around.now)?,
            None => State::respond(id, &self.options, around.now),
        };
        // Before the stream can tell anything of it.
        let mut sessions = self.sessions.write().expect("no panic in session table");
        let session = Arc::new(Session::new(id, name, socket, state, around)?);
        sessions.insert(id, session.clone());
        drop(sessions);
        self.timer.set(session.timeout());
        Ok(session)
    }

    fn remove(&self, session: &Session) {
        session.leave(&self.ready);
        self.sessions.write().expect("no panic in session table").remove(&session.id);
    }

    /// Makes the next poll look at a session.
    fn make_due(&self, session: Arc<Session>) {
        self.due.lock().expect("no panic in a list of sessions").push(session);
        self.is_due.store(true, Ordering::Release);
        self.bell.ring();
    }

    fn handle_timer(&self, target: &dyn Target) -> bool {
        self.timer.clear();
        let mut any = false;
        let all: Vec<_> = self.sessions.read().expect("no panic in session table").values().cloned().collect();
        for session in all {
            if let Some(at) = session.timeout() {
                let around = self.around();
                if at <= around.now {
                    session.handle_timeout(around);
                    any |= self.look(&session, target);
                }
                self.timer.set(session.timeout());
            }
        }
        any
    }

    fn look(&self, session: &Arc<Session>, target: &dyn Target) -> bool {
        self.look_closely(session, self.around(), target).any
    }

    /// Takes in what one session has.
    fn look_closely(&self, session: &Arc<Session>, around: Around<'_>, target: &dyn Target) -> Found {
        let found = session.poll(around, target);
        if found.holds {
            self.holding.add(session.clone());
        }
        if found.gone {
            self.remove(session);
        } else if found.over {
            self.timer.set(session.timeout());
        }
        found
    }

    /// Takes in what the sessions have that have something to report.
    fn look_at_due(&self, target: &dyn Target) -> bool {
        if !self.is_due.load(Ordering::Relaxed) || !self.is_due.swap(false, Ordering::AcqRel) {
            return false;
        }
        let due = std::mem::take(&mut *self.due.lock().expect("no panic in a list of sessions"));
        due.iter().fold(false, |any, session| self.look(session, target) | any)
    }

    /// Takes in what all descriptors have.
    fn look_at_all(&self, polling: &mut Polling, target: &dyn Target) -> bool {
        let Polling { tokens, hot, .. } = polling;
        if self.ready.sleep(Some(0), tokens).is_err() {
            return false;
        }
        let mut any = false;
        for token in tokens.iter() {
            any |= match *token {
                BELL => self.is_due.load(Ordering::Acquire),
                TIMER => self.handle_timer(target),
                token if token & LISTENER != 0 => self.accept(token),
                peer => self.session(PeerId(peer as u32)).is_ok_and(|session| {
                    let found = self.look_closely(&session, self.around(), target);
                    self.note_core(&session);
                    if !found.over {
                        *hot = Some(session);
                    }
                    found.any
                }),
            };
        }
        any
    }

    /// Notes where a peer runs that is on this host: its packets are received on the core that sends them.
    fn note_core(&self, session: &Session) {
        if self.heard.fetch_add(1, Ordering::Relaxed) % HEARD_A_LOOK == 0 {
            self.peer_core.store(session.incoming_core(), Ordering::Relaxed);
        }
    }

    fn accept(&self, token: u64) -> bool {
        let mut any = false;
        for _ in 0..ACCEPTS_A_POLL {
            let Some(socket) = self.listeners().accept(token, &self.options) else { break };
            any = true;
            self.crowd_out();
            // A peer that there are no resources for is turned away by the close of its stream.
            let _ = self.add(None, socket);
        }
        any
    }

    /// Gives up on the oldest peer in set-up, if there are too many.
    fn crowd_out(&self) {
        let sessions = self.sessions.read().expect("no panic in session table");
        let silent: Vec<_> = sessions.values().filter(|session| session.is_silent()).cloned().collect();
        drop(sessions);
        if silent.len() >= MAX_SILENT {
            silent[0].drop_silent();
            self.remove(&silent[0]);
        }
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().expect("no panic in a table of listeners")
    }
}

impl Link for IwarpLink {
    fn capabilities(&self) -> Capabilities {
        Capabilities { scheme: "iwarp", maps: false, max_transfer: MAX_TRANSFER, max_message: MAX_MESSAGE }
    }

    fn listen(&self, name: &str) -> Result<()> {
        self.listeners().add(name, &*self.network, &self.ready)
    }

    fn unlisten(&self, name: &str) {
        self.listeners().remove(name, &self.ready);
    }

    fn connect(&self, name: &str) -> Result<PeerId> {
        let address = Address::parse(name)?;
        let sessions = self.sessions.read().expect("no panic in session table");
        let known =
            sessions.values().find(|session| session.name.as_deref() == Some(address.text) && session.is_live());
        if let Some(session) = known {
            return Ok(session.id);
        }
        drop(sessions);
        let socket = socket::connect(&*self.network, &address.resolve()?, name, &self.options)?;
        Ok(self.add(Some(address.text.to_string()), socket)?.id)
    }

    fn local_name(&self, _peer: PeerId, name: &str) -> Option<String> {
        self.listeners().local_name(name)
    }

    fn post(&self, peer: PeerId, bytes: &[u8]) -> Result<()> {
        check("message", "at most 4224 bytes", bytes.len(), MAX_MESSAGE)?;
        self.session(peer)?.post(bytes, self.around())
    }

    fn request(&self, peer: PeerId, ticket: Ticket, cookie: &Cookie, request: Request<'_>) -> Result<()> {
        let len = match request {
            Request::Put { bytes, .. } => bytes.len(),
            Request::Get { len, .. } => len,
            Request::Map | Request::Atomic { .. } => 0,
        };
        check("transfer", "at most 131072 bytes", len, MAX_TRANSFER)?;
        let session = self.session(peer)?;
        if session.request(ticket, cookie, request, self.around())? {
            self.holding.add(session);
        }
        Ok(())
    }

    /// Nothing is mapped, so nothing is ever armed at a peer.
    fn fire(&self, _peer: PeerId, _region: RegionId, _offset: usize, _access: Access) {}

    fn poll(&self, target: &dyn Target, kernel: bool) -> bool {
        let Ok(mut polling) = self.polling.try_lock() else { return false };
        let (polling, around) = (&mut *polling, self.around());
        let mut any = self.look_at_due(target);
        polling.tokens.clear();
        if let Some(session) = polling.hot.take() {
            let found = self.look_closely(&session, around, target);
            if found.any {
                any = true;
                polling.tokens.push(u64::from(session.id.0));
                self.note_core(&session);
            }
            polling.hot = (!found.over).then_some(session);
            polling.partial += 1;
            if (found.any || !kernel) && polling.hot.is_some() && polling.partial < PARTIAL_POLLS {
                self.holding.grow_old(around, &polling.tokens);
                return any;
            }
        }
        polling.partial = 0;
        any |= self.look_at_all(polling, target);
        self.holding.grow_old(around, &polling.tokens);
        any
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
            self.holding.release(self.around(), false);
        }
    }

    fn push(&self) {
        if !self.holding.is_empty() {
            self.holding.release(self.around(), true);
        }
    }

    fn needs_service(&self) -> bool {
        true
    }

    fn close(&self, peer: PeerId, reason: CloseReason) {
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
