//! The scheduler of RDMA queues: those with work to do are served round-robin, a quantum each.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use sidestep_sys::lock::Mutex;

use crate::{node::Node, rdma::RdmaCore};

/// Bytes a queue may move before the next one has its turn.
pub(crate) const QUANTUM: usize = 256 * 1024;

/// Polls without news between looks at queues that wait for the link.
const IDLE_POLLS: usize = 8;

/// Queues with requests that are not done.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    active: Mutex<VecDeque<Arc<RdmaCore>>>,
    count: AtomicUsize,
    /// Polls that found nothing for them.
    idle: AtomicUsize,
    /// Something has ended that one of them may wait for.
    has_news: AtomicBool,
    /// The link took less of one of them than it wanted, and may have room again.
    is_stalled: AtomicBool,
}

impl Scheduler {
    /// Adds a queue to the end of the round.
    pub(crate) fn activate(&self, queue: Arc<RdmaCore>) {
        let mut active = self.active.lock().expect("no panic in scheduler");
        active.push_back(queue);
        self.count.store(active.len(), Ordering::Release);
    }

    /// A request has ended, or a peer or a region of it is gone.
    pub(crate) fn note_news(&self) {
        self.has_news.store(true, Ordering::Release);
    }

    /// A queue found the link full.
    pub(crate) fn note_stalled(&self) {
        self.is_stalled.store(true, Ordering::Release);
    }

    /// Whether queues that wait for the link are to be looked at, after a poll that found something or not: when there are
    /// news for them, when the link may have room again, and now and then in any case.
    pub(crate) fn is_due(&self, any: bool) -> bool {
        if self.count.load(Ordering::Relaxed) == 0 {
            return false;
        }
        if take(&self.has_news) || (any && take(&self.is_stalled)) {
            return true;
        }
        // Roughly counted: two threads may count as one.
        let idle = self.idle.load(Ordering::Relaxed).wrapping_add(1);
        self.idle.store(idle, Ordering::Relaxed);
        idle % IDLE_POLLS == 0
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
        // Where the link has little room, another one is the first to use it next time.
        if turns > 1 {
            let mut active = self.active.lock().expect("no panic in scheduler");
            if let Some(first) = active.pop_front() {
                active.push_back(first);
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

fn take(flag: &AtomicBool) -> bool {
    flag.load(Ordering::Relaxed) && flag.swap(false, Ordering::AcqRel)
}
