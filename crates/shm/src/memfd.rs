//! Memory files: making one that a peer can map safely, and checking one that a peer made.
//!
//! A shared file that is cut short kills whoever touches the lost pages with SIGBUS. Hence the seals: a
//! file of ours can neither shrink nor grow once its descriptor leaves this module, and a file of a peer
//! is refused unless the same is true of it.
//!
//! What the checks of [`check_received`] leave to the peer: it may write the pages at any time, and it may
//! punch holes. A hole reads as zeroes and costs this process a page when touched, not a signal, because
//! a sealed tmpfs file is always a memfd and memfds live on a mount without a size limit. (A machine with
//! `vm.overcommit_memory=2` and no commit space left is the one exception.)
//!
//! Whoever gets a descriptor can write the file, whatever it was opened for: it is opened again through `/proc`. Only a
//! seal forbids that, and it forbids it to everybody but those who have the file mapped already: see [`settle`].

#![allow(unsafe_code)]

use std::{
    os::fd::{BorrowedFd, OwnedFd},
    ptr::NonNull,
};

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, fstat};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap};

use crate::{Error, Result};
use sidestep_sys::{budget, descriptor};

/// How others may map a memory file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// They read and write it.
    ReadWrite,
    /// They read it; those who had it mapped for writing before go on writing.
    ReadOnly,
}

/// Makes a memory file of exactly `len` bytes with every page reserved, sealed against any change of size.
///
/// Reserving now turns a full machine into an error here instead of a SIGBUS at the first touch. The
/// kernel alone does not do that: `fallocate` of a memfd never says "full", it calls the OOM killer, which
/// ends whatever processes it likes. So a length beyond what is [left](budget) is refused before it is asked
/// for. (Two processes that ask at once can still both be told yes.) `name` is only what `/proc` shows.
pub fn create_sealed(name: &str, len: usize) -> Result<OwnedFd> {
    create_with(name, len, true, SIZE | SealFlags::SEAL)
}

/// The same, but that its maker decides by [`settle`] what others may do, after mapping it and before passing it on.
pub fn create_settled_later(name: &str, len: usize) -> Result<OwnedFd> {
    create_with(name, len, true, SIZE)
}

/// The same, but that no page is taken before it is touched, as long as memory is plentiful.
pub fn create_sparse(name: &str, len: usize) -> Result<OwnedFd> {
    create_with(name, len, !budget::may_touch_later(), SIZE | SealFlags::SEAL)
}

/// The same, however little memory is left: for tables of which most is never used.
pub fn create_untouched(name: &str, len: usize) -> Result<OwnedFd> {
    create_with(name, len, false, SIZE | SealFlags::SEAL)
}

fn create_with(name: &str, len: usize, is_reserved: bool, seals: SealFlags) -> Result<OwnedFd> {
    let size = match u64::try_from(len) {
        Ok(size) if size > 0 && size <= i64::MAX as u64 => size,
        _ => {
            return Err(Error::Size { what: "the length of a memory file", must: "1..2^63", value: len });
        }
    };
    refuse_too_much(size)?;
    let fd = descriptor::keep(create(name)?);
    rustix::fs::ftruncate(&fd, size).map_err(|errno| Error::from_errno("set the size of a memory file", errno))?;
    if is_reserved {
        reserve(&fd, size)?;
    }
    rustix::fs::fcntl_add_seals(&fd, seals).map_err(|errno| Error::from_errno("seal a memory file", errno))?;
    Ok(fd)
}

/// Decides for good how others may map a file that this process has mapped. `false` if it was decided otherwise before,
/// or the kernel (before 5.1) has no such seal.
pub fn settle(fd: BorrowedFd<'_>, sharing: Sharing) -> Result<bool> {
    let seals = match sharing {
        Sharing::ReadWrite => SealFlags::SEAL,
        Sharing::ReadOnly => SealFlags::SEAL | SealFlags::FUTURE_WRITE,
    };
    match rustix::fs::fcntl_add_seals(fd, seals) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL) => Ok(false),
        Err(Errno::PERM) => {
            let sealed = rustix::fs::fcntl_get_seals(fd)
                .map_err(|errno| Error::from_errno("read the seals of a memory file", errno))?;
            Ok(sealed.contains(SealFlags::FUTURE_WRITE) == (sharing == Sharing::ReadOnly))
        }
        Err(errno) => Err(Error::from_errno("seal a memory file", errno)),
    }
}

/// Maps a file whole, shared.
pub(crate) fn map_file(fd: BorrowedFd<'_>, len: usize, protection: ProtFlags) -> Result<NonNull<u8>> {
    // Pages that are there already are mapped now: that keeps page faults (microseconds each) off the data path.
    let is_whole = fstat(fd).is_ok_and(|status| status.st_blocks as u64 * 512 >= len as u64);
    let flags = if is_whole { MapFlags::SHARED | MapFlags::POPULATE } else { MapFlags::SHARED };
    // SAFETY: a fresh mapping at an address of the kernel's choice touches nothing that exists.
    let base = unsafe { mmap(std::ptr::null_mut(), len, protection, flags, fd, 0) }
        .map_err(|errno| Error::from_errno("map shared memory", errno))?;
    NonNull::new(base.cast()).ok_or(Error::System { what: "map shared memory", source: Errno::FAULT })
}

/// Checks that a descriptor received from a peer may be mapped with length `expected_len`.
///
/// After `Ok` the file is a memfd of that size for ever: seals cannot be taken off.
pub fn check_received(fd: BorrowedFd<'_>, expected_len: usize) -> Result<()> {
    // Seals first, which only memory has: to be asked for its size, a file may have to ask a process of the peer's.
    let seals = match rustix::fs::fcntl_get_seals(fd) {
        Ok(seals) => seals,
        Err(Errno::INVAL) => return Err(Error::Foreign("the file cannot be sealed")),
        Err(errno) => {
            return Err(Error::from_errno("read the seals of received memory", errno));
        }
    };
    let system = rustix::fs::fstatfs(fd)
        .map_err(|errno| Error::from_errno("inspect the file system of received memory", errno))?;
    // The type of `f_type` and of the constants differs between targets; the numbers are 32 bits wide.
    match system.f_type as u32 {
        TMPFS => {}
        HUGETLBFS => {
            return Err(Error::Foreign("it is hugetlb memory, which can kill by SIGBUS even when sealed"));
        }
        _ => return Err(Error::Foreign("the file does not lie on tmpfs")),
    }
    if !seals.contains(SealFlags::SHRINK) {
        return Err(Error::Foreign("the file is not sealed against shrinking"));
    }
    if !seals.contains(SealFlags::GROW) {
        return Err(Error::Foreign("the file is not sealed against growing"));
    }
    // From here on the size cannot change.
    let stat = rustix::fs::fstat(fd).map_err(|errno| Error::from_errno("inspect received memory", errno))?;
    if stat.st_size == 0 {
        return Err(Error::Foreign("the file is empty"));
    }
    if usize::try_from(stat.st_size) != Ok(expected_len) {
        return Err(Error::Foreign("the file has another size than announced"));
    }
    Ok(())
}

fn create(name: &str) -> Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // With vm.memfd_noexec=2 only a file that can never be executed is allowed; kernels before 6.3 do not
    // know that flag.
    match rustix::fs::memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => rustix::fs::memfd_create(name, flags),
        outcome => outcome,
    }
    .map_err(|errno| Error::from_errno("create a memory file", errno))
}

/// Refuses a size that the kernel would answer with a deadly signal instead of an error.
fn refuse_too_much(size: u64) -> Result<()> {
    // Beyond `ulimit -f` the kernel sends SIGXFSZ, also for a memory file.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
    if limit.is_some_and(|limit| size > limit) {
        return Err(Error::from_errno("create a memory file longer than ulimit -f allows", Errno::FBIG));
    }
    if !budget::take(size) {
        return Err(Error::from_errno("reserve the pages of a memory file", Errno::NOSPC));
    }
    Ok(())
}

/// Allocates every page. The kernel gives up and undoes the call when a signal comes, so a program with a
/// fast interval timer would never get through one big call: each interruption halves the step.
fn reserve(fd: &OwnedFd, size: u64) -> Result<()> {
    let mut step = RESERVE_STEP;
    let mut done = 0;
    while done < size {
        let part = step.min(size - done);
        match rustix::fs::fallocate(fd, FallocateFlags::empty(), done, part) {
            Ok(()) => done += part,
            Err(Errno::INTR) => step = (step / 2).max(4096),
            Err(errno) => {
                return Err(Error::from_errno("reserve the pages of a memory file", errno));
            }
        }
    }
    Ok(())
}

/// A file of ours never changes its size.
const SIZE: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);
const RESERVE_STEP: u64 = 64 << 20;
const TMPFS: u32 = libc::TMPFS_MAGIC as u32;
const HUGETLBFS: u32 = libc::HUGETLBFS_MAGIC as u32;

#[cfg(all(test, not(miri), not(loom)))]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    fn refusal(fd: &OwnedFd, len: usize) -> &'static str {
        match check_received(fd.as_fd(), len) {
            Err(Error::Foreign(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    fn unsealed(flags: MemfdFlags, len: u64) -> OwnedFd {
        let fd = rustix::fs::memfd_create("unsealed", flags | MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&fd, len).unwrap();
        fd
    }

    #[test]
    fn own_file_passes_the_check_of_the_other_side() {
        for len in [1, 4095, 4096, 1 << 20] {
            let fd = create_sealed("own", len).unwrap();
            check_received(fd.as_fd(), len).unwrap();
            let blocks = rustix::fs::fstat(&fd).unwrap().st_blocks as usize;
            assert!(blocks * 512 >= len, "every page is reserved");
        }
    }

    #[test]
    fn own_file_keeps_its_size_and_seals() {
        let fd = create_sealed("own", 8192).unwrap();
        assert_eq!(rustix::fs::ftruncate(&fd, 4096), Err(Errno::PERM));
        assert_eq!(rustix::fs::ftruncate(&fd, 16384), Err(Errno::PERM));
        assert_eq!(rustix::fs::fcntl_add_seals(&fd, SealFlags::WRITE), Err(Errno::PERM));
        let flags = rustix::io::fcntl_getfd(&fd).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }

    #[test]
    fn impossible_lengths_are_errors() {
        assert!(matches!(create_sealed("none", 0), Err(Error::Size { value: 0, .. })));
        assert!(matches!(create_sealed("huge", usize::MAX), Err(Error::Size { .. })));
        assert!(matches!(create_sealed(&"n".repeat(300), 4096), Err(Error::System { .. })));
    }

    #[test]
    fn more_than_the_machine_has_is_an_error_before_anything_is_reserved() {
        let available = budget::machine_left();
        assert!((1 << 24..1 << 50).contains(&available), "{available}");
        // Not by `create_sealed`: if the check were broken, that would end every process of the machine.
        match refuse_too_much(1 << 60).unwrap_err() {
            Error::Limit { source: Errno::NOSPC, .. } => {}
            Error::System { source: Errno::FBIG, .. } => {} // Run under `ulimit -f`.
            other => panic!("{other}"),
        }
        assert!(refuse_too_much(2 * available).is_err());
        refuse_too_much(16 << 20).unwrap();
    }

    #[test]
    fn files_that_can_change_size_are_refused() {
        let fd = unsealed(MemfdFlags::CLOEXEC, 4096);
        assert!(refusal(&fd, 4096).contains("shrinking"));
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK).unwrap();
        assert!(refusal(&fd, 4096).contains("growing"));
        rustix::fs::fcntl_add_seals(&fd, SealFlags::GROW).unwrap();
        check_received(fd.as_fd(), 4096).unwrap();
    }

    #[test]
    fn wrong_sizes_are_refused() {
        let fd = create_sealed("size", 8192).unwrap();
        for len in [0, 1, 4096, 8191, 8193, usize::MAX] {
            assert!(refusal(&fd, len).contains("another size"));
        }
        let empty = unsealed(MemfdFlags::CLOEXEC, 0);
        rustix::fs::fcntl_add_seals(&empty, SealFlags::SHRINK | SealFlags::GROW).unwrap();
        assert!(refusal(&empty, 0).contains("empty"));
    }

    #[test]
    fn other_kinds_of_descriptor_are_refused() {
        let (pipe, _writer) = rustix::pipe::pipe().unwrap();
        assert!(refusal(&pipe, 4096).contains("sealed"));
        let program = OwnedFd::from(std::fs::File::open(std::env::current_exe().unwrap()).unwrap());
        let len = rustix::fs::fstat(&program).unwrap().st_size as usize;
        let why = refusal(&program, len);
        assert!(why.contains("tmpfs") || why.contains("sealed"), "{why}");
    }

    #[test]
    fn hugetlb_memory_is_refused() {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB;
        let Ok(fd) = rustix::fs::memfd_create("huge", flags) else {
            return; // This kernel makes none.
        };
        rustix::fs::ftruncate(&fd, 2 << 20).unwrap();
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW).unwrap();
        assert!(refusal(&fd, 2 << 20).contains("hugetlb"));
    }
}
