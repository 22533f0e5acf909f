//! `connect`, `accept`, `shutdown`: the kernel does it, and the engine learns of it.

use std::ffi::c_int;

use libc::{sockaddr, socklen_t};
use sidestep_sockets::{calls, kernel, signal};

use crate::{engine, errno, real::call};

/// # Safety
/// P1.
pub unsafe fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    // SAFETY: P1.
    let fd = unsafe { call::socket(domain, kind, protocol) };
    made(fd, domain, kind, protocol);
    fd
}

/// The kernel has made a socket.
pub fn made(fd: c_int, domain: c_int, kind: c_int, protocol: c_int) {
    forget_stale(fd);
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    let is_tcp = is_internet(domain) && kind & !flags == libc::SOCK_STREAM && matches!(protocol, 0 | libc::IPPROTO_TCP);
    if fd >= 0 && is_tcp && !signal::is_inside() {
        engine::took(fd, |fd| calls::made(fd, kind & libc::SOCK_NONBLOCK != 0));
    }
}

/// # Safety
/// P1.
pub unsafe fn connect(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: P1.
    let family = unsafe { family(address, len) };
    let ours = engine::has(fd);
    let dissolves = family == libc::AF_UNSPEC;
    if ours && dissolves {
        engine::leave(fd);
    }
    // SAFETY: P1.
    let result = unsafe { call::connect(fd, address, len) };
    if signal::is_inside() {
        return result;
    }
    if ours && dissolves {
        if result == 0 {
            engine::tell(|| calls::dissolved(fd));
        }
        return result;
    }
    // After EINTR the kernel goes on connecting.
    let under_way = result == 0 || matches!(errno::get(), libc::EINPROGRESS | libc::EINTR);
    if under_way && is_internet(family) {
        engine::took(fd, calls::connected);
    }
    result
}

/// # Safety
/// P1.
pub unsafe fn accept(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: P1.
    let new = unsafe { call::accept(fd, address, len) };
    // SAFETY: P1.
    unsafe { accepted(fd, new, address, len, 0) }
}

/// # Safety
/// P1.
pub unsafe fn accept4(fd: c_int, address: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int {
    // SAFETY: P1.
    let new = unsafe { call::accept4(fd, address, len, flags) };
    // SAFETY: P1.
    unsafe { accepted(fd, new, address, len, flags) }
}

/// # Safety
/// P1.
pub unsafe fn shutdown(fd: c_int, how: c_int) -> c_int {
    if !engine::has(fd) {
        // SAFETY: P1.
        return unsafe { call::shutdown(fd, how) };
    }
    engine::ask_unit(|| calls::shutdown(fd, how))
}

/// `listener` has given `new`. Flags as for `accept4`.
///
/// # Safety
/// P1; `address` was filled in by the kernel.
pub unsafe fn accepted(
    listener: c_int,
    new: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> c_int {
    if new < 0 || signal::is_inside() {
        return new;
    }
    forget_stale(new);
    // SAFETY: P1; the kernel has checked the pointers.
    let known = if address.is_null() || len.is_null() { 0 } else { unsafe { *len } };
    // SAFETY: P1.
    let family = unsafe { family(address, known) };
    if family == libc::AF_UNSPEC || is_internet(family) {
        // What a socket of TCP accepts is one.
        let is_tcp = |fd| calls::owns(listener) || kernel::is_tcp(fd);
        engine::took(new, |new| {
            if is_tcp(new) {
                calls::accepted(new, flags & libc::SOCK_NONBLOCK != 0);
            }
        });
    }
    new
}

/// A number that the kernel has just given out was closed if the engine still has it.
pub fn forget_stale(fd: c_int) {
    if fd >= 0 && engine::has_any(fd) {
        engine::lost(fd);
    }
}

/// The family of an address; AF_UNSPEC if there is none, or -1 if it is too short to tell.
///
/// # Safety
/// P1.
unsafe fn family(address: *const sockaddr, len: socklen_t) -> c_int {
    if address.is_null() {
        return if len == 0 { libc::AF_UNSPEC } else { -1 };
    }
    if (len as usize) < size_of::<libc::sa_family_t>() {
        return if len == 0 { libc::AF_UNSPEC } else { -1 };
    }
    // SAFETY: P1: as long as `len` says. It need not be aligned.
    let family = unsafe { address.cast::<libc::sa_family_t>().read_unaligned() };
    c_int::from(family)
}

fn is_internet(family: c_int) -> bool {
    family == libc::AF_INET || family == libc::AF_INET6
}
