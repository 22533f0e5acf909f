//! `epoll`.

use std::{ffi::c_int, slice, time::Duration};

use libc::{epoll_event, sigset_t};
use sidestep_sockets::{calls, signal};

use crate::{
    alone, engine, errno,
    real::call,
    transfer::is_nowhere,
    wait::{AT_ONCE, milliseconds, optional},
};

/// # Safety
/// P1.
pub unsafe fn epoll_create(size: c_int) -> c_int {
    // SAFETY: P1.
    created(unsafe { call::epoll_create(size) })
}

/// # Safety
/// P1.
pub unsafe fn epoll_create1(flags: c_int) -> c_int {
    // SAFETY: P1.
    created(unsafe { call::epoll_create1(flags) })
}

/// # Safety
/// P1.
pub unsafe fn epoll_ctl(set: c_int, op: c_int, fd: c_int, event: *mut epoll_event) -> c_int {
    let needs_event = op == libc::EPOLL_CTL_ADD || op == libc::EPOLL_CTL_MOD;
    let known = needs_event && !is_nowhere(event) || op == libc::EPOLL_CTL_DEL;
    if !engine::has_set(set) || !known {
        if op == libc::EPOLL_CTL_ADD && engine::has(fd) && !engine::is_shut_in() {
            // A set from elsewhere: who waits on it waits in the kernel.
            engine::leave(fd);
        }
        // SAFETY: P1.
        let result = unsafe { call::epoll_ctl(set, op, fd, event) };
        if result == 0 && engine::has_set_alone(set) {
            // SAFETY: P1. The kernel has read it.
            let event = needs_event.then(|| unsafe { event.read_unaligned() });
            engine::tell(|| calls::set_was_controlled(set, op, fd, event));
        }
        return result;
    }
    // SAFETY: P1. Not null.
    let event = needs_event.then(|| unsafe { event.read_unaligned() });
    engine::ask_unit(|| calls::set_control(set, op, fd, event))
}

/// # Safety
/// P1.
pub unsafe fn epoll_wait(set: c_int, events: *mut epoll_event, count: c_int, timeout: c_int) -> c_int {
    if !engine::has_set(set) {
        let own = |count, at_once| {
            // SAFETY: P1.
            unsafe { call::epoll_wait(set, events, count, if at_once { 0 } else { timeout }) }
        };
        // SAFETY: P1.
        return unsafe { by_kernel(set, events, count, own) };
    }
    // SAFETY: P1.
    unsafe { wait(set, events, count, milliseconds(timeout), None) }
}

/// # Safety
/// P1.
pub unsafe fn epoll_pwait(
    set: c_int,
    events: *mut epoll_event,
    count: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    if !engine::has_set(set) {
        let own = |count, at_once| {
            // SAFETY: P1.
            unsafe { call::epoll_pwait(set, events, count, if at_once { 0 } else { timeout }, mask) }
        };
        // SAFETY: P1.
        return unsafe { by_kernel(set, events, count, own) };
    }
    // SAFETY: P1.
    let mask = unsafe { mask.as_ref() };
    // SAFETY: P1.
    unsafe { wait(set, events, count, milliseconds(timeout), mask) }
}

/// # Safety
/// P1.
pub unsafe fn epoll_pwait2(
    set: c_int,
    events: *mut epoll_event,
    count: c_int,
    timeout: *const libc::timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: P1.
    let time = unsafe { optional(timeout) };
    let (true, Some(time)) = (engine::has_set(set), time) else {
        let own = |count, at_once| {
            let timeout = if at_once { &AT_ONCE } else { timeout };
            // SAFETY: P1. The kernel finds the error in the time.
            unsafe { call::epoll_pwait2(set, events, count, timeout, mask) }
        };
        // SAFETY: P1.
        return unsafe { by_kernel(set, events, count, own) };
    };
    // SAFETY: P1.
    let mask = unsafe { mask.as_ref() };
    // SAFETY: P1.
    unsafe { wait(set, events, count, time, mask) }
}

/// A wait that is the kernel's, but for bytes that it knows nothing of.
///
/// # Safety
/// P1.
#[inline]
unsafe fn by_kernel(
    set: c_int,
    events: *mut epoll_event,
    count: c_int,
    own: impl FnOnce(c_int, bool) -> c_int,
) -> c_int {
    if engine::has_set_alone(set) {
        // SAFETY: P1.
        unsafe { alone::wait(set, events, count, own) }
    } else {
        own(count, false)
    }
}

/// # Safety
/// P1.
unsafe fn wait(
    set: c_int,
    events: *mut epoll_event,
    count: c_int,
    timeout: Option<Duration>,
    mask: Option<&sigset_t>,
) -> c_int {
    let most = c_int::MAX as usize / size_of::<epoll_event>();
    if count <= 0 || count as usize > most {
        return errno::fail(libc::EINVAL) as c_int;
    }
    if is_nowhere(events) {
        return errno::fail(libc::EFAULT) as c_int;
    }
    // SAFETY: P1. On targets where it is not packed the kernel needs it aligned as well.
    let events = unsafe { slice::from_raw_parts_mut(events, count as usize) };
    engine::ask(|| calls::set_wait(set, events, timeout, mask)) as c_int
}

fn created(set: c_int) -> c_int {
    if set >= 0 && !signal::is_inside() {
        made(set);
    }
    set
}

/// The kernel has made a set.
pub fn made(set: c_int) {
    if engine::has_any(set) {
        engine::forget(set);
    }
    engine::took(set, calls::set_created);
}
