//! Calls on a connection that is too young to be promoted, the only ones that a short one ever sees: they are counted, and
//! are the kernel's. One that does not wait is made under the lock of its direction; one that may wait takes no lock.

use std::io::{IoSlice, IoSliceMut};

use crate::{
    descriptors::table,
    kernel::{self, Errno, Result, messages::Control},
    streams::{Passing, READ, Stream, WRITE},
};

use super::{KERNEL_PIECE, receive::from_kernel};

/// A receiving call; `None`: it is not for this file.
#[inline(never)]
pub fn receive(
    fd: i32,
    stream: &'static Stream,
    parts: &mut [IoSliceMut<'_>],
    flags: i32,
    control: Option<&mut Control<'_>>,
) -> Option<Result<usize>> {
    let is_odd = || flags & libc::MSG_PEEK != 0 || parts.iter().all(|part| part.is_empty());
    if is_odd() || stream.inherited_bytes() > 0 || stream.turns_old(READ) {
        return None;
    }
    if never_waits(stream, flags) {
        let flags = flags | libc::MSG_DONTWAIT;
        return stream.call_at_once(fd, READ, |anchor| from_kernel(anchor, parts, flags, control));
    }
    let call = begin(fd, stream, READ)?;
    let outcome = from_kernel(stream.fd(), parts, flags, control);
    call.end(outcome.unwrap_or(0));
    Some(outcome)
}

/// A sending call; `None`: it is not for this file. SIGPIPE is the caller's to raise.
#[inline(never)]
pub fn send(fd: i32, stream: &'static Stream, parts: &[IoSlice<'_>], flags: i32) -> Option<Result<usize>> {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    if len > KERNEL_PIECE || stream.turns_old(WRITE) {
        return None;
    }
    let outcome = if never_waits(stream, flags) {
        let flags = flags | libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        stream.call_at_once(fd, WRITE, |anchor| kernel::send(anchor, parts, flags))?
    } else {
        let call = begin(fd, stream, WRITE)?;
        let outcome = kernel::send(stream.fd(), parts, flags | libc::MSG_NOSIGNAL);
        call.end(outcome.unwrap_or(0));
        outcome
    };
    if matches!(outcome, Ok(count) if count < len) || outcome == Err(Errno(libc::EAGAIN)) {
        stream.is_full();
    }
    Some(outcome)
}

/// Whether a call returns at once, whatever there is.
fn never_waits(stream: &Stream, flags: i32) -> bool {
    stream.is_nonblocking() || flags & libc::MSG_DONTWAIT != 0
}

/// Begins a call that sits in the kernel. `None`: the stream has grown older meanwhile, or the number leads elsewhere.
fn begin(fd: i32, stream: &'static Stream, direction: usize) -> Option<Passing> {
    let call = stream.in_passing(direction);
    // SeqCst: whoever opens the direction, or announces a switch, has made the stream older first. It sees this count, or this
    // sees that.
    (stream.is_young() && table::slot(fd).is_some_and(|slot| slot.is(stream))).then_some(call)
}
