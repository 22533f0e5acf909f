//! What tells an event queue that something has come for a carrier, while nobody looks at it: for those that have no tripwires of
//! their own.

use std::sync::atomic::{AtomicBool, Ordering};

use sidestep_fabric::{EventQueue, event::SourceId};
use sidestep_sys::lock::{Mutex, MutexGuard};

/// Who is told.
#[derive(Debug, Default)]
pub struct Reports {
    armed: AtomicBool,
    targets: Mutex<Vec<(EventQueue, SourceId)>>,
}

impl Reports {
    /// Tells this source from now on.
    pub fn tell(&self, queue: &EventQueue, source: SourceId) {
        lock(&self.targets).push((queue.clone(), source));
    }

    /// Tells it no more.
    pub fn forget(&self, queue: &EventQueue, source: SourceId) {
        lock(&self.targets).retain(|(other, known)| *known != source || !other.is(queue));
    }

    /// The next arrival is told, once. Look again after this.
    pub fn arm(&self) {
        // SeqCst: pairs with `fire`: whoever takes an arrival sees this, or whoever armed finds what was taken.
        self.armed.store(true, Ordering::SeqCst);
    }

    /// Something has come.
    #[inline]
    pub fn fire(&self) {
        if self.armed.load(Ordering::SeqCst) && self.armed.swap(false, Ordering::SeqCst) {
            self.deliver();
        }
    }

    #[cold]
    fn deliver(&self) {
        lock(&self.targets).iter().for_each(|(queue, source)| _ = queue.deliver(*source));
    }
}

/// A thread that panicked inside has left nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}
