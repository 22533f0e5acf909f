//! Frames that wait for a peer that does not take them at present.

use std::{
    collections::VecDeque,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use sidestep_shm::passing::Lifeline;
use sidestep_sys::lock::Mutex;

use super::session::lock;
use crate::error::{Error, Result};

/// Frames and bytes that may wait for a peer that does not receive; one that owes more answers is cut off.
const MAX_OUTGOING: usize = 4096;
const MAX_OUTGOING_BYTES: usize = 8 << 20;

/// What waits for a peer, in order.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    waiting: Mutex<Waiting>,
    /// Whether frames wait that may go out; changed under the lock, so that a poll with nothing to send takes none.
    congested: AtomicBool,
    /// Whether the kernel is asked to tell when the lifeline takes more.
    watched: AtomicBool,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Whether the greeting is complete, so that frames may go out.
    open: bool,
    frames: VecDeque<(Vec<u8>, Vec<Arc<OwnedFd>>)>,
    /// Bytes of them.
    bytes: usize,
}

impl Outgoing {
    /// The greeting is complete.
    pub(super) fn open(&self) {
        lock(&self.waiting).open = true;
    }

    /// Adds a frame, and sends what the peer takes. `sent` is called with how many frames went out, if any did.
    pub(super) fn push(
        &self,
        (bytes, descriptor): (Vec<u8>, Option<Arc<OwnedFd>>),
        lifeline: &Lifeline,
        sent: impl FnOnce(u64),
    ) -> Result<()> {
        let mut waiting = lock(&self.waiting);
        if waiting.frames.len() >= MAX_OUTGOING || waiting.bytes >= MAX_OUTGOING_BYTES {
            return Err(Error::Full { what: "what waits for the peer", limit: MAX_OUTGOING });
        }
        waiting.bytes += bytes.len();
        waiting.frames.push_back((bytes, descriptor.into_iter().collect()));
        self.send(&mut waiting, lifeline, sent);
        Ok(())
    }

    /// Sends what the peer takes.
    pub(super) fn flush(&self, lifeline: &Lifeline, sent: impl FnOnce(u64)) {
        self.send(&mut lock(&self.waiting), lifeline, sent);
    }

    fn send(&self, waiting: &mut Waiting, lifeline: &Lifeline, sent: impl FnOnce(u64)) {
        if !waiting.open {
            return;
        }
        let mut count = 0;
        while let Some((bytes, descriptors)) = waiting.frames.front() {
            let borrowed: Vec<BorrowedFd<'_>> = descriptors.iter().map(|descriptor| descriptor.as_fd()).collect();
            match lifeline.send(bytes, &borrowed) {
                Ok(true) => {
                    waiting.bytes -= bytes.len();
                    waiting.frames.pop_front();
                    count += 1;
                }
                Ok(false) => break,
                Err(_) => {
                    // The peer is gone; what it sent before is still to be received.
                    waiting.frames.clear();
                    waiting.bytes = 0;
                    break;
                }
            }
        }
        self.congested.store(!waiting.frames.is_empty(), Ordering::Release);
        if count > 0 {
            sent(count);
        }
    }

    /// Whether frames wait because the peer does not take them at present.
    #[inline]
    pub(super) fn is_congested(&self) -> bool {
        self.congested.load(Ordering::Acquire)
    }

    /// Whether the kernel is to be asked, or no longer, to tell when the lifeline takes more. `None` if that is settled.
    #[inline]
    pub(super) fn change_watch(&self) -> Option<bool> {
        let wanted = self.is_congested();
        let changes =
            self.watched.load(Ordering::Relaxed) != wanted && self.watched.swap(wanted, Ordering::AcqRel) != wanted;
        changes.then_some(wanted)
    }
}
