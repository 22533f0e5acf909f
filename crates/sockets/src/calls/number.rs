//! Numbers of descriptors: `close`, `dup` and their kin.

use sidestep_sys::descriptor;

use crate::{
    descriptors::table,
    kernel::{self, Errno, Result, signal::Inside},
    streams::{Stream, lock},
};

/// Whether a descriptor is internal: the program may neither close it nor put another in its place.
#[inline]
pub fn is_internal(fd: i32) -> bool {
    descriptor::is_kept(fd)
}

/// Makes a call about the limit of descriptors, which the engine raises now and then for a moment.
pub fn with_still_limit<T>(call: impl FnOnce() -> T) -> T {
    let _inside = Inside::enter();
    descriptor::with_still_limit(call)
}

/// The lowest number that is internal.
#[inline]
pub fn first_internal() -> Option<i32> {
    descriptor::all_kept().next()
}

/// The engine itself is about to close a descriptor.
pub fn internal_closed(fd: i32) {
    descriptor::closed(fd);
}

/// `close`. Closes the descriptor, too.
pub fn close(fd: i32) -> Result<()> {
    let _inside = Inside::enter();
    let change = table::change();
    if let Some(set) = table::set(fd) {
        table::clear(fd);
        set.drop_number();
        return kernel::close(fd);
    }
    let Some(stream) = table::stream(fd) else {
        // Another thread was faster, and the number may be anyone's.
        drop(change);
        return kernel::close(fd);
    };
    table::clear(fd);
    let last = stream.drop_number(fd);
    leave_sets(stream, fd, last);
    // One that is not the last waits for nothing.
    if last { stream.close(change) } else { kernel::close(fd) }
}

/// `close_range` and `closefrom`, without CLOSE_RANGE_CLOEXEC: closes all of them but internal ones.
pub fn close_range(first: u32, last: u32) -> Result<()> {
    if first > last {
        return Err(Errno(libc::EINVAL));
    }
    let ours: Vec<i32> = table::numbers(first, last).collect();
    for fd in ours {
        let _ = close(fd);
    }
    let mut from = first;
    for kept in descriptor::all_kept().map(|fd| fd as u32).filter(|fd| (first..=last).contains(fd)) {
        if kept > from {
            kernel::close_range(from, kept - 1)?;
        }
        from = kept + 1;
    }
    if from <= last { kernel::close_range(from, last) } else { Ok(()) }
}

/// `dup`, `dup2`, `dup3` or F_DUPFD has made `new` from `old`, which is a stream or a set of ours. Whatever `new` was
/// before has been given to [`replaced`].
pub fn duplicated(old: i32, new: i32) {
    let _inside = Inside::enter();
    let _change = table::change();
    if let Some(set) = table::set(old) {
        if table::put_set(new, set) {
            set.add_number();
        }
    } else if let Some(stream) = table::stream(old)
        && table::put_stream(new, stream)
    {
        stream.add_number(new);
        let sets = lock(&stream.sets).clone();
        for set in sets.into_iter().filter_map(table::set_at) {
            set.renumbered(new, stream);
        }
    }
}

/// `dup2` or `dup3` is about to put something else in the place of this descriptor of ours.
pub fn replaced(fd: i32) {
    let _inside = Inside::enter();
    let _change = table::change();
    if let Some(set) = table::set(fd) {
        table::clear(fd);
        set.drop_number();
    } else {
        forget_number(fd);
    }
}

/// A number of a stream is about to be closed by someone else. The anchor lives on in a copy until the stream has ended.
pub(super) fn forget_number(fd: i32) {
    let Some(stream) = table::stream(fd) else { return };
    table::clear(fd);
    let last = stream.drop_number(fd);
    leave_sets(stream, fd, last);
    if last {
        stream.detach(fd);
    }
}

/// The kernel has just given out this number: whatever was known of it was closed unseen.
pub fn lost(fd: i32) {
    let _inside = Inside::enter();
    let _change = table::change();
    if let Some(set) = table::set(fd) {
        table::clear(fd);
        set.drop_number();
    } else if let Some(stream) = table::stream(fd) {
        lose_number(fd, stream);
    }
}

/// The kernel has refused a call on this number as one on no socket. If that is so, the number was closed unseen, past libc,
/// and is another file's by now, or nobody's. `true`: it is not a stream of ours.
pub fn is_lost(fd: i32) -> bool {
    let _inside = Inside::enter();
    let _change = table::change();
    let Some(stream) = table::stream(fd) else { return true };
    let kind = kernel::option(fd, libc::SOL_SOCKET, libc::SO_TYPE);
    let lost = matches!(kind, Err(Errno(libc::ENOTSOCK | libc::EBADF)));
    if lost {
        lose_number(fd, stream);
    }
    lost
}

fn lose_number(fd: i32, stream: &'static Stream) {
    table::clear(fd);
    let last = stream.drop_number(fd);
    leave_sets(stream, fd, last);
    if last {
        stream.lose();
    }
}

fn leave_sets(stream: &Stream, fd: i32, last: bool) {
    // With the last number the list goes, too: it is taken out and its memory given back, not copied.
    let mut sets = match last {
        true => std::mem::take(&mut *lock(&stream.sets)),
        false => lock(&stream.sets).clone(),
    };
    for set in sets.iter().filter_map(|index| table::set_at(*index)) {
        set.closed(fd, stream, last);
    }
    if last {
        sets.clear();
        *lock(&stream.sets) = sets;
    }
}

/// In a process that has shut itself in: the program is about to close this number itself.
pub fn abandon(fd: i32) {
    let _inside = Inside::enter();
    let _change = table::change();
    table::clear(fd);
}
