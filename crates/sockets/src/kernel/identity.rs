//! Who and where this process is: its users and its namespaces.

use std::{
    os::fd::AsRawFd,
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::net::{AddressFamily, SocketFlags, SocketType};

/// The real, the effective and the saved user.
pub fn users(users: &mut [u32; 3]) {
    let pointers = users.each_mut().map(|user| std::ptr::from_mut(user) as usize);
    let [real, effective, saved] = pointers;
    // K1: three words of the caller's, which live until the call returns.
    let _ = super::plain(libc::SYS_getresuid, [real, effective, saved, 0, 0, 0]);
}

/// Whether this thread opens files as its effective user (`setfsuid`).
pub fn opens_files_as_itself() -> bool {
    // No user has that number: nothing is set, and the present one is returned.
    let now = super::plain(libc::SYS_setfsuid, [u32::MAX as usize, 0, 0, 0, 0, 0]);
    now.is_ok_and(|user| user as u32 == rustix::process::geteuid().as_raw())
}

/// The namespace of this process's numbers, as it was before a change of root.
static PIDS: AtomicU64 = AtomicU64::new(0);

/// The number of this process's namespace of a kind (`ipc`, `pid`); 0 where that cannot be known.
pub fn namespace(kind: &str) -> u64 {
    rustix::fs::stat(format!("/proc/self/ns/{kind}")).map_or(0, |status| status.st_ino)
}

/// The namespace of this process's numbers; 0 where that cannot be known.
pub fn pid_namespace() -> u64 {
    match namespace("pid") {
        0 => PIDS.load(Ordering::Relaxed),
        known => known,
    }
}

/// Before a change of root, after which that cannot be asked any more.
pub fn keep_pid_namespace() {
    PIDS.store(namespace("pid"), Ordering::Relaxed);
}

/// SO_NETNS_COOKIE: the network namespace in which this process makes sockets; 0 where that cannot be known.
pub fn network_namespace() -> u64 {
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    let cookie = |fd| super::option64(fd, libc::SOL_SOCKET, super::SO_NETNS_COOKIE).ok();
    socket.ok().and_then(|socket| cookie(socket.as_raw_fd())).unwrap_or(0)
}
