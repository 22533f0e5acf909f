//! Calls of a process that has shut itself in: the program makes them itself, and the engine says what it has without the kernel.

use std::io::IoSliceMut;

use crate::{
    descriptors::table,
    kernel::{Result, signal::Inside},
    promotion::leaving,
    readiness::set::Set,
    streams::{READ, WRITE},
};

/// In a process that has shut itself in: what a receiving call can give without the kernel. 0: the program's own call is to
/// be made, and [`sort_in`] told of it.
pub fn receive_alone(fd: i32, parts: &mut [IoSliceMut<'_>], flags: i32) -> Result<usize> {
    let Some(stream) = table::stream(fd) else { return Ok(0) };
    let _inside = Inside::enter();
    stream.reader().take_alone(stream, parts, flags)
}

/// In a process that has shut itself in: the program's own receiving call has given `count` bytes, 0 at the end.
pub fn sort_in(fd: i32, parts: &mut [IoSliceMut<'_>], count: usize, flags: i32) -> Result<usize> {
    let Some(stream) = table::stream(fd) else { return Ok(count) };
    let _inside = Inside::enter();
    stream.reader().sort_in(stream, parts, count, flags)
}

/// In a process that has shut itself in: a call of the program's own has carried so many bytes of a stream, which others may go
/// on with.
pub fn count_alone(fd: i32, is_read: bool, count: usize) {
    if let Some(stream) = table::stream(fd) {
        stream.count_alone(if is_read { READ } else { WRITE }, count);
    }
}

/// In a process that has shut itself in: whether a receiving call would be given bytes without the kernel.
pub fn has_bytes_alone(fd: i32) -> bool {
    let _inside = Inside::enter();
    table::stream(fd).is_some_and(leaving::has_bytes)
}

/// The same for any member of a set: then the program's own wait is not to wait, and [`add_alone`] told of it.
pub fn set_has_bytes_alone(set: i32) -> bool {
    let _inside = Inside::enter();
    table::set(set).is_some_and(Set::has_bytes_alone)
}

/// In a process that has shut itself in: the program's own wait has given `count` events. Adds those of members that have
/// bytes here, and returns how many there are.
pub fn add_alone(set: i32, events: &mut [libc::epoll_event], count: usize) -> usize {
    let _inside = Inside::enter();
    table::set(set).map_or(count, |set| set.add_alone(events, count))
}

/// In a process that has shut itself in: the kernel has carried out an `epoll_ctl`.
pub fn set_was_controlled(set: i32, op: i32, fd: i32, event: Option<libc::epoll_event>) {
    let _inside = Inside::enter();
    if let (Some(set), Some(stream)) = (table::set(set), table::stream(fd)) {
        set.was_controlled(op, fd, stream, event);
    }
}
