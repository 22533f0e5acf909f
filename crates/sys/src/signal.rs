//! Threads of our own in a program that does not know of them: none of its signals gets there.
//!
//! # Invariants
//!
//! - S1. A mask of the kernel's is a word of 64 bits; the words given to it live on this stack until the call returns.

#![allow(unsafe_code)]

use std::{
    io,
    sync::OnceLock,
    thread::{Builder, JoinHandle},
};

/// Every signal that is a program's: libc has two of its own, 32 and 33, for which it waits.
pub const OF_PROGRAM: u64 = !(0b11 << 31);

/// What a thread of our own does first.
static FIRST: OnceLock<fn()> = OnceLock::new();

/// From now on threads of our own begin with this. Set once: later ones change nothing.
pub fn threads_begin_with(first: fn()) {
    let _ = FIRST.set(first);
}

/// Starts a thread of our own.
pub fn start_thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let work = move || {
        crate::lock::no_handler_comes();
        FIRST.get().into_iter().for_each(|first| first());
        work();
    };
    without_signals(|| Builder::new().name(name.into()).spawn(work))
}

/// Does something with the program's signals blocked: a thread that is begun there never gets one of them, so that no handler
/// of the program's runs in it.
fn without_signals<T>(begin: impl FnOnce() -> T) -> T {
    let before = change_mask(libc::SIG_BLOCK, OF_PROGRAM);
    let begun = begin();
    change_mask(libc::SIG_SETMASK, before);
    begun
}

/// Changes the mask of this thread, and returns the one before. Not by way of libc's name, which may be another's.
fn change_mask(how: i32, mask: u64) -> u64 {
    let mut before = 0u64;
    // SAFETY: S1. It cannot fail: the arguments are fixed and valid.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, &raw const mask, &raw mut before, size_of::<u64>()) };
    before
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    fn blocked() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    }

    #[test]
    fn a_thread_that_is_begun_there_gets_no_signal_of_the_program() {
        let before = blocked();
        let inside = without_signals(|| std::thread::spawn(blocked)).join().unwrap();
        let unblockable = 1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1);
        assert_eq!(inside | unblockable, OF_PROGRAM);
        assert_eq!(blocked(), before);
    }
}
