//! `readv`, `writev` and their kin: several buffers. Messages with a header come here, too.

use std::{
    ffi::{c_int, c_void},
    io::{IoSlice, IoSliceMut},
    slice,
};

use libc::{iovec, off_t, ssize_t};
use sidestep_sockets::calls;

use crate::{
    alone, engine, errno,
    real::call,
    signals,
    transfer::{LIMIT, is_nowhere},
};

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
    let own = || unsafe { call::readv(fd, parts, count) };
    // SAFETY: P1.
    unsafe { receive_parts(fd, parts, count as usize, 0, own) }
}

/// # Safety
/// P1.
pub unsafe fn writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    if !engine::has(fd) || !fits(parts, count) {
        // SAFETY: P1. The kernel finds the error in what does not fit.
        return unsafe { call::writev(fd, parts, count) };
    }
    // SAFETY: P1.
    let own = || unsafe { call::writev(fd, parts, count) };
    // SAFETY: P1.
    unsafe { transmit_parts(fd, parts, count as usize, 0, own) }
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
/// P1, and [`fits`].
unsafe fn are_empty(parts: *const iovec, count: c_int) -> bool {
    // SAFETY: P1.
    count == 0 || unsafe { slice::from_raw_parts(parts, count as usize) }.iter().all(|part| part.iov_len == 0)
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

const EMPTY: iovec = iovec { iov_base: std::ptr::NonNull::<c_void>::dangling().as_ptr(), iov_len: 0 };

/// How many buffers the kernel takes in one call.
const MANY: usize = libc::UIO_MAXIOV as usize;
