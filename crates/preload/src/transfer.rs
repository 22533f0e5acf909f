//! `read`, `write` and their kin: one buffer, no message header.

use std::{
    ffi::{c_int, c_void},
    io::{IoSlice, IoSliceMut},
    slice,
};

use libc::{size_t, sockaddr, socklen_t, ssize_t};
use sidestep_sockets::{
    Errno,
    calls::{self, Found},
};

use crate::{alone, engine, errno, real::call, signals};

/// Flags with which the engine receives. MSG_NOSIGNAL and MSG_CMSG_CLOEXEC mean nothing to a receiver of bytes.
pub const RECEIVES: c_int = libc::MSG_PEEK
    | libc::MSG_WAITALL
    | libc::MSG_DONTWAIT
    | libc::MSG_TRUNC
    | libc::MSG_NOSIGNAL
    | libc::MSG_CMSG_CLOEXEC;

/// Flags with which the engine sends. MSG_EOR, CONFIRM and DONTROUTE mean nothing to a stream of bytes.
pub const SENDS: c_int =
    libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | libc::MSG_MORE | libc::MSG_EOR | libc::MSG_CONFIRM | libc::MSG_DONTROUTE;

/// # Safety
/// P1.
#[inline]
pub unsafe fn read(fd: c_int, buffer: *mut c_void, count: size_t) -> ssize_t {
    let Some(found) = engine::find(fd) else {
        // SAFETY: P1.
        return engine::received(fd, 0, unsafe { call::read(fd, buffer, count) });
    };
    // SAFETY: P1.
    let own = |at: *mut c_void, len: size_t| unsafe { call::read(fd, at, len) };
    // SAFETY: P1.
    let result = unsafe { read_stream(found, fd, buffer, count, own) };
    if result < 0 && engine::is_lost(fd) {
        // SAFETY: P1.
        return unsafe { call::read(fd, buffer, count) };
    }
    result
}

/// # Safety
/// P1.
pub unsafe fn read_chk(fd: c_int, buffer: *mut c_void, count: size_t, room: size_t) -> ssize_t {
    if count > room || !engine::has(fd) {
        // SAFETY: P1.
        return engine::received(fd, 0, unsafe { call::__read_chk(fd, buffer, count, room) });
    }
    // SAFETY: P1.
    unsafe { read(fd, buffer, count) }
}

/// # Safety
/// P1.
#[inline]
pub unsafe fn write(fd: c_int, buffer: *const c_void, count: size_t) -> ssize_t {
    let Some(found) = engine::find(fd) else {
        // SAFETY: P1.
        return engine::sent(fd, unsafe { call::write(fd, buffer, count) });
    };
    // SAFETY: P1.
    let own = || unsafe { call::write(fd, buffer, count) };
    // SAFETY: P1.
    let result = unsafe { transmit(found, fd, buffer, count, 0, own) };
    if result < 0 && engine::is_lost(fd) {
        // SAFETY: P1.
        return unsafe { call::write(fd, buffer, count) };
    }
    result
}

/// # Safety
/// P1.
#[inline]
pub unsafe fn recv(fd: c_int, buffer: *mut c_void, count: size_t, flags: c_int) -> ssize_t {
    let Some(found) = engine::find(fd).filter(|_| can_receive(fd, flags)) else {
        // SAFETY: P1.
        return engine::received(fd, flags, unsafe { call::recv(fd, buffer, count, flags) });
    };
    // SAFETY: P1.
    let own = |at: *mut c_void, len: size_t| unsafe { call::recv(fd, at, len, flags) };
    // SAFETY: P1.
    unsafe { receive(found, fd, buffer, count, flags, own) }
}

/// # Safety
/// P1.
pub unsafe fn recv_chk(fd: c_int, buffer: *mut c_void, count: size_t, room: size_t, flags: c_int) -> ssize_t {
    if count > room || !engine::has(fd) || !can_receive(fd, flags) {
        // SAFETY: P1.
        return unsafe { call::__recv_chk(fd, buffer, count, room, flags) };
    }
    // SAFETY: P1.
    unsafe { recv(fd, buffer, count, flags) }
}

/// # Safety
/// P1.
#[inline]
pub unsafe fn send(fd: c_int, buffer: *const c_void, count: size_t, flags: c_int) -> ssize_t {
    let Some(found) = engine::find(fd).filter(|_| can_send(fd, flags)) else {
        // SAFETY: P1.
        return engine::sent(fd, unsafe { call::send(fd, buffer, count, flags) });
    };
    // SAFETY: P1.
    let own = || unsafe { call::send(fd, buffer, count, flags) };
    // SAFETY: P1.
    unsafe { transmit(found, fd, buffer, count, flags, own) }
}

/// # Safety
/// P1.
pub unsafe fn recvfrom(
    fd: c_int,
    buffer: *mut c_void,
    count: size_t,
    flags: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
) -> ssize_t {
    let Some(found) = engine::find(fd).filter(|_| can_receive(fd, flags)) else {
        // SAFETY: P1.
        return unsafe { call::recvfrom(fd, buffer, count, flags, address, len) };
    };
    // SAFETY: P1.
    let own = |at: *mut c_void, len: size_t| unsafe { call::recv(fd, at, len, flags) };
    // SAFETY: P1.
    let received = unsafe { receive(found, fd, buffer, count, flags, own) };
    // SAFETY: P1.
    unsafe { no_address(received, address, len) }
}

/// # Safety
/// P1.
#[allow(clippy::too_many_arguments)]
pub unsafe fn recvfrom_chk(
    fd: c_int,
    buffer: *mut c_void,
    count: size_t,
    room: size_t,
    flags: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
) -> ssize_t {
    if count > room {
        // SAFETY: P1. It does not return.
        return unsafe { call::__recvfrom_chk(fd, buffer, count, room, flags, address, len) };
    }
    // SAFETY: P1.
    unsafe { recvfrom(fd, buffer, count, flags, address, len) }
}

/// # Safety
/// P1.
pub unsafe fn sendto(
    fd: c_int,
    buffer: *const c_void,
    count: size_t,
    flags: c_int,
    address: *const sockaddr,
    len: socklen_t,
) -> ssize_t {
    let Some(found) = engine::find(fd).filter(|_| can_send(fd, flags)) else {
        // SAFETY: P1.
        return unsafe { call::sendto(fd, buffer, count, flags, address, len) };
    };
    if !address.is_null() && len as usize > size_of::<libc::sockaddr_storage>() {
        return errno::fail(libc::EINVAL);
    }
    // SAFETY: P1.
    let own = || unsafe { call::send(fd, buffer, count, flags) };
    // SAFETY: P1.
    unsafe { transmit(found, fd, buffer, count, flags, own) }
}

/// Whether the engine can receive with these flags; if not, the kernel can.
#[inline]
pub fn can_receive(fd: c_int, flags: c_int) -> bool {
    if flags & !RECEIVES == 0 {
        return true;
    }
    // The queue of errors is the kernel's in any case.
    if flags & libc::MSG_ERRQUEUE == 0 {
        engine::leave(fd);
    }
    false
}

/// Whether the engine can send with these flags; if not, the kernel can.
#[inline]
pub fn can_send(fd: c_int, flags: c_int) -> bool {
    if flags & !SENDS == 0 {
        return true;
    }
    engine::leave(fd);
    false
}

/// `read` of nothing returns at once, unlike `recv`.
///
/// # Safety
/// P1.
#[inline]
unsafe fn read_stream(
    found: Found,
    fd: c_int,
    buffer: *mut c_void,
    count: size_t,
    own: impl FnMut(*mut c_void, size_t) -> ssize_t,
) -> ssize_t {
    if count == 0 {
        return 0;
    }
    // SAFETY: P1.
    unsafe { receive(found, fd, buffer, count, 0, own) }
}

/// Receives into one buffer. `own` is the program's own call, for a process that makes no other.
///
/// # Safety
/// P1.
#[inline]
unsafe fn receive(
    found: Found,
    fd: c_int,
    buffer: *mut c_void,
    count: size_t,
    flags: c_int,
    own: impl FnMut(*mut c_void, size_t) -> ssize_t,
) -> ssize_t {
    let count = count.min(LIMIT);
    if is_nowhere(buffer) {
        return receive_nowhere(fd, count, flags);
    }
    if engine::is_shut_in() {
        // SAFETY: P1.
        return unsafe { alone::receive(fd, buffer, count, flags, own) };
    }
    // SAFETY: P1.
    let bytes = unsafe { slice::from_raw_parts_mut(buffer.cast::<u8>(), count) };
    let mut found = Some(found);
    // A call that begins again finds its stream anew: a handler may have closed the descriptor.
    engine::ask(|| {
        let found = found.take().or_else(|| calls::find(fd));
        calls::receive_from(found, fd, &mut [IoSliceMut::new(bytes)], flags)
    })
}

/// Receives without a buffer: nothing, or bytes to be thrown away.
#[cold]
fn receive_nowhere(fd: c_int, count: usize, flags: c_int) -> ssize_t {
    if count > 0 && flags & libc::MSG_TRUNC == 0 {
        return errno::fail(libc::EFAULT);
    }
    engine::ask(|| {
        let mut scratch = Vec::new();
        scratch.try_reserve_exact(count.min(SCRATCH)).map_err(|_| Errno(libc::ENOMEM))?;
        scratch.resize(count.min(SCRATCH), 0);
        calls::receive(fd, &mut [IoSliceMut::new(&mut scratch)], flags)
    })
}

/// Sends one buffer. `own` is the program's own call, for a process that makes no other.
///
/// # Safety
/// P1.
#[inline]
unsafe fn transmit(
    found: Found,
    fd: c_int,
    buffer: *const c_void,
    count: size_t,
    flags: c_int,
    own: impl FnOnce() -> ssize_t,
) -> ssize_t {
    if engine::is_shut_in() {
        return engine::sent(fd, own());
    }
    let count = count.min(LIMIT);
    let nowhere = is_nowhere(buffer);
    if nowhere && count > 0 {
        return errno::fail(libc::EFAULT);
    }
    let bytes = match nowhere {
        true => &[],
        // SAFETY: P1.
        false => unsafe { slice::from_raw_parts(buffer.cast::<u8>(), count) },
    };
    let mut found = Some(found);
    let result = engine::ask(|| {
        let found = found.take().or_else(|| calls::find(fd));
        calls::send_to(found, fd, &[IoSlice::new(bytes)], flags | libc::MSG_NOSIGNAL)
    });
    if result < 0 {
        signals::tell_broken_pipe(flags);
    }
    result
}

/// Whether nothing can be at an address: null, or so near to it that it comes of a null pointer. The kernel answers with
/// EFAULT; anything else that is wrong is only found by touching it.
#[inline]
pub fn is_nowhere<T>(pointer: *const T) -> bool {
    (pointer as usize) < PAGE
}

/// What TCP says of the sender's address: nothing.
///
/// # Safety
/// P1.
unsafe fn no_address(received: ssize_t, address: *mut sockaddr, len: *mut socklen_t) -> ssize_t {
    if received >= 0 && !address.is_null() {
        if len.is_null() {
            return errno::fail(libc::EFAULT);
        }
        // SAFETY: P1.
        unsafe { len.write(0) };
    }
    received
}

/// No system maps the first page.
const PAGE: usize = 4096;

/// How many bytes are thrown away in one call.
const SCRATCH: usize = 64 << 10;

/// How many bytes the kernel takes in one call.
pub const LIMIT: usize = 0x7fff_f000;
