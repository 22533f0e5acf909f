//! Berths: for threads that must sleep on descriptors of their own and on news of a node at once, in one call to the
//! kernel.
//!
//! A berth has an epoll set of its own, or lies in one of the program's, so that every ring is an edge in every berth: no
//! thread takes a ring away from another. While one is occupied, news rings, and so does everything that another thread of the process dispatches.
//!
//! No wake-up is lost if the occupant does, in this order: [`Berth::occupy`]; look at what it waits for, and at
//! [`Node::epoch`] against a value taken before its last look; sleep; [`Berth::leave`].

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use sidestep_shm::doorbell::{Sleeper, Tokens};

use crate::{error::Result, link::KERNEL, node::Node};

/// Tokens with this bit, and without the one above, are free for descriptors that the occupant adds to the berth's set.
pub const GUEST: u64 = 1 << 62;

/// A place to sleep for one thread at a time, or for threads that each look again when woken.
#[derive(Debug)]
pub struct Berth {
    node: Node,
    sleeper: Arc<Sleeper>,
    occupants: AtomicU32,
}

impl Node {
    /// A new berth.
    pub fn berth(&self) -> Result<Berth> {
        let sleeper = Arc::new(Sleeper::new()?);
        self.watch(&sleeper)?;
        Ok(Berth { node: self.clone(), sleeper, occupants: AtomicU32::new(0) })
    }

    /// A berth in an epoll set of the program's, of which this is a copy: its occupants wait in that set. What the set tells of
    /// the berth bears the mark ([`Berth::token`]).
    pub fn berth_within(&self, set: OwnedFd, mark: u32) -> Result<Berth> {
        let sleeper = Arc::new(Sleeper::within(set, mark));
        self.watch(&sleeper)?;
        Ok(Berth { node: self.clone(), sleeper, occupants: AtomicU32::new(0) })
    }
}

impl Berth {
    /// The node whose news it hears.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Announces sleep: from now on news makes the descriptor readable. `false` if there is news already; then look
    /// instead of sleeping. [`leave`](Self::leave) follows in either case.
    pub fn occupy(&self) -> bool {
        self.occupants.fetch_add(1, Ordering::Relaxed);
        self.node.add_outside();
        !self.node.has_news()
    }

    /// After the sleep: empties the descriptor, unless it is the program's, and sees to what has come. Returns what was taken
    /// out.
    pub fn leave(&self) -> Tokens {
        self.get_up();
        let mut tokens = Tokens::new();
        if self.sleeper.is_private() {
            let _ = self.sleeper.sleep(Some(0), &mut tokens);
        }
        self.see_to(&tokens);
        tokens
    }

    /// After a sleep in which the occupant took these tokens out of the descriptor itself.
    pub fn leave_with(&self, tokens: &[u64]) {
        self.get_up();
        self.see_to(tokens);
    }

    /// The token behind what a set of the program's has told; `None`: it is not of a berth in it.
    pub fn token(told: u64, mark: u32) -> Option<u64> {
        Sleeper::token(told, mark)
    }

    /// Whether a token tells of something that only [`Node::progress_kernel`] sees to.
    pub fn is_of_kernel(token: u64) -> bool {
        token == KERNEL
    }

    fn get_up(&self) {
        self.occupants.fetch_sub(1, Ordering::Relaxed);
        self.node.remove_outside();
    }

    fn see_to(&self, tokens: &[u64]) {
        if tokens.contains(&KERNEL) {
            self.node.progress_kernel();
        } else if self.node.is_served() {
            // What only the kernel tells of may have ended this sleep, or another one before.
            self.node.progress_served();
        } else if !tokens.is_empty() || self.node.has_news() {
            self.node.progress();
        }
    }
}

impl Drop for Berth {
    /// It may go while someone sleeps there: the occupant of a set that is closed.
    fn drop(&mut self) {
        (0..*self.occupants.get_mut()).for_each(|_| self.node.remove_outside());
    }
}

impl AsFd for Berth {
    /// Readable when there may be news.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sleeper.as_fd()
    }
}
