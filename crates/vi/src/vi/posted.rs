//! The posted receives of a VI: which of them the peer knows of, and which message each is for.

use crate::{
    code::Status,
    descriptor::{Completion, List},
    entry::Fault,
    fifo::{Few, Fifo, Later},
    memory::{MemHandle, Piece},
    vi::{
        item::{ATTACHED_MIN, DIRECT_MIN},
        receive::Incoming,
    },
};

/// What every message touches comes first.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct ReceiveQueue {
    pub(super) posted: Fifo<Receive>,
    pub(super) done: Few<Completion>,
    pub(super) incoming: Option<Box<Incoming>>,
    /// How many of `posted` the peer knows of.
    pub(super) told: u32,
    /// Receives used up so far, and the number of the next one that the peer is told of.
    pub(super) taken: u32,
    pub(super) next: u32,
    /// How many the entry names that is about to go out.
    pub(super) telling: u32,
    /// Whether the peer wants to be told of receives at all: it holds sends back, or can place messages itself.
    pub(super) telling_pays: bool,
    /// Whether it has asked and not been told anything since.
    pub(super) asked: bool,
    /// Whether messages are so large that it is told at once.
    pub(super) eager: bool,
    /// Messages placed and not told, where the sender waits for that.
    pub(super) answers: u32,
    pub(super) failures: Later<Fault>,
}

#[derive(Debug)]
pub(super) struct Receive {
    pub(super) token: u64,
    pub(super) pieces: List<Piece>,
    pub(super) total: u32,
    /// Which turn of its memory it was posted in: the peer knows it by that.
    pub(super) turn: u32,
    /// The registration that the descriptor itself lies in.
    pub(super) place: Option<MemHandle>,
    /// What is wrong with it: the message that meets it finds out.
    pub(super) fault: Option<Status>,
}

impl ReceiveQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.posted.is_empty() && self.done.is_empty()
    }

    /// Whether a part of a remote write is here.
    pub(crate) fn is_amid_write(&self) -> bool {
        self.incoming.as_ref().is_some_and(|incoming| incoming.is_write())
    }

    /// Whether the peer does not know of all receives.
    #[inline]
    pub(super) fn owes_cookies(&self) -> bool {
        self.telling_pays && (self.told as usize) < self.posted.len()
    }

    #[inline]
    pub(super) fn owes_answers(&self) -> bool {
        self.answers > 0 || !self.failures.is_empty()
    }

    /// Whether the peer should be told now: it knows of half of what is posted.
    #[inline]
    pub(super) fn cookies_are_due(&self) -> bool {
        self.owes_cookies() && (self.eager || 2 * self.told as usize <= self.posted.len())
    }

    /// The receives the peer does not know of.
    pub(super) fn untold(&self) -> impl Iterator<Item = &Receive> {
        self.posted.from(self.told as usize)
    }

    /// The number of the first of them.
    pub(super) fn next_number(&self) -> u32 {
        self.next
    }

    /// The peer has been told of the next `telling` of them.
    #[inline]
    pub(super) fn note_told(&mut self) {
        let told = std::mem::take(&mut self.telling);
        self.next = self.next.wrapping_add(told);
        self.told += told;
    }

    /// A receive is used up, or a message found none.
    #[inline]
    pub(super) fn count(&mut self) {
        self.taken = self.taken.wrapping_add(1);
        if self.taken.wrapping_sub(self.next) as i32 > 0 {
            self.next = self.taken;
        }
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Receive> {
        self.told = self.told.saturating_sub(1);
        self.posted.pop()
    }

    /// Receives that are placeable make telling pay.
    pub(super) fn look_for_places(&mut self) {
        self.telling_pays |= self.posted.from(0).any(Receive::pays_telling);
    }
}

impl Receive {
    /// Whether a large message can be placed in it by the peer.
    #[inline]
    pub(super) fn pays_telling(&self) -> bool {
        let [piece] = self.pieces.as_slice() else { return false };
        self.total >= if piece.registration.own { DIRECT_MIN } else { ATTACHED_MIN }
    }
}
