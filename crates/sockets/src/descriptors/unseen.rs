//! Waits that pass the library by: an io_uring polls any descriptor of its process, and the bytes of a ring in shared memory
//! do not wake it. A process that has one keeps its streams on TCP.
//!
//! The library sees most of them being made. Others are made by system calls of the program's own; for those the list of
//! descriptors is looked through before a stream is offered: before the first one, the second, the fourth, and so on, so that
//! the looks cost by streams, not by streams times descriptors.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::descriptors::numbers;

static FOUND: AtomicBool = AtomicBool::new(false);
static ASKED: AtomicU32 = AtomicU32::new(0);

/// The program has made one.
pub fn found() {
    FOUND.store(true, Ordering::Relaxed);
}

/// Whether the process has one, as far as is known. Asked once for each stream.
pub fn may_wait() -> bool {
    let before = ASKED.fetch_add(1, Ordering::Relaxed);
    let due = before & before.wrapping_add(1) == 0;
    if due && !FOUND.load(Ordering::Relaxed) && numbers::has_any("anon_inode:[io_uring]") {
        found();
    }
    FOUND.load(Ordering::Relaxed)
}
