//! `SIDESTEP_PROMOTE=random`: when a writer changes its path for no other reason.

use std::sync::atomic::Ordering;

use crate::{
    config::{Carrier as Choice, Promote, config},
    streams::Stream,
};

/// Numbers that look random, the same for the same seed.
#[derive(Debug, Default)]
pub(super) struct Dice {
    last: u64,
    /// Whether they are used; `None`: nobody has asked yet.
    rolls: Option<bool>,
}

impl Dice {
    /// Whether to go back to TCP, and where there are several carriers now and then for good.
    #[inline]
    pub fn leaves(&mut self, stream: &Stream) -> bool {
        let leaves = self.rolls() && self.roll() % 16 == 0;
        if leaves && config().carrier == Choice::Both && self.roll() % 2 == 0 {
            stream.carriage.parting.store(true, Ordering::Relaxed);
        }
        leaves
    }

    /// Whether to stay on TCP.
    pub fn stays(&mut self) -> bool {
        self.rolls() && self.roll() % 4 != 0
    }

    #[inline]
    fn rolls(&mut self) -> bool {
        *self.rolls.get_or_insert_with(|| matches!(config().promote, Promote::Random(_)))
    }

    fn roll(&mut self) -> u64 {
        if self.last == 0 {
            let seed = if let Promote::Random(seed) = config().promote { seed } else { 1 };
            self.last = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        }
        self.last ^= self.last << 13;
        self.last ^= self.last >> 7;
        self.last ^= self.last << 17;
        self.last
    }
}
