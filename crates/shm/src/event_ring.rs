//! Events from a peer: a ring of 64-bit entries in the receiver's memory, and its sleep word.
//!
//! An entry is a hint ("this word was written"); whoever takes one looks at the word itself. A source has at most
//! one entry outstanding (see [`crate::watch`], W1). Should there ever be more sources than entries, or should a
//! process that is not the ring's producer have news, a *rescan* mark says "look at all of them" instead: nothing
//! is lost and nothing overflows.

use crate::{
    Error, Memory, Result, Word64,
    byte_ring::{Consumer, Parts, Producer},
    sleep_word::SleepWord,
    sync::{Ordering, rescan_publish, rescan_take},
};
use sidestep_sys::cpu;

/// Entries of an event ring.
pub const EVENT_CAPACITY: usize = if cfg!(loom) { 2 } else { 16 * 1024 };
/// Bytes of an event ring: control words, then entries.
pub const EVENT_RING_LEN: usize = EVENT_ENTRIES + EVENT_CAPACITY * 8;

/// Bytes left in a ring that is nearly full: its owner is told of that even if it has not asked for it.
const NEARLY_FULL: usize = EVENT_CAPACITY / 4 * 8;

crate::layout! {
    /// An event ring, in memory of the side that takes the events.
    EVENT_RING_LAYOUT {
        EVENT_TAIL = 0x00, "`tail`: bytes of entries that the peer has posted", "peer";
        EVENT_CORE = 0x08, "core the peer posted on, plus one", "peer";
        EVENT_SWITCH = 0x10, "not used: an event ring does not grow", "nobody";
        EVENT_RESCAN = 0x18, "rescan mark: \"look at all armed words\"", "peer";
        EVENT_SLEEP = 0x40, "sleep word", "owner sets, peer clears";
        EVENT_HEAD = 0x80, "`head`: how far the peer has taken the events of the other direction", "peer";
        EVENT_ENTRIES = 0xc0, "16,384 entries of 64 bits: bit 63 read/write, bits 32-62 region, bits 0-31 word", "peer";
    }
}

/// The word that tells on which core the poster of the ring at `here` last ran, plus one.
pub fn core_word(memory: &Memory, here: usize) -> Result<Word64> {
    memory.word64(here + EVENT_CORE)
}

/// The peer's end: posts events.
#[derive(Debug)]
pub struct EventPoster {
    ring: Producer,
    rescan: RescanWord,
    /// The owner was told that the ring is nearly full, and it still is.
    told_full: bool,
}

/// Tells the owner to look at all its armed words. Needs no position, so any process of the poster's family may
/// use it beside the poster.
#[derive(Debug, Clone)]
pub struct RescanWord {
    mark: Word64,
    sleep: SleepWord,
}

/// The owner's end: takes events.
#[derive(Debug)]
pub struct EventTaker {
    ring: Consumer,
    rescan: Word64,
}

impl EventPoster {
    /// Posts into the ring at `there` of the peer's memory; `here` is our own ring, where the peer tells how
    /// far it has taken.
    pub fn new(theirs: &Memory, there: usize, ours: &Memory, here: usize) -> Result<EventPoster> {
        let parts = Parts {
            ring: theirs.span(there + EVENT_ENTRIES, EVENT_CAPACITY * 8)?,
            tail: theirs.word64(there + EVENT_TAIL)?,
            core: theirs.word64(there + EVENT_CORE)?,
            switch: theirs.word64(there + EVENT_SWITCH)?,
            head: ours.word64(here + EVENT_HEAD)?,
            begin: 0,
        };
        Ok(EventPoster { ring: Producer::new(parts)?, rescan: RescanWord::new(theirs, there)?, told_full: false })
    }

    /// Posts one event. `true` if the doorbell must be rung.
    pub fn post(&mut self, event: u64) -> Result<bool> {
        if self.ring.space(8)? < 8 {
            return Ok(self.rescan.post());
        }
        self.ring.copy_in(&event.to_le_bytes())?;
        // Plus one: zero says that nobody has run yet.
        if !self.ring.publish(cpu::current_core() + 1) {
            // No correct peer ends this ring.
            return Err(Error::Peer("it has ended its event ring"));
        }
        Ok(self.rescan.sleep.must_ring() || self.is_newly_full()?)
    }

    /// Whether the ring has become nearly full: whoever polls it now and then only must do so now.
    fn is_newly_full(&mut self) -> Result<bool> {
        let is_full = self.ring.space(NEARLY_FULL)? < NEARLY_FULL;
        Ok(is_full && !std::mem::replace(&mut self.told_full, is_full))
    }
}

impl RescanWord {
    /// The memory it keeps.
    #[cfg(not(loom))]
    pub fn memory(&self) -> &Memory {
        self.mark.memory()
    }

    /// The mark of the ring at `there` of the peer's memory.
    pub fn new(theirs: &Memory, there: usize) -> Result<RescanWord> {
        Ok(RescanWord {
            mark: theirs.word64(there + EVENT_RESCAN)?,
            sleep: SleepWord::new(theirs.word64(there + EVENT_SLEEP)?),
        })
    }

    /// Sets the mark. `true` if the doorbell must be rung.
    pub fn post(&self) -> bool {
        // Pairs with `EventTaker::take_rescan`: the cleared bits are visible before the mark.
        self.mark.store(1, rescan_publish());
        self.sleep.must_ring()
    }
}

impl EventTaker {
    /// Takes from the ring at `here` of our own memory; `there` is the peer's ring, where we tell how far.
    pub fn new(ours: &Memory, here: usize, theirs: &Memory, there: usize) -> Result<EventTaker> {
        let parts = Parts {
            ring: ours.span(here + EVENT_ENTRIES, EVENT_CAPACITY * 8)?,
            tail: ours.word64(here + EVENT_TAIL)?,
            core: ours.word64(here + EVENT_CORE)?,
            switch: ours.word64(here + EVENT_SWITCH)?,
            head: theirs.word64(there + EVENT_HEAD)?,
            begin: 0,
        };
        Ok(EventTaker { ring: Consumer::new(parts)?, rescan: ours.word64(here + EVENT_RESCAN)? })
    }

    /// The next event, if there is one.
    #[inline]
    pub fn take(&mut self) -> Result<Option<u64>> {
        let available = self.ring.available()?;
        if available == 0 {
            return Ok(None);
        }
        if available % 8 != 0 {
            return Err(Error::Peer("it published part of an event"));
        }
        let mut entry = [0; 8];
        self.ring.copy_out(&mut entry)?;
        if self.ring.owes_head() {
            self.ring.publish_head();
        }
        Ok(Some(u64::from_le_bytes(entry)))
    }

    /// Whether [`take`](Self::take) would find something. Touches nothing.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.ring.has_news() || self.rescan.load(Ordering::Relaxed) != 0
    }

    /// Whether all armed words must be looked at.
    pub fn take_rescan(&self) -> bool {
        // Pairs with `RescanWord::post`.
        self.rescan.load(Ordering::Relaxed) != 0 && self.rescan.swap(0, rescan_take()) != 0
    }

    /// The word that makes the peer ring, of the ring at `here` of our own memory.
    pub fn sleep_word_of(ours: &Memory, here: usize) -> Result<SleepWord> {
        Ok(SleepWord::new(ours.word64(here + EVENT_SLEEP)?))
    }
}
