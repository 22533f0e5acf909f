//! Socket options: which a stream may have while it is promoted.

use std::{
    ffi::{c_int, c_void},
    slice,
};

use libc::socklen_t;
use sidestep_sockets::calls;

use crate::{engine, real::call};

/// # Safety
/// P1.
pub unsafe fn setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, len: socklen_t) -> c_int {
    let ours = engine::has(fd);
    if ours && !is_kept(level, name) {
        engine::leave(fd);
    }
    // SAFETY: P1.
    let result = unsafe { call::setsockopt(fd, level, name, value, len) };
    if ours && result == 0 {
        let bytes = match value.is_null() {
            true => &[],
            // SAFETY: P1: the kernel has read so much of it, for a longer value it has not.
            false => unsafe { slice::from_raw_parts(value.cast::<u8>(), (len as usize).min(LONGEST)) },
        };
        engine::tell(|| calls::option_was_set(fd, level, name, bytes));
    }
    result
}

/// # Safety
/// P1.
pub unsafe fn getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, len: *mut socklen_t) -> c_int {
    if level == libc::IPPROTO_TCP && name == TCP_ZEROCOPY_RECEIVE && engine::has(fd) {
        engine::leave(fd);
    }
    // SAFETY: P1.
    let result = unsafe { call::getsockopt(fd, level, name, value, len) };
    if level == libc::SOL_SOCKET && name == libc::SO_ERROR && result == 0 && engine::has(fd) {
        engine::tell(|| calls::error_was_asked(fd));
    }
    result
}

fn is_kept(level: c_int, name: c_int) -> bool {
    KEPT.binary_search(&(level, name)).is_ok()
}

/// Makes the table of options with which a stream stays where it is. A test makes the table of the manual of the same
/// list.
macro_rules! kept_options {
    ($($level:ident { $($name:ident: $why:literal;)* })*) => {
        const UNSORTED: &[(c_int, c_int)] = &[$($((libc::$level, libc::$name)),*),*];
    };
}

include!("option_list.rs");

/// In order.
const KEPT: [(c_int, c_int); UNSORTED.len()] = sorted();

const fn sorted() -> [(c_int, c_int); UNSORTED.len()] {
    let mut table = [(0, 0); UNSORTED.len()];
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

const TCP_ZEROCOPY_RECEIVE: c_int = 35;
