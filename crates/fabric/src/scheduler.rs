//! The scheduler of RDMA queues: those with work to do are served round-robin, a quantum each.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{node::Node, rdma::RdmaCore};

/// Bytes a queue may move before the next one has its turn.
pub(crate) const QUANTUM: usize = 256 * 1024;

/// Queues with requests that are not done.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    active: Mutex<VecDeque<Arc<RdmaCore>>>,
    count: AtomicUsize,
}

impl Scheduler {
    /// Adds a queue to the end of the round.
    pub(crate) fn activate(&self, queue: Arc<RdmaCore>) {
        let mut active = self.active.lock().expect("no panic in scheduler");
        active.push_back(queue);
        self.count.store(active.len(), Ordering::Release);
    }

    /// Serves each active queue once. `true` if anything moved.
    pub(crate) fn run(&self, node: &Node) -> bool {
        let turns = self.count.load(Ordering::Acquire);
        let mut any = false;
        for _ in 0..turns {
            // The lock is not held while a queue is served: posts of other threads go on.
            let Some(queue) = self.next() else { break };
            let (moved, more) = queue.serve(node, QUANTUM);
            any |= moved;
            if more {
                self.activate(queue);
            }
        }
        any
    }

    fn next(&self) -> Option<Arc<RdmaCore>> {
        let mut active = self.active.lock().expect("no panic in scheduler");
        let queue = active.pop_front();
        self.count.store(active.len(), Ordering::Release);
        queue
    }
}
