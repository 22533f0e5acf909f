//! Tickets: who learns how a request ends.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use sidestep_sys::lock::Mutex;

use crate::{
    aperture::ApertureCore,
    link::{Outcome, Ticket},
    node::NodeCore,
    rdma::RdmaCore,
};

/// Who waits for a request.
#[derive(Debug)]
pub(crate) enum Completion {
    /// An aperture that asked to be opened.
    Open(Arc<ApertureCore>),
    /// A store through an aperture that is not mapped; only a failure matters.
    Store(Weak<ApertureCore>),
    /// A read that only tells the owner of a region that watched words of a line were read; which ones.
    Report(Weak<ApertureCore>, usize, (usize, usize)),
    /// A piece of a request of an RDMA queue.
    Rdma(Weak<RdmaCore>, u32, usize),
}

/// Requests under way.
#[derive(Debug, Default)]
pub(crate) struct Tickets {
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, Completion, BuildHasherDefault<NumberHasher>>>,
}

/// Spreads numbers that this process gives out by itself, one after the other: nobody chooses them to collide.
#[derive(Debug, Default)]
struct NumberHasher(u64);

impl Tickets {
    pub(crate) fn issue(&self, completion: Completion) -> Ticket {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.waiting.lock().expect("no panic in ticket table").insert(number, completion);
        Ticket(number)
    }

    pub(crate) fn redeem(&self, ticket: Ticket) -> Option<Completion> {
        self.waiting.lock().expect("no panic in ticket table").remove(&ticket.0)
    }
}

impl Hasher for NumberHasher {
    fn write_u64(&mut self, number: u64) {
        // An odd factor loses nothing, and its high bits spread.
        self.0 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(self.0 ^ u64::from(*byte)));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Completion {
    pub(crate) fn complete(self, node: &NodeCore, outcome: Outcome) {
        match self {
            Completion::Open(aperture) => {
                aperture.opened(outcome);
                node.ask_location(&aperture);
            }
            Completion::Store(aperture) => {
                if let Some(aperture) = aperture.upgrade() {
                    aperture.stored(outcome);
                }
            }
            Completion::Report(aperture, line, words) => {
                let again = aperture.upgrade().filter(|aperture| aperture.reported(line));
                // Who did not hear of this one does not hear of another.
                if let (Some(aperture), Outcome::Bytes(_)) = (again, outcome) {
                    node.report_read(&aperture, line, words);
                }
            }
            Completion::Rdma(queue, id, at) => {
                if let Some(queue) = queue.upgrade() {
                    queue.completed(id, at, outcome);
                }
            }
        }
    }
}
