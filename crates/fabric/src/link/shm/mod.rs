//! The shared-memory link: processes of one host, of one user or of users that are admitted, who find each other by name without
//! a daemon.
//! What strangers and hostile peers can do is in `docs/security.md`.
//!
//! A name is an address in the abstract UNIX namespace: it vanishes with the process. Each pair of processes has one
//! `Session`, however many endpoints it carries.

mod arrival;
pub mod frame;
mod outgoing;
pub(crate) mod pair;
mod roster;
pub(crate) mod session;
mod welcome;

pub use self::pair::{PAIR_EVENTS, PAIR_LAYOUT};

use std::{
    collections::HashMap,
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc, Weak,
        atomic::{AtomicU32, Ordering},
    },
};

use sidestep_shm::{
    self as shm,
    attach::{Attachment, Gate},
    doorbell::{Sleeper, Tokens},
    passing::{Lifeline, Received, Rendezvous},
};
use sidestep_sys::{
    discard::{self, discard},
    lock::Mutex,
};

use self::{
    arrival::{event_of, handle, take_events},
    frame::{Ask, Frame, MAX_FRAME, MAX_TRANSFER},
    roster::{Roster, Seen},
    session::{Session, lock},
    welcome::Welcome,
};
use crate::{
    cookie::{Cookie, RegionId},
    counters::Counter,
    error::{CloseReason, Error, Result},
    link::{Capabilities, KERNEL, Link, Maps, Outcome, Pages, PeerNumber, Request, Target, Ticket},
    protocol::MAX_PRIVATE,
    queue::PeerBell,
    tripwire::Access,
};

/// Shared memory between processes of one host.
#[derive(Debug)]
pub struct ShmLink {
    sessions: Roster,
    names: Mutex<HashMap<String, Rendezvous>>,
    next_peer: AtomicU32,
    /// Every lifeline and every name, level-triggered: what only the kernel knows of.
    kernel: Box<Sleeper>,
    /// Who sleeps on this link's descriptors.
    sleepers: Mutex<Vec<Weak<Sleeper>>>,
    polling: Mutex<Box<Polling>>,
    /// How often one of a peer was rung.
    doorbells: Counter,
    welcome: Box<Welcome>,
}

/// What only the thread that polls needs.
#[derive(Debug)]
struct Polling {
    sessions: Seen,
    receiving: Receiving,
}

#[derive(Debug)]
struct Receiving {
    buffer: [u8; MAX_FRAME],
    read: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

/// Frames taken from one session in one poll, so that no peer holds up the others.
const FRAMES_A_POLL: usize = 32;
/// How long a process that has connected may take to greet.
const LONGEST_SILENCE_NS: u64 = 30_000_000_000;
/// Token of the names in the kernel set; sessions have their number.
const NAMES: u64 = u64::MAX;

impl ShmLink {
    /// A link for this process, with peers of the users that are admitted.
    pub fn new(admits: fn(u32) -> bool) -> Result<ShmLink> {
        Ok(ShmLink {
            sessions: Roster::new(),
            names: Mutex::default(),
            next_peer: AtomicU32::new(1),
            kernel: Box::new(Sleeper::new()?),
            sleepers: Mutex::default(),
            doorbells: Counter::default(),
            welcome: Box::new(Welcome::new(admits)?),
            polling: Mutex::new(Box::new(Polling {
                sessions: Seen::new(),
                receiving: Receiving { buffer: [0; MAX_FRAME], read: Vec::new(), descriptors: Vec::new() },
            })),
        })
    }

    /// Takes up a session on a lifeline; one that was accepted greets first.
    fn open(&self, name: Option<&str>, lifeline: Lifeline) -> Result<PeerNumber> {
        let id = PeerNumber(self.next_peer.fetch_add(1, Ordering::Relaxed));
        let session = Arc::new(Session::open(id, name.map(str::to_string), lifeline)?);
        let token = u64::from(id.0);
        self.kernel.add_level(session.lifeline.as_fd(), token)?;
        for sleeper in lock(&self.sleepers).iter().filter_map(Weak::upgrade) {
            sleeper.add_doorbell(session.doorbell(), token)?;
        }
        self.sessions.insert(session);
        Ok(id)
    }

    fn poll_session(&self, session: &Arc<Session>, receiving: &mut Receiving, look: bool, target: &dyn Target) -> bool {
        let mut any = take_events(session, target);
        if look || session.has_frames() {
            any |= self.take_frames(session, receiving, target);
        }
        self.push_outgoing(session);
        if let Some(reason) = session.closing() {
            // What it posted before its end comes first.
            take_events(session, target);
            self.remove(session);
            // Taken out first: the target's own locks come before this one, where requests are made.
            let unanswered = std::mem::take(&mut *lock(&session.unanswered));
            for (ticket, _) in unanswered {
                target.completed(ticket, Outcome::Closed(reason));
            }
            target.closed(session.id, reason);
            return true;
        }
        any
    }

    fn take_frames(&self, session: &Arc<Session>, receiving: &mut Receiving, target: &dyn Target) -> bool {
        let mut any = false;
        for _ in 0..FRAMES_A_POLL {
            let Receiving { buffer, read, descriptors, .. } = receiving;
            let handled = match session.receive(buffer, descriptors) {
                Ok(Received::Message(len)) => handle(session, &buffer[..len], descriptors, read, target),
                Ok(Received::Empty) => {
                    session.forget_frames();
                    break;
                }
                Ok(Received::Closed) => {
                    session.close(CloseReason::Died);
                    break;
                }
                // Its descriptors could not be installed: whoever needs them is told, and the rest goes on.
                Ok(Received::Stripped(len)) => handle(session, &buffer[..len], descriptors, read, target),
                Err(Error::Memory(shm::Error::Peer(what))) => Err(CloseReason::Violation(what)),
                Err(_) => Err(CloseReason::Link("the lifeline failed")),
            };
            // What nobody took is closed now: the next frame may be long in coming.
            if !descriptors.is_empty() {
                discard(descriptors.drain(..));
            }
            if let Err(reason) = handled {
                session.close(reason);
                break;
            }
            any = true;
        }
        any
    }

    /// Sends what waits, and asks the kernel to tell when more can go if not all of it went.
    fn push_outgoing(&self, session: &Session) {
        if session.is_congested() {
            session.flush();
        }
        if let Some(wanted) = session.change_watch() {
            let _ = self.kernel.want_writable(session.lifeline.as_fd(), u64::from(session.id.0), wanted);
        }
    }

    fn remove(&self, session: &Arc<Session>) {
        self.kernel.remove(session.lifeline.as_fd());
        for sleeper in lock(&self.sleepers).iter().filter_map(Weak::upgrade) {
            sleeper.remove(session.doorbell());
        }
        self.sessions.remove(session);
    }
}

impl Link for ShmLink {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            scheme: "shm",
            distant: false,
            served: false,
            gathers: false,
            max_transfer: MAX_TRANSFER,
            max_message: MAX_PRIVATE + 128,
        }
    }

    fn listen(&self, name: &str) -> Result<()> {
        let rendezvous = Rendezvous::listen(name)?;
        self.kernel.add_level(rendezvous.as_fd(), NAMES)?;
        lock(&self.names).insert(name.to_string(), rendezvous);
        Ok(())
    }

    fn unlisten(&self, name: &str) {
        if lock(&self.names).remove(name).is_none() {
            return;
        }
        for session in self.sessions.all().iter() {
            // A session that takes no frames is closing.
            let _ = session.send(Frame::Unnamed(name.as_bytes()), None);
        }
    }

    fn connect(&self, name: &str) -> Result<PeerNumber> {
        let known = self.sessions.all().iter().find(|session| session.is_behind(name)).map(|session| session.id);
        match known {
            Some(peer) => Ok(peer),
            None => {
                let lifeline =
                    Lifeline::connect(name, |who| (self.welcome.admits)(who.uid)).map_err(|error| match error {
                        shm::Error::NobodyListens(name) => Error::NobodyListens(name),
                        error => error.into(),
                    })?;
                self.open(Some(name), lifeline)
            }
        }
    }

    fn post(&self, peer: PeerNumber, bytes: &[u8]) -> Result<()> {
        let session = self.sessions.find(peer)?;
        session.send(Frame::Post(bytes), None)?;
        self.push_outgoing(&session);
        Ok(())
    }

    fn request(&self, peer: PeerNumber, ticket: Ticket, cookie: &Cookie, request: Request<'_>) -> Result<()> {
        let session = self.sessions.find(peer)?;
        let ask = match request {
            Request::Map => Ask::Map,
            Request::Put { offset, bytes } => Ask::Put { offset, bytes },
            Request::Get { offset, len } => Ask::Get { offset, len: len as u32 },
            Request::Atomic { offset, atomic } => Ask::Atomic { offset, atomic },
        };
        // The lock keeps the order of tickets that of the frames.
        let mut unanswered = lock(&session.unanswered);
        session.send(Frame::Ask { ticket: ticket.0, cookie: *cookie, ask }, None)?;
        unanswered.push_back((ticket, cookie.rights()));
        Ok(())
    }

    fn poll(&self, target: &dyn Target, kernel: bool) -> bool {
        // One thread at a time: what a peer sent is handled in order.
        let Ok(mut polling) = self.polling.try_lock() else { return false };
        let Polling { sessions, receiving } = &mut **polling;
        let mut any = false;
        let tokens = kernel.then(|| {
            discard::resume();
            let mut tokens = Tokens::new();
            let _ = self.kernel.sleep(Some(0), &mut tokens);
            tokens
        });
        let has = |token: u64| tokens.as_ref().is_some_and(|tokens| tokens.contains(&token));
        if has(NAMES) {
            any |= self.accept(target);
        }
        sessions.bring_up_to_date(&self.sessions);
        for session in sessions.iter() {
            let look = has(u64::from(session.id.0));
            if kernel && session.is_overdue(LONGEST_SILENCE_NS) {
                session.close(CloseReason::Link("it did not greet"));
            }
            if look || session.has_news() || session.is_congested() {
                any |= self.poll_session(session, receiving, look, target);
            }
        }
        if any {
            // One that has ended is not kept until the next poll.
            sessions.bring_up_to_date(&self.sessions);
        }
        any
    }

    fn has_news(&self) -> bool {
        self.sessions.read().iter().any(|session| session.has_news())
    }

    fn shares_core(&self, core: u32) -> bool {
        self.sessions.read().iter().any(|session| session.ran_on(core))
    }

    fn watch(&self, sleeper: &Arc<Sleeper>) -> Result<()> {
        sleeper.add_level(self.kernel.as_fd(), KERNEL)?;
        for session in self.sessions.all().iter() {
            sleeper.add_doorbell(session.doorbell(), u64::from(session.id.0))?;
        }
        lock(&self.sleepers).push(Arc::downgrade(sleeper));
        Ok(())
    }

    fn set_sleeping(&self, sleeping: bool) {
        for session in self.sessions.read().iter() {
            session.set_sleeping(sleeping);
        }
    }

    fn maps(&self) -> Option<&dyn Maps> {
        Some(self)
    }

    fn caller(&self, peer: PeerNumber) -> Option<u64> {
        self.sessions.find(peer).ok()?.lifeline.caller()
    }

    fn user(&self, peer: PeerNumber) -> Option<u32> {
        Some(self.sessions.find(peer).ok()?.who.uid)
    }

    fn process(&self, peer: PeerNumber) -> Option<u32> {
        Some(self.sessions.find(peer).ok()?.who.pid).filter(|pid| *pid != 0)
    }

    fn close(&self, peer: PeerNumber, reason: CloseReason) {
        if let Ok(session) = self.sessions.find(peer) {
            session.close(reason);
        }
    }
}

impl Maps for ShmLink {
    fn offer(&self, peer: PeerNumber, cookie: &Cookie, pages: &Pages) -> Result<()> {
        let frame = Frame::Pages { cookie: *cookie, len: pages.len as u64 };
        self.sessions.find(peer)?.send(frame, Some(pages.descriptor.clone()))
    }

    fn fire(&self, peer: PeerNumber, region: RegionId, offset: usize, access: Access) {
        let fired = self.sessions.with(peer, |session| session.fire(event_of(region, offset, access)));
        if fired.unwrap_or(false) {
            self.doorbells.add(1);
        }
    }

    fn doorbells(&self) -> u64 {
        self.doorbells.value()
    }

    fn gate(&self, peer: PeerNumber) -> Option<Arc<Gate>> {
        self.sessions.find(peer).ok()?.gate()
    }

    fn attachment(&self, peer: PeerNumber) -> Option<Arc<Attachment>> {
        self.sessions.find(peer).ok()?.attachment()
    }

    fn bell(&self, peer: PeerNumber) -> Option<PeerBell> {
        self.sessions.find(peer).ok()?.bell()
    }
}
