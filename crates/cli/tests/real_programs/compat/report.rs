//! What a program or a suite did in one run: named checks, each of which passed, failed or was skipped.

use std::{
    any::Any,
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// The checks of one run, by name.
#[derive(Debug, Default)]
pub struct Report(BTreeMap<String, Verdict>);

/// What became of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// With what was answered, if that is compared, too.
    Passed(String),
    /// With the reason.
    Failed(String),
    /// By the suite itself, for reasons of the machine.
    Skipped,
}

impl Report {
    /// Lets a program add its checks; a panic outside of them is a check that failed.
    pub fn fill(&mut self, run: fn(&mut Report)) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(self))) {
            self.add("all of it", Verdict::Failed(message(&*panic)));
        }
    }

    /// Adds a check that fails by a panic.
    pub fn check(&mut self, name: &str, check: impl FnOnce()) {
        self.answer(name, || {
            check();
            String::new()
        });
    }

    /// Adds a check whose answer is the same in all ways of running; it fails by a panic.
    pub fn answer(&mut self, name: &str, check: impl FnOnce() -> String) {
        let verdict = match catch_unwind(AssertUnwindSafe(check)) {
            Ok(answer) => Verdict::Passed(answer),
            Err(panic) => Verdict::Failed(message(&*panic)),
        };
        self.add(name, verdict);
    }

    /// Adds a check of a suite. If one of this name failed before, that stays.
    pub fn add(&mut self, name: &str, verdict: Verdict) {
        let entry = self.0.entry(name.to_string()).or_insert_with(|| verdict.clone());
        if matches!(verdict, Verdict::Failed(_)) {
            *entry = verdict;
        }
    }

    /// The names of the checks that ended otherwise in another run, or are only in one of the two.
    pub fn differences(&self, other: &Report) -> Vec<String> {
        let same = |name: &&String| match (self.0.get(*name), other.0.get(*name)) {
            (Some(Verdict::Failed(_)), Some(Verdict::Failed(_))) => true,
            (own, theirs) => own == theirs,
        };
        let more = other.0.keys().filter(|name| !self.0.contains_key(*name));
        self.0.keys().chain(more).filter(|name| !same(name)).cloned().collect()
    }

    /// Passed, failed and skipped ones.
    pub fn counts(&self) -> String {
        let count = |of: fn(&Verdict) -> bool| self.0.values().filter(|verdict| of(verdict)).count();
        let passed = count(|verdict| matches!(verdict, Verdict::Passed(_)));
        let failed = count(|verdict| matches!(verdict, Verdict::Failed(_)));
        let skipped = count(|verdict| matches!(verdict, Verdict::Skipped));
        format!("{passed} / {failed} / {skipped}")
    }

    /// What failed, with the reasons.
    pub fn failures(&self) -> String {
        let failed = self.0.iter().filter_map(|(name, verdict)| match verdict {
            Verdict::Failed(reason) => Some(format!("== {name}\n{reason}\n")),
            _ => None,
        });
        failed.collect()
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}
