//! Locks among a *family*: the processes that hold one endpoint after `fork`. Never shared with a peer.
//!
//! A lock is a `u32` in family memory: 0, or the number of the member that holds it. A member is a process;
//! its number is the offset of a byte in the family's *lock file* (a memfd) on which the process holds a
//! POSIX record lock. The kernel drops that lock when the process dies, in whatever way, so whoever waits
//! for a lock asks the kernel about the owner's byte (`F_GETLK`) and, if it is free, takes the lock over
//! with a compare-and-swap from that very number. Process ids play no part, so pid namespaces do not matter.
//!
//! # Invariants
//!
//! - F1. A number is in a lock word only while, or after, its process held the lock of its byte; a process
//!   writes only its own number, and claims the byte before the first use.
//! - F2. Numbers are not given out twice (a counter in the lock file; after 2^32 claims it starts again and
//!   passes over live members). So a number whose byte is free belongs to the dead, and a word with that
//!   number cannot become live again between the question and the swap.
//! - F3. `Family` has exactly one descriptor of the lock file, and neither duplicates it nor opens it again.
//! - F4. A claim belongs to one process: it carries the generation of the process, and a forked child has
//!   another. The counter's page and the generation word live for ever or for the length of one call.
//!
//! # Traps of POSIX locks, and what is done about them
//!
//! - Closing *any* descriptor of the file drops all locks of the process on it: F3. The holder of a `Family`
//!   must keep others from it too (one `Family` per lock file and process; `close_range` spares it).
//! - Locks are not inherited by `fork`: the child claims a number of its own, in
//!   [`Family::after_fork`] or at its first lock. Its exit drops its own locks, not the parent's.
//! - Within one process the locks never conflict, and `F_GETLK` does not see one's own. So a word with the
//!   own number is never asked about: by F2 it is held by another thread of this process.
//! - They belong to the descriptor table: a thread that did `unshare(CLONE_FILES)`, or a `vfork` child, may
//!   not lock.

#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::{Error, Result, memfd};

/// The membership of this process in a family.
#[derive(Debug)]
pub struct Family {
    lock_file: OwnedFd,
    /// Generation of the claiming process in the upper half, its number in the lower.
    claim: AtomicU64,
}

impl Family {
    /// Founds a family and joins it.
    pub fn create() -> Result<Family> {
        Self::join(memfd::create_sealed("sidestep-family", LOCK_FILE_LEN)?)
    }

    /// Joins the family of a lock file that came through `exec` or a lifeline. This process must hold no
    /// other descriptor of that file (F3).
    pub fn attach(lock_file: OwnedFd) -> Result<Family> {
        memfd::check_received(lock_file.as_fd(), LOCK_FILE_LEN)?;
        Self::join(lock_file)
    }

    /// Claims a number for a forked child. The first lock would do it too; to do it here makes the error
    /// come at a better moment.
    pub fn after_fork(&self) -> Result<()> {
        self.member().map(|_| ())
    }

    /// Takes the lock, waiting for a live owner as long as it takes. Not re-entrant.
    ///
    /// The only errors are those of a forked child that cannot claim its number.
    #[inline]
    pub fn lock<'a>(&self, word: &'a AtomicU32) -> Result<FamilyGuard<'a>> {
        let member = self.member()?;
        // Pairs with the Release in `FamilyGuard::drop`: what the last owner wrote is visible.
        match word.compare_exchange(FREE, member.number, Acquire, Relaxed) {
            Ok(_) => Ok(FamilyGuard { word, member, taken_over: false }),
            Err(_) => self.lock_contended(word, member),
        }
    }

    /// Takes the lock if it is free or its owner is dead. When another member holds it this costs a system
    /// call, to know that the member is alive.
    #[inline]
    pub fn try_lock<'a>(&self, word: &'a AtomicU32) -> Result<Option<FamilyGuard<'a>>> {
        let member = self.member()?;
        // Pairs with the Release in `FamilyGuard::drop`.
        match word.compare_exchange(FREE, member.number, Acquire, Relaxed) {
            Ok(_) => Ok(Some(FamilyGuard { word, member, taken_over: false })),
            Err(owner) => self.take_over(word, member, owner),
        }
    }

    fn join(lock_file: OwnedFd) -> Result<Family> {
        let family = Family { lock_file, claim: AtomicU64::new(0) };
        family.member()?;
        Ok(family)
    }

    /// This process's claim (F1, F4).
    #[inline]
    fn member(&self) -> Result<Member> {
        let claim = Member::from_bits(self.claim.load(Acquire));
        let generation = generation();
        if claim.generation == generation { Ok(claim) } else { self.claim(generation) }
    }

    #[cold]
    fn claim(&self, generation: u32) -> Result<Member> {
        let number = loop {
            let number = self.next_number()?;
            if number != FREE && self.lock_byte(number)? {
                break number;
            }
        };
        let member = Member { generation, number };
        let mut seen = self.claim.load(Acquire);
        loop {
            let other = Member::from_bits(seen);
            if other.generation == generation {
                // Another thread was faster; what this one claimed nobody has seen (F1).
                self.unlock_byte(number)?;
                return Ok(other);
            }
            // Pairs with the Acquire in `member`: the byte is locked before the number is used.
            match self.claim.compare_exchange(seen, member.to_bits(), Release, Acquire) {
                Ok(_) => return Ok(member),
                Err(now) => seen = now,
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn lock_contended<'a>(&self, word: &'a AtomicU32, member: Member) -> Result<FamilyGuard<'a>> {
        let mut round = 0_u32;
        loop {
            let mut owner = word.load(Relaxed);
            if owner == FREE {
                // Pairs with the Release in `FamilyGuard::drop`.
                match word.compare_exchange(FREE, member.number, Acquire, Relaxed) {
                    Ok(_) => {
                        return Ok(FamilyGuard { word, member, taken_over: false });
                    }
                    Err(now) => owner = now,
                }
            }
            if round < SPINS {
                std::hint::spin_loop();
            } else if round < SPINS + YIELDS {
                rustix::thread::sched_yield();
            } else {
                if let Some(guard) = self.take_over(word, member, owner)? {
                    return Ok(guard);
                }
                // A live owner that was not done after all those yields is off its core, or stopped.
                let nap = rustix::time::Timespec { tv_sec: 0, tv_nsec: NAP_NS };
                let _ = rustix::thread::nanosleep(&nap);
            }
            round = round.saturating_add(1);
        }
    }

    /// Takes the lock from `owner` if that member is dead.
    #[cold]
    fn take_over<'a>(&self, word: &'a AtomicU32, member: Member, owner: u32) -> Result<Option<FamilyGuard<'a>>> {
        if owner == FREE || owner == member.number || self.byte_is_locked(owner)? {
            return Ok(None);
        }
        // F2: `owner` is dead, so if the word still has its number, it died inside. Acquire: what the kernel
        // did at its death lies between its last store and our question.
        let swapped = word.compare_exchange(owner, member.number, Acquire, Relaxed);
        Ok(swapped.is_ok().then_some(FamilyGuard { word, member, taken_over: true }))
    }

    /// A number nobody had before (F2). The counter is mapped for this moment only: claims are rare.
    fn next_number(&self) -> Result<u32> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice harms nobody.
        let page = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), LOCK_FILE_LEN, protection, MapFlags::SHARED, &self.lock_file, 0)
        }
        .map_err(|errno| Error::from_errno("map the lock file of a family", errno))?;
        // SAFETY: F4: mapped just above and until below; the file is sealed at this length; all processes
        // reach this word as an atomic.
        let counter = unsafe { AtomicU32::from_ptr(page.cast()) };
        let number = counter.fetch_add(1, Relaxed).wrapping_add(1);
        // SAFETY: F4: made above, and `counter` is not used any more.
        let unmapped = unsafe { rustix::mm::munmap(page, LOCK_FILE_LEN) };
        unmapped.map_err(|errno| Error::from_errno("unmap the lock file of a family", errno))?;
        Ok(number)
    }

    /// Locks the byte for this process; `false` if another one has it.
    fn lock_byte(&self, number: u32) -> Result<bool> {
        match self.record_lock(libc::F_SETLK, libc::F_WRLCK, number) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
            Err(errno) => Err(Error::from_errno("claim a number in a family", errno)),
        }
    }

    fn unlock_byte(&self, number: u32) -> Result<()> {
        self.record_lock(libc::F_SETLK, libc::F_UNLCK, number)
            .map(|_| ())
            .map_err(|errno| Error::from_errno("give back a number of a family", errno))
    }

    /// Whether another process has the byte.
    fn byte_is_locked(&self, number: u32) -> Result<bool> {
        self.record_lock(libc::F_GETLK, libc::F_WRLCK, number)
            .map(|found| found != libc::F_UNLCK)
            .map_err(|errno| Error::from_errno("ask whether a member of a family lives", errno))
    }

    /// One `fcntl` on one byte; returns the lock type that the kernel left in the record.
    fn record_lock(
        &self,
        command: libc::c_int,
        kind: libc::c_int,
        number: u32,
    ) -> std::result::Result<libc::c_int, Errno> {
        // rustix has whole-file locks only. `libc::syscall`, because the preload library exports `fcntl`.
        let mut record = libc::flock {
            l_type: kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: libc::off_t::from(number),
            l_len: 1,
            l_pid: 0,
        };
        let fd = self.lock_file.as_raw_fd();
        // SAFETY: the record is a C struct of integers that lives until the call returns.
        let outcome = unsafe { libc::syscall(libc::SYS_fcntl, fd, command, &raw mut record) };
        if outcome < 0 {
            let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL);
            return Err(Errno::from_raw_os_error(errno));
        }
        Ok(libc::c_int::from(record.l_type))
    }
}

/// For handing the lock file to a new member. Whoever duplicates it within this process and closes the
/// duplicate makes this process look dead (F3).
impl AsFd for Family {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.lock_file.as_fd()
    }
}

/// The lock is held until this is dropped.
#[derive(Debug)]
#[must_use = "the lock is free again at once"]
pub struct FamilyGuard<'a> {
    word: &'a AtomicU32,
    member: Member,
    taken_over: bool,
}

impl FamilyGuard<'_> {
    /// Whether the last owner died inside, so that what the lock protects may be half done. The repair must
    /// bear being done twice: its doer may die, too.
    pub fn taken_over(&self) -> bool {
        self.taken_over
    }
}

impl Drop for FamilyGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // A guard that was copied by `fork` is the parent's (F4). A word with another number was taken over,
        // which needs a broken F3; do not make that worse.
        if self.member.generation == generation() && self.word.load(Relaxed) == self.member.number {
            // Pairs with the Acquire of every lock.
            self.word.store(FREE, Release);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Member {
    generation: u32,
    number: u32,
}

impl Member {
    fn from_bits(bits: u64) -> Member {
        Member { generation: (bits >> 32) as u32, number: bits as u32 }
    }

    fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.number)
    }
}

/// Which process of a line of forks this is, also after a bare `clone`. Costs two loads, not a system call.
#[inline]
pub fn process_generation() -> u32 {
    generation()
}

/// Which process of a line of forks this is; never 0. Costs two loads, not a system call.
///
/// The word is cleared in a forked child by the kernel, since its page is wiped on fork (that covers `_Fork` and bare
/// `clone`). Where the kernel cannot, a `pthread_atfork` handler clears it; not both, since the handler may run after
/// others that have asked already, and the child would be told of two forks.
#[inline]
fn generation() -> u32 {
    let word = GENERATION.load(Acquire);
    if !word.is_null() {
        // SAFETY: F4: not null, so it came from `generation_cold` and lives for ever.
        let now = unsafe { AtomicU32::from_ptr(word) }.load(Acquire);
        if now != 0 {
            return now;
        }
    }
    generation_cold(word)
}

#[cold]
#[inline(never)]
fn generation_cold(mut word: *mut u32) -> u32 {
    if word.is_null() {
        let wiped = wiped_page();
        let made = wiped.unwrap_or(UNWIPED.as_ptr());
        // Pairs with the Acquire in `generation`. A thread that loses the race leaks its page, once.
        word = match GENERATION.compare_exchange(std::ptr::null_mut(), made, Release, Acquire) {
            Ok(_) => {
                if wiped.is_none() {
                    // SAFETY: the handler does one atomic store, which any child may do. It fails only where memory
                    // has run out.
                    let _ = unsafe { libc::pthread_atfork(None, None, Some(forget_generation)) };
                }
                made
            }
            Err(other) => other,
        };
    }
    // SAFETY: F4: the word lives for ever.
    let generation = unsafe { AtomicU32::from_ptr(word) };
    let next = LAST_GENERATION.fetch_add(1, Relaxed).wrapping_add(1).max(1);
    match generation.compare_exchange(0, next, Release, Acquire) {
        Ok(_) => next,
        Err(other) => other,
    }
}

/// A word that the kernel clears in every child, if it can.
fn wiped_page() -> Option<*mut u32> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice harms nobody.
    let page = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), PAGE, protection, MapFlags::PRIVATE) }.ok()?;
    // SAFETY: the page was made just above and nobody else knows it.
    let wiped = unsafe { rustix::mm::madvise(page, PAGE, Advice::LinuxWipeOnFork) };
    if wiped.is_err() {
        // SAFETY: as above.
        let _ = unsafe { rustix::mm::munmap(page, PAGE) };
        return None;
    }
    Some(page.cast())
}

/// Runs in the child after `fork`.
unsafe extern "C" fn forget_generation() {
    let word = GENERATION.load(Acquire);
    if !word.is_null() {
        // SAFETY: F4: the word lives for ever.
        unsafe { AtomicU32::from_ptr(word) }.store(0, Release);
    }
}

static GENERATION: AtomicPtr<u32> = AtomicPtr::new(std::ptr::null_mut());
static LAST_GENERATION: AtomicU32 = AtomicU32::new(0);
/// Stands in for the page where the kernel cannot wipe one.
static UNWIPED: AtomicU32 = AtomicU32::new(0);

const FREE: u32 = 0;
const PAGE: usize = 4096;
const LOCK_FILE_LEN: usize = 4096;
const SPINS: u32 = 100;
const YIELDS: u32 = 20;
const NAP_NS: i64 = 50_000;

#[cfg(all(test, not(miri), not(loom)))]
mod tests;
