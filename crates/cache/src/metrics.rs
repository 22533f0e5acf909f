//! What a proxy counts, in the text of OpenMetrics.

use std::{
    fmt::Write,
    sync::atomic::{AtomicU64, Ordering},
};

/// The counts.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Answered out of the cache, after a check.
    pub hits: Count,
    /// Fetched, and kept if that was allowed.
    pub misses: Count,
    /// Were kept and had changed.
    pub stale: Count,
    /// Waited while somebody else fetched the same document.
    pub waited: Count,
    /// Passed on as they are.
    pub passed: Count,
    /// The version could not be known.
    pub unknown: Count,
    /// The origin did not answer.
    pub failed: Count,
}

/// One count.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Its value.
    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Metrics {
    /// The text, with the bytes that are kept.
    pub fn text(&self, kept: u64) -> String {
        let rows = [
            ("hits", "Answers out of the cache, each after a check", &self.hits),
            ("misses", "Documents fetched from the origin", &self.misses),
            ("stale", "Kept answers whose document had changed", &self.stale),
            ("waited", "Requests that waited for a fetch of the same document", &self.waited),
            ("passed", "Requests passed on as they are", &self.passed),
            ("unknown", "Requests for which no version could be had", &self.unknown),
            ("failed", "Requests that the origin did not answer", &self.failed),
        ];
        let mut text = String::new();
        for (name, help, count) in rows {
            let name = format!("sidestep_cache_{name}");
            let value = count.value();
            let _ = write!(text, "# TYPE {name} counter\n# HELP {name} {help}\n{name}_total {value}\n");
        }
        let name = "sidestep_cache_kept_bytes";
        let _ = write!(text, "# TYPE {name} gauge\n# HELP {name} Bytes that are kept\n{name} {kept}\n# EOF\n");
        text
    }
}
