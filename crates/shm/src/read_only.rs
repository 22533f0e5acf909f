//! Memory that this process may read and not write: of a peer, which nobody but its owner can write, or a segment that was
//! attached for reading.
//!
//! The owner of a file has mapped the file and then sealed it against later writers ([`memfd::settle`]), so the kernel refuses this
//! process, and whoever it passes the descriptor to, every other way to write: a writable mapping, `write`, a hole.
//!
//! # Invariants
//!
//! - **R1** `base .. base + len` is a readable mapping of a file or a segment that cannot shrink, for as long as the `Inner`
//!   lives.
//! - **R2** No Rust reference to these bytes exists except `&AtomicU64` at aligned addresses, which are only loaded from;
//!   all other access is by `copy`, as a source.

#![allow(unsafe_code)]

use std::{
    os::fd::{AsFd, OwnedFd},
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering, fence},
    },
};

use rustix::mm::{ProtFlags, munmap};
use sidestep_sys::discard::discard;

use crate::{
    Error, Result, Span,
    copy::copy,
    memfd::{self, map_file},
};

/// Memory that is only read here, and changes at any moment.
#[derive(Debug, Clone)]
pub struct ReadOnlyMemory {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: R1, R2: the bytes are reached through atomic loads and `copy` only, which any thread may do.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl ReadOnlyMemory {
    /// Memory that came from a peer, mapped for reading after its seals, its size and its file system were checked.
    pub fn attach(descriptor: OwnedFd, len: usize) -> Result<ReadOnlyMemory> {
        if let Err(error) = memfd::check_received(descriptor.as_fd(), len) {
            discard([descriptor]);
            return Err(error);
        }
        let base = map_file(descriptor.as_fd(), len, ProtFlags::READ)?;
        Ok(ReadOnlyMemory { inner: Arc::new(Inner { base, len }) })
    }

    /// Takes over a segment that was attached for reading.
    ///
    /// # Safety
    ///
    /// `base .. base + len` must be a readable mapping that cannot shrink, and that nobody else will unmap.
    pub(crate) unsafe fn from_segment(base: NonNull<u8>, len: usize) -> ReadOnlyMemory {
        ReadOnlyMemory { inner: Arc::new(Inner { base, len }) }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.inner.len
    }

    /// Whether the memory has no bytes; never true.
    pub fn is_empty(&self) -> bool {
        self.inner.len == 0
    }

    /// Copies `len` bytes from `at` on into a span. They may be any mixture of values that were there during the call; what
    /// is read after the call was there after it began.
    pub fn copy_to(&self, at: usize, into: &Span, to: usize, len: usize) -> Result<()> {
        let source = self.part(at, len)?;
        let target = into.part(to, len)?;
        // SAFETY: R1, M1 of `memory`: both ranges are in bounds, and a read-only mapping overlaps no writable memory.
        unsafe { copy(target.as_ptr(), source.as_ptr().cast_const(), len) };
        // Reads of this process stay in order. Pairs with the owner's Release stores.
        fence(Ordering::Acquire);
        Ok(())
    }

    /// Copies bytes from `at` on out; what they are is said at [`copy_to`](Self::copy_to).
    #[inline]
    pub fn copy_out(&self, at: usize, bytes: &mut [u8]) -> Result<()> {
        let source = self.part(at, bytes.len())?;
        // SAFETY: R1, R2: the source is in bounds, and no Rust slice lies in this memory, so the two do not overlap.
        unsafe { copy(bytes.as_mut_ptr(), source.as_ptr().cast_const(), bytes.len()) };
        // As in `copy_to`.
        fence(Ordering::Acquire);
        Ok(())
    }

    /// The aligned 64-bit word at `at`.
    pub fn load64(&self, at: usize) -> Result<u64> {
        if at % size_of::<u64>() != 0 {
            return Err(Error::Range { offset: at, len: size_of::<u64>(), size: self.inner.len });
        }
        let word = self.part(at, size_of::<u64>())?.cast::<AtomicU64>();
        // SAFETY: R1, R2: in bounds, aligned and alive. A load of 64 bits does not write.
        Ok(unsafe { word.as_ref() }.load(Ordering::Acquire))
    }

    fn part(&self, at: usize, len: usize) -> Result<NonNull<u8>> {
        if at > self.inner.len || len > self.inner.len - at {
            return Err(Error::Range { offset: at, len, size: self.inner.len });
        }
        // SAFETY: R1: `at` is within the mapping, or one past its end for an empty range.
        Ok(unsafe { self.inner.base.add(at) })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: R1: mapped with this length, by `attach` or as a segment; nothing outlives the `Inner`.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use rustix::fs::{FallocateFlags, Mode, OFlags};
    use rustix::io::Errno;

    use super::*;
    use crate::{Memory, memfd::Sharing};

    /// What a peer gets: the owner's memory, and a descriptor of it.
    fn shared(len: usize, sharing: Sharing) -> (Memory, OwnedFd) {
        let owner = Memory::create_settled_later("shared", len).unwrap();
        assert!(owner.settle(sharing).unwrap());
        let descriptor = owner.descriptor().unwrap().try_clone().unwrap();
        (owner, descriptor)
    }

    #[test]
    fn a_reader_sees_what_the_owner_writes() {
        let (owner, descriptor) = shared(8192, Sharing::ReadOnly);
        let reader = ReadOnlyMemory::attach(descriptor, 8192).unwrap();
        owner.span(0, 8192).unwrap().copy_in(4090, b"written after the seal").unwrap();
        owner.word64(64).unwrap().store(7, Ordering::Release);
        let into = Memory::heap(22).unwrap().span(0, 22).unwrap();
        reader.copy_to(4090, &into, 0, 22).unwrap();
        let mut bytes = [0; 22];
        into.copy_out(0, &mut bytes).unwrap();
        assert_eq!(&bytes, b"written after the seal");
        assert_eq!(reader.load64(64), Ok(7));
        assert!(reader.load64(65).is_err() && reader.load64(8192).is_err());
        assert!(reader.copy_to(8191, &into, 0, 2).is_err() && reader.copy_to(0, &into, 21, 2).is_err());
    }

    #[test]
    fn a_reader_has_no_way_to_write() {
        let (owner, descriptor) = shared(8192, Sharing::ReadOnly);
        let reader = ReadOnlyMemory::attach(descriptor.try_clone().unwrap(), 8192).unwrap();
        let writable = ProtFlags::READ | ProtFlags::WRITE;
        assert!(map_file(descriptor.as_fd(), 8192, writable).is_err(), "a writable mapping");
        assert!(Memory::attach(descriptor.try_clone().unwrap(), 8192).is_err(), "a writable mapping");
        let place = reader.inner.base.as_ptr().cast();
        // SAFETY: it must not succeed; if it did, nothing else would use these pages.
        let protected = unsafe { rustix::mm::mprotect(place, 8192, rustix::mm::MprotectFlags::WRITE) };
        assert_eq!(protected, Err(Errno::ACCESS), "a mapping that is made writable");
        assert_eq!(rustix::io::pwrite(&descriptor, b"x", 0), Err(Errno::PERM), "a write");
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        assert_eq!(rustix::fs::fallocate(&descriptor, hole, 0, 4096), Err(Errno::PERM), "a hole");
        let again = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&descriptor));
        if let Ok(again) = rustix::fs::open(again, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
            assert!(map_file(again.as_fd(), 8192, writable).is_err(), "a writable mapping of the file opened again");
            assert_eq!(rustix::io::pwrite(&again, b"x", 0), Err(Errno::PERM), "a write to the file opened again");
        }
        assert_eq!(owner.word64(0).unwrap().load(Ordering::Acquire), 0);
    }

    #[test]
    fn the_first_settlement_stays() {
        for (first, second) in [(Sharing::ReadOnly, Sharing::ReadWrite), (Sharing::ReadWrite, Sharing::ReadOnly)] {
            let (owner, _) = shared(4096, first);
            assert_eq!((owner.settle(first), owner.settle(second)), (Ok(true), Ok(false)));
            owner.renew("fresh").unwrap();
            assert_eq!((owner.settle(second), owner.settle(first)), (Ok(true), Ok(false)));
            owner.word64(0).unwrap().store(1, Ordering::Release);
        }
        let sealed = Memory::create("sealed", 4096).unwrap();
        assert_eq!((sealed.settle(Sharing::ReadOnly), sealed.settle(Sharing::ReadWrite)), (Ok(false), Ok(true)));
    }

    #[test]
    fn files_that_can_shrink_are_refused() {
        let flags = rustix::fs::MemfdFlags::CLOEXEC | rustix::fs::MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("unsealed", flags).unwrap();
        rustix::fs::ftruncate(&file, 4096).unwrap();
        assert!(matches!(ReadOnlyMemory::attach(file, 4096), Err(Error::Foreign(_))));
    }
}
