//! `poll` and `ppoll`.

use std::{ffi::c_int, slice, time::Duration};

use libc::{nfds_t, pollfd, sigset_t, size_t};
use sidestep_sockets::calls;

use crate::{alone, engine, real::call, transfer::is_nowhere};

/// No time.
pub const AT_ONCE: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 0 };

/// # Safety
/// P1.
pub unsafe fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    // SAFETY: P1.
    let Some(list) = (unsafe { ours(fds, count) }) else {
        // SAFETY: P1.
        return unsafe { call::poll(fds, count, timeout) };
    };
    if engine::is_shut_in() {
        return alone::poll(list, |list, at_once| {
            let timeout = if at_once { 0 } else { timeout };
            // SAFETY: P1.
            unsafe { call::poll(list.as_mut_ptr(), count, timeout) }
        });
    }
    engine::ask(|| calls::poll(list, milliseconds(timeout), None)) as c_int
}

/// # Safety
/// P1.
pub unsafe fn poll_chk(fds: *mut pollfd, count: nfds_t, timeout: c_int, room: size_t) -> c_int {
    if room / size_of::<pollfd>() < count as usize {
        // SAFETY: P1. It does not return.
        return unsafe { call::__poll_chk(fds, count, timeout, room) };
    }
    // SAFETY: P1.
    unsafe { poll(fds, count, timeout) }
}

/// # Safety
/// P1.
pub unsafe fn ppoll(fds: *mut pollfd, count: nfds_t, timeout: *const libc::timespec, mask: *const sigset_t) -> c_int {
    // SAFETY: P1.
    let Some(list) = (unsafe { ours(fds, count) }) else {
        // SAFETY: P1.
        return unsafe { call::ppoll(fds, count, timeout, mask) };
    };
    // SAFETY: P1.
    let Some(time) = (unsafe { optional(timeout) }) else {
        // SAFETY: P1. The kernel finds the error in the time.
        return unsafe { call::ppoll(fds, count, timeout, mask) };
    };
    if engine::is_shut_in() {
        return alone::poll(list, |list, at_once| {
            let timeout = if at_once { &AT_ONCE } else { timeout };
            // SAFETY: P1.
            unsafe { call::ppoll(list.as_mut_ptr(), count, timeout, mask) }
        });
    }
    // SAFETY: P1.
    let mask = unsafe { mask.as_ref() };
    engine::ask(|| calls::poll(list, time, mask)) as c_int
}

/// # Safety
/// P1.
pub unsafe fn ppoll_chk(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const libc::timespec,
    mask: *const sigset_t,
    room: size_t,
) -> c_int {
    if room / size_of::<pollfd>() < count as usize {
        // SAFETY: P1. It does not return.
        return unsafe { call::__ppoll_chk(fds, count, timeout, mask, room) };
    }
    // SAFETY: P1.
    unsafe { ppoll(fds, count, timeout, mask) }
}

/// A time-out in milliseconds; a negative one is for ever.
pub fn milliseconds(timeout: c_int) -> Option<Duration> {
    u64::try_from(timeout).ok().map(Duration::from_millis)
}

/// A time-out that may be missing (for ever); `None` if it is none that the kernel takes.
///
/// # Safety
/// P1.
pub unsafe fn optional(timeout: *const libc::timespec) -> Option<Option<Duration>> {
    // SAFETY: P1.
    match unsafe { timeout.as_ref() } {
        None => Some(None),
        Some(time) => duration(*time).map(Some),
    }
}

/// A time that the kernel takes.
pub fn duration(time: libc::timespec) -> Option<Duration> {
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanos = u32::try_from(time.tv_nsec).ok().filter(|nanos| *nanos < 1_000_000_000)?;
    Some(Duration::new(seconds, nanos))
}

/// The other way round.
pub fn timespec(time: Duration) -> libc::timespec {
    libc::timespec { tv_sec: time.as_secs() as libc::time_t, tv_nsec: i64::from(time.subsec_nanos()) as _ }
}

/// The list, if the engine has to look at it.
///
/// # Safety
/// P1.
unsafe fn ours<'a>(fds: *mut pollfd, count: nfds_t) -> Option<&'a mut [pollfd]> {
    if is_nowhere(fds) || count == 0 {
        return None;
    }
    // SAFETY: P1.
    let list = unsafe { slice::from_raw_parts_mut(fds, count as usize) };
    (calls::any_owned(list) && list.iter().any(|entry| engine::has_any(entry.fd))).then_some(list)
}
