//! Space in a ring that is written where the bytes will lie.

use sidestep_shm::byte_ring::pieces;

use super::Sender;
use crate::error::Result;

/// Space that [`Sender::reserve`] has found. What is written here becomes part of the stream by [`commit`](Self::commit)
/// or [`push`](Self::push), from the first byte on; without them nothing was sent.
///
/// Offsets count from the next byte of the stream. A range that lies around the end of the ring is as good as any other.
#[derive(Debug)]
pub struct Reserved<'a> {
    sender: &'a mut Sender,
    len: usize,
}

impl<'a> Reserved<'a> {
    pub(super) fn new(sender: &'a mut Sender, len: usize) -> Reserved<'a> {
        Reserved { sender, len }
    }

    /// Bytes that can be written: at least as many as were asked for.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no space; never true for a reservation of one byte or more.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Writes bytes from offset `at` on, in any order, and over earlier ones if need be.
    #[inline]
    pub fn copy_in(&mut self, at: usize, bytes: &[u8]) -> Result<()> {
        self.sender.copy_ahead(at, bytes)
    }

    /// Writes `len` bytes from offset `at` on, which `make` gives in pieces of at most [`PIECE`](pieces::PIECE) bytes: it gets the offset of
    /// each piece from `at`, and memory of this process to write it to. No buffer of the length of a message is needed.
    #[inline]
    pub fn fill(&mut self, at: usize, len: usize, make: impl FnMut(usize, &mut [u8])) -> Result<()> {
        pieces::fill(len, make, |done, piece| self.copy_in(at + done, piece))
    }

    /// Writes `len` bytes from offset `at` on, which `make` gives eight at a time, as `u64::to_le_bytes` does: it gets the offset
    /// of each eight from `at`. Of the last ones only as many are written as belong to `len`. They go from registers to the ring.
    #[inline]
    pub fn fill_words(&mut self, at: usize, len: usize, make: impl FnMut(usize) -> [u8; 8]) -> Result<()> {
        Ok(self.sender.producer().fill_ahead(at, len, make)?)
    }

    /// Sends the first `count` bytes: they are visible to the peer, which is woken if it waits. [`Error::Frozen`]: the queue
    /// has ended before, and they are to be [recalled](Sender::recall).
    ///
    /// [`Error::Frozen`]: crate::Error::Frozen
    #[inline]
    pub fn commit(self, count: usize) -> Result<()> {
        self.sender.commit_ahead(count)
    }

    /// Puts the first `count` bytes into the stream without publishing them: the next [`publish`](Sender::publish) covers
    /// them.
    #[inline]
    pub fn push(self, count: usize) -> Result<()> {
        Ok(self.sender.producer().advance(count)?)
    }
}
