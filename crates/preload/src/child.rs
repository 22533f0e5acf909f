//! The time in which a child of `vfork` runs in this thread's place and memory.
//!
//! Until it executes a program or ends, the parent's thread stands still, and whatever this thread does is done by the
//! child: all of it passes straight to the kernel, whose table of descriptors is the child's own. So every stream goes back
//! to TCP before, and is not promoted until the parent runs again. Streams that the child hands on to a new program are noted,
//! and stay on TCP.

use std::{cell::Cell, ffi::c_int, mem::ManuallyDrop};

use sidestep_sockets::{calls, signal::Inside};

use crate::engine;

thread_local! {
    /// The way around the engine, while a child runs. Never dropped by the thread's end, so that it needs no destructor.
    static BYPASS: Cell<Option<ManuallyDrop<Inside>>> = const { Cell::new(None) };
    static RUNS: Cell<bool> = const { Cell::new(false) };
    static HANDED_ON: Cell<[c_int; ROOM]> = const { Cell::new([-1; ROOM]) };
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

/// A child is about to run in this thread's place.
pub fn begin() {
    COUNT.with(|count| count.set(0));
    engine::tell(calls::lending);
    let bypass = ManuallyDrop::new(engine::bypass());
    BYPASS.with(|place| place.set(Some(bypass)));
    RUNS.with(|runs| runs.set(true));
}

/// The child has gone its own way; this thread is itself again.
pub fn end() {
    let Some(bypass) = BYPASS.with(Cell::take) else { return };
    RUNS.with(|runs| runs.set(false));
    drop(ManuallyDrop::into_inner(bypass));
    let count = COUNT.with(|count| count.replace(0));
    if count > ROOM {
        engine::pass_all();
    } else {
        let handed_on = HANDED_ON.with(Cell::get);
        engine::tell(|| calls::passing(&handed_on[..count]));
    }
    engine::tell(calls::lent);
}

/// Whether a child runs in this thread's place.
pub fn runs() -> bool {
    RUNS.with(Cell::get)
}

/// The child means to hand on this stream.
pub fn hands_on(fd: c_int) {
    if !runs() {
        return;
    }
    let count = COUNT.with(Cell::get);
    let mut handed_on = HANDED_ON.with(Cell::get);
    if handed_on[..count.min(ROOM)].contains(&fd) {
        return;
    }
    if let Some(place) = handed_on.get_mut(count) {
        *place = fd;
        HANDED_ON.with(|all| all.set(handed_on));
    }
    COUNT.with(|place| place.set(count + 1));
}

/// With more than these, all streams are taken back.
const ROOM: usize = 32;
