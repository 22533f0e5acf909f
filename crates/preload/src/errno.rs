//! `errno`: kept when a call succeeds, set when it fails.

use libc::c_int;
use sidestep_sockets::Result;

/// The calling thread's `errno`.
#[inline]
pub fn get() -> c_int {
    let place = place();
    // SAFETY: libc's pointer to a variable of this thread.
    unsafe { *place }
}

/// Sets it.
#[inline]
pub fn set(value: c_int) {
    let place = place();
    // SAFETY: as above.
    unsafe { *place = value }
}

/// What it was before a call that may change it, in the same thread.
#[derive(Debug)]
pub struct Kept {
    place: *mut c_int,
    value: c_int,
}

impl Kept {
    /// Keeps it.
    #[inline]
    pub fn new() -> Kept {
        let place = place();
        // SAFETY: as above.
        Kept { place, value: unsafe { *place } }
    }

    /// Sets it again.
    #[inline]
    pub fn restore(self) {
        // SAFETY: as above; a pointer stays with its thread.
        unsafe { *self.place = self.value }
    }
}

/// The result of a call as C has it.
#[inline]
pub fn answer(result: Result<usize>) -> isize {
    match result {
        Ok(value) => value as isize,
        Err(error) => {
            set(error.0);
            -1
        }
    }
}

/// A failed call.
#[cold]
pub fn fail(error: c_int) -> isize {
    set(error);
    -1
}

#[inline]
fn place() -> *mut c_int {
    // SAFETY: has no precondition.
    unsafe { libc::__errno_location() }
}
