//! One-sided operations that were posted: they end in the order in which they were posted, each with its own outcome.

use std::collections::VecDeque;

use sidestep_fabric::{Aperture, Node, RdmaQueue, rdma::RequestId};

use crate::{
    completion::{Completion, Kind},
    error::{Error, Result},
    region::Piece,
};

#[derive(Debug)]
pub(crate) struct Posted {
    queue: RdmaQueue,
    pending: VecDeque<Pending>,
}

#[derive(Debug)]
struct Pending {
    id: RequestId,
    kind: Kind,
    token: u64,
    /// Kept, so that the memory stays registered.
    pieces: Vec<Piece>,
}

/// Operations of one socket that have not ended.
const LIMIT: usize = 1024;

impl Posted {
    pub(crate) fn new(node: &Node) -> Posted {
        Posted { queue: RdmaQueue::new(node, LIMIT), pending: VecDeque::new() }
    }

    pub(crate) fn queue(&self) -> &RdmaQueue {
        &self.queue
    }

    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    pub(crate) fn post(
        &mut self,
        kind: Kind,
        (target, offset): (&Aperture, usize),
        pieces: Vec<Piece>,
        token: u64,
    ) -> Result<()> {
        if self.pending.len() >= LIMIT {
            return Err(Error::Full { what: "operations that have not ended", limit: LIMIT });
        }
        let slices = Piece::slices(&pieces)?;
        let id = match kind {
            Kind::Put => self.queue.gather(&slices, target, offset)?,
            _ => self.queue.scatter(target, offset, &slices)?,
        };
        self.pending.push_back(Pending { id, kind, token, pieces });
        Ok(())
    }

    /// Completions of what has ended.
    pub(crate) fn collect(&mut self, socket: u64, into: &mut Vec<Completion>) {
        let mut failed = false;
        while let Some(first) = self.pending.front() {
            let outcome = match self.queue.test(first.id) {
                Ok(false) => break,
                Ok(true) => Ok(Piece::total(&first.pieces)),
                Err(error) => Err(Error::from(error)),
            };
            failed |= outcome.is_err();
            into.push(Completion::new(socket, first.kind, first.token, outcome));
            self.pending.pop_front();
        }
        // What was flushed with the one that failed has ended with it: the next post begins anew.
        if failed && self.pending.is_empty() {
            self.queue.reset();
        }
    }

    /// The last operation, if it has not been collected.
    pub(crate) fn last(&self) -> Option<RequestId> {
        self.pending.back().map(|last| last.id)
    }

    /// The connection is over: whatever has not ended never will.
    pub(crate) fn end(&mut self, socket: u64, error: &Error, into: &mut Vec<Completion>) {
        self.collect(socket, into);
        let left = self.pending.drain(..);
        into.extend(left.map(|left| Completion::new(socket, left.kind, left.token, Err(error.clone()))));
    }
}
