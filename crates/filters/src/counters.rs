//! What each copy counts, for whoever watches. Read from other threads at any time.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// The counters of one copy.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    buffers_in: AtomicU64,
    bytes_in: AtomicU64,
    buffers_out: AtomicU64,
    bytes_out: AtomicU64,
    starved_ns: AtomicU64,
    blocked_ns: AtomicU64,
    working_ns: AtomicU64,
    delayed_ns: AtomicU64,
    waiting: AtomicU64,
}

/// What a copy has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Buffers taken, and their bytes.
    pub buffers_in: u64,
    /// Bytes taken.
    pub bytes_in: u64,
    /// Buffers given.
    pub buffers_out: u64,
    /// Bytes given.
    pub bytes_out: u64,
    /// Time without input.
    pub starved_ns: u64,
    /// Time without space in an output.
    pub blocked_ns: u64,
    /// Time in units of work, with the two others and the next.
    pub working_ns: u64,
    /// Time in which it had what it needed but a processor, because other threads had them.
    pub delayed_ns: u64,
    /// Buffers that waited at its inputs when it last looked.
    pub waiting: u64,
}

impl Counters {
    #[inline]
    pub fn took(&self, bytes: u64) {
        add(&self.buffers_in, 1);
        add(&self.bytes_in, bytes);
    }

    #[inline]
    pub fn gave(&self, bytes: u64) {
        add(&self.buffers_out, 1);
        add(&self.bytes_out, bytes);
    }

    pub fn starved(&self, ns: u64) {
        add(&self.starved_ns, ns);
    }

    pub fn blocked(&self, ns: u64) {
        add(&self.blocked_ns, ns);
    }

    pub fn worked(&self, ns: u64, delayed_ns: u64) {
        add(&self.working_ns, ns);
        add(&self.delayed_ns, delayed_ns);
    }

    pub fn set_waiting(&self, buffers: u64) {
        self.waiting.store(buffers, Ordering::Relaxed);
    }

    pub fn read(&self) -> Counts {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            buffers_in: value(&self.buffers_in),
            bytes_in: value(&self.bytes_in),
            buffers_out: value(&self.buffers_out),
            bytes_out: value(&self.bytes_out),
            starved_ns: value(&self.starved_ns),
            blocked_ns: value(&self.blocked_ns),
            working_ns: value(&self.working_ns),
            delayed_ns: value(&self.delayed_ns),
            waiting: value(&self.waiting),
        }
    }
}

impl Counts {
    /// Time in which it had what it needed, a processor too.
    pub fn busy_ns(&self) -> u64 {
        self.working_ns.saturating_sub(self.starved_ns + self.blocked_ns + self.delayed_ns)
    }

    /// Adds those of another run of the same copy.
    pub fn add(&mut self, other: &Counts) {
        self.buffers_in += other.buffers_in;
        self.bytes_in += other.bytes_in;
        self.buffers_out += other.buffers_out;
        self.bytes_out += other.bytes_out;
        self.starved_ns += other.starved_ns;
        self.blocked_ns += other.blocked_ns;
        self.working_ns += other.working_ns;
        self.delayed_ns += other.delayed_ns;
        self.waiting = other.waiting;
    }
}

/// One thread writes each counter: no step that excludes others is needed.
#[inline]
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}
