//! What stands for members, and for the doorbells beside them, in the kernel's set.

use std::sync::atomic::{AtomicU32, Ordering};

use sidestep_fabric::Berth;

/// Tells the tokens of a berth from those of members.
const BERTH_BIT: u32 = 1 << 30;

/// Whether an event of the kernel's is for us, not for the program.
pub fn is_ours(event: &libc::epoll_event) -> bool {
    (event.u64 >> 32) as u32 & !BERTH_BIT == salt()
}

/// The token of what has come to the berth of a set, if that is what the event tells.
pub fn berth_token(event: &libc::epoll_event) -> Option<u64> {
    Berth::token(event.u64, berth_mark())
}

/// The upper half of every token of a berth.
pub fn berth_mark() -> u32 {
    salt() | BERTH_BIT
}

/// The upper half of every token of ours.
fn salt() -> u32 {
    // No `OnceLock`: a child would wait for ever for a thread of its parent's that was making it.
    static SALT: AtomicU32 = AtomicU32::new(0);
    let known = SALT.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let mut bytes = [0; 4];
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    let fresh = (u32::from_ne_bytes(bytes) | 1 << 31) & !BERTH_BIT;
    SALT.compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed).map_or_else(|first| first, |_| fresh)
}

/// What stands for a member in the kernel's set.
pub fn token(low: u32) -> u64 {
    u64::from(salt()) << 32 | u64::from(low)
}
