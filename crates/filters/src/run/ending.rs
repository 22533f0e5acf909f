//! The end of an epoch in one process: who must hear of it, and which threads are still there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Shared by the threads of all copies of an epoch.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    over: bool,
    threads: usize,
}

/// The thread of a copy is there until this is dropped.
#[derive(Debug)]
pub(super) struct Presence(Arc<Ending>);

impl Ending {
    /// A thread begins.
    pub(super) fn enter(self: &Arc<Ending>) -> Presence {
        self.state().threads += 1;
        Presence(self.clone())
    }

    /// The epoch is over.
    pub(super) fn announce(&self) {
        self.state().over = true;
        self.changed.notify_all();
    }

    /// Waits until no thread is left, or this long.
    pub(super) fn wait_empty(&self, limit: Duration) {
        let until = Instant::now() + limit;
        let mut state = self.state();
        while state.threads > 0 {
            let Some(left) = until.checked_duration_since(Instant::now()) else { return };
            state = self.changed.wait_timeout(state, left).expect("no panic with an end").0;
        }
    }

    /// Waits until the epoch is over (`true`), or [`finish`](Self::finish) was called with the same flag.
    pub(crate) fn wait(&self, finished: &AtomicBool) -> bool {
        let mut state = self.state();
        while !state.over && !finished.load(Ordering::Relaxed) {
            state = self.changed.wait(state).expect("no panic with an end");
        }
        state.over
    }

    /// Ends a [`wait`](Self::wait) for the end.
    pub(crate) fn finish(&self, finished: &AtomicBool) {
        // With the lock, so that a waiter has seen the flag or sleeps.
        let state = self.state();
        finished.store(true, Ordering::Relaxed);
        drop(state);
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic with an end")
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.state().threads -= 1;
        self.0.changed.notify_all();
    }
}
