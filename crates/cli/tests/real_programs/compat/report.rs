//! What a program or a suite did in one run: named checks, each of which passed, failed or was skipped.

use std::{
    any::Any,
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// The checks of one run.
#[derive(Debug, Default)]
pub struct Report {
    checks: BTreeMap<String, Verdict>,
    /// Checks of ours that failed: those of suites may fail without Sidestep, too, and these not.
    panicked: Vec<String>,
}

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
            self.fail("all of it", &*panic);
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
        match catch_unwind(AssertUnwindSafe(check)) {
            Ok(answer) => self.add(name, Verdict::Passed(answer)),
            Err(panic) => self.fail(name, &*panic),
        }
    }

    /// Adds a check of a suite. If one of this name failed before, that stays.
    pub fn add(&mut self, name: &str, verdict: Verdict) {
        let entry = self.checks.entry(name.to_string()).or_insert_with(|| verdict.clone());
        if matches!(verdict, Verdict::Failed(_)) {
            *entry = verdict;
        }
    }

    fn fail(&mut self, name: &str, panic: &(dyn Any + Send)) {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default();
        self.add(name, Verdict::Failed(text));
        self.panicked.push(name.to_string());
    }

    /// Checks of ours that failed. In a plain run they say that the program, or the check, does not work here.
    pub fn panicked(&self) -> &[String] {
        &self.panicked
    }

    /// The names of the checks that ended otherwise in another run, or are only in one of the two.
    pub fn differences(&self, other: &Report) -> Vec<String> {
        let same = |name: &&String| match (self.checks.get(*name), other.checks.get(*name)) {
            (Some(Verdict::Failed(_)), Some(Verdict::Failed(_))) => true,
            (own, theirs) => own == theirs,
        };
        let more = other.checks.keys().filter(|name| !self.checks.contains_key(*name));
        self.checks.keys().chain(more).filter(|name| !same(name)).cloned().collect()
    }

    /// Passed, failed and skipped ones.
    pub fn counts(&self) -> String {
        let count = |of: fn(&Verdict) -> bool| self.checks.values().filter(|verdict| of(verdict)).count();
        let passed = count(|verdict| matches!(verdict, Verdict::Passed(_)));
        let failed = count(|verdict| matches!(verdict, Verdict::Failed(_)));
        let skipped = count(|verdict| matches!(verdict, Verdict::Skipped));
        format!("{passed} / {failed} / {skipped}")
    }

    /// What failed, with the reasons.
    pub fn failures(&self) -> String {
        let failed = self.checks.iter().filter_map(|(name, verdict)| match verdict {
            Verdict::Failed(reason) => Some(format!("== {name}\n{reason}\n")),
            _ => None,
        });
        failed.collect()
    }
}
