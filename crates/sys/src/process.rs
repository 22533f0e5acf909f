//! Which process of a line of forks this is.
//!
//! # Invariant
//!
//! - P1. `WORD` is null or points to a word that lives for ever: one of a page that is never unmapped, or `UNWIPED`.

#![allow(unsafe_code)]

use std::sync::atomic::{
    AtomicPtr, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

use rustix::mm::{Advice, MapFlags, ProtFlags};

/// Which process of a line of forks this is, also after a bare `clone`; never 0. Costs two loads, not a system call.
///
/// The word is cleared in a forked child by the kernel, since its page is wiped on fork (that covers `_Fork` and bare
/// `clone`). Where the kernel cannot, a `pthread_atfork` handler clears it; not both, since the handler may run after
/// others that have asked already, and the child would be told of two forks.
#[inline]
pub fn generation() -> u32 {
    let word = WORD.load(Acquire);
    if !word.is_null() {
        // SAFETY: P1.
        let now = unsafe { AtomicU32::from_ptr(word) }.load(Acquire);
        if now != 0 {
            return now;
        }
    }
    next(word)
}

/// Whether this program has rights that whoever executed it may not have (set-user-id, capabilities of its file).
pub fn is_privileged() -> bool {
    // SAFETY: it reads a list that the kernel made for this process.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

#[cold]
#[inline(never)]
fn next(mut word: *mut u32) -> u32 {
    if word.is_null() {
        let wiped = wiped_page();
        let made = wiped.unwrap_or(UNWIPED.as_ptr());
        // Pairs with the Acquire in `generation`. A thread that loses the race leaks its page, once.
        word = match WORD.compare_exchange(std::ptr::null_mut(), made, Release, Acquire) {
            Ok(_) => {
                if wiped.is_none() {
                    // SAFETY: the handler does one atomic store, which any child may do. It fails only where memory
                    // has run out.
                    let _ = unsafe { libc::pthread_atfork(None, None, Some(forget)) };
                }
                made
            }
            Err(other) => other,
        };
    }
    // SAFETY: P1.
    let generation = unsafe { AtomicU32::from_ptr(word) };
    let next = LAST.fetch_add(1, Relaxed).wrapping_add(1).max(1);
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
unsafe extern "C" fn forget() {
    let word = WORD.load(Acquire);
    if !word.is_null() {
        // SAFETY: P1.
        unsafe { AtomicU32::from_ptr(word) }.store(0, Release);
    }
}

static WORD: AtomicPtr<u32> = AtomicPtr::new(std::ptr::null_mut());
static LAST: AtomicU32 = AtomicU32::new(0);
/// Stands in for the page where the kernel cannot wipe one.
static UNWIPED: AtomicU32 = AtomicU32::new(0);

const PAGE: usize = 4096;

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn children_of_every_kind_have_their_own() {
        let own = generation();
        assert_ne!(own, 0);
        assert_eq!(generation(), own);
        // SAFETY: the child does system calls and atomic steps only.
        in_child(own, || unsafe { libc::fork() });
        // SAFETY: as above; without the handlers of the C library.
        in_child(own, || unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as i32 });
        assert_eq!(generation(), own);
    }

    /// The child's differs from its parent's, and its own child's from both.
    fn in_child(parents: u32, fork: impl Fn() -> i32) {
        let pid = fork();
        if pid == 0 {
            let own = generation();
            let grandchild = fork();
            let differs = if grandchild == 0 {
                generation() != own && generation() != parents
            } else {
                own != parents && generation() == own && ended_well(grandchild)
            };
            // SAFETY: ends this process.
            unsafe { libc::_exit(i32::from(!differs)) }
        }
        assert!(ended_well(pid));
    }

    fn ended_well(pid: i32) -> bool {
        let mut status = 0;
        // SAFETY: `status` is ours.
        pid > 0 && unsafe { libc::waitpid(pid, &mut status, 0) } == pid && status == 0
    }
}
