//! Whether this thread has just asked something over TCP: the next news is likely to be the answer, which comes by way of the
//! kernel. A wait that looked for bytes in rings meanwhile would only keep a core from those who answer.

use std::cell::Cell;

thread_local! {
    static ASKED: Cell<bool> = const { Cell::new(false) };
}

/// A connection was begun by this thread, or bytes went out over TCP on one that this process has begun.
#[inline]
pub fn asked() {
    ASKED.set(true);
}

/// The thread has waited for the answer, or is about to. `true`: it had asked something.
#[inline]
pub fn awaits() -> bool {
    ASKED.replace(false)
}
