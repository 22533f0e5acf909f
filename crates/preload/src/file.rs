//! Files and streams: `sendfile`, `splice`, and stdio, whose reads and writes are inside libc.

use std::{
    arch::naked_asm,
    ffi::{c_char, c_int, c_uint, c_void},
};

use libc::{FILE, off_t, size_t, ssize_t};
use sidestep_sockets::calls;

use crate::{
    engine,
    real::{call, next},
    signals,
};

/// # Safety
/// P1.
pub unsafe fn sendfile(out: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t {
    // A socket is no file to send from: the kernel says so.
    if !engine::has(out) || engine::has(from) {
        // SAFETY: P1.
        return unsafe { call::sendfile(out, from, offset, count) };
    }
    // SAFETY: P1.
    let mut offset = unsafe { offset.as_mut() };
    signals::broken_pipe(0, || engine::ask(|| calls::send_file(out, from, offset.as_deref_mut(), count)))
}

/// # Safety
/// P1.
pub unsafe fn splice(
    from: c_int,
    from_offset: *mut i64,
    to: c_int,
    to_offset: *mut i64,
    len: size_t,
    flags: c_uint,
) -> ssize_t {
    let nowhere = from_offset.is_null() && to_offset.is_null();
    if nowhere && (engine::has(from) != engine::has(to)) && len > 0 {
        let nonblocking = flags & libc::SPLICE_F_NONBLOCK != 0;
        return engine::ask(|| calls::splice(from, to, len, nonblocking));
    }
    for fd in [from, to] {
        leave_if_ours(fd);
    }
    // SAFETY: P1.
    unsafe { call::splice(from, from_offset, to, to_offset, len, flags) }
}

/// # Safety
/// P1.
pub unsafe fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE {
    leave_if_ours(fd);
    // SAFETY: P1.
    let stream = unsafe { call::fdopen(fd, mode) };
    if !stream.is_null() && engine::has(fd) && calls::has_rest(fd) {
        // SAFETY: P1: libc has understood the mode.
        let mode = unsafe { std::ffi::CStr::from_ptr(mode) }.to_bytes();
        // SAFETY: P1; it was opened just now.
        unsafe { refill(stream, fd, mode) };
    }
    stream
}

/// The peer did not follow to TCP: what lies here is the first that stdio reads. libc takes back as many bytes as there are, but
/// cannot write behind that to a stream that was not filled before: one for both ways waits for its peer instead.
///
/// # Safety
/// P1.
#[cold]
unsafe fn refill(stream: *mut FILE, fd: c_int, mode: &[u8]) {
    if mode.contains(&b'+') {
        return engine::leave_whole(fd);
    }
    if !mode.contains(&b'r') {
        return;
    }
    let mut rest = Vec::new();
    engine::tell(|| rest = calls::take_rest(fd));
    let before = crate::errno::get();
    for byte in rest.iter().rev() {
        // SAFETY: as for this function.
        unsafe { libc::ungetc(c_int::from(*byte), stream) };
    }
    crate::errno::set(before);
}

/// # Safety
/// P1.
pub unsafe fn fclose(stream: *mut FILE) -> c_int {
    // SAFETY: P1.
    unsafe { forget(stream) };
    // SAFETY: P1.
    unsafe { call::fclose(stream) }
}

/// # Safety
/// P1.
pub unsafe fn freopen(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE {
    // SAFETY: P1.
    unsafe { forget(stream) };
    // SAFETY: P1.
    unsafe { call::freopen(path, mode, stream) }
}

/// # Safety
/// P1.
pub unsafe fn vdprintf(fd: c_int, format: *const c_char, arguments: *mut c_void) -> c_int {
    leave_if_ours(fd);
    // SAFETY: P1.
    unsafe { call::vdprintf(fd, format, arguments) }
}

/// # Safety
/// P1.
pub unsafe fn vdprintf_chk(fd: c_int, flag: c_int, format: *const c_char, arguments: *mut c_void) -> c_int {
    leave_if_ours(fd);
    // SAFETY: P1.
    unsafe { call::__vdprintf_chk(fd, flag, format, arguments) }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn dprintf(fd: c_int, format: *const c_char) -> c_int {
    hook_then_go_on!(before_dprintf)
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn __dprintf_chk(fd: c_int, flag: c_int, format: *const c_char) -> c_int {
    hook_then_go_on!(before_dprintf_chk)
}

extern "C" fn before_dprintf(fd: c_int) -> *mut c_void {
    leave_if_ours(fd);
    next::dprintf.find().unwrap_or(std::ptr::null_mut())
}

extern "C" fn before_dprintf_chk(fd: c_int) -> *mut c_void {
    leave_if_ours(fd);
    next::__dprintf_chk.find().unwrap_or(std::ptr::null_mut())
}

pub fn leave_if_ours(fd: c_int) {
    if engine::has(fd) {
        engine::leave(fd);
    }
}

/// The number behind a stream of stdio is about to be closed inside libc.
///
/// # Safety
/// P1.
unsafe fn forget(stream: *mut FILE) {
    if stream.is_null() {
        return;
    }
    let before = crate::errno::get();
    // SAFETY: P1.
    let fd = unsafe { libc::fileno(stream) };
    crate::errno::set(before);
    if fd >= 0 && engine::has_any(fd) {
        engine::forget(fd);
    }
}
