//! Sessions that hold an answer back for a moment, so that it travels with what the program says next.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

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

    /// Sends everything.
    pub(super) fn release(&self, around: Around<'_>) {
        self.retain(|session| {
            session.release(around);
            false
        });
    }

    /// After a poll: sends what has been held for long enough, but for sessions that had something.
    pub(super) fn grow_old(&self, around: Around<'_>, except: &[u64]) {
        self.retain(|session| except.contains(&u64::from(session.id.0)) || session.idle(around));
    }

    fn retain(&self, stays: impl FnMut(&Arc<Session>) -> bool) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut sessions = self.lock();
        sessions.retain(stays);
        self.count.store(sessions.len(), Ordering::Release);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Session>>> {
        self.sessions.lock().expect("no panic in a list of sessions")
    }
}
