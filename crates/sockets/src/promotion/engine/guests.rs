//! Peers of other users.
//!
//! Processes of one user find each other in that user's registry, which nobody else can read. Between users the sockets say where
//! to ask: who waits to be asked, and sees that the other end is a socket of another user's, puts its notice ([`super::proof`])
//! on its own at once; who asks reads it there. All else is as between processes of one user. The proof was never about users.
//!
//! Both sides must allow it ([`Users`]). A process of another user is let in only while one is expected: while a stream of this
//! process that the kernel says is connected with another user waits to be asked.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicUsize, Ordering},
};

use sidestep_fabric::PeerId;
use sidestep_shm::Word64;
use sidestep_sys::user;

use super::{Engine, RENDEZVOUS, notice_of, proof::Notice};
use crate::{
    config::{Users, config},
    kernel::address::Key,
    registry::Identity,
    streams::{Place, Stream},
};

/// Streams of this process that wait to be asked by a process of another user, and those that ask one now.
static EXPECTED: AtomicUsize = AtomicUsize::new(0);
static ASKING: AtomicUsize = AtomicUsize::new(0);

/// Whether processes of this user may be peers on the fabric now.
pub fn admits(user: u32) -> bool {
    let expected = || EXPECTED.load(Ordering::SeqCst) + ASKING.load(Ordering::SeqCst) > 0;
    user::is_own(user) || expected() && config().users.admit(user) && Users::of_host().admit(user)
}

/// These streams have notices: with the keys of their connections, and whether they are for a process of another user.
pub fn expect(posted: &HashMap<u32, (Key, bool)>) {
    EXPECTED.store(posted.values().filter(|(_, guest)| *guest).count(), Ordering::SeqCst);
}

/// In a new engine, which expects nobody. What the host allows is read while files can be opened.
pub fn begin() {
    Users::of_host();
    EXPECTED.store(0, Ordering::SeqCst);
    ASKING.store(0, Ordering::SeqCst);
}

/// Whether any are allowed at all.
fn are_allowed() -> bool {
    config().users.are_others() && Users::of_host().are_others()
}

/// Connects to a process that may be of another user.
pub fn while_asking<T>(call: impl FnOnce() -> T) -> T {
    ASKING.fetch_add(1, Ordering::SeqCst);
    let outcome = call();
    ASKING.fetch_sub(1, Ordering::SeqCst);
    outcome
}

impl Engine {
    /// The process that waits to be asked for the other end of a connection, as the notice there says: one that is not in the
    /// registry of this user.
    pub(super) fn find_guest(&self, key: &Key) -> Option<Identity> {
        let told = self.notices.look(&key.reversed()).filter(|_| are_allowed())?;
        match Notice::of_rate(told.rate)? {
            Notice::Asked(number) => Some(Identity([RENDEZVOUS, number])),
            Notice::Asker(_) => None,
        }
    }

    /// Whether a peer is a process of another user.
    pub(super) fn is_guest(&self, peer: PeerId) -> bool {
        self.node.peer(peer).user().is_none_or(|user| !user::is_own(user))
    }

    /// What this process counts for its peers: how often it has told one something by way of the kernel.
    pub fn kernel_news(&self) -> Word64 {
        self.kernel_news.clone()
    }

    /// A stream waits to be asked: if its other end is a socket of another user's, that one is told where.
    pub(super) fn expect_guest(&self, place: &Place, stream: &Stream) {
        let other = place.key.reversed();
        if !are_allowed() || self.registry.find(&other).is_some() {
            return;
        }
        let is_other = self.notices.look(&other).is_some_and(|told| !user::is_own(told.user));
        if is_other && notice_of(self.identity).is_some_and(|notice| notice.put(stream.fd())) {
            self.notices.posted_for_guest(stream, &place.key);
        }
    }
}
