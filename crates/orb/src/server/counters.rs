//! What the threads of a server have done.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since a broker was started, of all its dispatchers together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Messages that dispatchers have served.
    pub served: u64,
    /// Times that another thread went on with looking for messages.
    pub switches: u64,
    /// Times that a thread slept until something came.
    pub sleeps: u64,
    /// Times that a thread was woken, or led to a connection, and found nothing to do.
    pub spurious: u64,
    /// Threads that were started for connections, or by dispatchers.
    pub started: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) served: AtomicU64,
    pub(super) switches: AtomicU64,
    pub(super) sleeps: AtomicU64,
    pub(super) spurious: AtomicU64,
    pub(super) started: AtomicU64,
}

impl Counts {
    pub(super) fn add(count: &AtomicU64, more: usize) {
        count.fetch_add(more as u64, Ordering::Relaxed);
    }

    pub(super) fn look(&self) -> Counters {
        let look = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counters {
            served: look(&self.served),
            switches: look(&self.switches),
            sleeps: look(&self.sleeps),
            spurious: look(&self.spurious),
            started: look(&self.started),
        }
    }
}
