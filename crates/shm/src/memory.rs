//! Memory that someone else may write at any moment, and the only ways to touch it.
//!
//! # Invariants
//!
//! - **M1** `base .. base + len` is readable and writable for as long as the `Inner` lives: it is a heap
//!   block, a mapping of what cannot shrink (a file whose seals were checked, a segment), or what the caller of
//!   [`Memory::from_raw`] promised.
//! - **M2** No Rust reference to these bytes exists except `&AtomicU32` and `&AtomicU64` at aligned
//!   addresses; all other access is by `copy`, whose assembly assumes nothing about the bytes.
//! - **M3** Every [`Word32`], [`Word64`] and [`Span`] was bounds-checked when it was made and keeps the
//!   `Inner` alive.
//! - **M4** A mapping is replaced only by one of the same length at the same address, in one system call
//!   ([`Memory::renew`]).
//!
//! Whoever uses a value from here reads it once, checks it, and then uses the copy that was checked.

#![allow(unsafe_code)]

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    os::fd::{AsFd, OwnedFd},
    ptr::NonNull,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, AtomicU64, Ordering, fence},
    },
};

use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags, madvise, mremap_fixed, munmap};
use sidestep_sys::cpu;

use crate::{
    Error, Result,
    copy::copy,
    last_word, lines,
    memfd::{self, Sharing},
};

/// A block of memory: mapped and shared, on the heap, or the caller's own.
#[derive(Clone, Debug)]
pub struct Memory {
    inner: Arc<Inner>,
}

/// An aligned 64-bit word of a [`Memory`].
#[derive(Clone, Debug)]
pub struct Word64 {
    word: NonNull<AtomicU64>,
    _memory: Memory,
}

/// A row of aligned 64-bit words of a [`Memory`].
#[derive(Clone, Debug)]
pub struct Words {
    first: NonNull<AtomicU64>,
    count: usize,
    memory: Memory,
}

/// An aligned 32-bit word of a [`Memory`].
#[derive(Clone, Debug)]
pub struct Word32 {
    word: NonNull<AtomicU32>,
    _memory: Memory,
}

/// A range of bytes of a [`Memory`], for payload.
#[derive(Clone, Debug)]
pub struct Span {
    base: NonNull<u8>,
    len: usize,
    memory: Memory,
}

#[derive(Debug)]
struct Inner {
    base: NonNull<u8>,
    len: usize,
    backing: Backing,
}

#[derive(Debug)]
enum Backing {
    Heap(Layout),
    /// The descriptor changes when the pages are renewed.
    Mapped(Mutex<Arc<OwnedFd>>),
    /// Mapped without a descriptor: a segment, or memory of a family.
    Nameless,
    Caller,
}

// SAFETY: M1, M2: the bytes are reached through atomics and `copy` only, which any thread may do.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}
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
// SAFETY: M2, M3: a span is touched by `copy` only and kept alive by its memory.
unsafe impl Send for Span {}
// SAFETY: as above.
unsafe impl Sync for Span {}

impl Memory {
    /// Fresh shared memory: a sealed memfd, every page reserved, mapped here.
    pub fn create(name: &str, len: usize) -> Result<Memory> {
        Self::map(memfd::create_sealed(name, len)?, len)
    }

    /// The same, but that a page costs nothing before it is touched, as long as memory is plentiful.
    pub fn create_sparse(name: &str, len: usize) -> Result<Memory> {
        Self::map(memfd::create_sparse(name, len)?, len)
    }

    /// The same, but that no page is there before it is touched, however little memory is left.
    pub fn create_untouched(name: &str, len: usize) -> Result<Memory> {
        Self::map(memfd::create_untouched(name, len)?, len)
    }

    /// Fresh shared memory of which [`settle`](Self::settle) decides how peers map it.
    pub fn create_settled_later(name: &str, len: usize) -> Result<Memory> {
        Self::map(memfd::create_settled_later(name, len)?, len)
    }

    /// Memory that came from a peer, mapped after its seals, its size and its file system were checked.
    pub fn attach(descriptor: OwnedFd, len: usize) -> Result<Memory> {
        if let Err(error) = memfd::check_received(descriptor.as_fd(), len) {
            sidestep_sys::discard::discard([descriptor]);
            return Err(error);
        }
        Self::map(descriptor, len)
    }

    /// Memory that only this process and its children have: they share what is written, also after `fork`. Pages are there
    /// once they are touched.
    pub fn family(len: usize) -> Result<Memory> {
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        // SAFETY: a fresh mapping at an address of the kernel's choice touches nothing that exists.
        let base = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, WRITABLE, flags) }
            .map_err(|errno| Error::from_errno("map family memory", errno))?;
        let base = NonNull::new(base.cast())
            .ok_or(Error::System { what: "map family memory", source: rustix::io::Errno::FAULT })?;
        Ok(Memory { inner: Arc::new(Inner { base, len, backing: Backing::Nameless }) })
    }

    /// Takes over an attached segment.
    ///
    /// # Safety
    ///
    /// `base .. base + len` must be a mapping that nobody else will unmap. It must be writable, unless nothing is written.
    pub(crate) unsafe fn from_segment(base: NonNull<u8>, len: usize) -> Memory {
        Memory { inner: Arc::new(Inner { base, len, backing: Backing::Nameless }) }
    }

    /// Memory on the heap, for models and for state that is never shared.
    pub fn heap(len: usize) -> Result<Memory> {
        let layout = Layout::from_size_align(len.max(1), 64).map_err(|_| Error::Size {
            what: "heap memory",
            must: "allocatable",
            value: len,
        })?;
        // SAFETY: the layout is at least one byte long.
        let base = unsafe { alloc_zeroed(layout) };
        let base = NonNull::new(base).ok_or(Error::Limit {
            what: "allocate heap memory",
            limit: "memory",
            source: rustix::io::Errno::NOMEM,
        })?;
        Ok(Memory { inner: Arc::new(Inner { base, len, backing: Backing::Heap(layout) }) })
    }

    /// Wraps memory of the caller: bookkeeping only, no system call.
    ///
    /// # Safety
    ///
    /// `base .. base + len` must stay readable and writable until the last clone of the returned value,
    /// and of what was made from it, is gone; while it lives, other code must not rely on these bytes
    /// staying unchanged.
    pub unsafe fn from_raw(base: NonNull<u8>, len: usize) -> Memory {
        Memory { inner: Arc::new(Inner { base, len, backing: Backing::Caller }) }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.inner.len
    }

    /// Whether the memory has no bytes.
    pub fn is_empty(&self) -> bool {
        self.inner.len == 0
    }

    /// Address of the first byte, for programs that keep their own data here.
    pub fn base(&self) -> NonNull<u8> {
        self.inner.base
    }

    /// The descriptor a peer needs to map this memory; `None` for heap and caller memory.
    pub fn descriptor(&self) -> Option<Arc<OwnedFd>> {
        match &self.inner.backing {
            Backing::Mapped(descriptor) => Some(descriptor.lock().unwrap_or_else(|poison| poison.into_inner()).clone()),
            Backing::Heap(_) | Backing::Nameless | Backing::Caller => None,
        }
    }

    /// Decides how those map this memory who get its descriptor from now on. The first word stands, until the memory is
    /// [renewed](Self::renew). `false` if that was another, or if there is no descriptor.
    pub fn settle(&self, sharing: Sharing) -> Result<bool> {
        self.descriptor().map_or(Ok(false), |descriptor| memfd::settle(descriptor.as_fd(), sharing))
    }

    /// Puts fresh pages with the same content under the same addresses. Whoever had the old pages mapped
    /// keeps those, and no longer shares anything with this memory.
    pub fn renew(&self, name: &str) -> Result<()> {
        let Backing::Mapped(descriptor) = &self.inner.backing else { return Ok(()) };
        let mut current = descriptor.lock().unwrap_or_else(|poison| poison.into_inner());
        let fresh = Self::create_settled_later(name, self.inner.len)?;
        fresh.span(0, self.inner.len)?.copy_from(0, &self.span(0, self.inner.len)?, 0, self.inner.len)?;
        let second = memfd::map_file(fresh.inner_descriptor().as_fd(), self.inner.len, WRITABLE)?;
        // SAFETY: M4: `second` is a mapping of this length that nobody else knows; it takes the place of
        // the old mapping, of the same length, in one call.
        let moved = unsafe {
            mremap_fixed(
                second.as_ptr().cast(),
                self.inner.len,
                self.inner.len,
                MremapFlags::MAYMOVE,
                self.inner.base.as_ptr().cast(),
            )
        };
        match moved {
            Ok(_) => {
                *current = fresh.inner_descriptor();
                Ok(())
            }
            Err(errno) => {
                // SAFETY: `second` was mapped above and did not move.
                let _ = unsafe { munmap(second.as_ptr().cast(), self.inner.len) };
                Err(Error::from_errno("move shared memory to fresh pages", errno))
            }
        }
    }

    /// The 64-bit word at `offset`.
    pub fn word64(&self, offset: usize) -> Result<Word64> {
        let base = self.checked(offset, size_of::<u64>(), align_of::<AtomicU64>())?;
        Ok(Word64 { word: base.cast(), _memory: self.clone() })
    }

    /// The `count` 64-bit words from `offset` on.
    pub fn words(&self, offset: usize, count: usize) -> Result<Words> {
        let len = count.saturating_mul(size_of::<u64>());
        let first = self.checked(offset, len, align_of::<AtomicU64>())?.cast();
        Ok(Words { first, count, memory: self.clone() })
    }

    /// The 32-bit word at `offset`.
    pub fn word32(&self, offset: usize) -> Result<Word32> {
        let base = self.checked(offset, size_of::<u32>(), align_of::<AtomicU32>())?;
        Ok(Word32 { word: base.cast(), _memory: self.clone() })
    }

    /// Stores one aligned 32-bit word, for whoever does so once and keeps no [`Word32`].
    #[inline]
    pub fn store32(&self, offset: usize, value: u32, order: Ordering) -> Result<()> {
        let word: NonNull<AtomicU32> = self.checked(offset, size_of::<u32>(), align_of::<AtomicU32>())?.cast();
        // SAFETY: M1, M3: in bounds, aligned and alive; M2: only ever seen as an atomic.
        unsafe { word.as_ref() }.store(value, order);
        Ok(())
    }

    /// Stores one aligned 64-bit word, likewise.
    #[inline]
    pub fn store64(&self, offset: usize, value: u64, order: Ordering) -> Result<()> {
        let word: NonNull<AtomicU64> = self.checked(offset, size_of::<u64>(), align_of::<AtomicU64>())?.cast();
        // SAFETY: M1, M3: in bounds, aligned and alive; M2: only ever seen as an atomic.
        unsafe { word.as_ref() }.store(value, order);
        Ok(())
    }

    /// The bytes `offset .. offset + len`.
    pub fn span(&self, offset: usize, len: usize) -> Result<Span> {
        let base = self.checked(offset, len, 1)?;
        Ok(Span { base, len, memory: self.clone() })
    }

    #[inline]
    fn checked(&self, offset: usize, len: usize, align: usize) -> Result<NonNull<u8>> {
        let is_inside = offset.checked_add(len).is_some_and(|end| end <= self.inner.len);
        if !is_inside || (self.inner.base.as_ptr() as usize + offset) % align != 0 {
            return Err(Error::Range { offset, len, size: self.inner.len });
        }
        // SAFETY: M1: `offset` is within the block, or one past its end for an empty range.
        Ok(unsafe { self.inner.base.add(offset) })
    }

    fn map(descriptor: OwnedFd, len: usize) -> Result<Memory> {
        let base = memfd::map_file(descriptor.as_fd(), len, WRITABLE)?;
        let backing = Backing::Mapped(Mutex::new(Arc::new(descriptor)));
        Ok(Memory { inner: Arc::new(Inner { base, len, backing }) })
    }

    fn inner_descriptor(&self) -> Arc<OwnedFd> {
        self.descriptor().expect("memory made by `create` has a descriptor")
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        match &self.backing {
            // SAFETY: M1: allocated with this layout by `heap`.
            Backing::Heap(layout) => unsafe { dealloc(self.base.as_ptr(), *layout) },
            Backing::Mapped(_) | Backing::Nameless => {
                // SAFETY: M1: mapped with this length, by `map`, by `family` or as a segment; nothing outlives the `Inner` (M3).
                let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
            }
            Backing::Caller => {}
        }
    }
}

impl Word64 {
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
        Word64 { word, _memory: self.memory.clone() }
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

/// A line of payload is asked for when so many before it are still to be dealt with: about as long as one takes to cross.
const AHEAD: usize = 8;

const WRITABLE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

#[cfg(test)]
mod tests;
