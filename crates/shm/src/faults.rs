//! Page faults that this process resolves itself: accesses to pages that it has not admitted, and first writes to those that it
//! has protected (`userfaultfd`).
//!
//! The memory is a file, so what matters is this process's *mapping* of a page, not the page: [`Faults::forget`] drops the mapping
//! and keeps the bytes, which are reached through every other mapping of the file all the time.
//!
//! # Invariants
//!
//! - **F1** `view` is mapped for as long as the `Faults` lives, since it holds it; every range given to the kernel is within it.
//! - **F2** The structures passed to the kernel are `repr(C)`, made of integers, and as `linux/userfaultfd.h` has them.

#![allow(unsafe_code)]

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use rustix::ioctl::{Updater, ioctl, opcode};
use rustix::mm::{Advice, UserfaultfdFlags, madvise, userfaultfd};

use crate::{Error, Memory, Result};

/// The faults of a mapping.
#[derive(Debug)]
pub struct Faults {
    descriptor: OwnedFd,
    view: Memory,
}

/// An access that waits to be resolved. The thread that made it sleeps until then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Where its page begins.
    pub at: usize,
    /// What it lacks.
    pub lacks: Lack,
}

/// What an access lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// The page is not mapped here: [`Faults::admit`] it.
    Page,
    /// The page is protected, and this is a write: [`Faults::allow_writes`].
    Permission,
}

impl Faults {
    /// Maps a shared memory a second time, so that every access through that [`view`](Self::view) to a page that was not admitted
    /// faults. Accesses of the kernel for this process (`read` into the view, say) fail instead.
    pub fn of(memory: &Memory) -> Result<Faults> {
        let file = memory.descriptor().ok_or(NO_FILE)?;
        let copy = rustix::io::fcntl_dupfd_cloexec(&*file, 0)
            .map_err(|errno| Error::from_errno("copy a descriptor", errno))?;
        let view = Memory::attach(copy, memory.len())?;
        let flags = UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::NONBLOCK;
        // SAFETY: the descriptor is used for `view` alone, of which no Rust reference exists (the invariants of `memory`).
        let descriptor = unsafe { userfaultfd(flags | UserfaultfdFlags::from_bits_retain(USER_MODE_ONLY)) };
        let descriptor = descriptor.map_err(unavailable)?;
        let faults = Faults { descriptor, view };
        let features = FEATURE_MINOR_SHMEM | FEATURE_WP_SHMEM;
        faults.control::<API, _>(&mut Api { api: VERSION, features, ioctls: 0 }).map_err(unavailable)?;
        let range = faults.range(0, faults.view.len())?;
        let mode = MODE_MISSING | MODE_WP | MODE_MINOR;
        faults.control::<REGISTER, _>(&mut Register { range, mode, ioctls: 0 }).map_err(unavailable)?;
        // What was mapped with the file would not fault.
        faults.forget(0, faults.view.len())?;
        Ok(faults)
    }

    /// The mapping whose accesses fault. The one that it was made of does not.
    #[must_use]
    pub fn view(&self) -> &Memory {
        &self.view
    }

    /// The next fault; `None` after so many milliseconds.
    pub fn wait(&self, timeout_ms: u32) -> Result<Option<Fault>> {
        let mut message = [0_u8; 32];
        loop {
            match read(&self.descriptor, &mut message) {
                Ok(32) if message[0] == EVENT_PAGEFAULT => {}
                Ok(_) => return Err(Error::Peer("the kernel tells of something that is no page fault")),
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {
                    let mut entry = [PollFd::new(&self.descriptor, PollFlags::IN)];
                    let timeout = Timespec {
                        tv_sec: i64::from(timeout_ms / 1000),
                        tv_nsec: i64::from(timeout_ms % 1000) * 1_000_000,
                    };
                    match poll(&mut entry, Some(&timeout)) {
                        Ok(0) => return Ok(None),
                        Ok(_) | Err(Errno::INTR) => continue,
                        Err(errno) => return Err(Error::from_errno("wait for page faults", errno)),
                    }
                }
                Err(errno) => return Err(Error::from_errno("read page faults", errno)),
            }
            let word = |at: usize| u64::from_ne_bytes(message[at..at + 8].try_into().expect("eight bytes"));
            let lacks = if word(8) & FLAG_WP != 0 { Lack::Permission } else { Lack::Page };
            let at = (word(16) as usize).wrapping_sub(self.view.base().as_ptr() as usize);
            // The kernel tells of this view alone.
            return Ok(Some(Fault { at: at - at % rustix::param::page_size(), lacks }));
        }
    }

    /// Maps whole pages that are in the file, protected against writes, and lets who waits for them go on.
    pub fn admit(&self, at: usize, len: usize) -> Result<()> {
        let range = self.range(at, len)?;
        let mut admitted = Continue { range, mode: CONTINUE_DONTWAKE, mapped: 0 };
        match self.control::<CONTINUE, _>(&mut admitted) {
            // Some of it is mapped: whoever asked saw it as it was before.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(Error::from_errno("map a page", errno)),
        }
        self.protect(at, len)?;
        let mut range = range;
        self.control::<WAKE, _>(&mut range).map_err(|errno| Error::from_errno("wake a thread", errno))
    }

    /// Makes the next write to whole pages a fault.
    pub fn protect(&self, at: usize, len: usize) -> Result<()> {
        self.set_protection(at, len, PROTECTED)
    }

    /// Lets writes to whole pages be, and who waits for that go on.
    pub fn allow_writes(&self, at: usize, len: usize) -> Result<()> {
        self.set_protection(at, len, 0)
    }

    /// Makes the next access to whole pages a fault. The bytes stay in the file.
    pub fn forget(&self, at: usize, len: usize) -> Result<()> {
        let range = self.range(at, len)?;
        // SAFETY: F1; the mapping stays, and so do the bytes, which are the file's.
        let forgotten = unsafe { madvise(range.start as *mut _, len, Advice::LinuxDontNeed) };
        forgotten.map_err(|errno| Error::from_errno("forget a page", errno))
    }

    fn set_protection(&self, at: usize, len: usize, mode: u64) -> Result<()> {
        let range = self.range(at, len)?;
        self.control::<WRITEPROTECT, _>(&mut WriteProtect { range, mode })
            .map_err(|errno| Error::from_errno("protect a page", errno))
    }

    fn range(&self, at: usize, len: usize) -> Result<Range> {
        let page = rustix::param::page_size();
        if at % page != 0 || len % page != 0 || at.checked_add(len).is_none_or(|end| end > self.view.len()) {
            return Err(Error::Size { what: "the range of pages", must: "whole pages within the memory", value: at });
        }
        Ok(Range { start: (self.view.base().as_ptr() as usize + at) as u64, len: len as u64 })
    }

    fn control<const CODE: u32, T>(&self, argument: &mut T) -> std::result::Result<(), Errno> {
        // SAFETY: F2: each code is used with the structure that the kernel reads and writes for it.
        let call = unsafe { Updater::<CODE, T>::new(argument) };
        // SAFETY: F1, F2; `wait`, `admit` and the others are all that the kernel is asked for, within the view.
        unsafe { ioctl(self.descriptor.as_fd(), call) }
    }
}

fn unavailable(errno: Errno) -> Error {
    let limit = match errno {
        Errno::PERM | Errno::ACCESS => "the right to resolve page faults (userfaultfd; a sandbox may forbid it)",
        _ => "a kernel that resolves minor faults of shared memory and protects it (userfaultfd, Linux 5.19)",
    };
    Error::Limit { what: "resolve page faults", limit, source: errno }
}

const NO_FILE: Error = Error::Size { what: "the memory", must: "a file, to be mapped twice", value: 0 };
const USER_MODE_ONLY: u32 = 1;
const VERSION: u64 = 0xAA;
const FEATURE_MINOR_SHMEM: u64 = 1 << 10;
const FEATURE_WP_SHMEM: u64 = 1 << 12;
const MODE_MISSING: u64 = 1;
const MODE_WP: u64 = 1 << 1;
const MODE_MINOR: u64 = 1 << 2;
const CONTINUE_DONTWAKE: u64 = 1;
const PROTECTED: u64 = 1;
const EVENT_PAGEFAULT: u8 = 0x12;
const FLAG_WP: u64 = 1 << 1;
const API: u32 = opcode::read_write::<Api>(0xAA, 0x3F);
const REGISTER: u32 = opcode::read_write::<Register>(0xAA, 0);
const WAKE: u32 = opcode::read::<Range>(0xAA, 2);
const WRITEPROTECT: u32 = opcode::read_write::<WriteProtect>(0xAA, 6);
const CONTINUE: u32 = opcode::read_write::<Continue>(0xAA, 7);

#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Range {
    start: u64,
    len: u64,
}

#[repr(C)]
struct Register {
    range: Range,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
struct WriteProtect {
    range: Range,
    mode: u64,
}

#[repr(C)]
struct Continue {
    range: Range,
    mode: u64,
    mapped: i64,
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    const PAGE: usize = 4096;

    /// A page is admitted, written after its protection was lifted, and forgotten: each is one fault.
    #[test]
    fn accesses_fault_until_they_are_resolved() {
        let memory = Memory::create("sidestep-faults", 4 * PAGE).unwrap();
        memory.store64(PAGE, 7, Ordering::Relaxed).unwrap();
        let faults = Faults::of(&memory).unwrap();
        assert_eq!(faults.wait(0).unwrap(), None);
        let word = faults.view().word64(PAGE).unwrap();
        let mut seen = Vec::new();
        std::thread::scope(|scope| {
            let user = scope.spawn(move || {
                assert_eq!(word.load(Ordering::Relaxed), 7);
                word.store(8, Ordering::Relaxed);
                word.store(9, Ordering::Relaxed);
                word
            });
            while seen.len() < 2 {
                let Some(fault) = faults.wait(10_000).unwrap() else { panic!("no fault") };
                match fault.lacks {
                    Lack::Page => faults.admit(fault.at, PAGE).unwrap(),
                    Lack::Permission => faults.allow_writes(fault.at, PAGE).unwrap(),
                }
                seen.push(fault);
            }
            let word = user.join().unwrap();
            assert_eq!(memory.word64(PAGE).unwrap().load(Ordering::Relaxed), 9, "both mappings are of one file");
            faults.forget(PAGE, PAGE).unwrap();
            memory.store64(PAGE, 10, Ordering::Relaxed).unwrap();
            let user = scope.spawn(move || word.load(Ordering::Relaxed));
            let again = faults.wait(10_000).unwrap().expect("a fault");
            faults.admit(again.at, PAGE).unwrap();
            assert_eq!(user.join().unwrap(), 10);
            seen.push(again);
        });
        let lacks = [Lack::Page, Lack::Permission, Lack::Page];
        assert_eq!(seen, lacks.map(|lacks| Fault { at: PAGE, lacks }));
        assert!(faults.admit(PAGE + 1, PAGE).is_err() && faults.forget(4 * PAGE, PAGE).is_err());
    }
}
