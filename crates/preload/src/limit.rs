//! The limit of descriptors, which the engine raises for a moment when it takes a number above it.

use std::ffi::{c_int, c_uint, c_void};

use sidestep_sockets::calls;

use crate::real::call;

/// # Safety
/// P1.
pub unsafe fn getrlimit(resource: c_uint, limit: *mut c_void) -> c_int {
    // SAFETY: P1.
    still(resource, || unsafe { call::getrlimit(resource, limit) })
}

/// # Safety
/// P1.
pub unsafe fn setrlimit(resource: c_uint, limit: *const c_void) -> c_int {
    // SAFETY: P1.
    still(resource, || unsafe { call::setrlimit(resource, limit) })
}

/// # Safety
/// P1.
pub unsafe fn prlimit(process: c_int, resource: c_uint, new: *const c_void, old: *mut c_void) -> c_int {
    // SAFETY: P1.
    still(resource, || unsafe { call::prlimit(process, resource, new, old) })
}

fn still(resource: c_uint, call: impl FnOnce() -> c_int) -> c_int {
    if resource == libc::RLIMIT_NOFILE as c_uint { calls::with_still_limit(call) } else { call() }
}
