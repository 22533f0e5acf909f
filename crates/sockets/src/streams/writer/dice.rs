//! `SIDESTEP_PROMOTE=random`: when a writer changes its path for no other reason.

use std::sync::atomic::Ordering;

use crate::{
    config::{Carrier as Choice, Promote, config},
    streams::Stream,
};

/// Numbers that look random, the same for the same seed.
#[derive(Debug, Default)]
pub(super) struct Dice(u64);

impl Dice {
    /// Whether to go back to TCP, and where there are several carriers now and then for good.
    #[inline]
    pub fn leaves(&mut self, stream: &Stream) -> bool {
        let leaves = matches!(config().promote, Promote::Random(_)) && self.roll() % 16 == 0;
        if leaves && config().carrier == Choice::Both && self.roll() % 2 == 0 {
            stream.carriage.parting.store(true, Ordering::Relaxed);
        }
        leaves
    }

    /// Whether to stay on TCP.
    pub fn stays(&mut self) -> bool {
        matches!(config().promote, Promote::Random(_)) && self.roll() % 4 != 0
    }

    fn roll(&mut self) -> u64 {
        if self.0 == 0 {
            let seed = if let Promote::Random(seed) = config().promote { seed } else { 1 };
            self.0 = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        }
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
