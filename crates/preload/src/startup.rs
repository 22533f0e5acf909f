//! What happens when the library is loaded, in order, and what has to happen only once.

use std::{
    ffi::c_int,
    sync::atomic::{AtomicBool, Ordering},
};

use sidestep_sockets::{calls, signal};

use crate::{card, engine, errno, handler, raw, real};

/// Runs before `main`, after the constructors of what the program is linked with.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = start;

extern "C" fn start() {
    let before = errno::get();
    // So that no look-up is made later in a signal handler or after `fork`.
    real::look_up_all();
    raw::start();
    ensure();
    errno::set(before);
}

/// The rest of the start; earlier, if a constructor already makes connections.
pub fn ensure() {
    if STARTED.load(Ordering::Acquire) || STARTED.swap(true, Ordering::AcqRel) {
        return;
    }
    // What is put off inside the engine is delivered when it is left.
    signal::set_raise_again(handler::deliver);
    // First, so that whatever it registers for a fork runs before the handlers below.
    calls::start();
    card::provide();
    // SAFETY: three functions that live as long as the library, which is never unloaded.
    unsafe { pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    // SAFETY: as above.
    unsafe { libc::atexit(exit) };
    // SAFETY: as above.
    unsafe { at_quick_exit(exit) };
}

/// Before a `fork`.
pub fn before_fork() {
    calls::before_fork();
}

/// After it, in the parent.
pub fn after_fork_in_parent() {
    calls::after_fork_in_parent();
}

/// After it, in the child.
pub fn after_fork_in_child() {
    handler::after_fork();
    calls::after_fork_in_child();
}

extern "C" fn prepare() {
    before_fork();
}

extern "C" fn parent() {
    after_fork_in_parent();
}

extern "C" fn child() {
    after_fork_in_child();
}

extern "C" fn exit() {
    end();
}

/// The process is about to end. The kernel closes what one leaves that may make no calls of ours, or ends within one.
pub fn end() {
    if STARTED.load(Ordering::Acquire) && !engine::is_shut_in() && !signal::is_inside() {
        calls::at_exit();
    }
}

static STARTED: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
    fn at_quick_exit(function: extern "C" fn()) -> c_int;
}
