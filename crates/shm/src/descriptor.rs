//! The descriptors of this stack inside a program that does not know of it: kept out of the program's way, with high
//! numbers, and known, so that the program's `close` loops can be kept from them.
//!
//! Without a floor ([`set_floor`]) nothing is moved and nothing is noted: a program that uses the fabric knowingly has
//! its descriptors where it expects them.

use std::{
    os::fd::{AsRawFd, OwnedFd},
    sync::atomic::{AtomicU64, Ordering},
};

static FLOOR: AtomicU64 = AtomicU64::new(0);
/// One bit per descriptor number.
static KEPT: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];
const WORDS: usize = 1 << 14;

/// From now on descriptors made by this crate have numbers from `floor` up, if there is one free.
pub fn set_floor(floor: u32) {
    FLOOR.store(u64::from(floor), Ordering::Relaxed);
}

/// Moves a fresh descriptor above the floor and notes its number.
pub fn keep(descriptor: OwnedFd) -> OwnedFd {
    let floor = FLOOR.load(Ordering::Relaxed) as i32;
    if floor == 0 {
        return descriptor;
    }
    let kept = match rustix::io::fcntl_dupfd_cloexec(&descriptor, floor) {
        Ok(high) if descriptor.as_raw_fd() < floor => high,
        _ => descriptor,
    };
    if let Some((word, bit)) = place(kept.as_raw_fd()) {
        word.fetch_or(bit, Ordering::Relaxed);
    }
    kept
}

/// Whether this number is one of the kept ones.
#[inline]
pub fn is_kept(fd: i32) -> bool {
    place(fd).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
}

/// Notes that this number has been closed.
pub fn closed(fd: i32) {
    if let Some((word, bit)) = place(fd) {
        word.fetch_and(!bit, Ordering::Relaxed);
    }
}

/// The kept numbers, in order.
pub fn all_kept() -> impl Iterator<Item = i32> {
    KEPT.iter().enumerate().flat_map(|(index, word)| {
        let bits = word.load(Ordering::Relaxed);
        (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| (index * 64 + bit) as i32)
    })
}

fn place(fd: i32) -> Option<(&'static AtomicU64, u64)> {
    let fd = usize::try_from(fd).ok()?;
    Some((KEPT.get(fd / 64)?, 1 << (fd % 64)))
}
