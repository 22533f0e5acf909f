//! The writer's words.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use sidestep_shm::{
    Result as MemoryResult,
    memory::{Memory, Word64},
};

use super::{Corrupt, Entry, Holder, MOST_CARRIERS, Result, number_of, owner_of, owner_word, words};
use crate::path::{Start, Tail};

words! {
    /// The writer's words.
    pub struct Writing {
        owner: 0x00 = "as the reader's",
        entered: 0x08 = "bits 0-47: bytes of TCP before the last carrier that was begun; bits 48-63: its number",
        tcp_sent: 0x10 = "bytes ever sent over TCP",
        lock: 0x18 = "bits 0-31: lock of bytes that are taken back",
        end: 0x20 = "bits 0-47: where the present carrier ends; bits 48-63: how, if this end has to remember that (`path::End`)",
        forgotten: 0x28 = "the last carrier that this end has forgotten",
    }
}

impl Writing {
    pub(super) fn clear(&self, owner: Holder, tcp_sent: u64) {
        [&self.entered, &self.lock, &self.end, &self.forgotten].iter().for_each(|word| word.store(0, Relaxed));
        self.owner.store(owner_word(0, Some(owner)), Relaxed);
        self.tcp_sent.store(tcp_sent, Relaxed);
    }

    pub(super) fn mount(&self) {
        self.end.store(Tail::default().to_word(), Release);
    }

    /// Whether this holder is as good as any other, or better.
    pub fn is_owner(&self, holder: Holder) -> Result<bool> {
        Ok(owner_of(self.owner.load(Acquire))?.is_none_or(|owner| owner == holder))
    }

    /// Makes all holders alike.
    pub fn take_over(&self) {
        super::take_over(&self.owner);
    }

    /// The last carrier that was begun, and where.
    pub fn entered(&self) -> Result<Start> {
        let start = Start::from_word(self.entered.load(Acquire));
        if start.ring > MOST_CARRIERS { Err(Corrupt("entered")) } else { Ok(start) }
    }

    /// Begins a carrier. For a sole holder.
    pub fn enter(&self, start: Start) {
        self.entered.store(start.to_word(), Release);
    }

    /// How the present carrier ends, as far as this end has to remember.
    pub fn end(&self) -> Result<Tail> {
        Tail::from_word(self.end.load(Acquire)).ok_or(Corrupt("end"))
    }

    /// Changes that by compare-and-swap. `false`: another holder was faster.
    pub fn set_end(&self, from: Tail, to: Tail) -> bool {
        let from = from.to_word();
        self.end.compare_exchange(from, to.to_word(), AcqRel) == from
    }

    /// The last carrier that this end has forgotten.
    pub fn forgotten(&self) -> Result<u16> {
        number_of(self.forgotten.load(Acquire), "forgotten")
    }

    /// This end does not look at the carrier again.
    pub fn forget(&self, carrier: u16) {
        self.forgotten.store(u64::from(carrier), Release);
    }

    /// Bytes ever sent over TCP.
    pub fn tcp_sent(&self) -> u64 {
        self.tcp_sent.load(Acquire)
    }

    /// Adds to that: several holders may send at the same time.
    pub fn count_sent(&self, count: u64) {
        let mut held = self.tcp_sent.load(Relaxed);
        loop {
            let found = self.tcp_sent.compare_exchange(held, held.wrapping_add(count), AcqRel);
            if found == held {
                return;
            }
            held = found;
        }
    }

    /// Sets it to what the kernel says. Under the lock, after the death of its holder (R4).
    pub fn recover(&self, kernel: u64) {
        self.tcp_sent.store(kernel, Release);
    }
}
