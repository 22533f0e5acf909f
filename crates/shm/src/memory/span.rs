//! A range of payload in memory that someone else may write, and the copies in and out of it.

use std::{
    ptr::NonNull,
    sync::atomic::{Ordering, fence},
};

use rustix::mm::{Advice, madvise};
use sidestep_sys::cpu;

use super::{Backing, Memory};
use crate::{Error, Result, copy::copy, last_word, lines};

/// A range of bytes of a [`Memory`], for payload.
#[derive(Clone, Debug)]
pub struct Span {
    pub(super) base: NonNull<u8>,
    pub(super) len: usize,
    pub(super) memory: Memory,
}

/// A line of payload is asked for when so many before it are still to be dealt with: about as long as one takes to cross.
const AHEAD: usize = 8;

// SAFETY: M2, M3: a span is touched by `copy` only and kept alive by its memory.
unsafe impl Send for Span {}
// SAFETY: as above.
unsafe impl Sync for Span {}

impl Span {
    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the span has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Gives whole pages of a part of the span back to the machine, and returns how many bytes that were. They are zero when
    /// they are touched next. Nothing happens to memory that is not shared.
    pub fn release(&self, at: usize, len: usize) -> Result<usize> {
        let begin = self.part(at, len)?;
        let Backing::Mapped(_) = &self.memory.inner.backing else { return Ok(0) };
        let page = rustix::param::page_size();
        let skipped = (begin.as_ptr() as usize).next_multiple_of(page) - begin.as_ptr() as usize;
        let whole = len.saturating_sub(skipped) / page * page;
        if whole == 0 {
            return Ok(0);
        }
        // SAFETY: M1: within the span, so within the mapping, which stays as it is: touching a page makes it anew.
        let released = unsafe { madvise(begin.as_ptr().wrapping_add(skipped).cast(), whole, Advice::LinuxRemove) };
        Ok(if released.is_ok() { whole } else { 0 })
    }

    /// The memory this span lies in.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Where byte `at` lies, for hints to the processor ([`cpu::prefetch`]).
    #[inline]
    pub fn place(&self, at: usize) -> *const u8 {
        self.base.as_ptr().wrapping_add(at).cast_const()
    }

    /// Copies `bytes` in at `at`.
    #[inline]
    pub fn copy_in(&self, at: usize, bytes: &[u8]) -> Result<()> {
        let target = self.part(at, bytes.len())?;
        // SAFETY: M1: the target is in bounds; a Rust slice never lies in this memory (M2), so the two
        // do not overlap.
        unsafe { copy(target.as_ptr(), bytes.as_ptr(), bytes.len()) };
        Ok(())
    }

    /// Copies `bytes` in at `at`, the [last word](crate::last_word) as one, and after the bytes before it.
    #[inline]
    pub fn copy_in_order(&self, at: usize, bytes: &[u8]) -> Result<()> {
        self.in_order(at, bytes.len(), |at, from, len| self.copy_in(at, &bytes[from..from + len]))
    }

    /// Copies `len` bytes from another span, the [last word](crate::last_word) as one, and after the bytes before it.
    #[inline]
    pub fn copy_from_in_order(&self, at: usize, source: &Span, from: usize, len: usize) -> Result<()> {
        self.in_order(at, len, |at, done, len| self.copy_from(at, source, from + done, len))
    }

    /// Copies by `copy` (where to, where from, how many bytes), which stores two, four or eight bytes at once.
    #[inline]
    fn in_order(&self, at: usize, len: usize, copy: impl Fn(usize, usize, usize) -> Result<()>) -> Result<()> {
        self.part(at, len)?;
        let tail = last_word::tail(self.base.as_ptr() as usize + at + len, len);
        copy(at, 0, len - tail)?;
        // Pairs with the Acquire load of whoever polls the last word.
        fence(Ordering::Release);
        copy(at + len - tail, len - tail, tail)
    }

    /// Copies bytes out from `at`. What arrives may be any mixture of values that were there during the call.
    #[inline]
    pub fn copy_out(&self, at: usize, bytes: &mut [u8]) -> Result<()> {
        let source = self.part(at, bytes.len())?;
        // SAFETY: as in `copy_in`.
        unsafe { copy(bytes.as_mut_ptr(), source.as_ptr(), bytes.len()) };
        Ok(())
    }

    /// Copies `len` bytes from another span, or from elsewhere in the same memory.
    #[inline]
    pub fn copy_from(&self, at: usize, source: &Span, from: usize, len: usize) -> Result<()> {
        let target = self.part(at, len)?;
        let source = source.part(from, len)?;
        if target == source {
            return Ok(());
        }
        // SAFETY: M1: both ranges are in bounds. Ranges that overlap leave a mixture of old and new
        // bytes, which is what anyone may find in memory that others write; the copy itself reads and
        // writes only within the two ranges.
        unsafe { copy(target.as_ptr(), source.as_ptr(), len) };
        Ok(())
    }

    /// Goes through `count` lines of [`Span::LINE`] bytes from `at` on, eight bytes at a time as they lie. Every byte is loaded
    /// once, into a register. Nobody writes the lines up to `quiet`, counted from the first: those are asked for ahead.
    #[inline]
    pub(crate) fn fold_lines<T>(
        &self,
        at: usize,
        (count, quiet): (usize, usize),
        begin: T,
        mut each: impl FnMut(T, [u8; 8]) -> T,
    ) -> Result<T> {
        let first = self.part(at, count.saturating_mul(Self::LINE))?.as_ptr();
        let mut value = begin;
        for index in 0..count {
            let line = first.wrapping_add(index * Self::LINE);
            // Another line crosses from the other core while this one is dealt with.
            if index + AHEAD < quiet {
                cpu::prefetch(line.wrapping_add(AHEAD * Self::LINE), 1);
            }
            // SAFETY: M1: this line lies within the part.
            let words = unsafe { lines::load(line) };
            for word in words {
                value = each(value, word.to_ne_bytes());
            }
        }
        Ok(value)
    }

    /// Writes `count` lines of [`Span::LINE`] bytes from `at` on, eight bytes at a time: `make` gets the offset of each eight.
    #[inline]
    pub(crate) fn fill_lines(&self, at: usize, count: usize, mut make: impl FnMut(usize) -> [u8; 8]) -> Result<()> {
        let first = self.part(at, count.saturating_mul(Self::LINE))?.as_ptr();
        for index in 0..count {
            let start = index * Self::LINE;
            let words = std::array::from_fn(|word| u64::from_ne_bytes(make(start + word * 8)));
            // SAFETY: M1: this line lies within the part.
            unsafe { lines::store(first.wrapping_add(start), words) };
        }
        Ok(())
    }

    /// Bytes of a line.
    pub(crate) const LINE: usize = lines::LINE;

    #[inline]
    pub(crate) fn part(&self, at: usize, len: usize) -> Result<NonNull<u8>> {
        if at > self.len || len > self.len - at {
            return Err(Error::Range { offset: at, len, size: self.len });
        }
        // SAFETY: M1, M3: `at` is within the span, or one past its end for an empty range.
        Ok(unsafe { self.base.add(at) })
    }
}
