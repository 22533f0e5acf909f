//! Calls on a stream in a process that has shut itself in, while its peer has not followed the stream back to TCP: only
//! what the program itself asked for is asked of the kernel.

use std::{io::IoSliceMut, slice};

use libc::{c_int, c_void, epoll_event, pollfd, size_t, ssize_t};
use sidestep_sockets::{Errno, calls};

use crate::{errno, transfer::is_nowhere};

/// So much is asked for at a time.
const ROOM: usize = calls::ROOM_ALONE;

/// A receiving call with one buffer: what lies here first, and else `call`, with room for so many bytes.
///
/// # Safety
/// P1.
#[cold]
pub unsafe fn receive(
    fd: c_int,
    buffer: *mut c_void,
    count: size_t,
    flags: c_int,
    mut call: impl FnMut(*mut c_void, size_t) -> ssize_t,
) -> ssize_t {
    let mut total = 0;
    while total < count || count == 0 {
        // SAFETY: within the buffer.
        let at = unsafe { buffer.cast::<u8>().add(total) };
        let len = (count - total).min(ROOM);
        // SAFETY: P1.
        let bytes = unsafe { slice::from_raw_parts_mut(at, len) };
        let got = parts(fd, &mut [IoSliceMut::new(bytes)], flags, || call(at.cast(), len));
        if got <= 0 {
            return if total > 0 { total as ssize_t } else { got };
        }
        total += got as usize;
        if flags & libc::MSG_WAITALL == 0 || flags & libc::MSG_PEEK != 0 {
            break;
        }
    }
    total as ssize_t
}

/// The same with several buffers.
pub fn parts(fd: c_int, parts: &mut [IoSliceMut<'_>], flags: c_int, call: impl FnOnce() -> ssize_t) -> ssize_t {
    let before = errno::get();
    let answer = |outcome: Result<usize, Errno>| match outcome {
        Ok(count) => {
            errno::set(before);
            count as ssize_t
        }
        Err(error) => errno::fail(error.0),
    };
    match calls::receive_alone(fd, parts, flags) {
        Ok(0) => {}
        outcome => return answer(outcome),
    }
    let result = call();
    if result < 0 {
        return result;
    }
    answer(calls::sort_in(fd, parts, result as usize, flags))
}

/// `poll`, by the program's own call. If bytes lie here it is told not to wait.
#[cold]
pub fn poll(list: &mut [pollfd], own: impl FnOnce(&mut [pollfd], bool) -> c_int) -> c_int {
    let is_due = |entry: &pollfd| entry.events & ASKED != 0 && calls::has_bytes_alone(entry.fd);
    let at_once = list.iter().any(is_due);
    let result = own(list, at_once);
    if result < 0 {
        return result;
    }
    for entry in list.iter_mut().filter(|entry| is_due(entry)) {
        entry.revents |= entry.events & ASKED;
    }
    list.iter().filter(|entry| entry.revents != 0).count() as c_int
}

/// `epoll_wait`, by the program's own call with room for so many events. If bytes lie here it is told not to wait, and one
/// place is left for them.
///
/// # Safety
/// P1.
#[cold]
pub unsafe fn wait(
    set: c_int,
    events: *mut epoll_event,
    count: c_int,
    own: impl FnOnce(c_int, bool) -> c_int,
) -> c_int {
    if count <= 0 || is_nowhere(events) || !calls::set_has_bytes_alone(set) {
        return own(count, false);
    }
    let told = if count > 1 { own(count - 1, true) } else { 0 };
    if told < 0 {
        return told;
    }
    // SAFETY: P1.
    let events = unsafe { slice::from_raw_parts_mut(events, count as usize) };
    calls::add_alone(set, events, told as usize) as c_int
}

/// What bytes that have come answer.
const ASKED: i16 = libc::POLLIN | libc::POLLRDNORM;
