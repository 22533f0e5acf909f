//! The word that says a process sleeps, so that only a writer that must ring the doorbell does.
//!
//! Sleeper: [`prepare`](SleepWord::prepare), look again, sleep on descriptors, [`cancel`](SleepWord::cancel).
//! Writer: make the news visible, then [`must_ring`](SleepWord::must_ring). The fences on both sides make at
//! least one see the other. The swap lets one of several writers ring.

use crate::{
    Word64,
    sync::{Ordering, ring_fence, sleep_fence},
};

/// A word in the sleeper's memory: 1 while it sleeps or is about to.
#[derive(Debug, Clone)]
pub struct SleepWord {
    word: Word64,
}

impl SleepWord {
    /// Wraps the word.
    pub fn new(word: Word64) -> SleepWord {
        SleepWord { word }
    }

    /// Sleeper: announces sleep. Look for news once more before sleeping.
    pub fn prepare(&self) {
        self.word.store(1, Ordering::Relaxed);
        // SeqCst: pairs with the fence in `must_ring`.
        sleep_fence();
    }

    /// Sleeper: is awake again, or did not sleep.
    pub fn cancel(&self) {
        self.word.store(0, Ordering::Relaxed);
    }

    /// Writer: after publishing news. `true` if the caller has to ring.
    #[inline]
    pub fn must_ring(&self) -> bool {
        // SeqCst: pairs with the fence in `prepare`: either the sleeper's last look sees the news, or this load
        // sees the announcement.
        ring_fence();
        // The order of the swap itself carries no weight; that it is one step does.
        self.word.load(Ordering::Relaxed) != 0 && self.word.swap(0, Ordering::AcqRel) != 0
    }
}
