//! `fork`: the parent goes on as before; the child begins anew, with the streams that were on TCP.

use std::{cell::RefCell, sync::MutexGuard};

use sidestep_shm::descriptor;

use crate::{custody, engine, kernel, sleep, stream::Stream, table};

thread_local! {
    /// Held by the thread that forks, so that the table is whole in the child.
    static HELD: RefCell<Option<MutexGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// Before.
pub fn before() {
    let guard = table::change();
    custody::forking();
    HELD.with(|held| held.replace(Some(guard)));
}

/// After, in the parent.
pub fn in_parent() {
    HELD.with(|held| held.replace(None));
}

/// After, in the child. Other threads of the parent may have been anywhere: nothing that they could have locked is
/// touched.
pub fn in_child() {
    engine::after_fork();
    sleep::after_fork();
    table::forget_free();
    // One new stream for each old one, however many numbers lead to it.
    let mut renewed: Vec<(&'static Stream, &'static Stream)> = Vec::new();
    for fd in table::numbers(0, u32::MAX) {
        if table::set(fd).is_some() {
            table::clear(fd);
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
    let kept: Vec<i32> = descriptor::all_kept().collect();
    for fd in kept {
        let _ = kernel::close(fd);
        descriptor::closed(fd);
    }
    HELD.with(|held| held.replace(None));
}
