//! Sources that have something to say, each at most once: the core of an event queue inside one process.
//!
//! # Invariants
//!
//! - **P1** A source is in the queue if and only if its mark is set (seen under the lock), so the queue never
//!   holds more entries than there are sources.
//! - **P2** The mark is cleared *before* the source is handed out. A change of the source that finds the mark set
//!   is therefore seen by whoever is about to inspect the source; one that finds it clear queues it again.
//! - **P3** `count` is the length of the queue whenever the lock is free. A look without the lock that finds 0 has missed no
//!   post that happened before it, so an empty queue costs one load.

use std::collections::VecDeque;

use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering, mark_clear, mark_set};

/// The mark of one source.
#[derive(Debug)]
pub struct Mark {
    set: AtomicBool,
    source: u64,
}

/// Sources with something to say, first come first served.
#[derive(Debug, Default)]
pub struct Pending {
    queue: Mutex<VecDeque<Arc<Mark>>>,
    count: AtomicU64,
}

impl Mark {
    /// A clear mark for the source that is handed out as `source`.
    pub fn new(source: u64) -> Arc<Mark> {
        Arc::new(Mark { set: AtomicBool::new(false), source })
    }

    /// What is handed out.
    pub fn source(&self) -> u64 {
        self.source
    }
}

impl Pending {
    /// An empty queue.
    pub fn new() -> Pending {
        Pending { queue: Mutex::new(VecDeque::new()), count: AtomicU64::new(0) }
    }

    /// Makes room for so many sources: as long as there are no more, no [`post`](Self::post) allocates (P1).
    pub fn make_room(&self, sources: usize) {
        let mut queue = self.lock();
        let more = sources.saturating_sub(queue.len());
        queue.reserve(more);
    }

    /// Says that `mark`'s source changed. `true` if it was not queued already.
    pub fn post(&self, mark: &Arc<Mark>) -> bool {
        // AcqRel pairs with `take`: what changed before this post is visible to whoever clears the mark.
        if mark.set.swap(true, mark_set()) {
            return false;
        }
        self.change(|queue| queue.push_back(mark.clone()));
        true
    }

    /// The next source that changed; its mark is clear (P2).
    pub fn take(&self) -> Option<u64> {
        if self.is_empty() {
            return None;
        }
        let mark = self.change(VecDeque::pop_front)?;
        // AcqRel pairs with `post`.
        mark.set.swap(false, mark_clear());
        Some(mark.source)
    }

    /// As [`take`](Self::take), at most `most` of them at once, appended to `sources`.
    pub fn take_many(&self, sources: &mut Vec<u64>, most: usize) {
        self.change(|queue| {
            let count = queue.len().min(most);
            for mark in queue.drain(..count) {
                // AcqRel pairs with `post`.
                mark.set.swap(false, mark_clear());
                sources.push(mark.source);
            }
        });
    }

    /// Removes a source, whether it is queued or not.
    pub fn remove(&self, mark: &Arc<Mark>) {
        self.change(|queue| queue.retain(|queued| !Arc::ptr_eq(queued, mark)));
        mark.set.store(true, Ordering::Release);
    }

    /// How many sources are queued.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether no source is queued.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // P3.
        self.count.load(Ordering::Relaxed) == 0
    }

    fn change<T>(&self, change: impl FnOnce(&mut VecDeque<Arc<Mark>>) -> T) -> T {
        let mut queue = self.lock();
        let changed = change(&mut queue);
        self.count.store(queue.len() as u64, Ordering::Relaxed);
        changed
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Mark>>> {
        match self.queue.lock() {
            Ok(guard) => guard,
            Err(poison) => poison.into_inner(),
        }
    }
}
