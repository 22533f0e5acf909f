//! The reader's words.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use sidestep_shm::{
    Result as MemoryResult,
    memory::{Memory, Word64},
};

use super::{Corrupt, Entry, Holder, MOST_CARRIERS, Result, number_of, owner_of, owner_word, words};

words! {
    /// The reader's words.
    pub struct Reading {
        owner: 0x00 = "bits 0-31: place of the holder that owns this direction + 1, 0: all alike; bits 32-63: how often that has changed",
        position: 0x08 = "bits 0-47: bytes read of the present carrier; bit 48: the rest is offered back; bits 49-63: its number",
        tcp_taken: 0x10 = "bytes ever taken from TCP",
        lock: 0x18 = "bits 0-31: lock of the bytes that TCP has: number of the family's member that holds it",
        opened: 0x20 = "bits 0-15: the last carrier that was opened; bit 16: its writer is asked to end it; bit 17: its rest is wanted; bit 18: the next byte is read from it",
        over: 0x28 = "the last carrier that was read to its end",
        former: 0x30 = "bytes read from carriers before the present one",
    }
}

/// How far a carrier was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    /// Which carrier.
    pub carrier: u16,
    /// Bytes of it.
    pub at: u64,
    /// The rest is offered back to the writer.
    pub offered: bool,
}

const AT: u64 = (1 << 48) - 1;
const OFFERED: u64 = 1 << 48;
const CARRIER_SHIFT: u32 = 49;
const ASKED: u64 = 1 << 16;
const WANTED: u64 = 1 << 17;
const WITHIN: u64 = 1 << 18;

impl Position {
    fn to_word(self) -> u64 {
        self.at & AT | if self.offered { OFFERED } else { 0 } | u64::from(self.carrier) << CARRIER_SHIFT
    }

    fn from_word(word: u64) -> Position {
        Position { at: word & AT, offered: word & OFFERED != 0, carrier: (word >> CARRIER_SHIFT) as u16 }
    }
}

impl Reading {
    pub(super) fn clear(&self, owner: Holder, tcp_taken: u64) {
        let words = [&self.position, &self.lock, &self.opened, &self.over, &self.former];
        words.iter().for_each(|word| word.store(0, Relaxed));
        self.owner.store(owner_word(0, Some(owner)), Relaxed);
        self.tcp_taken.store(tcp_taken, Relaxed);
    }

    pub(super) fn mount(&self, carrier: u16) {
        self.position.store(Position { carrier, at: 0, offered: false }.to_word(), Release);
    }

    /// Whether this holder is as good as any other, or better.
    pub fn is_owner(&self, holder: Holder) -> Result<bool> {
        Ok(owner_of(self.owner.load(Acquire))?.is_none_or(|owner| owner == holder))
    }

    /// Makes all holders alike.
    pub fn take_over(&self) {
        super::take_over(&self.owner);
    }

    /// The number of the present carrier; 0: there has been none.
    pub fn mounted(&self) -> Result<u16> {
        Ok(self.position()?.carrier)
    }

    /// How far the present carrier was read.
    pub fn position(&self) -> Result<Position> {
        Ok(Position::from_word(self.position.load(Acquire)))
    }

    /// Makes bytes of the present carrier the caller's. `false`: another holder was faster, or they are offered back.
    pub fn commit(&self, carrier: u16, from: u64, to: u64) -> bool {
        self.swap(Position { carrier, at: from, offered: false }, Position { carrier, at: to, offered: false })
    }

    /// Marks what follows this position as offered back: nobody commits it.
    pub fn offer(&self, carrier: u16, at: u64) -> bool {
        self.swap(Position { carrier, at, offered: false }, Position { carrier, at, offered: true })
    }

    /// Lets all holders read on from `to`, after an offer at `from`. Where nothing was offered and nothing moves, it is so.
    pub fn resume(&self, carrier: u16, from: u64, to: u64) -> bool {
        let resumed = Position { carrier, at: to, offered: false };
        self.swap(Position { carrier, at: from, offered: true }, resumed)
            || from == to && self.position.load(Acquire) == resumed.to_word()
    }

    fn swap(&self, from: Position, to: Position) -> bool {
        if to.at > AT || to.carrier > MOST_CARRIERS {
            return false;
        }
        // AcqRel: bytes were copied out before they are committed, and whoever reads on sees that they were.
        let from = from.to_word();
        self.position.compare_exchange(from, to.to_word(), AcqRel) == from
    }

    /// The last carrier that this end has opened.
    pub fn opened(&self) -> Result<u16> {
        let word = self.opened.load(Acquire);
        if word & !(0xffff | ASKED | WANTED | WITHIN) != 0 {
            return Err(Corrupt("opened"));
        }
        number_of(word & 0xffff, "opened")
    }

    /// Opens the present carrier: from now on every wait of this end covers it. For a sole holder.
    pub fn open(&self, carrier: u16) {
        // SeqCst: pairs with `Shared::enter_kernel`.
        self.opened.store(u64::from(carrier), SeqCst);
    }

    /// It is not open after all, or was given up.
    pub fn close(&self) {
        self.opened.store(0, SeqCst);
    }

    /// Whether a carrier is open.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.opened.load(SeqCst) & 0xffff != 0
    }

    /// Whether the next byte is read from the carrier that is open, and not from TCP.
    #[inline]
    pub fn is_within(&self) -> bool {
        self.opened.load(Relaxed) & WITHIN != 0
    }

    /// The next byte is read from the carrier, or from TCP.
    pub fn set_within(&self, within: bool) {
        if within {
            self.opened.fetch_or(WITHIN, AcqRel);
        } else {
            self.opened.fetch_and(!WITHIN, AcqRel);
        }
    }

    /// Bytes that were read from carriers before the present one.
    #[inline]
    pub fn former(&self) -> u64 {
        self.former.load(Relaxed)
    }

    /// Adds to that, also less than nothing: what was taken back has come over TCP.
    pub fn count_former(&self, bytes: i64) {
        super::change(&self.former, |held| held.wrapping_add_signed(bytes));
    }

    /// The writer is asked to end the carrier that is open.
    pub fn ask(&self) {
        self.opened.fetch_or(ASKED, AcqRel);
    }

    /// Whether it is.
    pub fn has_asked(&self) -> bool {
        self.opened.load(Acquire) & ASKED != 0
    }

    /// What was not read of the carrier is wanted over TCP, or no more.
    pub fn set_wanted(&self, wanted: bool) {
        if wanted {
            self.opened.fetch_or(WANTED, AcqRel);
        } else {
            self.opened.fetch_and(!WANTED, AcqRel);
        }
    }

    /// Whether it is.
    pub fn is_wanted(&self) -> bool {
        self.opened.load(Acquire) & WANTED != 0
    }

    /// The last carrier that was read to its end.
    pub fn over(&self) -> Result<u16> {
        number_of(self.over.load(Acquire), "over")
    }

    /// The present carrier has ended, and was read.
    pub fn set_over(&self, carrier: u16) {
        self.over.store(u64::from(carrier), Release);
    }

    /// Bytes ever taken from TCP.
    #[inline]
    pub fn tcp_taken(&self) -> u64 {
        self.tcp_taken.load(Acquire)
    }

    /// Adds to that. Under the lock where there are several holders; threads of one may count at the same time.
    pub fn count_taken(&self, count: u64) {
        super::change(&self.tcp_taken, |held| held.wrapping_add(count));
    }

    /// Gives that to who counts it from now on. What is counted here meanwhile stays.
    pub fn hand_over(&self) -> u64 {
        super::change(&self.tcp_taken, |_| 0)
    }

    /// Sets it to what the kernel says. Under the lock, after the death of its holder (R4).
    pub fn recover(&self, kernel: u64) {
        self.tcp_taken.store(kernel, Release);
    }
}
