//! Tickets: who learns how a request ends.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{
    aperture::ApertureCore,
    link::{Outcome, Ticket},
    rdma::RdmaCore,
};

/// Who waits for a request.
#[derive(Debug)]
pub(crate) enum Completion {
    /// An aperture that asked to be opened.
    Open(Arc<ApertureCore>),
    /// A store through an aperture that is not mapped; only a failure matters.
    Store(Weak<ApertureCore>),
    /// A piece of a request of an RDMA queue.
    Rdma(Weak<RdmaCore>, u32, usize),
}

/// Requests under way.
#[derive(Debug, Default)]
pub(crate) struct Tickets {
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, Completion>>,
}

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

impl Completion {
    pub(crate) fn complete(self, outcome: Outcome) {
        match self {
            Completion::Open(aperture) => aperture.opened(outcome),
            Completion::Store(aperture) => {
                if let Some(aperture) = aperture.upgrade() {
                    aperture.stored(outcome);
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
