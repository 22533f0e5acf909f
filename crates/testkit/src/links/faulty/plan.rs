//! What shall go wrong, and when.

use std::sync::atomic::{AtomicU64, Ordering};

use sidestep_sys::lock::Mutex;

use crate::seeded::Seeded;

/// When a fault happens, counted over the calls it could happen to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum When {
    /// Never.
    #[default]
    Never,
    /// At this call, counted from 1, and at no other.
    Nth(u64),
    /// From this call on, counted from 1.
    From(u64),
    /// At so many calls of a thousand, as the seed decides.
    PerMille(u32),
}

/// What a faulty link does. Each fault is one that a real link could have: nothing is lost in silence, repeated or
/// reordered. A plan by default has no faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FaultPlan {
    /// Where the generator for [`When::PerMille`] starts.
    pub seed: u64,
    /// Connects that find nobody.
    pub refuse_connect: When,
    /// Messages turned away because the link is full.
    pub full_post: When,
    /// Messages turned away because the machine has reached a limit.
    pub limit_post: When,
    /// Requests turned away because the link is full.
    pub full_request: When,
    /// Requests turned away because the machine has reached a limit.
    pub limit_request: When,
    /// Messages and requests to one peer after which the link to it breaks.
    pub close_after: Option<u64>,
    /// Polls by which messages, outcomes and closes are held back.
    pub delay_polls: u64,
    /// Guesses of news that are wrong.
    pub spurious_news: When,
    /// Sleeps that end at once, for nothing.
    pub spurious_wakes: When,
}

/// Counts the calls that one fault could happen to.
#[derive(Debug)]
pub(super) struct Trigger {
    when: When,
    calls: AtomicU64,
    random: Mutex<Seeded>,
}

impl Trigger {
    pub(super) fn new(when: When, seed: u64) -> Trigger {
        Trigger { when, calls: AtomicU64::new(0), random: Mutex::new(Seeded::new(seed)) }
    }

    /// Counts a call; whether the fault happens to it.
    pub(super) fn pull(&self) -> bool {
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        match self.when {
            When::Never => false,
            When::Nth(nth) => call == nth,
            When::From(first) => call >= first,
            When::PerMille(chance) => self.random.lock().expect("no panic in a generator").chance(chance),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_count_from_one() {
        let hits = |when| -> Vec<usize> {
            let trigger = Trigger::new(when, 1);
            (1..=5).filter(|_| trigger.pull()).collect()
        };
        assert_eq!(hits(When::Never), []);
        assert_eq!(hits(When::Nth(1)), [1]);
        assert_eq!(hits(When::Nth(3)), [3]);
        assert_eq!(hits(When::From(4)), [4, 5]);
        assert_eq!(hits(When::PerMille(1000)), [1, 2, 3, 4, 5]);
    }
}
