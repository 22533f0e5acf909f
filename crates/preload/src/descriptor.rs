//! Numbers of descriptors: `close`, `dup`, `fcntl`, `ioctl`.

use std::ffi::{c_int, c_uint};

use sidestep_sockets::{calls, kernel::Errno, signal};

use crate::{engine, errno, extended::table as extended, real::call};

/// # Safety
/// P4.
pub unsafe fn close(fd: c_int) -> c_int {
    extended::closed(fd);
    if engine::has_any(fd) {
        if !engine::is_shut_in() {
            return engine::ask_unit(|| calls::close(fd));
        }
        engine::tell(|| calls::abandon(fd));
    }
    if calls::is_internal(fd) && !crate::child::runs() {
        if !signal::is_inside() {
            return errno::fail(libc::EBADF) as c_int;
        }
        calls::internal_closed(fd);
    }
    // SAFETY: P4.
    unsafe { call::close(fd) }
}

/// # Safety
/// P4.
pub unsafe fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    let known = libc::CLOSE_RANGE_UNSHARE as c_int;
    if signal::is_inside() || first > last || flags & !known != 0 {
        // SAFETY: P4.
        return unsafe { call::close_range(first, last, flags) };
    }
    if flags & known != 0 {
        // SAFETY: has no pointer.
        let result = unsafe { call::unshare(libc::CLONE_FILES) };
        if result != 0 {
            return result;
        }
    }
    let before = errno::get();
    extended::closed_range(first, last);
    match calls::close_range(first, last) {
        Ok(()) => {
            errno::set(before);
            0
        }
        // SAFETY: P4.
        Err(Errno(libc::ENOSYS)) => unsafe { call::close_range(first, last, 0) },
        Err(error) => errno::fail(error.0) as c_int,
    }
}

/// # Safety
/// P4.
pub unsafe fn closefrom(first: c_int) {
    let before = errno::get();
    extended::closed_range(first.max(0) as c_uint, c_uint::MAX);
    if !signal::is_inside() && calls::close_range(first.max(0) as c_uint, c_uint::MAX).is_ok() {
        errno::set(before);
        return;
    }
    // SAFETY: P4.
    unsafe { call::closefrom(first) }
}

/// # Safety
/// P4.
pub unsafe fn dup(fd: c_int) -> c_int {
    // SAFETY: P4.
    let new = unsafe { call::dup(fd) };
    duplicated(fd, new)
}

/// # Safety
/// P4.
pub unsafe fn dup2(old: c_int, new: c_int) -> c_int {
    if old == new || signal::is_inside() {
        note_for_child(old, new);
        // SAFETY: P4.
        return unsafe { call::dup2(old, new) };
    }
    match prepare(old, new) {
        Ok(()) => {}
        Err(error) => return errno::fail(error.0) as c_int,
    }
    // SAFETY: P4.
    let result = unsafe { call::dup2(old, new) };
    duplicated(old, result)
}

/// # Safety
/// P4.
pub unsafe fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    if old == new || flags & !libc::O_CLOEXEC != 0 || signal::is_inside() {
        note_for_child(old, new);
        // SAFETY: P4.
        return unsafe { call::dup3(old, new, flags) };
    }
    match prepare(old, new) {
        Ok(()) => {}
        Err(error) => return errno::fail(error.0) as c_int,
    }
    // SAFETY: P4.
    let result = unsafe { call::dup3(old, new, flags) };
    duplicated(old, result)
}

/// # Safety
/// P1, P3.
pub unsafe fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int {
    let ours = engine::has_any(fd);
    if !ours {
        // SAFETY: P1, P3.
        return unsafe { call::fcntl(fd, command, argument) };
    }
    let mode = argument as c_int;
    if command == libc::F_SETFL && mode & libc::O_ASYNC != 0 && engine::has(fd) {
        engine::leave(fd);
    }
    // SAFETY: P1, P3.
    let result = unsafe { call::fcntl(fd, command, argument) };
    if result < 0 {
        return result;
    }
    match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => duplicated(fd, result),
        libc::F_SETFL if engine::has(fd) => {
            engine::tell(|| calls::mode_was_set(fd, mode & libc::O_NONBLOCK != 0));
            result
        }
        _ => result,
    }
}

/// # Safety
/// P1, P3.
pub unsafe fn ioctl(fd: c_int, request: usize, argument: usize) -> c_int {
    if !engine::has(fd) || argument == 0 {
        // SAFETY: P1, P3.
        return unsafe { call::ioctl(fd, request, argument) };
    }
    let place = argument as *mut c_int;
    match request as u32 as libc::Ioctl {
        libc::FIONREAD => {
            // SAFETY: P1.
            unsafe { give(place, || calls::readable_bytes(fd)) }
        }
        libc::TIOCOUTQ => {
            // SAFETY: P1.
            unsafe { give(place, || calls::unsent_bytes(fd)) }
        }
        libc::FIONBIO => {
            // SAFETY: P1, P3.
            let result = unsafe { call::ioctl(fd, request, argument) };
            if result == 0 {
                // SAFETY: P1: the kernel has read it.
                let nonblocking = unsafe { *place } != 0;
                engine::tell(|| calls::mode_was_set(fd, nonblocking));
            }
            result
        }
        libc::FIOASYNC | SIOCOUTQNSD => {
            engine::leave(fd);
            // SAFETY: P1, P3.
            unsafe { call::ioctl(fd, request, argument) }
        }
        // SAFETY: P1, P3.
        _ => unsafe { call::ioctl(fd, request, argument) },
    }
}

/// # Safety
/// `place` is valid for a write.
unsafe fn give(place: *mut c_int, mut value: impl FnMut() -> sidestep_sockets::Result<usize>) -> c_int {
    engine::ask_unit(|| {
        let value = value()?;
        // SAFETY: as for this function.
        unsafe { place.write(c_int::try_from(value).unwrap_or(c_int::MAX)) };
        Ok(())
    })
}

/// Before `new` becomes another name of `old`.
fn prepare(old: c_int, new: c_int) -> Result<(), Errno> {
    if calls::is_internal(new) || calls::is_internal(old) {
        return Err(Errno(libc::EBADF));
    }
    if engine::has_any(new) {
        // Only if the kernel will do it.
        sidestep_sockets::kernel::control(old, libc::F_GETFD, 0)?;
        engine::forget(new);
    }
    extended::closed(new);
    Ok(())
}

fn duplicated(old: c_int, new: c_int) -> c_int {
    if new >= 0 && engine::has_any(old) {
        engine::took(new, |new| calls::duplicated(old, new));
        if new <= libc::STDERR_FILENO && engine::has(new) {
            // libc reads and writes there by itself.
            engine::is_standard(new);
        }
    }
    new
}

/// A child of `vfork` that puts a stream elsewhere means to hand it on.
fn note_for_child(old: c_int, new: c_int) {
    if old != new && (calls::owns(old) || calls::is_set(old)) {
        crate::child::hands_on(old);
    }
}

/// Bytes not yet sent at all.
const SIOCOUTQNSD: libc::Ioctl = 0x894b;
