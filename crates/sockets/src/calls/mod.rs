//! What the preload library calls, one function per intercepted call. Descriptors are the program's.
//!
//! A call that is not for a descriptor of ours ([`owns`], [`is_set`]) goes to the real function and not here. Every
//! function keeps `errno` out of it: errors are returned. Functions that may sleep do so without a lock.

use std::{
    io::{IoSlice, IoSliceMut},
    sync::atomic::Ordering,
};

use sidestep_stream::carrier::Watch;

use crate::{
    config::{Promote, config},
    descriptors::{table, unseen},
    kernel::{self, Errno, Result, messages::Control, signal::Inside},
    processes::{custody, fork},
    promotion::{engine, leaving},
    readiness::asking,
    registry::reason::Reason,
    streams::{READ, Stage, Stream, WRITE, lock},
};

mod alone;
pub mod io;
mod number;
mod process;
mod program;
mod unread;
mod waits;

pub use alone::{
    add_alone, count_alone, has_bytes_alone, receive_alone, set_has_bytes_alone, set_was_controlled, sort_in,
};
use number::forget_number;
pub use number::{
    abandon, close, close_range, duplicated, first_internal, internal_closed, is_internal, is_lost, lost, replaced,
    with_still_limit,
};
pub use process::{
    after_fork_in_child, after_fork_in_parent, at_exit, before_fork, highest_selected, keep_registry, lending, lent,
    start,
};
pub use program::{executing, started, starting, stays};
pub use waits::{any_owned, cancelled, poll, select, set_control, set_created, set_wait};

pub use crate::{descriptors::table::Found, streams::reader::alone::ROOM as ROOM_ALONE};

/// Whether a descriptor is a stream of ours. A table look-up.
#[inline]
pub fn owns(fd: i32) -> bool {
    table::stream(fd).is_some()
}

/// The stream behind a descriptor, for [`receive_from`] and [`send_to`].
#[inline]
pub fn find(fd: i32) -> Option<Found> {
    table::find(fd)
}

/// Whether the process has connections or sets that are ours, or has had one that left TCP.
pub fn has_begun() -> bool {
    let begun =
        |fd| is_set(fd) || table::stream(fd).is_some_and(|stream| stream.origin.connected.load(Ordering::Relaxed));
    engine::running().is_some() || table::numbers(0, u32::MAX).any(begun)
}

/// Whether a descriptor is an epoll set of ours.
#[inline]
pub fn is_set(fd: i32) -> bool {
    table::set(fd).is_some()
}

/// Which path a stream reads from and writes to; `true` is the ring.
pub fn paths(fd: i32) -> Option<(bool, bool)> {
    let stream = table::stream(fd)?;
    let [reads, writes] = [READ, WRITE].map(|direction| stream.on_ring(direction));
    Some((reads, writes))
}

/// `socket` has returned this socket of TCP, in this mode. It is a stream from now on, so that all is known that is done to
/// it before it is connected: sets that it is put into, copies, options, children that have it.
pub fn made(fd: i32, nonblocking: bool) {
    track(fd, || nonblocking, |_| {});
}

/// `connect` on this socket has returned 0, or -1 with EINPROGRESS.
pub fn connected(fd: i32) {
    engine::told_kernel();
    asking::asked();
    if let Some(stream) = table::stream(fd) {
        stream.origin.asks.store(true, Ordering::Relaxed);
        return stream.origin.connected.store(true, Ordering::Relaxed);
    }
    if kernel::is_tcp(fd) {
        // Made elsewhere, or connected a second time: whatever reports it is not known.
        let began = |stream: &Stream| {
            stream.origin.asks.store(true, Ordering::Relaxed);
            stream.origin.connected.store(true, Ordering::Relaxed);
            stream.origin.foreign.store(true, Ordering::Relaxed);
        };
        track(fd, || kernel::is_nonblocking(fd), began);
    }
}

/// `accept` or `accept4` has returned this socket of TCP, in this mode.
pub fn accepted(fd: i32, nonblocking: bool) {
    track(fd, || nonblocking, |stream| stream.origin.connected.store(true, Ordering::Relaxed));
}

/// `connect` with AF_UNSPEC has undone the connection of this stream, which has gone back to TCP. The socket is the kernel's
/// from now on, and so are its registrations.
pub fn dissolved(fd: i32) {
    let _inside = Inside::enter();
    let _change = table::change();
    let Some(stream) = table::stream(fd) else { return };
    let sets = lock(&stream.sets).clone();
    sets.into_iter().filter_map(table::set_at).for_each(|set| set.release(stream));
    let others: Vec<i32> =
        table::numbers(0, u32::MAX).filter(|other| table::slot(*other).is_some_and(|slot| slot.is(stream))).collect();
    others.into_iter().for_each(forget_number);
}

fn track(fd: i32, nonblocking: impl FnOnce() -> bool, began: impl FnOnce(&Stream)) {
    if config().promote == Promote::Never {
        return;
    }
    let _inside = Inside::enter();
    fork::check();
    let _change = table::change();
    if table::stream(fd).is_some() {
        // Closed behind the library's back.
        forget_number(fd);
    }
    if let Some(stream) = table::new_stream() {
        stream.begin(fd, nonblocking());
        began(stream);
        if !table::put_stream(fd, stream) {
            table::recycle_stream(stream);
        }
    }
}

/// Any of the receiving calls. `flags` as for `recv`; for `read` 0. The list of parts is used up as bytes come.
#[inline]
pub fn receive(fd: i32, parts: &mut [IoSliceMut<'_>], flags: i32) -> Result<usize> {
    receive_from(table::find(fd), fd, parts, flags)
}

/// The same for a descriptor that was just [found](find).
#[inline]
pub fn receive_from(found: Option<Found>, fd: i32, parts: &mut [IoSliceMut<'_>], flags: i32) -> Result<usize> {
    match found {
        Some(found) => io::receive(fd, found, parts, flags, None),
        None => kernel::receive(fd, parts, flags),
    }
}

/// `recvmsg`: any of the receiving calls, with room for control messages.
pub fn receive_message(fd: i32, parts: &mut [IoSliceMut<'_>], flags: i32, control: &mut Control<'_>) -> Result<usize> {
    control.clear();
    let Some(found) = table::find(fd) else { return kernel::receive_message(fd, parts, flags, control) };
    let count = io::receive(fd, found, parts, flags, Some(&mut *control))?;
    unread::tell(control, found.stream);
    Ok(count)
}

/// Any of the sending calls. On EPIPE the caller raises SIGPIPE, unless the flags say MSG_NOSIGNAL.
#[inline]
pub fn send(fd: i32, parts: &[IoSlice<'_>], flags: i32) -> Result<usize> {
    send_to(table::find(fd), fd, parts, flags)
}

/// The same for a descriptor that was just [found](find).
#[inline]
pub fn send_to(found: Option<Found>, fd: i32, parts: &[IoSlice<'_>], flags: i32) -> Result<usize> {
    match found {
        Some(found) => io::send(fd, found, parts, flags),
        None => kernel::send(fd, parts, flags),
    }
}

/// `sendfile` to a stream of ours.
pub fn send_file(out: i32, file: i32, offset: Option<&mut i64>, count: usize) -> Result<usize> {
    match table::stream(out) {
        Some(stream) => io::send_file(out, stream, file, offset, count),
        None => kernel::send_file(out, file, offset, count),
    }
}

/// `splice` between a stream of ours and a pipe.
pub fn splice(from: i32, to: i32, count: usize, nonblocking: bool) -> Result<usize> {
    match (table::stream(from), table::stream(to)) {
        (Some(_), _) => io::splice_out(from, to, count, nonblocking),
        (None, Some(_)) => io::splice_in(to, from, count),
        (None, None) => Err(Errno(libc::EINVAL)),
    }
}

/// `shutdown`. Does the kernel's part, too.
pub fn shutdown(fd: i32, how: i32) -> Result<()> {
    let Some(stream) = table::stream(fd) else { return kernel::shutdown(fd, how) };
    let _inside = Inside::enter();
    stream.take_over();
    stream.end_sharing();
    if how == libc::SHUT_WR
        && let Some(outcome) = stream.shut_young()
    {
        return outcome;
    }
    // Everything written before is in the ring, so the peer finds it before the end.
    let (mut reader, mut writer) = (stream.reader(), stream.writer());
    if matches!(how, libc::SHUT_WR | libc::SHUT_RDWR) {
        stream.ends.sends_no_more.store(true, Ordering::SeqCst);
        writer.end(stream);
        writer.refuse_returns();
    }
    stream.ends.is_shut.store(true, Ordering::Relaxed);
    stream.edges.stirs.fetch_add(1, Ordering::Relaxed);
    let outcome = kernel::shutdown(stream.fd(), how);
    engine::told_kernel();
    if outcome.is_ok() && matches!(how, libc::SHUT_RD | libc::SHUT_RDWR) {
        reader.shut();
    }
    outcome
}

/// The kernel has taken a socket option.
pub fn option_was_set(fd: i32, level: i32, name: i32, value: &[u8]) {
    let Some(stream) = table::stream(fd) else { return };
    let _inside = Inside::enter();
    if (level, name) == (libc::IPPROTO_TCP, libc::TCP_NODELAY)
        && let Some(carrier) = stream.carrier()
    {
        carrier.watch().set_prompt(value.iter().any(|byte| *byte != 0));
    }
    if (level, name) == (libc::IPPROTO_TCP, libc::TCP_INQ) {
        stream.tells_unread.store(value.iter().any(|byte| *byte != 0), Ordering::Relaxed);
    }
    if level != libc::SOL_SOCKET {
        return;
    }
    let half = |at: usize| value.get(at..at + 4).map(|bytes| i32::from_ne_bytes(bytes.try_into().expect("four bytes")));
    match name {
        libc::SO_RCVTIMEO | libc::SO_SNDTIMEO => {
            let direction = if name == libc::SO_RCVTIMEO { READ } else { WRITE };
            stream.set_timeout_option(direction, value);
        }
        libc::SO_RCVLOWAT => {
            stream.record().shared().set_low_water(half(0).unwrap_or(1).max(1) as u32);
            stream.edges.stirs.fetch_add(1, Ordering::Relaxed);
        }
        _ => {}
    }
}

/// The program has asked for SO_ERROR, and there was one.
pub fn error_was_told(fd: i32) {
    if let Some(stream) = table::stream(fd).filter(|stream| stream.stage() == Stage::Carried) {
        stream.tells_error();
    }
}

/// The kernel has taken F_SETFL or FIONBIO; `nonblocking` is the new mode.
pub fn mode_was_set(fd: i32, nonblocking: bool) {
    if let Some(stream) = table::stream(fd) {
        stream.record().shared().set_nonblocking(nonblocking);
    }
}

/// FIONREAD.
pub fn readable_bytes(fd: i32) -> Result<usize> {
    let Some(stream) = table::stream(fd) else { return kernel::ask(fd, libc::FIONREAD).map(|bytes| bytes as usize) };
    let _inside = Inside::enter();
    stream.reader_for_call().available(stream)
}

/// SIOCOUTQ. Bytes in the ring have arrived.
pub fn unsent_bytes(fd: i32) -> Result<usize> {
    kernel::ask(fd, libc::TIOCOUTQ).map(|bytes| bytes as usize)
}

/// Moves a stream back to TCP for good, and waits until the kernel has all of it: for calls that only the kernel can
/// carry out (`splice`, MSG_OOB, an option that is not in the table).
pub fn leave(fd: i32, reason: Reason) {
    if let Some(stream) = table::stream(fd) {
        leaving::leave(stream, reason);
    }
}

/// The same for every stream of the process: a sandbox ([`Reason::Sandboxed`]: nothing is promoted afterwards), `exec`
/// ([`Reason::Passed`]: only those that live on).
pub fn leave_all(reason: Reason) {
    leaving::leave_all(reason);
}

/// The process is about to be another user's: what comes later meets the processes of that one.
pub fn change_user() {
    leaving::change_user();
}

/// It has tried to, or may have.
pub fn changed_user() {
    leaving::changed_user();
}

/// Whether every call on this stream is the kernel's alone.
pub fn is_kernels(fd: i32) -> bool {
    let _inside = Inside::enter();
    table::stream(fd).is_none_or(leaving::is_kernels)
}

/// The same for a set.
pub fn is_kernels_set(fd: i32) -> bool {
    table::set(fd).is_none_or(|set| set.is_exported())
}

/// The program makes an io_uring, by which it may wait for any stream.
pub fn waits_unseen() {
    unseen::found();
    leave_all(Reason::UnseenWaits);
}

/// The program is about to pass these descriptors to another process.
pub fn passing(fds: &[i32]) {
    let _inside = Inside::enter();
    leaving::leave_whole(&streams(fds), Reason::Passed);
    give_away(fds);
}

/// Standard input, output or error is this stream from now on: libc reads and writes it by itself. As long as it is, it stays on
/// TCP.
pub fn is_standard(fd: i32) {
    leaving::leave_to_program(&streams(&[fd]));
}

/// Every number that is a stream or a set of ours.
pub fn numbers() -> impl Iterator<Item = i32> {
    table::numbers(0, u32::MAX)
}

/// Moves a stream back to TCP for good, before a call that only the kernel can carry out and that reads all of it.
pub fn leave_whole(fd: i32) {
    leaving::leave_whole(&streams(&[fd]), Reason::Option);
}

/// After a stream was moved back to TCP for good: whether its peer did not follow, so that there is something to read which
/// the kernel does not have.
pub fn has_rest(fd: i32) -> bool {
    table::stream(fd).is_some_and(leaving::has_rest)
}

/// Takes that.
pub fn take_rest(fd: i32) -> Vec<u8> {
    table::stream(fd).map_or(Vec::new(), leaving::take_rest)
}

fn streams(fds: &[i32]) -> Vec<&'static Stream> {
    fds.iter().filter_map(|fd| table::stream(*fd)).collect()
}

fn give_away(fds: &[i32]) {
    // Who waits on a set elsewhere knows nothing of rings.
    fds.iter().filter_map(|fd| table::set(*fd)).for_each(|set| set.export());
    // The table of custody is made when it is first needed: not while another thread forks.
    let _change = table::change();
    let sockets = fds.iter().filter(|fd| table::set(**fd).is_none());
    for cookie in sockets.filter_map(|fd| kernel::cookie(*fd).ok()) {
        custody::given_away(cookie);
    }
}
