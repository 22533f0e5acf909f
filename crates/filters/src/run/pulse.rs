//! Which processes have been silent for too long. No I/O, and no clock of its own.
//!
//! A process is asked whether it is there, and anything that it says is an answer. Only the time since a question counts, and only
//! while somebody looks: a program that does not look after its group for hours, or was stopped together with it, finds nobody dead.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The processes that are asked.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    processes: BTreeMap<String, Heard>,
    /// When the next look was to be.
    expected: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
enum Heard {
    /// It said something, or was started, at this time.
    At(Instant),
    /// It was asked at this time, and has not answered.
    Asked(Instant),
}

/// Questions in the time that a process may be silent.
const QUESTIONS: u32 = 4;

impl Pulse {
    /// A process that must say something from now on.
    pub fn expect(&mut self, process: &str, now: Instant) {
        self.processes.insert(process.to_owned(), Heard::Asked(now));
    }

    pub fn forget(&mut self, process: &str) {
        self.processes.remove(process);
    }

    /// A process has said something.
    pub fn heard(&mut self, process: &str, now: Instant) {
        if let Some(heard) = self.processes.get_mut(process) {
            *heard = Heard::At(now);
        }
    }

    /// Processes to be asked now.
    pub fn due(&mut self, now: Instant, patience: Duration) -> Vec<String> {
        self.forgive(now, patience);
        let mut due = Vec::new();
        for (process, heard) in &mut self.processes {
            if let Heard::At(at) = *heard
                && now.saturating_duration_since(at) >= patience / QUESTIONS
            {
                *heard = Heard::Asked(now);
                due.push(process.clone());
            }
        }
        due
    }

    /// One that has not answered for too long.
    pub fn silent(&mut self, now: Instant, patience: Duration) -> Option<String> {
        self.forgive(now, patience);
        let silent =
            |heard: &Heard| matches!(heard, Heard::Asked(at) if now.saturating_duration_since(*at) >= patience);
        self.processes.iter().find(|(_, heard)| silent(heard)).map(|(process, _)| process.clone())
    }

    /// How long until one is due or silent, which is the time of the next look; `None`: there are none.
    pub fn next(&mut self, now: Instant, patience: Duration) -> Option<Duration> {
        let left = |heard: &Heard| match *heard {
            Heard::At(at) => (patience / QUESTIONS).saturating_sub(now.saturating_duration_since(at)),
            Heard::Asked(at) => patience.saturating_sub(now.saturating_duration_since(at)),
        };
        let next = self.processes.values().map(left).min();
        self.expected = next.map(|next| now + next);
        next
    }

    /// Nobody has looked when somebody was to: what was not answered meanwhile is asked as of now.
    fn forgive(&mut self, now: Instant, patience: Duration) {
        let is_late = |expected: Instant| now.saturating_duration_since(expected) > patience / QUESTIONS;
        if self.expected.take_if(|expected| is_late(*expected)).is_none() {
            return;
        }
        for heard in self.processes.values_mut() {
            if let Heard::Asked(at) = heard {
                *at = now;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);
    const STEP: Duration = Duration::from_secs(5);

    #[test]
    fn only_a_question_without_an_answer_is_silence() {
        let (mut pulse, start) = (Pulse::default(), Instant::now());
        assert_eq!(pulse.next(start, PATIENCE), None);
        pulse.expect("a", start);
        pulse.heard("a", start);
        assert_eq!(pulse.next(start, PATIENCE), Some(STEP));
        // Nobody looked for an hour, and nobody was asked.
        let late = start + Duration::from_secs(3600);
        assert_eq!(pulse.silent(late, PATIENCE), None);
        assert_eq!(pulse.due(late, PATIENCE), ["a"]);
        assert!(pulse.due(late + STEP, PATIENCE).is_empty());
        assert_eq!(pulse.next(late + STEP, PATIENCE), Some(3 * STEP));
        assert_eq!(pulse.silent(late + 3 * STEP, PATIENCE), None);
        assert_eq!(pulse.silent(late + PATIENCE, PATIENCE).as_deref(), Some("a"));
        pulse.heard("a", late + PATIENCE);
        assert_eq!(pulse.silent(late + PATIENCE, PATIENCE), None);
    }

    #[test]
    fn time_in_which_nobody_looked_does_not_count() {
        let (mut pulse, start) = (Pulse::default(), Instant::now());
        pulse.expect("a", start);
        assert_eq!(pulse.next(start, PATIENCE), Some(PATIENCE));
        // The next look comes an hour late, as after a stop: an answer may be on its way.
        let late = start + Duration::from_secs(3600);
        assert_eq!(pulse.silent(late, PATIENCE), None);
        assert_eq!(pulse.next(late, PATIENCE), Some(PATIENCE));
        assert_eq!(pulse.silent(late + 3 * STEP, PATIENCE), None);
        assert_eq!(pulse.silent(late + PATIENCE, PATIENCE).as_deref(), Some("a"));
    }

    #[test]
    fn a_process_that_was_started_must_answer() {
        let (mut pulse, start) = (Pulse::default(), Instant::now());
        pulse.expect("a", start);
        pulse.expect("b", start);
        pulse.heard("b", start + STEP);
        assert_eq!(pulse.silent(start + PATIENCE, PATIENCE).as_deref(), Some("a"));
        pulse.forget("a");
        assert_eq!(pulse.silent(start + PATIENCE, PATIENCE), None);
    }
}
