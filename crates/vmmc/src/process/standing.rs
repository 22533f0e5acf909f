//! What a card says of itself to its processes.

use crate::card::Counters;
use crate::driver::{Bins, Timing};

/// Counts since the card was started, of all its processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// Pages that are locked.
    pub pinned: u64,
    /// Lines of translations that the card lacked.
    pub misses: u64,
    /// Pages that it found.
    pub hits: u64,
    /// Buffer descriptors that it lacked.
    pub buffer_misses: u64,
    /// Buffers that it found.
    pub buffer_hits: u64,
    /// Packets that it dropped for a miss.
    pub dropped: u64,
    /// Packets that it sent again.
    pub resent: u64,
    /// How long its misses took.
    pub timing: Timing,
}

impl Standing {
    /// Words that it is told in.
    pub(super) const WORDS: usize = 7 + 2 * BINS;

    pub(super) fn new(pinned: u64, counters: &Counters, timing: Timing) -> Standing {
        Standing {
            pinned,
            misses: counters.vmh_misses.iter().sum(),
            hits: counters.vmh_hits.iter().sum(),
            buffer_misses: counters.cbh_misses,
            buffer_hits: counters.cbh_hits,
            dropped: counters.dropped,
            resent: counters.resent,
            timing,
        }
    }

    pub(super) fn words(&self) -> [u64; Standing::WORDS] {
        let Standing { pinned, misses, hits, buffer_misses, buffer_hits, dropped, resent, timing } = *self;
        let mut words = [0; Standing::WORDS];
        words[..7].copy_from_slice(&[pinned, misses, hits, buffer_misses, buffer_hits, dropped, resent]);
        words[7..7 + BINS].copy_from_slice(&timing.delay.counts);
        words[7 + BINS..].copy_from_slice(&timing.processing.counts);
        words
    }

    pub(super) fn from_words(words: [u64; Standing::WORDS]) -> Standing {
        let [pinned, misses, hits, buffer_misses, buffer_hits, dropped, resent] = std::array::from_fn(|at| words[at]);
        let bins = |first: usize| Bins { counts: std::array::from_fn(|at| words[first + at]) };
        let timing = Timing { delay: bins(7), processing: bins(7 + BINS) };
        Standing { pinned, misses, hits, buffer_misses, buffer_hits, dropped, resent, timing }
    }
}

const BINS: usize = crate::driver::BINS.len() + 1;
