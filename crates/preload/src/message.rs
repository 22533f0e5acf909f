//! `sendmsg`, `recvmsg` and their plural forms.

use std::{
    ffi::{c_int, c_uint},
    slice,
    time::Instant,
};

use libc::{mmsghdr, msghdr, ssize_t, timespec};
use sidestep_sockets::{Control, signal};

use crate::{
    engine, errno,
    real::call,
    transfer::{can_receive, can_send, is_nowhere},
    vector::{fits, receive_parts, transmit_parts},
    wait,
};

/// # Safety
/// P1.
pub unsafe fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    if !engine::has(fd) || is_nowhere(message) {
        // SAFETY: P1.
        return unsafe { call::recvmsg(fd, message, flags) };
    }
    // SAFETY: P1.
    let header = unsafe { &mut *message };
    if !can_receive(fd, flags) || !parts_fit(header) {
        // SAFETY: P1.
        return unsafe { call::recvmsg(fd, message, flags) };
    }
    let mut by_own = false;
    let own = || {
        by_own = true;
        // SAFETY: P1.
        unsafe { call::recvmsg(fd, message, flags) }
    };
    let room = match is_nowhere(header.msg_control) {
        true => &mut [],
        // SAFETY: P1.
        false => unsafe { slice::from_raw_parts_mut(header.msg_control.cast::<u8>(), header.msg_controllen) },
    };
    let mut control = Control::new(room);
    let (parts, count) = (header.msg_iov, header.msg_iovlen);
    // SAFETY: P1.
    let received = unsafe { receive_parts(fd, parts, count, flags, Some(&mut control), own) };
    // What the program's own call has written stays.
    if received >= 0 && !by_own {
        if !header.msg_name.is_null() {
            header.msg_namelen = 0;
        }
        header.msg_controllen = control.used();
        header.msg_flags = flags & libc::MSG_CMSG_CLOEXEC | control.flags();
    }
    received
}

/// # Safety
/// P1.
pub unsafe fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    if is_nowhere(message) || signal::is_inside() {
        // SAFETY: P1.
        return unsafe { call::sendmsg(fd, message, flags) };
    }
    // SAFETY: P1.
    let header = unsafe { &*message };
    let has_control = !is_nowhere(header.msg_control) && header.msg_controllen > 0;
    if !engine::has(fd) {
        if has_control {
            // SAFETY: P1.
            unsafe { pass_rights(header) };
        }
        // SAFETY: P1.
        return unsafe { call::sendmsg(fd, message, flags) };
    }
    if has_control {
        engine::leave(fd);
    }
    if has_control || !can_send(fd, flags) || !parts_fit(header) {
        // SAFETY: P1.
        return unsafe { call::sendmsg(fd, message, flags) };
    }
    // SAFETY: P1.
    let own = || unsafe { call::sendmsg(fd, message, flags) };
    // SAFETY: P1.
    unsafe { transmit_parts(fd, header.msg_iov, header.msg_iovlen, flags, own) }
}

/// # Safety
/// P1.
pub unsafe fn recvmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    if !engine::has(fd) || is_nowhere(messages) {
        // SAFETY: P1.
        return unsafe { call::recvmmsg(fd, messages, count, flags, timeout) };
    }
    let end = match timeout.is_null() {
        true => None,
        false => {
            // SAFETY: P1.
            let Some(time) = wait::duration(unsafe { *timeout }) else {
                return errno::fail(libc::EINVAL) as c_int;
            };
            Some(Instant::now() + time)
        }
    };
    let before = errno::get();
    // SAFETY: P1.
    let list = unsafe { slice::from_raw_parts_mut(messages, count.min(libc::UIO_MAXIOV as c_uint) as usize) };
    let mut flags = flags;
    let mut done = 0;
    for entry in list {
        // SAFETY: P1.
        let received = unsafe { recvmsg(fd, &mut entry.msg_hdr, flags & !libc::MSG_WAITFORONE) };
        if received < 0 {
            break;
        }
        entry.msg_len = received as c_uint;
        done += 1;
        if flags & libc::MSG_WAITFORONE != 0 {
            flags |= libc::MSG_DONTWAIT;
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            break;
        }
    }
    // The kernel, too, tells the time that is left only with messages.
    if let Some(end) = end.filter(|_| done > 0) {
        let left = end.saturating_duration_since(Instant::now());
        // SAFETY: P1; not null, since there is an end.
        unsafe { timeout.write(wait::timespec(left)) };
    }
    counted(done, count, before)
}

/// # Safety
/// P1.
pub unsafe fn sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int {
    if is_nowhere(messages) || signal::is_inside() {
        // SAFETY: P1.
        return unsafe { call::sendmmsg(fd, messages, count, flags) };
    }
    // SAFETY: P1.
    let list = unsafe { slice::from_raw_parts_mut(messages, count.min(libc::UIO_MAXIOV as c_uint) as usize) };
    if !engine::has(fd) {
        for entry in list {
            if !is_nowhere(entry.msg_hdr.msg_control) && entry.msg_hdr.msg_controllen > 0 {
                // SAFETY: P1.
                unsafe { pass_rights(&entry.msg_hdr) };
            }
        }
        // SAFETY: P1.
        return unsafe { call::sendmmsg(fd, messages, count, flags) };
    }
    let before = errno::get();
    let mut done = 0;
    for entry in list {
        // SAFETY: P1.
        let sent = unsafe { sendmsg(fd, &entry.msg_hdr, flags) };
        if sent < 0 {
            break;
        }
        entry.msg_len = sent as c_uint;
        done += 1;
        // The next message does not follow half of this one.
        if (sent as usize) < length(&entry.msg_hdr) {
            break;
        }
    }
    counted(done, count, before)
}

/// Bytes of a message.
fn length(header: &msghdr) -> usize {
    if header.msg_iovlen == 0 {
        return 0;
    }
    // SAFETY: P1: it has been sent.
    let parts = unsafe { slice::from_raw_parts(header.msg_iov, header.msg_iovlen) };
    parts.iter().map(|part| part.iov_len).sum()
}

/// What a plural call returns: an error only if it did nothing.
fn counted(done: c_int, asked: c_uint, before: c_int) -> c_int {
    if done > 0 || asked == 0 {
        errno::set(before);
        return done;
    }
    -1
}

fn parts_fit(header: &msghdr) -> bool {
    c_int::try_from(header.msg_iovlen).is_ok_and(|count| fits(header.msg_iov, count))
}

/// Tells the engine of streams among the descriptors in a control message.
///
/// # Safety
/// P1; the header has control messages.
#[cold]
unsafe fn pass_rights(header: &msghdr) {
    // SAFETY: P1.
    let mut at = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !at.is_null() {
        // SAFETY: not null, hence within the control messages.
        let control = unsafe { at.read_unaligned() };
        // SAFETY: has no precondition.
        let head = unsafe { libc::CMSG_LEN(0) } as usize;
        let len = control.cmsg_len as usize;
        if control.cmsg_level == libc::SOL_SOCKET && control.cmsg_type == libc::SCM_RIGHTS && len >= head {
            // SAFETY: within the control messages.
            let data = unsafe { libc::CMSG_DATA(at) };
            for index in 0..(len - head) / size_of::<c_int>() {
                // SAFETY: `cmsg_len` covers it, by P1.
                let place = unsafe { data.cast::<c_int>().add(index) };
                // SAFETY: as above.
                let fd = unsafe { place.read_unaligned() };
                if engine::has_any(fd) {
                    engine::pass(fd);
                }
            }
        }
        // SAFETY: P1.
        at = unsafe { libc::CMSG_NXTHDR(header, at) };
    }
}
