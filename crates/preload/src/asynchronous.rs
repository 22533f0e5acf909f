//! POSIX asynchronous input and output: threads of libc that read and write inside it.

use std::{
    ffi::{c_int, c_void},
    slice,
};

use libc::aiocb;

use crate::{engine, real::call};

/// # Safety
/// P1.
pub unsafe fn aio_read(block: *mut aiocb) -> c_int {
    // SAFETY: P1.
    unsafe { leave(block) };
    // SAFETY: P1.
    unsafe { call::aio_read(block) }
}

/// # Safety
/// P1.
pub unsafe fn aio_write(block: *mut aiocb) -> c_int {
    // SAFETY: P1.
    unsafe { leave(block) };
    // SAFETY: P1.
    unsafe { call::aio_write(block) }
}

/// # Safety
/// P1.
pub unsafe fn lio_listio(mode: c_int, list: *const *mut aiocb, count: c_int, event: *mut c_void) -> c_int {
    if !list.is_null() && count > 0 {
        // SAFETY: P1.
        for block in unsafe { slice::from_raw_parts(list, count as usize) } {
            // SAFETY: P1.
            unsafe { leave(*block) };
        }
    }
    // SAFETY: P1.
    unsafe { call::lio_listio(mode, list, count, event) }
}

/// # Safety
/// P1.
unsafe fn leave(block: *mut aiocb) {
    // SAFETY: P1.
    if let Some(block) = unsafe { block.as_ref() } {
        let fd = block.aio_fildes;
        if engine::has(fd) {
            engine::leave_whole(fd);
        }
    }
}
