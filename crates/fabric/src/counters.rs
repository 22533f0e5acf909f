//! Counters of a node: what moved, and what it cost beside the copies. Nothing that two running ends do by stores alone is
//! counted here; [`RdmaQueue::totals`](crate::RdmaQueue::totals) counts by way, under a lock that is held anyway.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a node has counted since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes that this process copied for peers, who asked for it by messages.
    pub served_bytes: u64,
    /// Times that a thread slept at the node: each is a switch to another thread and back.
    pub sleeps: u64,
    /// Times that a thread of this process woke others that slept.
    pub wakes: u64,
    /// Sleeps that ended by themselves, after ten seconds, with something there to wake up for: that wake-up was lost, or its
    /// sender was stopped in the midst of it.
    pub unrung: u64,
    /// Times that this process rang the doorbell of a peer that slept: a system call each.
    pub doorbells: u64,
}

/// The counters themselves.
#[derive(Debug, Default)]
pub(crate) struct CounterSet {
    pub(crate) served_bytes: Counter,
    pub(crate) sleeps: Counter,
    pub(crate) wakes: Counter,
    pub(crate) unrung: Counter,
}

/// Counts from any thread, in no order with anything else.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: usize) {
        self.0.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
