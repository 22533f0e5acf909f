//! The words that both directions share. They change seldom.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::time::Duration;

use sidestep_shm::{
    Result as MemoryResult,
    memory::{Memory, Word64},
};

use super::{Corrupt, Direction, Entry, Holder, MOST_HOLDERS, Result, words};

words! {
    /// The words that both directions share.
    pub struct Shared {
        generation: 0x00 = "which record this memory has had; 0: none",
        options: 0x08 = "bit 0: `O_NONBLOCK`; bits 32-63: low-water mark",
        receive_timeout: 0x10 = "`SO_RCVTIMEO` in nanoseconds; 0: none",
        send_timeout: 0x18 = "`SO_SNDTIMEO` in nanoseconds; 0: none",
        holder_0: 0x20 = "calls of the first holder that are in the kernel for the anchor: bits 0-31 to receive, 32-63 to send",
        holder_1: 0x28 = "the same of the second",
        holder_2: 0x30 = "the same",
        holder_3: 0x38 = "the same",
        holder_4: 0x40 = "the same",
        holder_5: 0x48 = "the same",
        holder_6: 0x50 = "the same",
        holder_7: 0x58 = "the same",
    }
}

const NONBLOCKING: u64 = 1;
const LOW_WATER_SHIFT: u32 = 32;

/// What all holders of a socket share, since they share its open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// `O_NONBLOCK`.
    pub nonblocking: bool,
    /// `SO_RCVLOWAT`.
    pub low_water: u32,
}

impl Shared {
    pub(super) fn generation(&self) -> u32 {
        self.generation.load(Acquire) as u32
    }

    /// The last step of making a record: pairs with `generation`, so that whoever finds it finds the words.
    pub(super) fn begin(&self, generation: u32) {
        self.generation.store(u64::from(generation), Release);
    }

    pub(super) fn clear(&self) {
        self.generation.store(0, Release);
        let counts = (0..MOST_HOLDERS).filter_map(Holder::new).map(|holder| self.in_kernel_word(holder));
        [&self.options, &self.receive_timeout, &self.send_timeout]
            .into_iter()
            .chain(counts)
            .for_each(|word| word.store(0, Relaxed));
    }

    /// What holders share of the options of an open file.
    pub fn options(&self) -> Result<Options> {
        let word = self.options.load(Acquire);
        if word & 0xffff_fffe != 0 {
            return Err(Corrupt("options"));
        }
        Ok(Options { nonblocking: word & NONBLOCKING != 0, low_water: (word >> LOW_WATER_SHIFT) as u32 })
    }

    /// `O_NONBLOCK`, of a record whose holders are not asked whether they keep to the rules.
    #[inline]
    pub fn is_nonblocking(&self) -> bool {
        self.options.load(Relaxed) & NONBLOCKING != 0
    }

    /// Sets that, as the last call on the socket said.
    pub fn set_nonblocking(&self, nonblocking: bool) {
        let bit = u64::from(nonblocking);
        super::change(&self.options, |word| word & !NONBLOCKING | bit);
    }

    /// `SO_RCVLOWAT`, of the same.
    #[inline]
    pub fn low_water(&self) -> u32 {
        (self.options.load(Relaxed) >> LOW_WATER_SHIFT) as u32
    }

    /// Sets that, as the last call on the socket said.
    pub fn set_low_water(&self, bytes: u32) {
        super::change(&self.options, |word| word as u32 as u64 | u64::from(bytes) << LOW_WATER_SHIFT);
    }

    /// How long a call waits that receives, or one that sends.
    pub fn timeout(&self, direction: Direction) -> Option<Duration> {
        let nanoseconds = self.timeout_word(direction).load(Acquire);
        (nanoseconds != 0).then(|| Duration::from_nanos(nanoseconds))
    }

    /// Sets that. No time is none.
    pub fn set_timeout(&self, direction: Direction, timeout: Option<Duration>) {
        let nanoseconds = timeout.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        self.timeout_word(direction).store(nanoseconds, Release);
    }

    /// A call of this holder goes into the kernel for the anchor, and will tell when it comes back.
    // SeqCst, here and in what follows: such a call counts itself and then sees whether a carrier is open, and whoever opens
    // one says so and then looks for such calls.
    pub fn enter_kernel(&self, holder: Holder, direction: Direction) {
        super::change(self.in_kernel_word(holder), |word| word.wrapping_add(unit(direction)));
    }

    /// It has come back. Returns how many were there with it.
    pub fn leave_kernel(&self, holder: Holder, direction: Direction) -> u32 {
        // A count that a descendant has spoilt stays at none.
        let next = |word| if in_kernel(word, direction) == 0 { word } else { word - unit(direction) };
        in_kernel(super::change(self.in_kernel_word(holder), next), direction)
    }

    /// Calls of this holder that are in the kernel. Of a holder that has died, what is left is to be [forgotten](Self::forget).
    pub fn in_kernel(&self, holder: Holder, direction: Direction) -> u32 {
        in_kernel(self.in_kernel_word(holder).load(SeqCst), direction)
    }

    /// A holder is gone: no call of it is in the kernel.
    pub fn forget(&self, holder: Holder) {
        self.in_kernel_word(holder).store(0, Release);
    }

    fn in_kernel_word(&self, holder: Holder) -> &Word64 {
        let words: [&Word64; MOST_HOLDERS] = [
            &self.holder_0,
            &self.holder_1,
            &self.holder_2,
            &self.holder_3,
            &self.holder_4,
            &self.holder_5,
            &self.holder_6,
            &self.holder_7,
        ];
        words[holder.place()]
    }

    fn timeout_word(&self, direction: Direction) -> &Word64 {
        match direction {
            Direction::Read => &self.receive_timeout,
            Direction::Write => &self.send_timeout,
        }
    }
}

fn unit(direction: Direction) -> u64 {
    match direction {
        Direction::Read => 1,
        Direction::Write => 1 << 32,
    }
}

fn in_kernel(word: u64, direction: Direction) -> u32 {
    match direction {
        Direction::Read => word as u32,
        Direction::Write => (word >> 32) as u32,
    }
}
