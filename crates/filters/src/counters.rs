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
    /// When the unit of work began that is under way, and the waits that are; 0: none.
    unit_since: AtomicU64,
    starved_since: AtomicU64,
    blocked_since: AtomicU64,
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

    /// A wait for input begins.
    pub fn starves(&self, now: u64) {
        self.starved_since.store(now, Ordering::Relaxed);
    }

    pub fn starved(&self, ns: u64) {
        self.starves(0);
        add(&self.starved_ns, ns);
    }

    /// A wait for space begins.
    pub fn blocks(&self, now: u64) {
        self.blocked_since.store(now, Ordering::Relaxed);
    }

    pub fn blocked(&self, ns: u64) {
        self.blocks(0);
        add(&self.blocked_ns, ns);
    }

    /// A unit of work begins.
    pub fn works(&self, now: u64) {
        self.unit_since.store(now, Ordering::Relaxed);
    }

    pub fn worked(&self, ns: u64, delayed_ns: u64) {
        self.works(0);
        add(&self.working_ns, ns);
        add(&self.delayed_ns, delayed_ns);
    }

    pub fn set_waiting(&self, buffers: u64) {
        self.waiting.store(buffers, Ordering::Relaxed);
    }

    /// The counts now, with the times of what is under way: waits and the unit of work that they are a part of.
    pub fn read(&self, now: u64) -> Counts {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let since = |began: &AtomicU64| match began.load(Ordering::Relaxed) {
            0 => 0,
            began => now.saturating_sub(began),
        };
        Counts {
            buffers_in: value(&self.buffers_in),
            bytes_in: value(&self.bytes_in),
            buffers_out: value(&self.buffers_out),
            bytes_out: value(&self.bytes_out),
            starved_ns: value(&self.starved_ns) + since(&self.starved_since),
            blocked_ns: value(&self.blocked_ns) + since(&self.blocked_since),
            working_ns: value(&self.working_ns) + since(&self.unit_since),
            delayed_ns: value(&self.delayed_ns),
            waiting: value(&self.waiting),
        }
    }
}

impl Counts {
    /// Time in which it had what it needed, a processor too.
    pub fn busy_ns(&self) -> u64 {
        // A process says what it likes.
        let elsewhere = self.starved_ns.saturating_add(self.blocked_ns).saturating_add(self.delayed_ns);
        self.working_ns.saturating_sub(elsewhere)
    }

    /// Adds those of another run of the same copy.
    pub fn add(&mut self, other: &Counts) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.buffers_in, other.buffers_in);
        add(&mut self.bytes_in, other.bytes_in);
        add(&mut self.buffers_out, other.buffers_out);
        add(&mut self.bytes_out, other.bytes_out);
        add(&mut self.starved_ns, other.starved_ns);
        add(&mut self.blocked_ns, other.blocked_ns);
        add(&mut self.working_ns, other.working_ns);
        add(&mut self.delayed_ns, other.delayed_ns);
        self.waiting = other.waiting;
    }
}

/// One thread writes each counter: no step that excludes others is needed.
#[inline]
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A unit that is given up has waited no longer than it has worked.
    #[test]
    fn what_is_under_way_counts() {
        let counters = Counters::default();
        counters.works(100);
        counters.starves(150);
        counters.starved(40);
        counters.blocks(200);
        let counts = counters.read(260);
        assert_eq!((counts.working_ns, counts.starved_ns, counts.blocked_ns, counts.busy_ns()), (160, 40, 60, 60));
        counters.blocked(70);
        counters.worked(180, 5);
        let counts = counters.read(1000);
        assert_eq!((counts.working_ns, counts.starved_ns, counts.blocked_ns, counts.busy_ns()), (180, 40, 70, 65));
    }
}
