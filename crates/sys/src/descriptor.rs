//! The descriptors of this stack inside a program that does not know of it: kept out of the program's way, with high
//! numbers, and known, so that the program's `close` loops can be kept from them.
//!
//! The floor may be above what the process may have (its soft limit), if it could have more (its hard limit): the limit is
//! raised for the moment in which a number is taken. A thread that opens something in that moment, at its limit, succeeds.
//! Such a number cannot be met by any call of the program, and costs none of its own.
//!
//! Without a floor ([`set_floor`]) nothing is moved and nothing is noted: a program that uses the fabric knowingly has
//! its descriptors where it expects them.

use std::{
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
};

use rustix::{
    io::{Errno, fcntl_dupfd_cloexec},
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

static FLOOR: AtomicU64 = AtomicU64::new(0);
static SECOND: AtomicU64 = AtomicU64::new(0);
/// While a number above the limit is taken: the limit that this process has otherwise, plus one.
static RAISED: AtomicU64 = AtomicU64::new(0);
/// One bit per descriptor number.
static KEPT: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];
const WORDS: usize = 1 << 14;
/// Bits were ever set in words from the lowest to the highest only.
static LOWEST: AtomicUsize = AtomicUsize::new(WORDS);
static HIGHEST: AtomicUsize = AtomicUsize::new(0);
/// The limit is about to be raised.
const BUSY: u64 = u64::MAX;

/// From now on descriptors made by this crate have numbers from `floor` up, which may be above the limit of this process;
/// or from `second` up if there is none free.
pub fn set_floor(floor: u32, second: u32) {
    SECOND.store(u64::from(second), Ordering::Relaxed);
    FLOOR.store(u64::from(floor), Ordering::Relaxed);
}

/// Moves a fresh descriptor above the floor and notes its number.
pub fn keep(descriptor: OwnedFd) -> OwnedFd {
    let floor = FLOOR.load(Ordering::Relaxed) as i32;
    if floor == 0 {
        return descriptor;
    }
    let high = if descriptor.as_raw_fd() < floor { above(descriptor.as_fd(), floor).ok() } else { None };
    noted(high.unwrap_or(descriptor))
}

/// Another descriptor of the same open file, above the floor.
pub fn keep_copy(descriptor: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    match FLOOR.load(Ordering::Relaxed) as i32 {
        0 => fcntl_dupfd_cloexec(descriptor, 3),
        floor => above(descriptor, floor).or_else(|_| fcntl_dupfd_cloexec(descriptor, 3)).map(noted),
    }
}

/// Another descriptor of the same open file, with this number, which may be above the limit. `None`: that is taken, or cannot be
/// had.
pub fn keep_copy_at(descriptor: BorrowedFd<'_>, number: i32) -> Option<OwnedFd> {
    let copy = match fcntl_dupfd_cloexec(descriptor, number) {
        Err(Errno::INVAL) => above_limit(descriptor, number),
        copy => copy,
    };
    copy.ok().filter(|copy| copy.as_raw_fd() == number).map(noted)
}

fn noted(descriptor: OwnedFd) -> OwnedFd {
    let fd = descriptor.as_raw_fd();
    if let Some((word, bit)) = place(fd) {
        LOWEST.fetch_min(fd as usize / 64, Ordering::Relaxed);
        HIGHEST.fetch_max(fd as usize / 64, Ordering::Relaxed);
        word.fetch_or(bit, Ordering::Relaxed);
    }
    descriptor
}

fn above(descriptor: BorrowedFd<'_>, floor: i32) -> Result<OwnedFd, Errno> {
    let high = match fcntl_dupfd_cloexec(descriptor, floor) {
        Err(Errno::INVAL) => above_limit(descriptor, floor),
        high => high,
    };
    let second = SECOND.load(Ordering::Relaxed) as i32;
    high.or_else(|errno| match descriptor.as_raw_fd() < second {
        true => fcntl_dupfd_cloexec(descriptor, second),
        false => Err(errno),
    })
}

/// Takes a number above the limit, which is raised for as long as that takes.
fn above_limit(descriptor: BorrowedFd<'_>, floor: i32) -> Result<OwnedFd, Errno> {
    // One thread at a time, since the limit that it finds is the one that it restores.
    while RAISED.compare_exchange(0, BUSY, Ordering::Acquire, Ordering::Relaxed).is_err() {
        std::thread::yield_now();
    }
    let limit = getrlimit(Resource::Nofile);
    let high = match limit.current {
        Some(soft) if limit.maximum.is_none_or(|hard| hard > floor as u64) => {
            RAISED.store(soft + 1, Ordering::Relaxed);
            let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
            let high = raised.and_then(|()| fcntl_dupfd_cloexec(descriptor, floor));
            let _ = setrlimit(Resource::Nofile, limit);
            high
        }
        _ => Err(Errno::MFILE),
    };
    RAISED.store(0, Ordering::Release);
    high
}

/// Tries to keep the limit as it is: who raises it is done within a few.
const STILL_TRIES: u32 = 10_000;

/// Makes a call that is about the limit while nobody has it raised: what the program asks for is its own, and what it sets stays.
pub fn with_still_limit<T>(call: impl FnOnce() -> T) -> T {
    let taken = (0..STILL_TRIES).any(|_| {
        let taken = RAISED.compare_exchange(0, BUSY, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if !taken {
            std::thread::yield_now();
        }
        taken
    });
    let outcome = call();
    if taken {
        RAISED.store(0, Ordering::Release);
    }
    outcome
}

/// The limit of descriptors that the program has set, also while a thread has it raised.
pub fn limit() -> Rlimit {
    with_still_limit(|| {
        let mut limit = getrlimit(Resource::Nofile);
        // Raised all the same if the thread that raises it was not waited for.
        match RAISED.load(Ordering::Relaxed) {
            0 | BUSY => {}
            soft => limit.current = Some(soft - 1),
        }
        limit
    })
}

/// In a forked child: another thread of the parent may have raised the limit just then.
pub fn after_fork() {
    crate::discard::after_fork();
    match RAISED.swap(0, Ordering::AcqRel) {
        0 | BUSY => {}
        soft => {
            let maximum = getrlimit(Resource::Nofile).maximum;
            let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(soft - 1), maximum });
        }
    }
}

/// Whether this number is one of the kept ones.
#[inline]
pub fn is_kept(fd: i32) -> bool {
    place(fd).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
}

/// Notes that this number is about to be closed.
pub fn closed(fd: i32) {
    if is_kept(fd)
        && let Some((word, bit)) = place(fd)
    {
        word.fetch_and(!bit, Ordering::Relaxed);
    }
}

/// The kept numbers, in order.
pub fn all_kept() -> impl Iterator<Item = i32> {
    let (lowest, highest) = (LOWEST.load(Ordering::Relaxed), HIGHEST.load(Ordering::Relaxed));
    let words = KEPT.iter().enumerate().take(highest + 1).skip(lowest);
    words.map(|(index, word)| (index, word.load(Ordering::Relaxed))).filter(|(_, bits)| *bits != 0).flat_map(
        |(index, bits)| (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| (index * 64 + bit) as i32),
    )
}

pub(crate) fn place(fd: i32) -> Option<(&'static AtomicU64, u64)> {
    let fd = usize::try_from(fd).ok()?;
    Some((KEPT.get(fd / 64)?, 1 << (fd % 64)))
}
