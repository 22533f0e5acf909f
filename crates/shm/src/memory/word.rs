//! Aligned words of memory that someone else may write: each is an atomic (M2).

use std::{
    ptr::NonNull,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

use super::Memory;

/// An aligned 64-bit word of a [`Memory`].
#[derive(Clone, Debug)]
pub struct Word64 {
    pub(super) word: NonNull<AtomicU64>,
    pub(super) memory: Memory,
}

/// A row of aligned 64-bit words of a [`Memory`].
#[derive(Clone, Debug)]
pub struct Words {
    pub(super) first: NonNull<AtomicU64>,
    pub(super) count: usize,
    pub(super) memory: Memory,
}

/// An aligned 32-bit word of a [`Memory`].
#[derive(Clone, Debug)]
pub struct Word32 {
    pub(super) word: NonNull<AtomicU32>,
    pub(super) _memory: Memory,
}

// SAFETY: M2, M3: a word is an atomic kept alive by its memory.
unsafe impl Send for Word64 {}
// SAFETY: as above.
unsafe impl Sync for Word64 {}
// SAFETY: as above.
unsafe impl Send for Word32 {}
// SAFETY: as above.
unsafe impl Sync for Word32 {}
// SAFETY: as above.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Word64 {
    /// The memory this word lies in.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Reads the word.
    #[inline]
    pub fn load(&self, order: Ordering) -> u64 {
        self.atomic().load(order)
    }

    /// Writes the word.
    #[inline]
    pub fn store(&self, value: u64, order: Ordering) {
        self.atomic().store(value, order);
    }

    /// Writes the word and returns what it held.
    #[inline]
    pub fn swap(&self, value: u64, order: Ordering) -> u64 {
        self.atomic().swap(value, order)
    }

    /// Sets bits and returns what the word held.
    #[inline]
    pub fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
        self.atomic().fetch_or(bits, order)
    }

    /// Keeps only `bits` and returns what the word held.
    #[inline]
    pub fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
        self.atomic().fetch_and(bits, order)
    }

    /// Adds, wrapping, and returns what the word held.
    #[inline]
    pub fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        self.atomic().fetch_add(value, order)
    }

    /// Stores `new` if the word holds `expected`; returns what it held.
    #[inline]
    pub fn compare_swap(&self, expected: u64, new: u64) -> u64 {
        match self.atomic().compare_exchange(expected, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(held) | Err(held) => held,
        }
    }

    /// The same in this order; a word that holds something else is only looked at.
    #[inline]
    pub fn compare_exchange(&self, expected: u64, new: u64, order: Ordering) -> u64 {
        match self.atomic().compare_exchange(expected, new, order, Ordering::Relaxed) {
            Ok(held) | Err(held) => held,
        }
    }

    #[inline]
    fn atomic(&self) -> &AtomicU64 {
        // SAFETY: M1, M3: in bounds, aligned and alive; M2: only ever seen as an atomic.
        unsafe { self.word.as_ref() }
    }
}

impl Words {
    /// How many words.
    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Reads word `index`; one beyond the last reads as the last.
    #[inline]
    pub fn load(&self, index: usize, order: Ordering) -> u64 {
        // SAFETY: M1, M3: the index is below the count that was checked.
        let word = unsafe { self.first.add(index.min(self.count - 1)) };
        // SAFETY: M1, M2, M3: aligned, alive, and only ever seen as an atomic.
        unsafe { word.as_ref() }.load(order)
    }

    /// Writes word `index`; one beyond the last is taken as the last.
    #[inline]
    pub fn store(&self, index: usize, value: u64, order: Ordering) {
        // SAFETY: M1, M3: the index is below the count that was checked.
        let word = unsafe { self.first.add(index.min(self.count - 1)) };
        // SAFETY: M1, M2, M3: aligned, alive, and only ever seen as an atomic.
        unsafe { word.as_ref() }.store(value, order);
    }

    /// Word `index`, which must be below [`count`](Self::count); a larger one is taken as the last.
    #[inline]
    pub fn word(&self, index: usize) -> Word64 {
        debug_assert!(index < self.count);
        // SAFETY: M1, M3: the index is below the count that was checked.
        let word = unsafe { self.first.add(index.min(self.count - 1)) };
        Word64 { word, memory: self.memory.clone() }
    }
}

impl Word32 {
    /// Reads the word.
    #[inline]
    pub fn load(&self, order: Ordering) -> u32 {
        self.atomic().load(order)
    }

    /// Writes the word.
    #[inline]
    pub fn store(&self, value: u32, order: Ordering) {
        self.atomic().store(value, order);
    }

    /// The word as an atomic, for locks among processes of one owner.
    #[inline]
    pub fn atomic(&self) -> &AtomicU32 {
        // SAFETY: M1, M3: in bounds, aligned and alive; M2: only ever seen as an atomic.
        unsafe { self.word.as_ref() }
    }
}
