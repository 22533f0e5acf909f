//! Segments: memory among processes of one user that have nothing in common but a number (System V shared memory).
//!
//! A segment has the size it was made with for ever, so nobody can cut it short and kill whoever touches it, as can be done
//! with a mapped file that has a name. It is marked for removal as soon as it is made: from then on it lives as long as a
//! process has it attached, and Linux still lets others attach to it by its number. So nothing is left behind.
//!
//! What lies in a segment is written by any process of its user: read once, check, use.
//!
//! # Invariants
//!
//! - G1. The `shmid_ds` passed to the kernel is a C struct of integers: every bit pattern is a value.

#![allow(unsafe_code)]

use std::{ffi::c_void, mem::MaybeUninit, ptr::NonNull};

use rustix::io::Errno;

use crate::{Error, Memory, Result, read_only::ReadOnlyMemory};

/// The number of a segment, which other processes need to attach to it. Another segment may get it later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentId(pub u32);

/// Makes a segment of this length, full of zeroes, that only processes of this user can attach to.
pub fn create(len: usize) -> Result<(SegmentId, Memory)> {
    // SAFETY: no pointers are passed.
    let id = unsafe { libc::shmget(libc::IPC_PRIVATE, len, libc::IPC_CREAT | MODE) };
    if id < 0 {
        return Err(last("make a segment"));
    }
    let base = at(id, 0);
    // SAFETY: removal takes no record.
    unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
    // SAFETY: the segment was made with this length, and mapped just now for this value alone.
    Ok((SegmentId(id as u32), unsafe { Memory::from_segment(base?, len) }))
}

/// Attaches to a segment that this user has made with this length.
pub fn attach(id: SegmentId, len: usize, owner: u32) -> Result<Memory> {
    check(id, len, owner)?;
    let base = at(id.0 as libc::c_int, 0)?;
    // SAFETY: the segment is `len` bytes long, as was checked, and mapped just now for this value alone.
    Ok(unsafe { Memory::from_segment(base, len) })
}

/// Attaches for reading to a segment that `owner` has made with this length. The kernel refuses every write through it.
pub fn attach_read_only(id: SegmentId, len: usize, owner: u32) -> Result<ReadOnlyMemory> {
    check(id, len, owner)?;
    let base = at(id.0 as libc::c_int, libc::SHM_RDONLY)?;
    // SAFETY: the segment is `len` bytes long, as was checked, never shrinks, and was mapped just now for this value alone.
    Ok(unsafe { ReadOnlyMemory::from_segment(base, len) })
}

/// A segment never changes its length; its owner can change the rest, and so could do harm to itself only.
fn check(id: SegmentId, len: usize, owner: u32) -> Result<()> {
    let mut found = MaybeUninit::<libc::shmid_ds>::zeroed();
    // SAFETY: G1: the kernel fills the record, which lives until the call returns.
    if unsafe { libc::shmctl(id.0 as libc::c_int, libc::IPC_STAT, found.as_mut_ptr()) } < 0 {
        return Err(last("inspect a segment"));
    }
    // SAFETY: G1.
    let found = unsafe { found.assume_init() };
    let (owners, mode) = ([found.shm_perm.uid, found.shm_perm.cuid], found.shm_perm.mode as libc::c_int & 0o777);
    if owners != [owner; 2] || mode != MODE {
        return Err(Error::Foreign("the segment is not one of this user alone"));
    }
    if found.shm_segsz != len {
        return Err(Error::Foreign("the segment has another size than it should"));
    }
    Ok(())
}

fn at(id: libc::c_int, flags: libc::c_int) -> Result<NonNull<u8>> {
    // SAFETY: a fresh mapping at an address of the kernel's choice touches nothing that exists.
    let base: *mut c_void = unsafe { libc::shmat(id, std::ptr::null(), flags) };
    let base = NonNull::new(base).filter(|base| base.as_ptr() as isize != -1);
    base.map(NonNull::cast).ok_or_else(|| last("attach to a segment"))
}

fn last(what: &'static str) -> Error {
    let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL);
    Error::from_errno(what, Errno::from_raw_os_error(errno))
}

/// For its user alone.
const MODE: libc::c_int = 0o600;

#[cfg(all(test, not(miri)))]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    fn me() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    #[test]
    fn who_knows_the_number_shares_it_while_it_lives() {
        let (id, first) = create(8192).unwrap();
        let second = attach(id, 8192, me()).unwrap();
        first.word64(4096).unwrap().store(7, Relaxed);
        assert_eq!(second.word64(4096).unwrap().load(Relaxed), 7);
        drop(first);
        attach(id, 8192, me()).unwrap();
        drop(second);
        assert!(attach(id, 8192, me()).is_err(), "it went with the last who had it");
    }

    #[test]
    fn who_attaches_for_reading_sees_every_write_and_can_make_none() {
        let (id, memory) = create(8192).unwrap();
        let view = attach_read_only(id, 8192, me()).unwrap();
        memory.word64(4096).unwrap().store(7, Relaxed);
        assert_eq!(view.load64(4096), Ok(7));
        memory.word64(4096).unwrap().store(8, Relaxed);
        assert_eq!(view.load64(4096), Ok(8));
        // The kernel lists both mappings of the segment, by its number, with their rights.
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let is_ours = |line: &&str| line.contains("SYSV") && line.split_whitespace().nth(4) == Some(&id.0.to_string());
        let mut rights: Vec<&str> =
            maps.lines().filter(is_ours).map(|line| line.split_whitespace().nth(1).unwrap()).collect();
        rights.sort_unstable();
        assert_eq!(rights, ["r--s", "rw-s"], "{maps}");
        drop(memory);
        assert_eq!(view.load64(4096), Ok(8), "it stays while someone looks at it");
        drop(view);
        assert!(attach(id, 8192, me()).is_err());
    }

    #[test]
    fn segments_of_others_and_of_other_sizes_are_refused() {
        let (id, _memory) = create(8192).unwrap();
        assert!(matches!(attach(id, 4096, me()), Err(Error::Foreign(_))));
        assert!(matches!(attach(id, 8192, me() + 1), Err(Error::Foreign(_))));
        assert!(matches!(attach_read_only(id, 8192, me() + 1), Err(Error::Foreign(_))));
        assert!(attach(SegmentId(u32::MAX), 8192, me()).is_err());
    }
}
