//! Which units of work wait, are under way, or are done. No I/O.

use std::collections::{BTreeMap, HashSet, VecDeque};

use crate::filter::Unit;
use crate::graph::CopyId;

/// All units of a group.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    waiting: VecDeque<Attempt>,
    under_way: BTreeMap<u64, Attempt>,
    next: u64,
}

#[derive(Debug)]
struct Attempt {
    unit: Unit,
    /// Copies that have done their part.
    finished: HashSet<CopyId>,
    begun: HashSet<CopyId>,
    /// How often a copy died over it.
    deaths: u32,
}

/// How often a unit of work is repeated.
const REPEATS: u32 = 3;

impl Attempts {
    /// Adds a unit of work; its number.
    pub fn add(&mut self, settings: crate::filter::Settings) -> u64 {
        let number = self.next;
        self.next += 1;
        let unit = Unit { number, settings };
        self.waiting.push_back(Attempt { unit, finished: HashSet::new(), begun: HashSet::new(), deaths: 0 });
        number
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_empty()
    }

    /// The next unit to begin with, if fewer than `most` are under way.
    pub fn begin(&mut self, most: usize) -> Option<Unit> {
        if self.under_way.len() >= most {
            return None;
        }
        let attempt = self.waiting.pop_front()?;
        let unit = attempt.unit.clone();
        self.under_way.insert(unit.number, attempt);
        Some(unit)
    }

    pub fn copy_began(&mut self, copy: CopyId, unit: u64) {
        if let Some(attempt) = self.under_way.get_mut(&unit) {
            attempt.begun.insert(copy);
        }
    }

    /// `true` if the unit is complete: every one of `copies` has done its part.
    pub fn copy_finished(&mut self, copy: CopyId, unit: u64, copies: usize) -> bool {
        let Some(attempt) = self.under_way.get_mut(&unit) else { return false };
        attempt.finished.insert(copy);
        let complete = attempt.finished.len() == copies;
        if complete {
            self.under_way.remove(&unit);
        }
        complete
    }

    /// The units that a copy had begun with and not finished.
    pub fn work_of(&self, copy: CopyId) -> Vec<u64> {
        let own = |attempt: &&Attempt| attempt.begun.contains(&copy) && !attempt.finished.contains(&copy);
        self.under_way.values().filter(own).map(|attempt| attempt.unit.number).collect()
    }

    pub fn oldest(&self) -> Option<u64> {
        self.under_way.keys().next().copied()
    }

    /// Takes a unit away. `false`: it is not there.
    pub fn give_up(&mut self, unit: u64) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|attempt| attempt.unit.number != unit);
        self.under_way.remove(&unit).is_some() || self.waiting.len() < before
    }

    pub fn is_under_way(&self, unit: u64) -> bool {
        self.under_way.contains_key(&unit)
    }

    /// A copy died over a unit. `true`: it may be repeated.
    pub fn may_repeat(&mut self, unit: u64) -> bool {
        let Some(attempt) = self.under_way.get_mut(&unit) else { return false };
        attempt.deaths += 1;
        attempt.deaths <= REPEATS
    }

    /// Everything that is under way begins anew, before what waits.
    pub fn restart(&mut self) {
        for (_, mut attempt) in std::mem::take(&mut self.under_way).into_iter().rev() {
            attempt.finished.clear();
            attempt.begun.clear();
            self.waiting.push_front(attempt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Settings;

    const A: CopyId = CopyId { filter: 0, copy: 0 };
    const B: CopyId = CopyId { filter: 1, copy: 0 };

    #[test]
    fn a_unit_is_complete_when_every_copy_has_done_its_part() {
        let mut attempts = Attempts::default();
        attempts.add(Settings::default());
        let unit = attempts.begin(1).unwrap().number;
        assert!(attempts.begin(1).is_none());
        assert!(!attempts.copy_finished(A, unit, 2));
        assert!(!attempts.copy_finished(A, unit, 2));
        assert!(attempts.copy_finished(B, unit, 2));
        assert!(attempts.is_empty());
    }

    #[test]
    fn a_restart_keeps_the_order_and_forgets_what_was_done() {
        let mut attempts = Attempts::default();
        for _ in 0..3 {
            attempts.add(Settings::default());
        }
        attempts.begin(2);
        attempts.begin(2);
        attempts.copy_began(A, 0);
        attempts.copy_finished(A, 0, 2);
        attempts.copy_began(A, 1);
        assert_eq!(attempts.work_of(A), [1]);
        attempts.restart();
        let order: Vec<u64> = std::iter::from_fn(|| attempts.begin(9)).map(|unit| unit.number).collect();
        assert_eq!(order, [0, 1, 2]);
        assert!(attempts.work_of(A).is_empty());
        assert!(!attempts.copy_finished(B, 0, 2));
    }
}
