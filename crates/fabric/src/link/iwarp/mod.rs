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
mod input;
mod memory;
mod network;
mod options;
mod session;
mod socket;
mod state;

pub use self::{
    network::{HostNetwork, Network},
    options::IwarpOptions,
};

use std::{
    collections::{BTreeMap, HashMap},
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc, Mutex, MutexGuard, RwLock,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
    },
    time::Duration,
};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use sidestep_shm::{
    self as shm, clock,
    doorbell::{Doorbell, Sleeper, Tokens},
};

use self::{
    address::Address,
    session::{Around, Found, Session},
    state::State,
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
    timer: Mutex<Timer>,
    /// Rung when a session has something to report that its stream does not tell.
    bell: Doorbell,
    due: Mutex<Vec<Arc<Session>>>,
    is_due: AtomicBool,
    /// Sessions that hold an answer back for a moment.
    holding: Mutex<Vec<Arc<Session>>>,
    held: AtomicUsize,
    /// Held by the thread that polls: what a peer sent is handled in order.
    polling: Mutex<Polling>,
    /// A descriptor in reserve, for turning peers away when there are no others.
    spare: Mutex<Option<Doorbell>>,
}

/// All streams of a link.
#[derive(Debug)]
pub struct Cord {
    sessions: Arc<RwLock<BTreeMap<PeerId, Arc<Session>>>>,
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

#[derive(Debug, Default)]
struct Listeners {
    /// By `HOST:PORT`.
    sockets: HashMap<String, Port>,
    next: u64,
}

/// A listening socket, and the names under which it is listened.
#[derive(Debug)]
struct Port {
    socket: OwnedFd,
    token: u64,
    number: u16,
    names: Vec<String>,
}

#[derive(Debug)]
struct Timer {
    descriptor: OwnedFd,
    /// When it goes off, if it is set.
    at: Option<Duration>,
}

/// The most bytes of one put or get.
const MAX_TRANSFER: usize = 64 * 1024;
const MAX_MESSAGE: usize = MAX_PRIVATE + 128;
/// Peers that may be in set-up; a further one takes the place of the first.
const MAX_SILENT: usize = 128;
/// Peers accepted in one poll.
const ACCEPTS_A_POLL: usize = 16;
/// Polls of one session before all descriptors are looked at again.
const PARTIAL_POLLS: u32 = 8;
/// Tokens; sessions have their number.
const BELL: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
const LISTENER: u64 = 1 << 40;

impl IwarpLink {
    /// A link for this process.
    pub fn new(options: IwarpOptions) -> Result<IwarpLink> {
        Self::on(options, Arc::new(HostNetwork))
    }

    /// A link on a given network.
    pub fn on(options: IwarpOptions, network: Arc<dyn Network>) -> Result<IwarpLink> {
        options.check()?;
        let ready = Sleeper::new()?;
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)
            .map_err(|errno| shm::Error::from_errno("make a timer", errno))?;
        ready.add_level(descriptor.as_fd(), TIMER)?;
        let bell = Doorbell::new()?;
        ready.add_doorbell(bell.as_fd(), BELL)?;
        Ok(IwarpLink {
            options,
            network,
            began: clock::now(),
            sessions: Arc::default(),
            listeners: Mutex::default(),
            next_peer: AtomicU32::new(1),
            ready,
            timer: Mutex::new(Timer { descriptor, at: None }),
            bell,
            due: Mutex::default(),
            is_due: AtomicBool::new(false),
            holding: Mutex::default(),
            held: AtomicUsize::new(0),
            polling: Mutex::default(),
            spare: Mutex::new(Some(Doorbell::new()?)),
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
        self.set_timer(session.timeout());
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

    /// Lets the timer go off by then.
    fn set_timer(&self, at: Option<Duration>) {
        let Some(at) = at else { return };
        let mut timer = self.timer.lock().expect("no panic while a timer is set");
        if timer.at.is_some_and(|earlier| earlier <= at) {
            return;
        }
        // A time in the past goes off at once; zero would never.
        let time = Duration::from_nanos(self.began) + at.max(Duration::from_nanos(1));
        let value = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        let setting = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        if timerfd_settime(&timer.descriptor, TimerfdTimerFlags::ABSTIME, &setting).is_ok() {
            timer.at = Some(at);
        }
    }

    fn handle_timer(&self, target: &dyn Target) -> bool {
        {
            let mut timer = self.timer.lock().expect("no panic while a timer is set");
            let _ = rustix::io::read(&timer.descriptor, &mut [0; 8]);
            timer.at = None;
        }
        let mut any = false;
        let all: Vec<_> = self.sessions.read().expect("no panic in session table").values().cloned().collect();
        for session in all {
            if let Some(at) = session.timeout() {
                let around = self.around();
                if at <= around.now {
                    session.handle_timeout(around);
                    any |= self.look(&session, target);
                }
                self.set_timer(session.timeout());
            }
        }
        any
    }

    fn look(&self, session: &Arc<Session>, target: &dyn Target) -> bool {
        self.look_closely(session, target).any
    }

    /// Takes in what one session has.
    fn look_closely(&self, session: &Arc<Session>, target: &dyn Target) -> Found {
        let found = session.poll(self.around(), target);
        if found.holds {
            self.holding().push(session.clone());
            self.held.store(1, Ordering::Release);
        }
        if found.gone {
            self.remove(session);
        } else if found.over {
            self.set_timer(session.timeout());
        }
        found
    }

    fn accept(&self, token: u64) -> bool {
        let mut any = false;
        for _ in 0..ACCEPTS_A_POLL {
            let listeners = self.listeners();
            let Some(port) = listeners.sockets.values().find(|port| port.token == token) else { break };
            let accepted = socket::accept(port.socket.as_fd(), &self.options);
            match accepted {
                Ok(Some(socket)) => {
                    drop(listeners);
                    any = true;
                    self.crowd_out();
                    // A peer that there are no resources for is turned away by the close of its stream.
                    let _ = self.add(None, socket);
                }
                Ok(None) => break,
                Err(_) => {
                    // The descriptors are used up: one peer is turned away, with the one in reserve.
                    let mut spare = self.spare.lock().expect("no panic in an accept");
                    drop(spare.take());
                    drop(socket::accept(port.socket.as_fd(), &self.options));
                    *spare = Doorbell::new().ok();
                    break;
                }
            }
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

    /// Sends what is held back, or what has been for long enough.
    fn release(&self, all: bool, except: &[u64]) {
        if self.held.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut holding = self.holding();
        let around = self.around();
        holding.retain(|session| {
            if all {
                session.release(around);
                return false;
            }
            except.contains(&u64::from(session.id.0)) || session.idle(around)
        });
        self.held.store(holding.len(), Ordering::Release);
    }

    fn holding(&self) -> MutexGuard<'_, Vec<Arc<Session>>> {
        self.holding.lock().expect("no panic in a list of sessions")
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().expect("no panic in a table of listeners")
    }
}

impl Cord {
    /// Ends every stream as the kernel does when a process dies.
    pub fn cut(&self) {
        self.sessions.read().expect("no panic in session table").values().for_each(|session| session.cut());
    }
}

impl Link for IwarpLink {
    fn capabilities(&self) -> Capabilities {
        Capabilities { scheme: "iwarp", maps: false, max_transfer: MAX_TRANSFER, max_message: MAX_MESSAGE }
    }

    fn listen(&self, name: &str) -> Result<()> {
        let address = Address::parse(name)?;
        let mut listeners = self.listeners();
        if let Some(port) = listeners.sockets.get_mut(address.text) {
            if port.names.iter().any(|taken| taken == name) {
                return Err(shm::Error::NameTaken(name.to_string()).into());
            }
            port.names.push(name.to_string());
            return Ok(());
        }
        let socket = socket::listen(&*self.network, address.resolve()?[0], name)?;
        let token = LISTENER | listeners.next;
        listeners.next += 1;
        self.ready.add_level(socket.as_fd(), token)?;
        let port = Port { socket, token, number: address.port, names: vec![name.to_string()] };
        listeners.sockets.insert(address.text.to_string(), port);
        Ok(())
    }

    fn unlisten(&self, name: &str) {
        let Ok(address) = Address::parse(name) else { return };
        let mut listeners = self.listeners();
        let Some(port) = listeners.sockets.get_mut(address.text) else { return };
        port.names.retain(|other| other != name);
        if port.names.is_empty() {
            self.ready.remove(port.socket.as_fd());
            listeners.sockets.remove(address.text);
        }
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

    /// A peer may know this host by another name, or its listener may have given none.
    fn local_name(&self, _peer: PeerId, name: &str) -> Option<String> {
        let address = Address::parse(name).ok()?;
        let service = &name[address.text.len()..];
        let listeners = self.listeners();
        let names = listeners.sockets.values().filter(|port| port.number == address.port).flat_map(|port| &port.names);
        let same = |known: &&String| Address::parse(known).is_ok_and(|of| known[of.text.len()..] == *service);
        let mut matching = names.filter(same);
        match (matching.next(), matching.next()) {
            (Some(only), None) => Some(only.clone()),
            _ => None,
        }
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
        check("transfer", "at most 65536 bytes", len, MAX_TRANSFER)?;
        self.session(peer)?.request(ticket, cookie, request, self.around())
    }

    /// Nothing is mapped, so nothing is ever armed at a peer.
    fn fire(&self, _peer: PeerId, _region: RegionId, _offset: usize, _access: Access) {}

    fn poll(&self, target: &dyn Target, kernel: bool) -> bool {
        let Ok(mut polling) = self.polling.try_lock() else { return false };
        let polling = &mut *polling;
        let mut any = false;
        if self.is_due.load(Ordering::Relaxed) && self.is_due.swap(false, Ordering::AcqRel) {
            let due = std::mem::take(&mut *self.due.lock().expect("no panic in a list of sessions"));
            for session in due {
                any |= self.look(&session, target);
            }
        }
        polling.tokens.clear();
        let mut hot = None;
        if let Some(session) = polling.hot.take_if(|_| !kernel && polling.partial < PARTIAL_POLLS) {
            polling.partial += 1;
            let found = self.look_closely(&session, target);
            if found.any {
                any = true;
                polling.tokens.push(u64::from(session.id.0));
            }
            hot = (!found.over).then_some(session);
        } else {
            polling.partial = 0;
            if self.ready.sleep(Some(0), &mut polling.tokens).is_err() {
                return any;
            }
            for token in polling.tokens.iter() {
                any |= match *token {
                    BELL => self.is_due.load(Ordering::Acquire),
                    TIMER => self.handle_timer(target),
                    token if token & LISTENER != 0 => self.accept(token),
                    peer => self.session(PeerId(peer as u32)).is_ok_and(|session| {
                        let found = self.look_closely(&session, target);
                        hot = (!found.over).then_some(session);
                        found.any
                    }),
                };
            }
            hot = hot.or(polling.hot.take().filter(|session| session.is_live()));
        }
        polling.hot = hot;
        self.release(false, &polling.tokens);
        any
    }

    fn has_news(&self) -> bool {
        self.is_due.load(Ordering::Acquire) || socket::is_readable(&self.ready)
    }

    fn watch(&self, sleeper: &Arc<Sleeper>) -> Result<()> {
        Ok(sleeper.add_level(self.ready.as_fd(), KERNEL)?)
    }

    /// The kernel tells of all news; what is held back does not wait for a sleeper.
    fn set_sleeping(&self, sleeping: bool) {
        if sleeping {
            self.release(true, &[]);
        }
    }

    fn needs_service(&self) -> bool {
        true
    }

    fn close(&self, peer: PeerId, reason: CloseReason) {
        let Ok(session) = self.session(peer) else { return };
        if session.close(reason, self.around()) {
            self.set_timer(session.timeout());
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
