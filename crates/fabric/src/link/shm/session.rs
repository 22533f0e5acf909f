//! A session: two processes that have met. A lifeline between them, and one pair memory each (`pair`).
//!
//! Frames and descriptors travel on the lifeline; the count of frames lets a process that looks at memory only see that
//! there is something to receive. Events of armed words travel in the event ring. The doorbell is rung for either, if the
//! owner sleeps.

use std::{
    collections::VecDeque,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::io::Errno;
use sidestep_shm::{
    self as shm,
    attach::{Attachment, Gate},
    event_ring::EventTaker,
    passing::{Credentials, Lifeline, Received},
};
use sidestep_sys::{
    clock,
    lock::{Guard, Mutex, MutexGuard},
    user,
};

use super::{
    frame::{Answer, Frame, MAX_FRAME, VERSION},
    outgoing::Outgoing,
    pair::{Ours, PAIR_LEN, Theirs},
};
use crate::{
    cookie::Rights,
    error::{CloseReason, Error, Result},
    link::{PeerNumber, Ticket},
    queue::PeerBell,
};

#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: PeerNumber,
    /// The name it was reached under, if this side connected.
    name: Mutex<Option<String>>,
    pub(super) lifeline: Lifeline,
    /// Who is at its other end.
    pub(super) who: Credentials,
    /// Whether the peer connected to this side, and when.
    accepted: Option<u64>,
    ours: Ours,
    /// What came with the peer's greeting.
    theirs: OnceLock<Theirs>,
    outgoing: Outgoing,
    /// Requests the peer has not answered, oldest first, with the rights of their cookies.
    pub(super) unanswered: Mutex<VecDeque<(Ticket, Rights)>>,
    closing: Mutex<Option<CloseReason>>,
    is_closing: AtomicBool,
}

impl Session {
    /// A session with the process at the other end of a lifeline. Who accepted it greets; who connected answers the
    /// greeting, since descriptors are let through to the other side only when that has looked who is here.
    pub(super) fn open(id: PeerNumber, name: Option<String>, lifeline: Lifeline) -> Result<Session> {
        let (ours, who) = (Ours::new()?, lifeline.peer()?);
        if !user::is_own(who.uid) {
            ours.doorbell.admit_others()?;
        }
        let accepted = name.is_none().then(clock::now);
        if accepted.is_some() {
            greet(&lifeline, &ours)?;
        }
        Ok(Session {
            id,
            name: Mutex::new(name),
            who,
            accepted,
            lifeline,
            ours,
            theirs: OnceLock::new(),
            outgoing: Outgoing::default(),
            unanswered: Mutex::default(),
            closing: Mutex::new(None),
            is_closing: AtomicBool::new(false),
        })
    }

    /// Whether the peer has connected and not greeted.
    pub(super) fn is_silent(&self) -> bool {
        self.accepted.is_some() && !self.has_greeted()
    }

    /// Whether it has been silent for longer than that.
    pub(super) fn is_overdue(&self, longest: u64) -> bool {
        self.is_silent() && self.accepted.is_some_and(|since| clock::now().saturating_sub(since) > longest)
    }

    /// Whether the peer has greeted, so that its memory is known.
    pub(super) fn has_greeted(&self) -> bool {
        self.theirs.get().is_some()
    }

    /// Whether whoever listens under a name is at the other end.
    pub(super) fn is_behind(&self, name: &str) -> bool {
        self.closing().is_none() && lock(&self.name).as_deref() == Some(name)
    }

    /// The peer no longer listens under a name: the next connection to that name is for someone else.
    pub(super) fn unnamed(&self, name: &[u8]) {
        lock(&self.name).take_if(|own| own.as_bytes() == name);
    }

    /// The peer's greeting has arrived: maps its memory, after checking it.
    pub(super) fn greeted(
        &self,
        version: u32,
        pair_len: u64,
        descriptors: &mut Vec<OwnedFd>,
    ) -> Result<(), CloseReason> {
        if version != VERSION {
            let what = "it speaks another version of the layout; run the same release on both sides";
            return Err(CloseReason::Violation(what));
        }
        if pair_len != PAIR_LEN as u64 || self.has_greeted() {
            return Err(CloseReason::Violation("its greeting is malformed"));
        }
        let (Some(doorbell), Some(memory)) = (descriptors.pop(), descriptors.pop()) else {
            return Err(CloseReason::Link("the descriptors of the greeting did not arrive (ulimit -n)"));
        };
        let theirs = Theirs::attach(memory, doorbell, &self.ours).map_err(|error| match error {
            shm::Error::Foreign(what) | shm::Error::Peer(what) => CloseReason::Violation(what),
            _ => CloseReason::Link("no memory or descriptors for another peer"),
        })?;
        let _ = self.theirs.set(theirs);
        if self.accepted.is_none() {
            greet(&self.lifeline, &self.ours).map_err(|_| CloseReason::Link("the greeting could not be sent"))?;
        }
        self.outgoing.open();
        self.flush();
        Ok(())
    }

    /// Sends a frame, or keeps it until the peer can take it.
    pub(super) fn send(&self, frame: Frame<'_>, descriptor: Option<Arc<OwnedFd>>) -> Result<()> {
        if let Some(reason) = self.closing() {
            return Err(Error::Closed(reason));
        }
        let mut bytes = Vec::with_capacity(128);
        frame.emit(&mut bytes);
        let pushed = self.outgoing.push((bytes, descriptor), &self.lifeline, |sent| self.announce(sent));
        if pushed.is_err() && matches!(frame, Frame::Reply { .. }) {
            self.close(CloseReason::Violation("it asks and never takes the answers"));
            return Ok(());
        }
        pushed
    }

    /// Sends what waits, as far as the peer takes it.
    pub(super) fn flush(&self) {
        self.outgoing.flush(&self.lifeline, |sent| self.announce(sent));
    }

    fn announce(&self, sent: u64) {
        if let Some(theirs) = self.theirs.get() {
            theirs.announce(sent);
        }
    }

    /// Whether frames wait because the peer does not take them at present.
    #[inline]
    pub(super) fn is_congested(&self) -> bool {
        self.outgoing.is_congested()
    }

    /// See [`Outgoing::change_watch`].
    pub(super) fn change_watch(&self) -> Option<bool> {
        self.outgoing.change_watch()
    }

    /// Receives one frame into `buffer`.
    pub(super) fn receive(&self, buffer: &mut [u8; MAX_FRAME], descriptors: &mut Vec<OwnedFd>) -> Result<Received> {
        descriptors.clear();
        let received = self.lifeline.receive(buffer, descriptors)?;
        if matches!(received, Received::Message(_) | Received::Stripped(_)) {
            self.ours.count_frame();
        }
        Ok(received)
    }

    /// Whether memory says that a frame waits to be received. A hint: a lie costs a system call.
    #[inline]
    pub(super) fn has_frames(&self) -> bool {
        self.ours.has_frames()
    }

    /// Forgets a hint that was not true.
    pub(super) fn forget_frames(&self) {
        self.ours.forget_frames();
    }

    /// Whether memory says that there is something to do.
    #[inline]
    pub(super) fn has_news(&self) -> bool {
        self.is_closing.load(Ordering::Acquire) || self.ours.has_frames() || self.ours.has_events()
    }

    pub(super) fn taker(&self) -> Guard<'_, Option<EventTaker>> {
        self.ours.taker()
    }

    /// What the peer rings.
    pub(super) fn doorbell(&self) -> BorrowedFd<'_> {
        self.ours.doorbell.as_fd()
    }

    pub(super) fn set_sleeping(&self, sleeping: bool) {
        self.ours.set_sleeping(sleeping);
    }

    /// Whether the peer last ran on this core.
    pub(super) fn ran_on(&self, core: u32) -> bool {
        self.ours.peer_ran_on(core)
    }

    /// Tells the peer of an event. `true` if its doorbell was rung.
    pub(super) fn fire(&self, event: u64) -> bool {
        let Some(theirs) = self.theirs.get() else { return false };
        match lock(&theirs.poster).post(event) {
            Ok(true) => {
                theirs.doorbell.ring();
                true
            }
            Ok(false) => false,
            Err(_) => {
                self.close(CloseReason::Violation("its event ring is broken"));
                false
            }
        }
    }

    /// Where the peer copies through the kernel, if its threads can be told from here.
    pub(super) fn gate(&self) -> Option<Arc<Gate>> {
        self.ours.gate(|| Some(self.lifeline.peer().ok()?.pid))
    }

    /// Where this side does, if it can; tried once.
    pub(super) fn attachment(&self) -> Option<Arc<Attachment>> {
        self.theirs.get()?.attachment(|| Some(self.lifeline.peer().ok()?.pid))
    }

    /// What a forked child of this process needs to wake the peer.
    pub(super) fn bell(&self) -> Option<PeerBell> {
        self.theirs.get()?.bell()
    }

    /// Marks the session as over; the next poll reports it.
    pub(super) fn close(&self, reason: CloseReason) {
        lock(&self.closing).get_or_insert(reason);
        self.is_closing.store(true, Ordering::Release);
    }

    pub(super) fn closing(&self) -> Option<CloseReason> {
        if !self.is_closing.load(Ordering::Acquire) {
            return None;
        }
        *lock(&self.closing)
    }

    pub(super) fn reply(&self, ticket: u64, answer: Answer<'_>, descriptor: Option<Arc<OwnedFd>>) {
        // A session that is closing needs no answers.
        let _ = self.send(Frame::Reply { ticket, answer }, descriptor);
    }
}

/// Sends the first frame of this side.
fn greet(lifeline: &Lifeline, ours: &Ours) -> Result<()> {
    let bell = ours.doorbell.for_peer();
    let mut hello = Vec::new();
    Frame::Hello { version: VERSION, pair_len: PAIR_LEN as u64 }.emit(&mut hello);
    let pages = ours.memory.descriptor().ok_or(Error::Unsupported("pair memory without a descriptor"))?;
    match lifeline.send(&hello, &[pages.as_fd(), bell]) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::Full { what: "a new lifeline", limit: 0 }),
        // Turned away already: the hang-up tells, as it would a moment later.
        Err(shm::Error::System { source: Errno::PIPE | Errno::CONNRESET, .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no panic in a session")
}
