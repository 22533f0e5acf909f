//! What was posted, how far it is, and how much of the output the stream has taken.
//!
//! Requests complete in the order in which they were posted: one that only needs to be transmitted
//! waits for a read before it to be answered.

use crate::event::{Completion, Outcome, WorkId};
use sidestep_wire::Stag;
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Everything posted and not completed, and the number of the first one.
    entries: VecDeque<Entry>,
    first: u64,
    /// Regions whose bytes were gathered, each until so many bytes are transmitted.
    in_flight: VecDeque<(u64, Stag)>,
    emitted: u64,
    transmitted: u64,
}

#[derive(Debug)]
struct Entry {
    work: WorkId,
    state: State,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Waiting,
    /// Done once so many bytes are transmitted.
    Emitted {
        until: u64,
    },
    Done(Outcome),
}

impl Ledger {
    /// Enters a request; returns its number.
    pub(crate) fn open(&mut self, work: WorkId) -> u64 {
        self.entries.push_back(Entry { work, state: State::Waiting });
        self.first + self.entries.len() as u64 - 1
    }

    /// How many requests are not completed.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Counts bytes that were gathered; those of `region` are held until they are transmitted.
    pub(crate) fn count_emitted(&mut self, count: u64, region: Option<Stag>) {
        self.emitted += count;
        if let Some(stag) = region {
            self.in_flight.push_back((self.emitted, stag));
        }
    }

    /// Counts bytes that the stream has taken.
    pub(crate) fn count_transmitted(&mut self, count: u64) {
        self.transmitted = self.transmitted.saturating_add(count).min(self.emitted);
        while self.in_flight.front().is_some_and(|(until, _)| *until <= self.transmitted) {
            self.in_flight.pop_front();
        }
    }

    /// Whether the stream has taken everything.
    pub(crate) fn is_drained(&self) -> bool {
        self.transmitted == self.emitted
    }

    /// Whether bytes of the region are gathered and not transmitted.
    pub(crate) fn holds(&self, stag: Stag) -> bool {
        self.in_flight.iter().any(|(_, held)| *held == stag)
    }

    /// The driver drops what is gathered.
    pub(crate) fn forget_output(&mut self) {
        self.in_flight.clear();
    }

    /// The last byte of a request that asks for no answer is gathered.
    pub(crate) fn mark_emitted(&mut self, number: u64) {
        self.set(number, State::Emitted { until: self.emitted });
    }

    /// A request is done.
    pub(crate) fn complete(&mut self, number: u64, outcome: Outcome) {
        self.set(number, State::Done(outcome));
    }

    /// The next request that is done.
    pub(crate) fn poll(&mut self) -> Option<Completion> {
        let Entry { work, state } = self.entries.front()?;
        let completion = Completion { work: *work, outcome: state.outcome(self.transmitted)? };
        self.entries.pop_front();
        self.first += 1;
        Some(completion)
    }

    /// Gives up on what is not done.
    pub(crate) fn flush(&mut self) {
        for entry in &mut self.entries {
            let outcome = entry.state.outcome(self.transmitted).unwrap_or(Outcome::Flushed);
            entry.state = State::Done(outcome);
        }
    }

    fn set(&mut self, number: u64, state: State) {
        let index = number.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        if let Some(entry) = index.and_then(|index| self.entries.get_mut(index)) {
            entry.state = state;
        }
    }
}

impl State {
    fn outcome(self, transmitted: u64) -> Option<Outcome> {
        match self {
            State::Done(outcome) => Some(outcome),
            State::Emitted { until } if until <= transmitted => Some(Outcome::Sent),
            State::Emitted { .. } | State::Waiting => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completion(work: u64, outcome: Outcome) -> Option<Completion> {
        Some(Completion { work: WorkId(work), outcome })
    }

    #[test]
    fn requests_complete_in_order() {
        let mut ledger = Ledger::default();
        let read = ledger.open(WorkId(1));
        let send = ledger.open(WorkId(2));
        ledger.count_emitted(100, None);
        ledger.mark_emitted(send);
        ledger.count_transmitted(100);
        assert_eq!(ledger.poll(), None);
        ledger.complete(read, Outcome::Read);
        assert_eq!(ledger.poll(), completion(1, Outcome::Read));
        assert_eq!(ledger.poll(), completion(2, Outcome::Sent));
        assert_eq!(ledger.poll(), None);
        // Numbers of requests that are gone are ignored.
        ledger.complete(read, Outcome::Read);
        let later = ledger.open(WorkId(3));
        ledger.complete(later, Outcome::Read);
        assert_eq!(ledger.poll(), completion(3, Outcome::Read));
    }

    #[test]
    fn a_flush_keeps_what_is_done() {
        let mut ledger = Ledger::default();
        let sent = ledger.open(WorkId(1));
        ledger.count_emitted(10, None);
        ledger.mark_emitted(sent);
        let unsent = ledger.open(WorkId(2));
        ledger.count_emitted(10, None);
        ledger.mark_emitted(unsent);
        ledger.open(WorkId(3));
        ledger.count_transmitted(19);
        ledger.flush();
        assert_eq!(ledger.poll(), completion(1, Outcome::Sent));
        assert_eq!(ledger.poll(), completion(2, Outcome::Flushed));
        assert_eq!(ledger.poll(), completion(3, Outcome::Flushed));
    }

    #[test]
    fn regions_are_held_until_their_bytes_are_out() {
        let mut ledger = Ledger::default();
        ledger.count_emitted(10, Some(Stag(1)));
        ledger.count_emitted(10, Some(Stag(2)));
        ledger.count_transmitted(9);
        assert!(ledger.holds(Stag(1)) && ledger.holds(Stag(2)) && !ledger.is_drained());
        ledger.count_transmitted(1);
        assert!(!ledger.holds(Stag(1)) && ledger.holds(Stag(2)));
        // More than was gathered cannot have been transmitted.
        ledger.count_transmitted(1000);
        assert!(!ledger.holds(Stag(2)) && ledger.is_drained());
    }
}
