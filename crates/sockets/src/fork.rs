//! `fork`: the parent goes on as before; the child begins anew, with the streams that were on TCP.

use std::{
    cell::Cell,
    mem::ManuallyDrop,
    sync::atomic::{AtomicU32, Ordering},
};

use sidestep_shm::{descriptor, family::process_generation, lock::MutexGuard, procfs};

use crate::{
    custody, engine, jump, kernel,
    registry::file,
    set::Set,
    signal::Quiet,
    sleep,
    sovia::timer::Still,
    stream::Stream,
    table::{self, Forking},
};

/// Held by the thread that forks, so that the table and the registry are whole in the child. No handler runs meanwhile. Given
/// back from the first to the last.
#[allow(dead_code)]
struct Held(Still, MutexGuard<'static, ()>, Forking, Quiet);

thread_local! {
    static HELD: Cell<Option<ManuallyDrop<Held>>> = const { Cell::new(None) };
}

/// The process that the table belongs to; 0 until it is first asked.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Before anything is promoted: a child that was made without `fork` (a bare `clone`, `_Fork`) has not been told, and
/// begins anew now.
pub fn check() {
    let now = process_generation();
    if OWNER.load(Ordering::Acquire) == now {
        return;
    }
    if OWNER.swap(now, Ordering::AcqRel) != 0 {
        in_child();
    }
}

/// Before.
pub fn before() {
    let quiet = Quiet::enter();
    check();
    let table = table::forking();
    let keeping = file::none_keeps();
    let held = Held(Still::hold(), keeping, table, quiet);
    custody::forking();
    HELD.set(Some(ManuallyDrop::new(held)));
}

/// After, in the parent.
pub fn in_parent() {
    drop(HELD.take().map(ManuallyDrop::into_inner));
}

/// After, in the child. Other threads of the parent may have been anywhere: nothing that they could have locked is
/// touched.
pub fn in_child() {
    OWNER.store(process_generation(), Ordering::Release);
    descriptor::after_fork();
    engine::after_fork();
    sleep::after_fork();
    jump::after_fork();
    table::forget_free();
    // One new stream for each old one, however many numbers lead to it; and one new set.
    let mut renewed: Vec<(&'static Stream, &'static Stream)> = Vec::new();
    let mut renewed_sets: Vec<(&'static Set, &'static Set)> = Vec::new();
    for fd in table::numbers(0, u32::MAX) {
        if let Some(old) = table::set(fd) {
            table::clear(fd);
            if let Some((_, new)) = renewed_sets.iter().find(|(of, _)| std::ptr::eq(*of, old)) {
                new.add_number();
                table::put_set(fd, new);
            } else if let Some(new) = table::new_set() {
                new.inherit(fd);
                table::put_set(fd, new);
                renewed_sets.push((old, new));
            }
            continue;
        }
        let Some(old) = table::stream(fd) else { continue };
        if let Some((_, new)) = renewed.iter().find(|(of, _)| std::ptr::eq(*of, old)) {
            new.add_number(fd);
            table::put_stream(fd, new);
            continue;
        }
        table::clear(fd);
        if let Some(new) = table::new_stream() {
            new.inherit(old, fd);
            table::put_stream(fd, new);
            renewed.push((old, new));
        }
    }
    custody::forked();
    // The parent's lifelines and doorbells would keep it alive in the eyes of its peers.
    let kept: Vec<i32> = descriptor::all_kept().filter(|fd| !procfs::is_kept(*fd)).collect();
    for fd in kept {
        descriptor::closed(fd);
        let _ = kernel::close(fd);
    }
    in_parent();
}
