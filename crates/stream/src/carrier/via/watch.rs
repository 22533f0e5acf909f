//! What tells an epoll set that something has come for a link, while the set does not look at it: in place of a tripwire, since
//! the links with one peer share theirs.

use std::sync::atomic::{AtomicBool, Ordering};

use sidestep_fabric::{EventQueue, event::SourceId};
use sidestep_sys::lock::{Mutex, MutexGuard};

/// Who is told.
#[derive(Debug, Default)]
pub struct Watch {
    armed: AtomicBool,
    targets: Mutex<Vec<(EventQueue, SourceId)>>,
}

impl Watch {
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
