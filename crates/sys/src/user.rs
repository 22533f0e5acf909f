//! Whose a process or a file is.
//!
//! In a user namespace all users that it has no number for are shown as one, the overflow id. Who has that id is nobody:
//! two of them need not be the same, and neither need be this process's own user, though it may be shown under that id, too.

use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags};

/// The effective user of this process; `None` if that cannot be told from others.
pub fn own() -> Option<u32> {
    let user = rustix::process::geteuid().as_raw();
    (user != overflow()).then_some(user)
}

/// Whether this user id, as the kernel shows it, is that of this process.
pub fn is_own(user: u32) -> bool {
    own() == Some(user)
}

/// The id that stands for every user without a number here.
pub fn overflow() -> u32 {
    static OVERFLOW: OnceLock<u32> = OnceLock::new();
    *OVERFLOW.get_or_init(|| told().unwrap_or(DEFAULT))
}

fn told() -> Option<u32> {
    let file =
        rustix::fs::open("/proc/sys/kernel/overflowuid", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut text = [0; 16];
    let len = rustix::io::read(&file, &mut text).ok()?;
    std::str::from_utf8(text.get(..len)?).ok()?.trim().parse().ok()
}

/// The kernel's own choice.
const DEFAULT: u32 = 65534;
