//! The two memories of a session: each is written by one process and read by its owner.

use std::{
    os::fd::OwnedFd,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use sidestep_shm::{
    self as shm, Memory, Word64,
    attach::{Attachment, Gate},
    event_ring::{self, EVENT_RING_LEN, EventPoster, EventTaker, RescanWord},
    gate::GATE_LEN,
    pair_bell::{PairBell, Ringer},
    sleep_word::SleepWord,
};
use sidestep_sys::{
    cpu,
    lock::{Guard, Lock, Mutex},
};

use crate::{error::Result, queue::PeerBell, random::Random};

/// Length of a pair memory.
pub(crate) const PAIR_LEN: usize = PAIR_EVENTS + EVENT_RING_LEN.next_multiple_of(64);

sidestep_shm::layout! {
    /// Pair memory of a session, in memory of the side that reads it.
    PAIR_LAYOUT {
        PAIR_FRAMES = 0x00, "frames the peer has sent on the lifeline", "peer";
        PAIR_GATE = 0x40, "gate: where the peer copies through the kernel", "see there";
        pub PAIR_EVENTS = PAIR_GATE + GATE_LEN, "event ring", "see there";
    }
}

/// This side's memory, which the peer writes, and its doorbell.
#[derive(Debug)]
pub(super) struct Ours {
    pub(super) memory: Memory,
    pub(super) doorbell: PairBell,
    sleep: SleepWord,
    /// Made when it is first asked for: most sessions have no use for one.
    gate: OnceLock<Option<Arc<Gate>>>,
    /// Where the peer ran when it last told us something, plus one.
    peer_core: Word64,
    frames_announced: Word64,
    frames_received: AtomicU64,
    /// Once the peer has greeted. Held only while single events are taken or looked for.
    taker: Lock<Option<EventTaker>>,
}

/// The peer's side, as far as this side may touch it.
#[derive(Debug)]
pub(super) struct Theirs {
    pub(super) memory: Memory,
    pub(super) doorbell: Arc<Ringer>,
    attachment: OnceLock<Option<Arc<Attachment>>>,
    frames: Word64,
    /// Where this side ran when it last told the peer something.
    core: Word64,
    frames_sent: AtomicU64,
    pub(super) poster: Mutex<EventPoster>,
}

impl Ours {
    pub(super) fn new() -> Result<Ours> {
        let memory = Memory::create("sidestep-pair", PAIR_LEN)?;
        Ok(Ours {
            doorbell: PairBell::new()?,
            sleep: EventTaker::sleep_word_of(&memory, PAIR_EVENTS)?,
            gate: OnceLock::new(),
            peer_core: event_ring::core_word(&memory, PAIR_EVENTS)?,
            frames_announced: memory.word64(PAIR_FRAMES)?,
            frames_received: AtomicU64::new(0),
            taker: Lock::new(None),
            memory,
        })
    }

    /// A frame was received.
    pub(super) fn count_frame(&self) {
        self.frames_received.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether memory says that a frame waits to be received. A hint: a lie costs a system call.
    #[inline]
    pub(super) fn has_frames(&self) -> bool {
        let announced = self.frames_announced.load(Ordering::Acquire);
        announced > self.frames_received.load(Ordering::Relaxed)
    }

    /// Forgets a hint that was not true.
    pub(super) fn forget_frames(&self) {
        let announced = self.frames_announced.load(Ordering::Relaxed);
        self.frames_received.fetch_max(announced, Ordering::Relaxed);
    }

    /// Whether memory says that the peer has reported an armed word.
    #[inline]
    pub(super) fn has_events(&self) -> bool {
        // Held means that another thread takes events at this moment: whether it sees the last one is not known.
        self.taker.try_lock().is_none_or(|taker| taker.as_ref().is_some_and(EventTaker::has_news))
    }

    pub(super) fn taker(&self) -> Guard<'_, Option<EventTaker>> {
        self.taker.lock()
    }

    pub(super) fn set_sleeping(&self, sleeping: bool) {
        if sleeping {
            self.doorbell.before_sleep();
            self.sleep.prepare();
        } else {
            self.sleep.cancel();
        }
    }

    /// Whether the peer last ran on this core.
    pub(super) fn peer_ran_on(&self, core: u32) -> bool {
        self.peer_core.load(Ordering::Relaxed) == u64::from(core) + 1
    }

    /// Where the peer, a process, copies through the kernel, if its threads can be told from here.
    pub(super) fn gate(&self, process: impl FnOnce() -> Option<u32>) -> Option<Arc<Gate>> {
        let make = || Gate::new(&self.memory, PAIR_GATE, process()?, Random::key() as u64 | 1).ok()?.map(Arc::new);
        self.gate.get_or_init(make).clone()
    }
}

impl Theirs {
    /// What came with the peer's greeting, after checking it. From now on its events are taken.
    pub(super) fn attach(memory: OwnedFd, doorbell: OwnedFd, ours: &Ours) -> shm::Result<Theirs> {
        // Both are looked at, so that neither is closed by whoever drops it.
        let (memory, doorbell) = (Memory::attach(memory, PAIR_LEN), Ringer::attach(doorbell));
        let (memory, doorbell) = (memory?, doorbell?);
        let poster = EventPoster::new(&memory, PAIR_EVENTS, &ours.memory, PAIR_EVENTS)?;
        let taker = EventTaker::new(&ours.memory, PAIR_EVENTS, &memory, PAIR_EVENTS)?;
        *ours.taker() = Some(taker);
        Ok(Theirs {
            frames: memory.word64(PAIR_FRAMES)?,
            core: event_ring::core_word(&memory, PAIR_EVENTS)?,
            memory,
            doorbell: Arc::new(doorbell),
            attachment: OnceLock::new(),
            frames_sent: AtomicU64::new(1),
            poster: Mutex::new(poster),
        })
    }

    /// Tells the peer that frames were sent. One that sleeps is woken by the frames themselves; the count is for one that looks
    /// at memory only.
    pub(super) fn announce(&self, sent: u64) {
        let total = self.frames_sent.fetch_add(sent, Ordering::Relaxed) + sent;
        self.core.store(u64::from(cpu::current_core()) + 1, Ordering::Relaxed);
        self.frames.store(total, Ordering::Release);
    }

    /// What a forked child of this process needs to wake the peer.
    pub(super) fn bell(&self) -> Option<PeerBell> {
        Some(PeerBell::new(RescanWord::new(&self.memory, PAIR_EVENTS).ok()?, self.doorbell.clone()))
    }

    /// Where this side copies through the kernel from and to the peer, a process, if it can; tried once.
    pub(super) fn attachment(&self, process: impl FnOnce() -> Option<u32>) -> Option<Arc<Attachment>> {
        let probe = || Attachment::probe(&self.memory, PAIR_GATE, process()?).map(Arc::new);
        self.attachment.get_or_init(probe).clone()
    }
}
