//! The sessions of a link, in the order of their numbers.

use std::sync::{
    Arc, RwLock, RwLockReadGuard,
    atomic::{AtomicU64, Ordering},
};

use super::session::Session;
use crate::{
    error::{CloseReason, Error, Result},
    link::PeerNumber,
};

/// All sessions of a link. It changes seldom and is looked at by every poll.
#[derive(Debug)]
pub(super) struct Roster {
    sessions: RwLock<Arc<[Arc<Session>]>>,
    /// Raised by every change, after it.
    changes: AtomicU64,
}

/// The sessions as a thread has seen them, to be looked through without a lock.
#[derive(Debug)]
pub(super) struct Seen {
    sessions: Arc<[Arc<Session>]>,
    changes: u64,
}

impl Roster {
    pub(super) fn new() -> Roster {
        Roster { sessions: RwLock::new(Arc::new([])), changes: AtomicU64::new(0) }
    }

    pub(super) fn insert(&self, session: Arc<Session>) {
        // Two threads may get here in another order than they got their numbers.
        let at = |sessions: &[Arc<Session>]| sessions.partition_point(|other| other.id < session.id);
        self.change(|sessions| {
            let (before, after) = sessions.split_at(at(sessions));
            before.iter().chain([&session]).chain(after).cloned().collect()
        });
    }

    pub(super) fn remove(&self, session: &Session) {
        self.change(|sessions| sessions.iter().filter(|other| other.id != session.id).cloned().collect());
    }

    /// The session with a peer.
    pub(super) fn find(&self, peer: PeerNumber) -> Result<Arc<Session>> {
        self.with(peer, Arc::clone)
    }

    /// Looks at the session with a peer. No session comes or goes meanwhile.
    #[inline]
    pub(super) fn with<T>(&self, peer: PeerNumber, look: impl FnOnce(&Arc<Session>) -> T) -> Result<T> {
        let sessions = self.read();
        match sessions.binary_search_by_key(&peer, |session| session.id) {
            Ok(at) => Ok(look(&sessions[at])),
            // It was there when its number was given out, and it ends by itself or with its process.
            Err(_) => Err(Error::Closed(CloseReason::Died)),
        }
    }

    /// All of them, as they are now.
    pub(super) fn all(&self) -> Arc<[Arc<Session>]> {
        self.read().clone()
    }

    /// All of them, of which none comes or goes as long as this lives.
    #[inline]
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Arc<[Arc<Session>]>> {
        self.sessions.read().expect("no panic in session table")
    }

    fn change(&self, change: impl FnOnce(&[Arc<Session>]) -> Arc<[Arc<Session>]>) {
        let mut sessions = self.sessions.write().expect("no panic in session table");
        *sessions = change(&sessions);
        // Pairs with `Seen::bring_up_to_date`: whoever sees the count finds the change behind the lock.
        self.changes.fetch_add(1, Ordering::Release);
    }
}

impl Seen {
    pub(super) fn new() -> Seen {
        Seen { sessions: Arc::new([]), changes: 0 }
    }

    /// Looks again, if anything has changed.
    #[inline]
    pub(super) fn bring_up_to_date(&mut self, roster: &Roster) {
        let changes = roster.changes.load(Ordering::Acquire);
        if changes != self.changes {
            *self = Seen { sessions: roster.all(), changes };
        }
    }

    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Session>> {
        self.sessions.iter()
    }
}
