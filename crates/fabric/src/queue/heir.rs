//! What a forked child can do with a queue that its parent goes on using: end it, and read what is left. It has neither the
//! node nor any lock of its parent's, which other threads may have held when it was forked.

use std::{
    os::fd::{AsFd, AsRawFd},
    sync::Arc,
};

use sidestep_shm::{
    Memory, Word64,
    byte_ring::{Remainder, Stopper},
    event_ring::RescanWord,
    pair_bell::Ringer,
    sync::Ordering,
};

use super::{HEAD_NOTE, Receiver, Sender};
use crate::error::Result;

/// The means of waking a peer without the node.
#[derive(Debug, Clone)]
pub struct PeerBell {
    rescan: RescanWord,
    ringer: Arc<Ringer>,
}

/// The reading side of a queue, shared by a family of processes that agree on how far they have read it.
#[derive(Debug, Clone)]
pub struct Heir {
    rest: Remainder,
    note: Word64,
    witness: Word64,
    bell: Option<PeerBell>,
}

impl PeerBell {
    pub(crate) fn new(rescan: RescanWord, ringer: Arc<Ringer>) -> PeerBell {
        PeerBell { rescan, ringer }
    }

    /// Lets the peer look at everything that it has armed.
    pub fn ring(&self) {
        self.rescan.post();
        self.ringer.ring();
    }

    /// What it keeps open.
    fn descriptors(&self) -> [Option<i32>; 2] {
        [Some(self.ringer.as_fd().as_raw_fd()), self.rescan.memory().number()]
    }
}

impl Receiver {
    /// What a child needs. `None`: the queue is not mapped, or about to grow.
    pub fn heir(&mut self) -> Option<Heir> {
        if !self.can_freeze() {
            return None;
        }
        let bell = self.home.node.peer(self.home.endpoint.peer()).bell();
        let (rest, witness) = (self.consumer().remainder()?, self.witness.clone());
        Some(Heir { rest, note: self.wire.word(HEAD_NOTE).ok()?, witness, bell })
    }

    /// Others read what is left of the queue, which ends at this position.
    pub fn skip_to_end(&mut self, end: u64) {
        self.consumer().skip_to_end(end);
    }
}

impl Sender {
    /// What a child needs to end the queue. `None`: it is not mapped.
    pub fn stopper(&mut self) -> Option<Stopper> {
        self.can_freeze().then(|| self.producer().stopper())
    }
}

impl Heir {
    /// Ends the queue, of which so much was read, and returns where it ends.
    pub fn freeze(&self, read: u64) -> Result<u64> {
        Ok(self.rest.freeze(read)?)
    }

    /// Bytes that were not read, if so much was.
    pub fn unread(&self, read: u64) -> u64 {
        self.rest.unread(read)
    }

    /// Copies bytes out from a position on.
    pub fn copy_out(&self, position: u64, bytes: &mut [u8]) -> Result<()> {
        Ok(self.rest.copy_out(position, bytes)?)
    }

    /// Leaves word how far has been read, for a peer that may outlive all holders.
    pub fn testify(&self, position: u64) {
        self.witness.store(position, Ordering::Relaxed);
    }

    /// Wants what was not read of a frozen queue to come in another way, and leaves a note for the sender that says so. Nobody
    /// reads until that is decided.
    pub fn want(&self, read: u64, note: impl FnOnce(u64) -> u64) {
        self.rest.want(read);
        self.note.store(note(self.note.load(Ordering::Relaxed)), Ordering::Release);
        self.ring();
    }

    /// Whether the sender has taken it.
    pub fn is_taken(&self) -> bool {
        self.rest.is_taken()
    }

    /// Reads on after all. `false`: it was taken.
    pub fn withdraw(&self) -> bool {
        self.rest.withdraw()
    }

    /// Wakes the peer.
    pub fn ring(&self) {
        self.bell.iter().for_each(PeerBell::ring);
    }

    /// What it keeps open, in a child, too: the descriptor that the peer is woken by, and those of its memory.
    pub fn descriptors(&self) -> Vec<i32> {
        let memories = self.rest.memories().into_iter().chain([self.note.memory(), self.witness.memory()]);
        memories.map(Memory::number).chain(self.bell.iter().flat_map(PeerBell::descriptors)).flatten().collect()
    }
}
