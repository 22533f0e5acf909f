//! `read`, `write` and their kin: one buffer or several, no message header.

use std::{
    ffi::{c_int, c_void},
    io::{IoSlice, IoSliceMut},
    slice,
};

use libc::{iovec, off_t, size_t, sockaddr, socklen_t, ssize_t};
use sidestep_sockets::calls;

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
    if !engine::has(fd) {
        // SAFETY: P1.
        return unsafe { call::read(fd, buffer, count) };
    }
    let own = |at: *mut c_void, len: size_t| {
        // SAFETY: P1.
        unsafe { call::read(fd, at, len) }
    };
    // SAFETY: P1.
    unsafe { read_stream(fd, buffer, count, own) }
}

/// # Safety
/// P1.
pub unsafe fn read_chk(fd: c_int, buffer: *mut c_void, count: size_t, room: size_t) -> ssize_t {
    if count > room || !engine::has(fd) {
        // SAFETY: P1.
        return unsafe { call::__read_chk(fd, buffer, count, room) };
    }
    // SAFETY: P1.
    unsafe { read(fd, buffer, count) }
}

/// # Safety
/// P1.
#[inline]
pub unsafe fn write(fd: c_int, buffer: *const c_void, count: size_t) -> ssize_t {
    if !engine::has(fd) {
        // SAFETY: P1.
        return unsafe { call::write(fd, buffer, count) };
    }
    // SAFETY: P1.
    unsafe { transmit(fd, buffer, count, 0, || call::write(fd, buffer, count)) }
}

/// # Safety
/// P1.
pub unsafe fn readv(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    if !engine::has(fd) || !fits(parts, count) {
        // SAFETY: P1. The kernel finds the error in what does not fit.
        return unsafe { call::readv(fd, parts, count) };
    }
    // SAFETY: P1.
    if unsafe { are_empty(parts, count) } {
        return 0;
    }
    // SAFETY: P1.
    unsafe { receive_parts(fd, parts, count as usize, 0, || call::readv(fd, parts, count)) }
}

/// # Safety
/// P1.
pub unsafe fn writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    if !engine::has(fd) || !fits(parts, count) {
        // SAFETY: P1. The kernel finds the error in what does not fit.
        return unsafe { call::writev(fd, parts, count) };
    }
    // SAFETY: P1.
    unsafe { transmit_parts(fd, parts, count as usize, 0, || call::writev(fd, parts, count)) }
}

/// # Safety
/// P1.
pub unsafe fn preadv2(fd: c_int, parts: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t {
    if engine::has(fd) && offset == -1 {
        if flags == 0 {
            // SAFETY: P1.
            return unsafe { readv(fd, parts, count) };
        }
        engine::leave(fd);
    }
    // SAFETY: P1.
    unsafe { call::preadv2(fd, parts, count, offset, flags) }
}

/// # Safety
/// P1.
pub unsafe fn pwritev2(fd: c_int, parts: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t {
    if engine::has(fd) && offset == -1 {
        if flags == 0 {
            // SAFETY: P1.
            return unsafe { writev(fd, parts, count) };
        }
        engine::leave(fd);
    }
    // SAFETY: P1.
    unsafe { call::pwritev2(fd, parts, count, offset, flags) }
}

/// # Safety
/// P1.
#[inline]
pub unsafe fn recv(fd: c_int, buffer: *mut c_void, count: size_t, flags: c_int) -> ssize_t {
    if !engine::has(fd) || !can_receive(fd, flags) {
        // SAFETY: P1.
        return unsafe { call::recv(fd, buffer, count, flags) };
    }
    // SAFETY: P1.
    unsafe { receive(fd, buffer, count, flags, |at, len| call::recv(fd, at, len, flags)) }
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
    if !engine::has(fd) || !can_send(fd, flags) {
        // SAFETY: P1.
        return unsafe { call::send(fd, buffer, count, flags) };
    }
    // SAFETY: P1.
    unsafe { transmit(fd, buffer, count, flags, || call::send(fd, buffer, count, flags)) }
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
    if !engine::has(fd) || !can_receive(fd, flags) {
        // SAFETY: P1.
        return unsafe { call::recvfrom(fd, buffer, count, flags, address, len) };
    }
    // SAFETY: P1.
    let received = unsafe { receive(fd, buffer, count, flags, |at, len| call::recv(fd, at, len, flags)) };
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
    if !engine::has(fd) || !can_send(fd, flags) {
        // SAFETY: P1.
        return unsafe { call::sendto(fd, buffer, count, flags, address, len) };
    }
    if !address.is_null() && len as usize > size_of::<libc::sockaddr_storage>() {
        return errno::fail(libc::EINVAL);
    }
    // SAFETY: P1.
    unsafe { transmit(fd, buffer, count, flags, || call::send(fd, buffer, count, flags)) }
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
    fd: c_int,
    buffer: *mut c_void,
    count: size_t,
    own: impl FnMut(*mut c_void, size_t) -> ssize_t,
) -> ssize_t {
    if count == 0 {
        return 0;
    }
    // SAFETY: P1.
    unsafe { receive(fd, buffer, count, 0, own) }
}

/// # Safety
/// P1, and [`fits`].
unsafe fn are_empty(parts: *const iovec, count: c_int) -> bool {
    // SAFETY: P1.
    count == 0 || unsafe { slice::from_raw_parts(parts, count as usize) }.iter().all(|part| part.iov_len == 0)
}

/// Receives into one buffer. `own` is the program's own call, for a process that makes no other.
///
/// # Safety
/// P1.
#[inline]
unsafe fn receive(
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
    engine::ask(|| calls::receive(fd, &mut [IoSliceMut::new(bytes)], flags))
}

/// Receives without a buffer: nothing, or bytes to be thrown away.
#[cold]
fn receive_nowhere(fd: c_int, count: usize, flags: c_int) -> ssize_t {
    if count > 0 && flags & libc::MSG_TRUNC == 0 {
        return errno::fail(libc::EFAULT);
    }
    let mut scratch = [0; SCRATCH];
    let bytes = &mut scratch[..count.min(SCRATCH)];
    engine::ask(|| calls::receive(fd, &mut [IoSliceMut::new(bytes)], flags))
}

/// Sends one buffer. `own` is the program's own call, for a process that makes no other.
///
/// # Safety
/// P1.
#[inline]
unsafe fn transmit(
    fd: c_int,
    buffer: *const c_void,
    count: size_t,
    flags: c_int,
    own: impl FnOnce() -> ssize_t,
) -> ssize_t {
    if engine::is_shut_in() {
        return own();
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
    signals::broken_pipe(flags, || engine::ask(|| calls::send(fd, &[IoSlice::new(bytes)], flags | libc::MSG_NOSIGNAL)))
}

/// Receives into several buffers.
///
/// # Safety
/// P1, and `parts` has `count` entries that [`fits`] has seen.
pub unsafe fn receive_parts(
    fd: c_int,
    parts: *const iovec,
    count: usize,
    flags: c_int,
    own: impl FnOnce() -> ssize_t,
) -> ssize_t {
    // SAFETY: as for this function.
    unsafe { with_parts(parts, count, |parts| receive_from(fd, parts, flags, own)) }
}

/// Sends several buffers.
///
/// # Safety
/// P1, and `parts` has `count` entries that [`fits`] has seen.
pub unsafe fn transmit_parts(
    fd: c_int,
    parts: *const iovec,
    count: usize,
    flags: c_int,
    own: impl FnOnce() -> ssize_t,
) -> ssize_t {
    if engine::is_shut_in() {
        return own();
    }
    // SAFETY: as for this function.
    unsafe { with_parts(parts, count, |parts| transmit_to(fd, parts, flags)) }
}

/// Parts that are valid and not null, by [`with_parts`].
fn receive_from(fd: c_int, parts: &[iovec], flags: c_int, own: impl FnOnce() -> ssize_t) -> ssize_t {
    // SAFETY: an `IoSliceMut` has the layout of an `iovec`. The engine does not change the list, which may be the program's.
    let parts = unsafe { slice::from_raw_parts_mut(parts.as_ptr().cast_mut().cast::<IoSliceMut<'_>>(), parts.len()) };
    if engine::is_shut_in() {
        return alone::parts(fd, parts, flags, own);
    }
    engine::ask(|| calls::receive(fd, parts, flags))
}

/// Parts that are valid and not null, by [`with_parts`].
fn transmit_to(fd: c_int, parts: &[iovec], flags: c_int) -> ssize_t {
    // SAFETY: an `IoSlice` has the layout of an `iovec`.
    let parts = unsafe { slice::from_raw_parts(parts.as_ptr().cast::<IoSlice<'_>>(), parts.len()) };
    signals::broken_pipe(flags, || engine::ask(|| calls::send(fd, parts, flags | libc::MSG_NOSIGNAL)))
}

/// Whether nothing can be at an address: null, or so near to it that it comes of a null pointer. The kernel answers with
/// EFAULT; anything else that is wrong is only found by touching it.
#[inline]
pub fn is_nowhere<T>(pointer: *const T) -> bool {
    (pointer as usize) < PAGE
}

/// Whether the kernel would take a list of buffers.
pub fn fits(parts: *const iovec, count: c_int) -> bool {
    if count == 0 {
        return true;
    }
    if is_nowhere(parts) || !(0..=MANY as c_int).contains(&count) {
        return false;
    }
    // SAFETY: P1: the list has as many entries as the program says.
    let parts = unsafe { slice::from_raw_parts(parts, count as usize) };
    parts.iter().all(|part| part.iov_len <= isize::MAX as usize)
}

/// Hands on the list itself, or a copy of it that is within bounds and has an address in every part.
///
/// # Safety
/// P1, and [`fits`].
#[inline]
unsafe fn with_parts(parts: *const iovec, count: usize, then: impl FnOnce(&[iovec]) -> ssize_t) -> ssize_t {
    if count == 0 {
        return then(&[]);
    }
    // SAFETY: P1.
    let parts = unsafe { slice::from_raw_parts(parts, count) };
    let mut sum = 0usize;
    let plain = parts.iter().all(|part| {
        sum = sum.saturating_add(part.iov_len);
        !is_nowhere(part.iov_base) && sum <= LIMIT
    });
    if plain { then(parts) } else { with_copy(parts, then) }
}

#[cold]
fn with_copy(parts: &[iovec], then: impl FnOnce(&[iovec]) -> ssize_t) -> ssize_t {
    let mut room = [EMPTY; MANY];
    let mut left = LIMIT;
    for (copy, part) in room.iter_mut().zip(parts) {
        if !is_nowhere(part.iov_base) {
            let len = part.iov_len.min(left);
            *copy = iovec { iov_base: part.iov_base, iov_len: len };
            left -= len;
        } else if part.iov_len > 0 {
            return errno::fail(libc::EFAULT);
        }
    }
    then(&room[..parts.len()])
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

const EMPTY: iovec = iovec { iov_base: std::ptr::NonNull::<c_void>::dangling().as_ptr(), iov_len: 0 };

/// How many buffers the kernel takes in one call.
const MANY: usize = libc::UIO_MAXIOV as usize;

/// No system maps the first page.
const PAGE: usize = 4096;

/// How many bytes are thrown away in one call.
const SCRATCH: usize = 16 << 10;

/// How many bytes the kernel takes in one call.
const LIMIT: usize = 0x7fff_f000;
