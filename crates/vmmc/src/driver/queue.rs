//! The queue between the interrupt and the thread that resolves misses, with the time of every step.

use std::collections::VecDeque;

use super::Bins;
use crate::card::Miss;

/// A miss on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissEvent {
    /// What is lacking.
    pub miss: Miss,
    /// When the card interrupted.
    pub interrupt_ns: u64,
}

/// Misses that wait for the thread.
#[derive(Debug, Default)]
pub struct MissQueue {
    events: VecDeque<MissEvent>,
}

/// How long misses took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timing {
    /// From the interrupt until the thread ran.
    pub delay: Bins,
    /// From then until the entries were written.
    pub processing: Bins,
}

impl MissQueue {
    /// The interrupt: makes a descriptor and queues it.
    pub fn interrupt(&mut self, now: u64, miss: Miss) {
        self.events.push_back(MissEvent { miss, interrupt_ns: now });
    }

    /// The thread takes the next.
    pub fn take(&mut self) -> Option<MissEvent> {
        self.events.pop_front()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

impl Timing {
    /// Notes a miss that the thread took at one time and resolved at another.
    pub fn note(&mut self, event: &MissEvent, taken_ns: u64, resolved_ns: u64) {
        self.delay.add(taken_ns.saturating_sub(event.interrupt_ns));
        self.processing.add(resolved_ns.saturating_sub(taken_ns));
    }
}
