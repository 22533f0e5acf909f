//! Which copy of the consumer gets the next buffer. No I/O: the port tells it what was sent and acknowledged.

use serde::{Deserialize, Serialize};

/// How buffers are dealt to the copies of a consumer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Each in turn.
    #[default]
    RoundRobin,
    /// The copy with the fewest buffers that it has not begun. A copy acknowledges a buffer when it begins with it.
    Demand,
    /// The same key, the same copy.
    Keyed,
}

/// The state of one producer copy towards the copies of its consumer.
#[derive(Debug)]
pub struct Scheduler {
    schedule: Schedule,
    /// Buffers sent to each copy, and those it has begun.
    sent: Vec<u64>,
    begun: Vec<u64>,
    next: usize,
    window: u64,
}

impl Scheduler {
    /// Deals to so many copies; with [`Schedule::Demand`] at most `window` buffers wait at each.
    pub fn new(schedule: Schedule, copies: usize, window: usize) -> Scheduler {
        let none = vec![0; copies];
        Scheduler { schedule, sent: none.clone(), begun: none, next: 0, window: window.max(1) as u64 }
    }

    /// The copy for the next buffer; `None` if every one has as many waiting as it may.
    #[inline]
    pub fn pick(&self, key: u64) -> Option<usize> {
        let copies = self.sent.len();
        match self.schedule {
            Schedule::RoundRobin => Some(self.next),
            Schedule::Keyed => Some((scatter(key) % copies as u64) as usize),
            // It has no choice, and no word comes.
            Schedule::Demand if copies == 1 => Some(0),
            Schedule::Demand => {
                // Of those with equally few, the one whose turn it is.
                let turn = (self.next..copies).chain(0..self.next);
                turn.min_by_key(|copy| self.waiting(*copy)).filter(|copy| self.waiting(*copy) < self.window)
            }
        }
    }

    /// Whether acknowledgements matter.
    #[inline]
    pub fn wants_word(&self) -> bool {
        self.schedule == Schedule::Demand && self.sent.len() > 1
    }

    /// A buffer went to this copy.
    #[inline]
    pub fn sent(&mut self, copy: usize) {
        self.sent[copy] += 1;
        // A division would take longer than all the rest.
        self.next = if copy + 1 < self.sent.len() { copy + 1 } else { 0 };
    }

    /// The copy has begun with so many in all. `false`: it has not got so many.
    pub fn begun(&mut self, copy: usize, total: u64) -> bool {
        self.begun[copy] = self.begun[copy].max(total);
        total <= self.sent[copy]
    }

    /// Buffers that wait at a copy.
    pub fn waiting(&self, copy: usize) -> u64 {
        self.sent[copy].saturating_sub(self.begun[copy])
    }
}

/// A key of any shape becomes an even one: the finalizer of SplitMix64.
fn scatter(key: u64) -> u64 {
    let key = (key ^ (key >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let key = (key ^ (key >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    key ^ (key >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_robin_takes_turns() {
        let mut scheduler = Scheduler::new(Schedule::RoundRobin, 3, 4);
        let picked: Vec<usize> = (0..6)
            .map(|_| {
                let copy = scheduler.pick(0).unwrap();
                scheduler.sent(copy);
                copy
            })
            .collect();
        assert_eq!(picked, [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn demand_goes_to_whoever_has_begun_most() {
        let mut scheduler = Scheduler::new(Schedule::Demand, 2, 2);
        for expected in [0, 1, 0, 1] {
            assert_eq!(scheduler.pick(0), Some(expected));
            scheduler.sent(expected);
        }
        assert_eq!(scheduler.pick(0), None, "both windows are full");
        assert!(scheduler.begun(1, 1));
        assert_eq!(scheduler.pick(0), Some(1));
        assert!(scheduler.begun(0, 2));
        assert_eq!(scheduler.pick(0), Some(0));
        assert!(!scheduler.begun(0, 3), "it was sent two");
    }

    #[test]
    fn a_key_has_one_copy() {
        let scheduler = Scheduler::new(Schedule::Keyed, 5, 1);
        let mut used = [0; 5];
        for key in 0..1000 {
            let copy = scheduler.pick(key).unwrap();
            assert_eq!(scheduler.pick(key), Some(copy));
            used[copy] += 1;
        }
        assert!(used.iter().all(|count| *count > 100), "{used:?}");
    }
}
