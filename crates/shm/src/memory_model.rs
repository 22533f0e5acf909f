//! Memory for loom: the same interface as the real one, with loom's atomics for words and loom's tracked
//! cells for payload, so that a race on payload bytes is reported. An offset is used either as a word or
//! as payload, never as both, which the layouts guarantee. The documentation is that of the real one.

#![allow(missing_docs, clippy::len_without_is_empty)]

// Not loom's: the count is not under test, and every clone would be one more point to switch threads at. loom runs
// its threads one at a time, whatever Send and Sync say.
use std::sync::Arc;

use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::{Error, Result};

#[derive(Clone, Debug)]
pub struct Memory {
    inner: Arc<Inner>,
}

#[derive(Clone, Debug)]
pub struct Word64 {
    memory: Memory,
    index: usize,
}

#[derive(Clone, Debug)]
pub struct Words {
    memory: Memory,
    first: usize,
    count: usize,
}

#[derive(Clone, Debug)]
pub struct Span {
    memory: Memory,
    offset: usize,
    len: usize,
}

#[derive(Debug)]
struct Inner {
    words: Vec<AtomicU64>,
    cells: Vec<UnsafeCell<u8>>,
}

impl Memory {
    #[allow(clippy::arc_with_non_send_sync)]
    pub fn heap(len: usize) -> Result<Memory> {
        let words = (0..len / 8).map(|_| AtomicU64::new(0)).collect();
        let cells = (0..len).map(|_| UnsafeCell::new(0)).collect();
        Ok(Memory { inner: Arc::new(Inner { words, cells }) })
    }

    pub fn word64(&self, offset: usize) -> Result<Word64> {
        if offset % 8 != 0 || offset / 8 >= self.inner.words.len() {
            return Err(Error::Range { offset, len: 8, size: self.inner.cells.len() });
        }
        Ok(Word64 { memory: self.clone(), index: offset / 8 })
    }

    pub fn words(&self, offset: usize, count: usize) -> Result<Words> {
        self.word64(offset + count.saturating_sub(1) * 8)?;
        Ok(Words { memory: self.clone(), first: offset / 8, count })
    }

    pub fn span(&self, offset: usize, len: usize) -> Result<Span> {
        if offset + len > self.inner.cells.len() {
            return Err(Error::Range { offset, len, size: self.inner.cells.len() });
        }
        Ok(Span { memory: self.clone(), offset, len })
    }
}

impl Words {
    pub fn count(&self) -> usize {
        self.count
    }

    pub fn load(&self, index: usize, order: Ordering) -> u64 {
        self.word(index).load(order)
    }

    pub fn word(&self, index: usize) -> Word64 {
        Word64 { memory: self.memory.clone(), index: self.first + index }
    }
}

impl Word64 {
    pub fn load(&self, order: Ordering) -> u64 {
        self.atomic().load(order)
    }

    pub fn store(&self, value: u64, order: Ordering) {
        self.atomic().store(value, order);
    }

    pub fn swap(&self, value: u64, order: Ordering) -> u64 {
        self.atomic().swap(value, order)
    }

    pub fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
        self.atomic().fetch_or(bits, order)
    }

    pub fn compare_exchange(&self, expected: u64, new: u64, order: Ordering) -> u64 {
        match self.atomic().compare_exchange(expected, new, order, Ordering::Relaxed) {
            Ok(held) | Err(held) => held,
        }
    }

    pub fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
        self.atomic().fetch_and(bits, order)
    }

    fn atomic(&self) -> &AtomicU64 {
        &self.memory.inner.words[self.index]
    }
}

#[allow(unsafe_code)]
impl Span {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn copy_in(&self, at: usize, bytes: &[u8]) -> Result<()> {
        for (index, byte) in bytes.iter().enumerate() {
            // SAFETY: loom reports any conflicting access to the cell.
            self.memory.inner.cells[self.offset + at + index].with_mut(|cell| unsafe { *cell = *byte });
        }
        Ok(())
    }

    pub fn copy_out(&self, at: usize, bytes: &mut [u8]) -> Result<()> {
        for (index, byte) in bytes.iter_mut().enumerate() {
            // SAFETY: loom reports any conflicting access to the cell.
            *byte = self.memory.inner.cells[self.offset + at + index].with(|cell| unsafe { *cell });
        }
        Ok(())
    }

    /// As long as a word: the rings of models are short.
    pub(crate) const LINE: usize = 8;

    pub(crate) fn fold_lines<T>(
        &self,
        at: usize,
        (count, _): (usize, usize),
        begin: T,
        mut each: impl FnMut(T, [u8; 8]) -> T,
    ) -> Result<T> {
        (0..count).try_fold(begin, |value, index| {
            let mut word = [0; 8];
            self.copy_out(at + index * Self::LINE, &mut word)?;
            Ok(each(value, word))
        })
    }

    pub(crate) fn fill_lines(&self, at: usize, count: usize, mut make: impl FnMut(usize) -> [u8; 8]) -> Result<()> {
        (0..count).map(|index| index * Self::LINE).try_for_each(|start| self.copy_in(at + start, &make(start)))
    }
}
