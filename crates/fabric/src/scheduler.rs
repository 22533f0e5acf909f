//! The scheduler of RDMA queues: those with work to do are served round-robin, a quantum each.
//!
//! Between two turns of a queue every other queue has at most one, and a turn moves at most one quantum. A queue that the link
//! had no room for is first when there is some. Only a small request of a queue without others is done at once, like a store.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use sidestep_sys::lock::{Mutex, MutexGuard};

use crate::rdma::RdmaCore;

/// Bytes a queue may move before the next one has its turn.
pub(crate) const QUANTUM: usize = 256 * 1024;

/// Bytes that a request may have to be done before its queue's turn, while other queues wait for theirs: about as many as
/// are copied in the time that a turn costs beside its copy.
const SMALL: usize = 4096;

/// Polls without news between looks at queues that wait for the link.
const IDLE_POLLS: usize = 8;

/// What is served in turns.
pub(crate) trait Serve {
    /// Does up to `quantum` bytes of work.
    fn serve(self: &Arc<Self>, quantum: usize) -> Served;
}

/// How a turn went.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Served {
    /// Whether anything moved.
    pub(crate) moved: bool,
    /// Whether it is to have another turn.
    pub(crate) more: bool,
    /// Whether the link took less than it was given.
    pub(crate) stalled: bool,
}

/// Queues with requests that are not done.
#[derive(Debug)]
pub(crate) struct Scheduler<Q = RdmaCore> {
    active: Mutex<VecDeque<Arc<Q>>>,
    count: AtomicUsize,
    /// Polls that found nothing for them.
    idle: AtomicUsize,
    /// Something has ended that one of them may wait for.
    has_news: AtomicBool,
    /// The link took less of one of them than it wanted, and may have room again.
    is_stalled: AtomicBool,
}

impl<Q> Default for Scheduler<Q> {
    fn default() -> Self {
        Scheduler {
            active: Mutex::default(),
            count: AtomicUsize::new(0),
            idle: AtomicUsize::new(0),
            has_news: AtomicBool::new(false),
            is_stalled: AtomicBool::new(false),
        }
    }
}

impl<Q: Serve> Scheduler<Q> {
    /// Adds a queue to the end of the round.
    pub(crate) fn activate(&self, queue: Arc<Q>) {
        self.change(|active| active.push_back(queue));
    }

    /// Whether a queue may do so many bytes before its turn: few, or no other queue waits. `counted`: the queue itself is one
    /// of those that the scheduler knows of.
    pub(crate) fn may_overtake(&self, bytes: usize, counted: bool) -> bool {
        let others = self.count.load(Ordering::Relaxed).saturating_sub(usize::from(counted));
        bytes <= if others == 0 { QUANTUM } else { SMALL }
    }

    /// A request has ended, or a peer or a region of it is gone.
    pub(crate) fn note_news(&self) {
        self.has_news.store(true, Ordering::Release);
    }

    /// A queue may have found the link full.
    pub(crate) fn note_stalled(&self, stalled: bool) {
        if stalled {
            self.is_stalled.store(true, Ordering::Release);
        }
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
    pub(crate) fn run(&self) -> bool {
        let mut any = false;
        let mut without_room = Vec::new();
        for _ in 0..self.count.load(Ordering::Acquire) {
            // The lock is not held while a queue is served: posts of other threads go on.
            let Some(queue) = self.change(VecDeque::pop_front) else { break };
            let served = queue.serve(QUANTUM);
            any |= served.moved;
            self.note_stalled(served.stalled);
            if served.stalled && !served.moved {
                without_room.push(queue);
            } else if served.more {
                self.activate(queue);
            }
        }
        if !without_room.is_empty() {
            self.change(|active| without_room.into_iter().rev().for_each(|queue| active.push_front(queue)));
        }
        any
    }

    fn change<T>(&self, change: impl FnOnce(&mut VecDeque<Arc<Q>>) -> T) -> T {
        let mut active: MutexGuard<'_, _> = self.active.lock().expect("no panic in scheduler");
        let changed = change(&mut active);
        self.count.store(active.len(), Ordering::Release);
        changed
    }
}

fn take(flag: &AtomicBool) -> bool {
    flag.load(Ordering::Relaxed) && flag.swap(false, Ordering::AcqRel)
}

#[cfg(test)]
mod tests;
