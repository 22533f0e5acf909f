//! A session: two processes that have met. A lifeline between them, and one pair memory each.
//!
//! ```text
//!   pair memory (written by the peer, read by its owner)
//!   0x0000  frames the peer has sent on the lifeline      u64
//!   0x0040  where the peer copies through the kernel (shm::gate)
//!   0x0080  event ring (shm::event_ring)
//! ```
//!
//! Frames and descriptors travel on the lifeline; the count of frames lets a process that looks at memory only see that
//! there is something to receive. Events of armed words travel in the event ring. The doorbell is rung for either, if the
//! owner sleeps.

use std::{
    collections::VecDeque,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use rustix::io::Errno;
use sidestep_shm::{
    self as shm, Memory, Word64,
    attach::{Attachment, Gate},
    event_ring::{self, EVENT_RING_LEN, EventPoster, EventTaker, RescanWord},
    gate::GATE_LEN,
    pair_bell::{PairBell, Ringer},
    passing::{Credentials, Lifeline, Received},
    sleep_word::SleepWord,
};
use sidestep_sys::{
    clock, cpu,
    lock::{Mutex, MutexGuard},
};

use super::frame::{Answer, Frame, MAX_FRAME, VERSION};
use crate::{
    cookie::Rights,
    error::{CloseReason, Error, Result},
    link::{PeerNumber, Ticket, WakePath},
    queue::PeerBell,
    random::Random,
};

/// Length of a pair memory.
pub(crate) const PAIR_LEN: usize = PAIR_EVENTS + EVENT_RING_LEN.next_multiple_of(64);
const PAIR_FRAMES: usize = 0;
const PAIR_GATE: usize = 0x40;
const PAIR_EVENTS: usize = PAIR_GATE + GATE_LEN;

/// Frames and bytes that may wait for a peer that does not receive; one that owes more answers is cut off.
const MAX_OUTGOING: usize = 4096;
const MAX_OUTGOING_BYTES: usize = 8 << 20;

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: PeerNumber,
    /// The name it was reached under, if this side connected.
    name: Mutex<Option<String>>,
    pub(crate) lifeline: Lifeline,
    /// Who is at its other end.
    pub(crate) who: Credentials,
    /// Whether the peer connected to this side, and when.
    accepted: Option<u64>,
    pub(crate) doorbell: PairBell,
    ours: Memory,
    sleep: SleepWord,
    /// Made when it is first asked for: most sessions have no use for one.
    gate: OnceLock<Option<Arc<Gate>>>,
    /// Where the peer ran when it last told us something, plus one.
    peer_core: Word64,
    frames_announced: Word64,
    frames_received: AtomicU64,
    /// What came with the peer's greeting.
    theirs: OnceLock<Theirs>,
    outgoing: Mutex<Outgoing>,
    /// Whether the kernel is asked to tell when the lifeline takes more.
    pub(crate) watches_writable: AtomicBool,
    taker: Mutex<Option<EventTaker>>,
    /// Requests the peer has not answered, oldest first, with the rights of their cookies.
    pub(crate) unanswered: Mutex<VecDeque<(Ticket, Rights)>>,
    closing: Mutex<Option<CloseReason>>,
    is_closing: AtomicBool,
}

/// The peer's side, as far as this side may touch it.
#[derive(Debug)]
pub(crate) struct Theirs {
    pub(crate) memory: Memory,
    pub(crate) doorbell: Arc<Ringer>,
    attachment: OnceLock<Option<Arc<Attachment>>>,
    frames: Word64,
    /// Where this side ran when it last told the peer something.
    core: Word64,
    frames_sent: AtomicU64,
    poster: Mutex<EventPoster>,
}

#[derive(Debug, Default)]
struct Outgoing {
    /// Whether the greeting is complete, so that frames may go out.
    open: bool,
    waiting: VecDeque<(Vec<u8>, Vec<Arc<OwnedFd>>)>,
    /// Bytes of them.
    bytes: usize,
}

impl Session {
    /// A session with the process at the other end of a lifeline. Who accepted it greets; who connected answers the
    /// greeting, since descriptors are let through to the other side only when that has looked who is here.
    pub(crate) fn open(id: PeerNumber, name: Option<String>, lifeline: Lifeline) -> Result<Session> {
        let ours = Memory::create("sidestep-pair", PAIR_LEN)?;
        let doorbell = PairBell::new()?;
        let accepted = name.is_none().then(clock::now);
        if accepted.is_some() {
            greet(&lifeline, &ours, &doorbell)?;
        }
        Ok(Session {
            id,
            name: Mutex::new(name),
            sleep: EventTaker::sleep_word_of(&ours, PAIR_EVENTS)?,
            peer_core: event_ring::core_word(&ours, PAIR_EVENTS)?,
            frames_announced: ours.word64(PAIR_FRAMES)?,
            frames_received: AtomicU64::new(0),
            gate: OnceLock::new(),
            who: lifeline.peer()?,
            accepted,
            lifeline,
            doorbell,
            ours,
            theirs: OnceLock::new(),
            outgoing: Mutex::default(),
            watches_writable: AtomicBool::new(false),
            taker: Mutex::new(None),
            unanswered: Mutex::default(),
            closing: Mutex::new(None),
            is_closing: AtomicBool::new(false),
        })
    }

    /// Whether the peer has connected and not greeted.
    pub(crate) fn is_silent(&self) -> bool {
        self.accepted.is_some() && self.theirs.get().is_none()
    }

    /// Whether it has been silent for longer than that.
    pub(crate) fn is_overdue(&self, longest: u64) -> bool {
        self.is_silent() && self.accepted.is_some_and(|since| clock::now().saturating_sub(since) > longest)
    }

    /// Whether whoever listens under a name is at the other end.
    pub(crate) fn is_behind(&self, name: &str) -> bool {
        self.closing().is_none() && lock(&self.name).as_deref() == Some(name)
    }

    /// The peer no longer listens under a name: the next connection to that name is for someone else.
    pub(crate) fn unnamed(&self, name: &[u8]) {
        lock(&self.name).take_if(|own| own.as_bytes() == name);
    }

    /// The peer's greeting has arrived: maps its memory, after checking it.
    pub(crate) fn greeted(
        &self,
        version: u32,
        pair_len: u64,
        descriptors: &mut Vec<OwnedFd>,
    ) -> Result<(), CloseReason> {
        if version != VERSION {
            let what = "it speaks another version of the layout; run the same release on both sides";
            return Err(CloseReason::Violation(what));
        }
        if pair_len != PAIR_LEN as u64 || self.theirs.get().is_some() {
            return Err(CloseReason::Violation("its greeting is malformed"));
        }
        let (Some(doorbell), Some(memory)) = (descriptors.pop(), descriptors.pop()) else {
            return Err(CloseReason::Link("the descriptors of the greeting did not arrive (ulimit -n)"));
        };
        let made = |error| match error {
            shm::Error::Foreign(what) | shm::Error::Peer(what) => CloseReason::Violation(what),
            _ => CloseReason::Link("no memory or descriptors for another peer"),
        };
        // Both are looked at, so that neither is closed by whoever drops it.
        let (memory, doorbell) = (Memory::attach(memory, PAIR_LEN), Ringer::attach(doorbell));
        let (memory, doorbell) = (memory.map_err(made)?, doorbell.map_err(made)?);
        let poster = EventPoster::new(&memory, PAIR_EVENTS, &self.ours, PAIR_EVENTS).map_err(made)?;
        let taker = EventTaker::new(&self.ours, PAIR_EVENTS, &memory, PAIR_EVENTS).map_err(made)?;
        *lock(&self.taker) = Some(taker);
        let frames = memory.word64(PAIR_FRAMES).map_err(made)?;
        let core = event_ring::core_word(&memory, PAIR_EVENTS).map_err(made)?;
        let _ = self.theirs.set(Theirs {
            memory,
            doorbell: Arc::new(doorbell),
            attachment: OnceLock::new(),
            frames,
            core,
            frames_sent: AtomicU64::new(1),
            poster: Mutex::new(poster),
        });
        if self.accepted.is_none() {
            greet(&self.lifeline, &self.ours, &self.doorbell)
                .map_err(|_| CloseReason::Link("the greeting could not be sent"))?;
        }
        lock(&self.outgoing).open = true;
        self.flush();
        Ok(())
    }

    /// Sends a frame, or keeps it until the peer can take it.
    pub(crate) fn send(&self, frame: Frame<'_>, descriptor: Option<Arc<OwnedFd>>) -> Result<()> {
        if let Some(reason) = self.closing() {
            return Err(Error::Closed(reason));
        }
        let mut bytes = Vec::with_capacity(128);
        frame.emit(&mut bytes);
        let mut outgoing = lock(&self.outgoing);
        if outgoing.waiting.len() >= MAX_OUTGOING || outgoing.bytes >= MAX_OUTGOING_BYTES {
            if matches!(frame, Frame::Reply { .. }) {
                drop(outgoing);
                self.close(CloseReason::Violation("it asks and never takes the answers"));
                return Ok(());
            }
            return Err(Error::Full { what: "what waits for the peer", limit: MAX_OUTGOING });
        }
        outgoing.bytes += bytes.len();
        outgoing.waiting.push_back((bytes, descriptor.into_iter().collect()));
        self.flush_locked(&mut outgoing);
        Ok(())
    }

    /// Sends what waits, as far as the peer takes it.
    pub(crate) fn flush(&self) {
        self.flush_locked(&mut lock(&self.outgoing));
    }

    fn flush_locked(&self, outgoing: &mut Outgoing) {
        let Some(theirs) = self.theirs.get().filter(|_| outgoing.open) else { return };
        let mut sent = 0;
        while let Some((bytes, descriptors)) = outgoing.waiting.front() {
            let borrowed: Vec<BorrowedFd<'_>> = descriptors.iter().map(|descriptor| descriptor.as_fd()).collect();
            match self.lifeline.send(bytes, &borrowed) {
                Ok(true) => {
                    outgoing.bytes -= bytes.len();
                    outgoing.waiting.pop_front();
                    sent += 1;
                }
                Ok(false) => break,
                Err(_) => {
                    // The peer is gone; what it sent before is still to be received.
                    outgoing.waiting.clear();
                    outgoing.bytes = 0;
                    break;
                }
            }
        }
        if sent > 0 {
            // A sleeping peer is woken by the frame itself; the count is for one that looks at memory only.
            let total = theirs.frames_sent.fetch_add(sent, Ordering::Relaxed) + sent;
            theirs.core.store(u64::from(cpu::current_core()) + 1, Ordering::Relaxed);
            theirs.frames.store(total, Ordering::Release);
        }
    }

    /// Whether frames wait because the peer does not take them at present.
    pub(crate) fn is_congested(&self) -> bool {
        let outgoing = lock(&self.outgoing);
        outgoing.open && !outgoing.waiting.is_empty()
    }

    /// Receives one frame into `buffer`.
    pub(crate) fn receive(&self, buffer: &mut [u8; MAX_FRAME], descriptors: &mut Vec<OwnedFd>) -> Result<Received> {
        descriptors.clear();
        let received = self.lifeline.receive(buffer, descriptors)?;
        if matches!(received, Received::Message(_) | Received::Stripped(_)) {
            self.frames_received.fetch_add(1, Ordering::Relaxed);
        }
        Ok(received)
    }

    /// Whether memory says that a frame waits to be received. A hint: a lie costs a system call.
    #[inline]
    pub(crate) fn has_frames(&self) -> bool {
        let announced = self.frames_announced.load(Ordering::Acquire);
        announced > self.frames_received.load(Ordering::Relaxed)
    }

    /// Forgets a hint that was not true.
    pub(crate) fn forget_frames(&self) {
        let announced = self.frames_announced.load(Ordering::Relaxed);
        self.frames_received.fetch_max(announced, Ordering::Relaxed);
    }

    /// Whether memory says that there is something to do.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
            || self.has_frames()
            // Held means that another thread takes events at this moment: whether it sees the last one is not known.
            || self.taker.try_lock().map_or(true, |taker| taker.as_ref().is_some_and(EventTaker::has_news))
    }

    pub(crate) fn taker(&self) -> MutexGuard<'_, Option<EventTaker>> {
        lock(&self.taker)
    }

    pub(crate) fn set_sleeping(&self, sleeping: bool) {
        if sleeping {
            self.doorbell.before_sleep();
            self.sleep.prepare();
        } else {
            self.sleep.cancel();
        }
    }

    /// Whether the peer last ran on this core.
    pub(crate) fn ran_on(&self, core: u32) -> bool {
        self.peer_core.load(Ordering::Relaxed) == u64::from(core) + 1
    }

    /// Tells the peer of an event. `true` if its doorbell was rung.
    pub(crate) fn fire(&self, event: u64) -> bool {
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
    pub(crate) fn gate(&self) -> Option<Arc<Gate>> {
        let make = || {
            let process = self.lifeline.peer().ok()?.pid;
            Gate::new(&self.ours, PAIR_GATE, process, Random::key() as u64 | 1).ok()?.map(Arc::new)
        };
        self.gate.get_or_init(make).clone()
    }

    /// Where this side does, if it can; tried once.
    pub(crate) fn attachment(&self) -> Option<Arc<Attachment>> {
        let theirs = self.theirs.get()?;
        let probe = || Attachment::probe(&theirs.memory, PAIR_GATE, self.lifeline.peer().ok()?.pid).map(Arc::new);
        theirs.attachment.get_or_init(probe).clone()
    }

    /// The peer's memory and doorbell, once it has greeted.
    pub(crate) fn theirs(&self) -> Option<&Theirs> {
        self.theirs.get()
    }

    /// What a forked child of this process needs to wake the peer.
    pub(crate) fn bell(&self) -> Option<PeerBell> {
        let theirs = self.theirs()?;
        Some(PeerBell::new(RescanWord::new(&theirs.memory, PAIR_EVENTS).ok()?, theirs.doorbell.clone()))
    }

    /// What another process of this owner needs to wake the peer and be woken.
    pub(crate) fn wake_path(&self) -> Result<WakePath> {
        let peer = self.theirs().ok_or(Error::Unsupported("handing over a queue before the peer has answered"))?;
        let pages = |memory: &Memory| {
            let pages = memory.descriptor().ok_or(Error::Unsupported("handing over memory that is not shared"))?;
            duplicate(pages.as_fd())
        };
        Ok(WakePath {
            pair_memory: [pages(&self.ours)?, pages(&peer.memory)?],
            doorbells: [duplicate(self.doorbell.as_fd())?, duplicate(peer.doorbell.as_fd())?],
            lifeline: duplicate(self.lifeline.as_fd())?,
        })
    }

    /// Marks the session as over; the next poll reports it.
    pub(crate) fn close(&self, reason: CloseReason) {
        lock(&self.closing).get_or_insert(reason);
        self.is_closing.store(true, Ordering::Release);
    }

    pub(crate) fn closing(&self) -> Option<CloseReason> {
        if !self.is_closing.load(Ordering::Acquire) {
            return None;
        }
        *lock(&self.closing)
    }

    pub(crate) fn reply(&self, ticket: u64, answer: Answer<'_>, descriptor: Option<Arc<OwnedFd>>) {
        // A session that is closing needs no answers.
        let _ = self.send(Frame::Reply { ticket, answer }, descriptor);
    }
}

/// Sends the first frame of this side.
fn greet(lifeline: &Lifeline, ours: &Memory, doorbell: &PairBell) -> Result<()> {
    let bell = doorbell.for_peer().ok_or(Error::Unsupported("a doorbell without a writing end"))?;
    let mut hello = Vec::new();
    Frame::Hello { version: VERSION, pair_len: PAIR_LEN as u64 }.emit(&mut hello);
    let pages = ours.descriptor().ok_or(Error::Unsupported("pair memory without a descriptor"))?;
    match lifeline.send(&hello, &[pages.as_fd(), bell]) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::Full { what: "a new lifeline", limit: 0 }),
        // Turned away already: the hang-up tells, as it would a moment later.
        Err(shm::Error::System { source: Errno::PIPE | Errno::CONNRESET, .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The wake-up words of a pair memory, for a process that holds its descriptors only.
pub(crate) fn wake_words(ours: &Memory, theirs: &Memory) -> Result<(SleepWord, RescanWord)> {
    Ok((EventTaker::sleep_word_of(ours, PAIR_EVENTS)?, RescanWord::new(theirs, PAIR_EVENTS)?))
}

/// Another descriptor of the same thing.
pub(crate) fn duplicate(descriptor: BorrowedFd<'_>) -> Result<OwnedFd> {
    let copy = rustix::io::fcntl_dupfd_cloexec(descriptor, 3);
    copy.map_err(|errno| shm::Error::from_errno("duplicate a descriptor", errno).into())
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no panic in a session")
}
