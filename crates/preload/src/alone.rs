//! Calls on a stream in a process that has shut itself in, while its peer has not followed the stream back to TCP: only
//! what the program itself asked for is asked of the kernel.

use std::{io::IoSliceMut, slice};

use libc::{c_int, c_void, size_t, ssize_t};
use sidestep_sockets::{Errno, calls};

use crate::errno;

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
