//! Socket options: what each does to a stream.

use std::{
    ffi::{c_int, c_void},
    slice,
};

use libc::socklen_t;
use sidestep_sockets::calls;

use crate::{engine, real::call, transfer::is_nowhere};

/// # Safety
/// P1.
pub unsafe fn setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, len: socklen_t) -> c_int {
    if !engine::has(fd) {
        // SAFETY: P1.
        return unsafe { call::setsockopt(fd, level, name, value, len) };
    }
    let bytes = || -> &[u8] {
        match is_nowhere(value) {
            true => &[],
            // SAFETY: P1.
            false => unsafe { slice::from_raw_parts(value.cast(), (len as usize).min(LONGEST)) },
        }
    };
    if leaves(level, name, || bytes().iter().all(|byte| *byte == 0)) {
        engine::leave(fd);
    }
    // SAFETY: P1.
    let result = unsafe { call::setsockopt(fd, level, name, value, len) };
    if result == 0 {
        engine::tell(|| calls::option_was_set(fd, level, name, bytes()));
    }
    result
}

/// # Safety
/// P1.
pub unsafe fn getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, len: *mut socklen_t) -> c_int {
    if level == libc::IPPROTO_TCP && name == libc::TCP_ZEROCOPY_RECEIVE && engine::has(fd) {
        engine::leave(fd);
    }
    // SAFETY: P1.
    let result = unsafe { call::getsockopt(fd, level, name, value, len) };
    if level == libc::SOL_SOCKET && name == libc::SO_ERROR && result == 0 && engine::has(fd) && !is_nowhere(value) {
        // SAFETY: P1: the kernel has written it.
        let len = unsafe { *len };
        // SAFETY: P1: the kernel has filled in so many bytes.
        let value = unsafe { slice::from_raw_parts(value.cast::<u8>(), len as usize) };
        if value.iter().any(|byte| *byte != 0) {
            engine::tell(|| calls::error_was_told(fd));
        }
    }
    result
}

/// Whether a stream goes back to TCP before the kernel takes this value.
fn leaves(level: c_int, name: c_int, is_off: impl FnOnce() -> bool) -> bool {
    match TABLE.binary_search_by_key(&(level, name), |(level, name, _)| (*level, *name)) {
        // Nothing that is off needs the kernel; for SO_PEEK_OFF alone 0 is not off.
        Ok(at) => TABLE[at].2 == Verdict::leaves && (name == libc::SO_PEEK_OFF || !is_off()),
        Err(_) => true,
    }
}

/// What an option does to a stream, in the words of the list.
#[allow(non_camel_case_types)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    stays,
    served,
    leaves,
}

/// Makes the table of options. A test makes the table of the manual of the same list.
macro_rules! socket_options {
    (@number $name:ident) => { libc::$name };
    (@number $name:ident $number:literal) => { $number };
    ($($level:ident { $($verdict:ident $name:ident $(= $number:literal)?: $why:literal;)* })*) => {
        const UNSORTED: &[(c_int, c_int, Verdict)] =
            &[$($((libc::$level, socket_options!(@number $name $($number)?), Verdict::$verdict)),*),*];
    };
}

include!("option_list.rs");

/// In order.
const TABLE: [(c_int, c_int, Verdict); UNSORTED.len()] = sorted();

const fn sorted() -> [(c_int, c_int, Verdict); UNSORTED.len()] {
    let mut table = [(0, 0, Verdict::stays); UNSORTED.len()];
    let mut count = 0;
    while count < UNSORTED.len() {
        let new = UNSORTED[count];
        let mut at = count;
        while at > 0 && (table[at - 1].0 > new.0 || (table[at - 1].0 == new.0 && table[at - 1].1 > new.1)) {
            table[at] = table[at - 1];
            at -= 1;
        }
        table[at] = new;
        count += 1;
    }
    table
}

/// Of the options that mean something to a stream: a time.
const LONGEST: usize = size_of::<libc::timeval>();
