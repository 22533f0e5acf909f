//! The readable bytes of a ring, looked at where they lie.
//!
//! The bytes stay in memory that the producer can write, so a view gives no reference to them: every method loads or
//! copies, and whoever needs a value uses the copy that it has checked. Because all access goes through these methods, the
//! end of the ring is dealt with here: offsets count from the first readable byte, and a range that lies around the end of
//! the ring, or in two rings because the ring grew, is as good as any other. Nothing is mapped twice and nothing is copied
//! aside for that.

use super::copy_from_ring;
use super::pieces::{self, PIECE};
use crate::{Error, Result, Span};

/// Readable bytes of a ring, from the next one on. They are consumed by [`Consumer::consume`](super::Consumer::consume),
/// when the view is no longer needed.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    pub(super) ring: &'a Span,
    pub(super) mask: u64,
    pub(super) position: u64,
    pub(super) len: usize,
    /// How many of the bytes lie in `ring`. The others lie in `next`.
    pub(super) here: usize,
    /// How many bytes of `ring` are readable from here on: a part of a view is followed by others.
    pub(super) readable: usize,
    pub(super) next: Option<(&'a Span, u64)>,
}

impl<'a> View<'a> {
    /// How many bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Loads `N` bytes from offset `at` on, for `from_le_bytes` and the like.
    #[inline]
    pub fn array<const N: usize>(&self, at: usize) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.copy_out(at, &mut bytes)?;
        Ok(bytes)
    }

    /// Copies bytes from offset `at` on. What arrives may be any mixture of values that were there during the call.
    #[inline]
    pub fn copy_out(&self, at: usize, bytes: &mut [u8]) -> Result<()> {
        self.check(at, bytes.len())?;
        if at + bytes.len() <= self.here {
            return copy_from_ring(self.ring, self.mask, self.position + at as u64, bytes);
        }
        self.copy_out_of_two(at, bytes)
    }

    /// The `len` bytes from offset `at` on.
    pub fn part(&self, at: usize, len: usize) -> Result<View<'a>> {
        self.check(at, len)?;
        let position = self.position + at as u64;
        Ok(match self.next {
            Some((ring, mask)) if at >= self.here => {
                View { ring, mask, position, len, here: len, readable: len, next: None }
            }
            _ => {
                let readable = self.readable.saturating_sub(at);
                View { position, len, here: self.here.saturating_sub(at).min(len), readable, ..*self }
            }
        })
    }

    /// Goes through all bytes in order, in pieces of [`PIECE`] bytes and a last one that may be shorter. Each piece is
    /// loaded once, into memory of this process, so what `each` checks stays as it is during the call.
    ///
    /// This is how a payload is checked, hashed or searched in place: the bytes cross from the ring into the first-level
    /// cache, and no buffer of their length is written.
    #[inline]
    pub fn fold<T>(&self, begin: T, each: impl FnMut(T, &[u8]) -> T) -> Result<T> {
        let load = |at: usize, piece: &mut [u8]| {
            self.copy_out(at, piece)?;
            // The next piece crosses from the other core while this one is dealt with.
            self.prefetch(at + piece.len());
            Ok(())
        };
        pieces::fold(self.len, begin, load, each)
    }

    /// Goes through all bytes in order, eight at a time; where their number is not a multiple of eight, zeros follow the last
    /// byte. Each is loaded once, into a register: nothing is written. `u64::from_le_bytes` makes a number of eight bytes.
    ///
    /// Where a check needs no more than words at a time, this is faster than [`fold`](Self::fold): it goes on with bytes that
    /// are here while others cross from the other core.
    #[inline]
    pub fn fold_words<T>(&self, begin: T, mut each: impl FnMut(T, [u8; 8]) -> T) -> Result<T> {
        let (mut value, mut at) = (begin, 0);
        while at < self.len {
            let (ring, index, together) = self.run(at);
            let count = together / Span::LINE;
            if count > 0 {
                let readable = if at < self.here { self.readable - at } else { together };
                let quiet = readable.min(ring.len() - index) / Span::LINE;
                value = ring.fold_lines(index, (count, quiet), value, &mut each)?;
                at += count * Span::LINE;
                continue;
            }
            let mut word = [0; 8];
            let len = word.len().min(self.len - at);
            self.copy_out(at, &mut word[..len])?;
            value = each(value, word);
            at += len;
        }
        Ok(value)
    }

    /// The bytes from offset `at` on that lie together: in which ring, where, and how many.
    #[inline]
    fn run(&self, at: usize) -> (&'a Span, usize, usize) {
        let (ring, mask, end) = match self.next {
            Some((ring, mask)) if at >= self.here => (ring, mask, self.len),
            _ => (self.ring, self.mask, self.here),
        };
        let index = ((self.position + at as u64) & mask) as usize;
        (ring, index, (end - at).min(mask as usize + 1 - index))
    }

    #[inline]
    fn prefetch(&self, at: usize) {
        #[cfg(not(loom))]
        if at < self.here {
            let index = (self.position + at as u64) & self.mask;
            sidestep_sys::cpu::prefetch(self.ring.place(index as usize), PIECE.min(self.here - at));
        }
        #[cfg(loom)]
        let _ = at;
    }

    #[cold]
    fn copy_out_of_two(&self, at: usize, bytes: &mut [u8]) -> Result<()> {
        let Some((ring, mask)) = self.next else { return Err(self.outside(at, bytes.len())) };
        let (first, rest) = bytes.split_at_mut(self.here.saturating_sub(at));
        copy_from_ring(self.ring, self.mask, self.position + at as u64, first)?;
        copy_from_ring(ring, mask, self.position + (at + first.len()) as u64, rest)
    }

    #[inline]
    fn check(&self, at: usize, len: usize) -> Result<()> {
        if at > self.len || len > self.len - at { Err(self.outside(at, len)) } else { Ok(()) }
    }

    #[cold]
    fn outside(&self, offset: usize, len: usize) -> Error {
        Error::Range { offset, len, size: self.len }
    }
}
