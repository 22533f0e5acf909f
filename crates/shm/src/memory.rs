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
    os::fd::{AsFd, AsRawFd, OwnedFd},
    ptr::NonNull,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

use rustix::mm::{MapFlags, MremapFlags, ProtFlags, mremap_fixed, munmap};

use crate::{
    Error, Result,
    memfd::{self, Sharing},
};

mod span;
mod word;

pub use span::Span;
pub use word::{Word32, Word64, Words};

/// A block of memory: mapped and shared, on the heap, or the caller's own.
#[derive(Clone, Debug)]
pub struct Memory {
    inner: Arc<Inner>,
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

    /// The number of that descriptor at the moment.
    pub fn number(&self) -> Option<i32> {
        self.descriptor().map(|descriptor| descriptor.as_raw_fd())
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
        Ok(Word64 { word: base.cast(), memory: self.clone() })
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

const WRITABLE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

#[cfg(test)]
mod tests;
