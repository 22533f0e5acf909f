//! The writer's words.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use sidestep_shm::{
    Result as MemoryResult,
    memory::{Memory, Word64},
};

use super::{Corrupt, Entry, Holder, MOST_CARRIERS, Result, number_of, owner_of, owner_word, words};
use crate::path::{End, Start, Tail};

words! {
    /// The writer's words.
    pub struct Writing {
        owner: 0x00 = "as the reader's",
        entered: 0x08 = "bits 0-47: bytes of TCP before the last carrier that was begun; bits 48-63: its number",
        tcp_sent: 0x10 = "bytes ever sent over TCP",
        lock: 0x18 = "bits 0-31: lock of bytes that are taken back",
        end: 0x20 = "bits 0-47: where the present carrier ends; bits 48-55: how, if this end has to remember that (`path::End`); bit 56: the reader may not know yet",
        forgotten: 0x28 = "the last carrier that this end has forgotten",
        former: 0x30 = "bytes written to carriers before the present one",
    }
}

const END_SHIFT: u32 = 48;
const LANDING: u64 = 1 << 56;
/// Where no carrier was begun, TCP goes on.
const NONE: Tail = Tail { position: 0, end: End::Sent };

impl Writing {
    pub(super) fn clear(&self, owner: Holder, tcp_sent: u64) {
        let words = [&self.entered, &self.lock, &self.forgotten, &self.former];
        words.iter().for_each(|word| word.store(0, Relaxed));
        self.end.store(NONE.to_word(), Relaxed);
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

    /// Begins to use a carrier, for the first time or again.
    pub fn begin(&self, start: Start) {
        self.enter(start);
        self.end.store(Tail::default().to_word(), Release);
    }

    /// Whether the next byte goes to the carrier.
    #[inline]
    pub fn is_within(&self) -> bool {
        self.end.load(Relaxed) >> END_SHIFT == End::Open as u64
    }

    /// Whether TCP may go on: nothing was begun, or its end is with the reader.
    #[inline]
    pub fn is_on_tcp(&self) -> bool {
        let how = self.end.load(Relaxed) >> END_SHIFT;
        how != End::Open as u64 && how & LANDING >> END_SHIFT == 0
    }

    /// How the present carrier ends, as far as this end has to remember.
    pub fn end(&self) -> Result<Tail> {
        Tail::from_word(self.end.load(Acquire) & !LANDING).ok_or(Corrupt("end"))
    }

    /// It ends so. `lands`: the reader may not know yet.
    pub fn finish(&self, tail: Tail, lands: bool) {
        self.end.store(tail.to_word() | if lands { LANDING } else { 0 }, Release);
    }

    /// The reader knows of the end.
    pub fn land(&self) {
        self.end.fetch_and(!LANDING, AcqRel);
    }

    /// The carrier is over: what comes next may be the first use of another.
    pub fn rest(&self) {
        self.entered.store(0, Release);
        self.end.store(NONE.to_word(), Release);
    }

    /// Bytes that were written to carriers before the present one.
    #[inline]
    pub fn former(&self) -> u64 {
        self.former.load(Relaxed)
    }

    /// Adds to that.
    pub fn count_former(&self, bytes: u64) {
        super::change(&self.former, |held| held.wrapping_add(bytes));
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
    #[inline]
    pub fn tcp_sent(&self) -> u64 {
        self.tcp_sent.load(Acquire)
    }

    /// Adds to that: several holders may send at the same time.
    pub fn count_sent(&self, count: u64) {
        super::change(&self.tcp_sent, |held| held.wrapping_add(count));
    }

    /// Gives that to who counts it from now on. What is counted here meanwhile stays.
    pub fn hand_over(&self) -> u64 {
        super::change(&self.tcp_sent, |_| 0)
    }

    /// Sets it to what the kernel says. Under the lock, after the death of its holder (R4).
    pub fn recover(&self, kernel: u64) {
        self.tcp_sent.store(kernel, Release);
    }
}
