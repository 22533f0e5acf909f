//! Calls after which the engine could no longer reach what it needs: streams leave before, or it is opened before.

use std::ffi::{c_char, c_int};

use libc::{gid_t, uid_t};

use crate::{engine, real::call};

/// # Safety
/// P1.
pub unsafe fn setuid(user: uid_t) -> c_int {
    let changes = before_user(&[user]);
    // SAFETY: P1.
    after(changes, unsafe { call::setuid(user) })
}

/// # Safety
/// P1.
pub unsafe fn seteuid(user: uid_t) -> c_int {
    let changes = before_user(&[user]);
    // SAFETY: P1.
    after(changes, unsafe { call::seteuid(user) })
}

/// # Safety
/// P1.
pub unsafe fn setreuid(real: uid_t, effective: uid_t) -> c_int {
    let changes = before_user(&[real, effective]);
    // SAFETY: P1.
    after(changes, unsafe { call::setreuid(real, effective) })
}

/// # Safety
/// P1.
pub unsafe fn setresuid(real: uid_t, effective: uid_t, saved: uid_t) -> c_int {
    let changes = before_user(&[real, effective, saved]);
    // SAFETY: P1.
    after(changes, unsafe { call::setresuid(real, effective, saved) })
}

/// # Safety
/// P1.
pub unsafe fn setfsuid(user: uid_t) -> c_int {
    // SAFETY: P1.
    unsafe { call::setfsuid(user) }
}

/// # Safety
/// P1.
pub unsafe fn setgid(group: gid_t) -> c_int {
    let changes = before_group(&[group]);
    // SAFETY: P1.
    after(changes, unsafe { call::setgid(group) })
}

/// # Safety
/// P1.
pub unsafe fn setegid(group: gid_t) -> c_int {
    let changes = before_group(&[group]);
    // SAFETY: P1.
    after(changes, unsafe { call::setegid(group) })
}

/// # Safety
/// P1.
pub unsafe fn setregid(real: gid_t, effective: gid_t) -> c_int {
    let changes = before_group(&[real, effective]);
    // SAFETY: P1.
    after(changes, unsafe { call::setregid(real, effective) })
}

/// # Safety
/// P1.
pub unsafe fn setresgid(real: gid_t, effective: gid_t, saved: gid_t) -> c_int {
    let changes = before_group(&[real, effective, saved]);
    // SAFETY: P1.
    after(changes, unsafe { call::setresgid(real, effective, saved) })
}

/// # Safety
/// P1.
pub unsafe fn setfsgid(group: gid_t) -> c_int {
    // SAFETY: P1.
    unsafe { call::setfsgid(group) }
}

/// # Safety
/// P1.
pub unsafe fn setgroups(count: usize, groups: *const gid_t) -> c_int {
    engine::change_user();
    // SAFETY: P1.
    after(true, unsafe { call::setgroups(count, groups) })
}

/// # Safety
/// P1.
pub unsafe fn initgroups(user: *const c_char, group: gid_t) -> c_int {
    engine::change_user();
    // SAFETY: P1.
    after(true, unsafe { call::initgroups(user, group) })
}

/// # Safety
/// P1.
pub unsafe fn chroot(path: *const c_char) -> c_int {
    engine::keep_registry();
    // SAFETY: P1.
    unsafe { call::chroot(path) }
}

/// # Safety
/// P1.
pub unsafe fn unshare(flags: c_int) -> c_int {
    before_unshare(flags);
    // SAFETY: P1.
    unsafe { call::unshare(flags) }
}

/// # Safety
/// P1.
pub unsafe fn setns(fd: c_int, kind: c_int) -> c_int {
    leave();
    // SAFETY: P1.
    unsafe { call::setns(fd, kind) }
}

/// # Safety
/// P1, P3.
pub unsafe fn prctl(option: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int {
    before_prctl(option);
    // SAFETY: P1, P3.
    unsafe { call::prctl(option, a, b, c, d) }
}

/// Before anything that puts the process elsewhere.
pub fn leave() {
    engine::move_away();
}

/// Before system calls are taken from the process.
pub fn shut_in() {
    engine::shut_in();
}

pub fn before_unshare(flags: c_int) {
    if flags & PARTED != 0 {
        leave();
    }
}

pub fn before_prctl(option: c_int) {
    if option == libc::PR_SET_SECCOMP {
        shut_in();
    }
}

/// Before a change of user; `uid_t::MAX` stands for "as it is". `true`: it changes something.
pub fn before_user(wanted: &[uid_t]) -> bool {
    let mut now = [0; 3];
    let [real, effective, saved] = &mut now;
    // SAFETY: three variables of our own.
    let known = unsafe { libc::getresuid(real, effective, saved) } == 0;
    let changes = !known || changes(wanted, &now);
    if changes {
        engine::change_user();
    }
    changes
}

/// Before a change of group; `gid_t::MAX` stands for "as it is". `true`: it changes something.
pub fn before_group(wanted: &[gid_t]) -> bool {
    let mut now = [0; 3];
    let [real, effective, saved] = &mut now;
    // SAFETY: three variables of our own.
    let known = unsafe { libc::getresgid(real, effective, saved) } == 0;
    let changes = !known || changes(wanted, &now);
    if changes {
        engine::change_user();
    }
    changes
}

/// After a change, with what the call has returned.
fn after(changes: bool, outcome: c_int) -> c_int {
    if changes {
        engine::changed_user();
    }
    outcome
}

fn changes(wanted: &[u32], now: &[u32; 3]) -> bool {
    wanted.iter().filter(|id| **id != u32::MAX).any(|id| now.iter().any(|other| id != other))
}

/// Namespaces in which the registry, the peers or the descriptors would be others.
const PARTED: c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWIPC
    | libc::CLONE_FILES;
