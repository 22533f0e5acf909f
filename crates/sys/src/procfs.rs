//! `/proc`, kept open by a process that is about to change its root: own descriptors are opened again through it.

use std::{
    os::fd::{AsFd, AsRawFd, OwnedFd},
    sync::OnceLock,
};

use rustix::{
    fs::{CWD, Mode, OFlags, openat, readlinkat},
    io::Result,
};

use crate::descriptor;

static KEPT: OnceLock<OwnedFd> = OnceLock::new();

/// Keeps it, for this process and its children.
pub fn keep() {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if KEPT.get().is_none()
        && let Ok(folder) = openat(CWD, "/proc", flags, Mode::empty())
    {
        let _ = KEPT.set(descriptor::keep(folder));
    }
}

/// Whether this descriptor is the kept one, which children need as well.
pub fn is_kept(fd: i32) -> bool {
    KEPT.get().is_some_and(|kept| kept.as_raw_fd() == fd)
}

/// Whether a descriptor is an anonymous pipe. The file itself is not asked: its file system may be a process.
pub fn is_pipe(descriptor: impl AsFd) -> bool {
    let name = format!("self/fd/{}", descriptor.as_fd().as_raw_fd());
    let target = match KEPT.get() {
        Some(kept) => readlinkat(kept, name, Vec::new()),
        None => readlinkat(CWD, format!("/proc/{name}"), Vec::new()),
    };
    target.is_ok_and(|target| target.to_bytes().starts_with(b"pipe:["))
}

/// Opens a descriptor of this process once more.
pub fn open_again(descriptor: impl AsFd, flags: OFlags) -> Result<OwnedFd> {
    let number = descriptor.as_fd().as_raw_fd();
    match KEPT.get() {
        // `self` is whoever asks, also in a child.
        Some(kept) => openat(kept, format!("self/fd/{number}"), flags, Mode::empty()),
        None => openat(CWD, format!("/proc/self/fd/{number}"), flags, Mode::empty()),
    }
}
