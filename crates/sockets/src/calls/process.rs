//! Calls by which a process begins, forks, changes what it may do, and ends.

use std::sync::atomic::{AtomicU32, Ordering};

use sidestep_sys::{clock, process};

use crate::{
    config::{Promote, complain, config},
    descriptors::{numbers, table},
    kernel::{
        signal::{self, Inside},
        thread_end,
    },
    processes::{custody, fork},
    promotion::engine,
    registry,
};

/// How long the end of a process waits until its peers have what it sent over a wire.
const DELIVER_NS: u64 = 1_000_000_000;

/// The process is about to change its root: the registry is opened before.
pub fn keep_registry() {
    let _inside = Inside::enter();
    numbers::choose();
    registry::file::keep();
}

/// A child is about to run in this thread's place (`vfork`): whatever it hands on is on TCP, and stays there until the end
/// of that time.
pub fn lending() {
    fork::lend();
}

/// That time is over.
pub fn lent() {
    fork::take_back();
}

/// Before anything else, and before the handlers for `fork` are registered.
pub fn start() {
    thread_end::start();
    sidestep_sys::lock::only_where(signal::puts_off);
    // What they close is ours, and closed for good.
    sidestep_sys::signal::threads_begin_with(|| std::mem::forget(Inside::enter()));
    sidestep_sys::lock::learn_threads();
    let _inside = Inside::enter();
    fork::check();
    complain();
    if config().promote != Promote::Never {
        numbers::start();
        custody::program::adopt();
    }
}

/// Beyond this number `select` would not look, if the engine had no descriptors.
pub fn highest_selected() -> u32 {
    let _inside = Inside::enter();
    numbers::table()
}

/// `pthread_atfork`, before.
pub fn before_fork() {
    fork::before();
}

/// `pthread_atfork`, in the parent.
pub fn after_fork_in_parent() {
    fork::in_parent();
}

/// `pthread_atfork`, in the child.
pub fn after_fork_in_child() {
    let _inside = Inside::enter();
    fork::in_child();
}

/// The process that has been through [`at_exit`].
static ENDING: AtomicU32 = AtomicU32::new(0);

/// The process is about to end in an orderly way. It may say so twice: a function that runs at its end may end it at once.
pub fn at_exit() {
    let _inside = Inside::enter();
    if !fork::is_own() {
        return;
    }
    let generation = process::generation();
    if ENDING.swap(generation, Ordering::Relaxed) == generation {
        return;
    }
    let mut distant = Vec::new();
    for fd in table::numbers(0, u32::MAX) {
        let Some(stream) = table::stream(fd) else { continue };
        distant.extend(stream.carrier().filter(|carrier| carrier.capabilities().far));
        stream.publish_counts();
        if let Some((mut reader, mut writer)) = stream.try_both() {
            stream.tell_end(&mut reader, &mut writer);
        }
        custody::releasing(fd);
        if let Some(place) = stream.known_place().filter(|_| stream.fd() == fd) {
            place.engine.registry.add_totals(place.engine.process, place.entry);
        }
    }
    // Nobody goes on with it afterwards.
    let until = clock::now() + DELIVER_NS;
    distant.iter().for_each(|carrier| carrier.deliver(until));
    if let Some(engine) = engine::running() {
        engine.registry.withdraw(engine.process);
    }
}
