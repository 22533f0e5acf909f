//! What a full link did not take, and must not be lost: kept in order for each peer, and tried again.
//!
//! Messages about endpoints and regions, and stores through apertures, are kept here. Messages of the program are not: it
//! is told that the link is full.

use std::{
    collections::{HashMap, VecDeque},
    sync::atomic::{AtomicUsize, Ordering},
};

use sidestep_sys::lock::{Mutex, MutexGuard};

use crate::{
    cookie::Cookie,
    error::{Error, Result},
    link::{Outcome, Request, Ticket},
    node::Links,
    peer::{Peer, PeerId},
};

/// What waits for room.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    held: Mutex<HashMap<PeerId, VecDeque<Held>>>,
    count: AtomicUsize,
}

#[derive(Debug)]
pub(crate) enum Held {
    /// A message.
    Post(Vec<u8>),
    /// A store into a region of the peer.
    Store { ticket: Ticket, cookie: Cookie, offset: u64, bytes: Vec<u8> },
    /// A read of a region of the peer.
    Fetch { ticket: Ticket, cookie: Cookie, offset: u64, len: usize },
}

/// How much is kept for one peer; a program that stores more is told that the link is full.
const MAX_HELD: usize = 16 * 1024;

impl Outbox {
    /// Whether nothing waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Whether nothing waits for a peer.
    pub(crate) fn is_clear(&self, peer: PeerId) -> bool {
        self.is_empty() || !self.lock().contains_key(&peer)
    }

    /// Sends, or keeps if the link is full or something is kept already. With `bound`, an overfull outbox is an error.
    pub(crate) fn send(&self, to: Peer<'_>, peer: PeerId, held: Held, bound: bool) -> Result<()> {
        let mut all = self.lock();
        if !all.contains_key(&peer) {
            match held.attempt(to) {
                Err(Error::Full { .. }) => {}
                outcome => return outcome,
            }
        }
        let queue = all.entry(peer).or_default();
        if bound && queue.len() >= MAX_HELD {
            return Err(Error::Full { what: "what waits for the link", limit: MAX_HELD });
        }
        queue.push_back(held);
        self.count.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Tries again. `true` if anything went; `lost` learns of stores that failed for good.
    pub(crate) fn flush(&self, links: &Links, mut lost: impl FnMut(Ticket, Outcome)) -> bool {
        let mut any = false;
        let mut gone = Vec::new();
        let mut all = self.lock();
        all.retain(|peer, queue| {
            while let Some(held) = queue.front() {
                match held.attempt(links.peer(*peer)) {
                    Err(Error::Full { .. }) => break,
                    Ok(()) => drop(queue.pop_front()),
                    Err(error) => gone.extend(queue.pop_front().map(|held| (held, error))),
                }
                self.count.fetch_sub(1, Ordering::AcqRel);
                any = true;
            }
            !queue.is_empty()
        });
        drop(all);
        for (held, error) in gone {
            if let Held::Store { ticket, .. } | Held::Fetch { ticket, .. } = held {
                lost(ticket, Outcome::Failed(error));
            }
        }
        any
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PeerId, VecDeque<Held>>> {
        self.held.lock().expect("no panic in an outbox")
    }
}

impl Held {
    fn attempt(&self, to: Peer<'_>) -> Result<()> {
        match self {
            Held::Post(bytes) => to.post(bytes),
            Held::Store { ticket, cookie, offset, bytes } => {
                to.request(*ticket, cookie, Request::Put { offset: *offset, bytes })
            }
            Held::Fetch { ticket, cookie, offset, len } => {
                to.request(*ticket, cookie, Request::Get { offset: *offset, len: *len })
            }
        }
    }
}
