//! Sessions that hold something back for a moment: an answer, so that it travels with what the program says next; the
//! question for an answer, so that it stands for several requests.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use sidestep_sys::lock::{Mutex, MutexGuard};

use super::session::{Around, Session};

#[derive(Debug, Default)]
pub(super) struct Holding {
    sessions: Mutex<Vec<Arc<Session>>>,
    count: AtomicUsize,
}

impl Holding {
    /// Looks after a session that holds something back.
    pub(super) fn add(&self, session: Arc<Session>) {
        let mut sessions = self.lock();
        if !sessions.iter().any(|held| held.id == session.id) {
            sessions.push(session);
        }
        self.count.store(sessions.len(), Ordering::Release);
    }

    /// Sends what peers may wait for, and with `now` asks for the answers that this side owes itself.
    pub(super) fn release(&self, around: Around<'_>, now: bool) {
        self.retain(|session| session.release(around, now));
    }

    /// After a poll: sends what has been held for long enough, but for sessions that were looked at.
    pub(super) fn grow_old(&self, around: Around<'_>, except: &[u64]) {
        self.retain(|session| except.contains(&u64::from(session.id.0)) || session.idle(around));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many sessions.
    pub(super) fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    fn retain(&self, stays: impl FnMut(&Arc<Session>) -> bool) {
        if self.is_empty() {
            return;
        }
        let mut sessions = self.lock();
        sessions.retain(stays);
        self.count.store(sessions.len(), Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Session>>> {
        self.sessions.lock().expect("no panic in a list of sessions")
    }
}
