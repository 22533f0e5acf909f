//! What is posted, and where it is told that it has been done: lists of pieces, and completion queues.

use std::{ffi::c_int, os::fd::IntoRawFd};

use sidestep_extended::{Completion, CompletionQueue, Error, Kind, Piece, Remote, Socket, in_milliseconds};

use super::{
    BAD_ARGUMENT, Failure, NO_QUEUE, NO_REGION, Result, answer, deadline, offset, on_remote, socket,
    table::{Table, borrowed},
    unit,
};
use crate::errno;

/// `struct ss_piece`.
#[repr(C)]
pub struct CPiece {
    region: u64,
    offset: usize,
    length: usize,
}

/// `struct ss_completion`.
#[repr(C)]
pub struct CCompletion {
    token: u64,
    length: u64,
    kind: i32,
    error: i32,
    fd: i32,
    unused: i32,
}

const _: () = assert!(size_of::<CPiece>() == 24 && size_of::<CCompletion>() == 32);

pub(super) fn queue(table: &Table, fd: c_int) -> Result<CompletionQueue> {
    table.entries().queues.get(&fd).cloned().ok_or(NO_QUEUE)
}

/// # Safety
/// P1: `pieces` is valid for `count` reads.
unsafe fn gathered(table: &Table, pieces: *const CPiece, count: c_int) -> Result<Vec<Piece>> {
    let count = usize::try_from(count).map_err(|_| BAD_ARGUMENT)?;
    if pieces.is_null() && count > 0 {
        return Err(BAD_ARGUMENT);
    }
    let entries = table.entries();
    let mut gathered = Vec::with_capacity(count.min(64));
    for at in 0..count {
        // SAFETY: P1.
        let piece = unsafe { pieces.wrapping_add(at).read() };
        let region = entries.regions.get(piece.region).ok_or(NO_REGION)?;
        gathered.push(region.piece(piece.offset, piece.length)?);
    }
    Ok(gathered)
}

#[unsafe(no_mangle)]
pub extern "C" fn ss_queue_create() -> c_int {
    answer(-1, |table| {
        let queue = table.stack()?.completion_queue()?;
        let copy = queue.descriptor()?.try_clone_to_owned();
        // A number of the program's own: it closes it.
        let fd = copy.map_err(|_| Failure::Argument(libc::EMFILE, "no descriptor is left for a queue"))?.into_raw_fd();
        table.add_queue(fd, queue);
        Ok(fd)
    })
}

/// # Safety
/// P1: `into` is valid for `most` writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ss_queue_poll(fd: c_int, into: *mut CCompletion, most: c_int) -> c_int {
    answer(-1, |table| {
        let most = usize::try_from(most).map_err(|_| BAD_ARGUMENT)?;
        if into.is_null() && most > 0 {
            return Err(BAD_ARGUMENT);
        }
        let mut taken = Vec::new();
        queue(table, fd)?.poll(&mut taken, most);
        for (at, completion) in taken.iter().enumerate() {
            // SAFETY: P1: no more than `most`.
            unsafe { into.wrapping_add(at).write(told(table, completion)) };
        }
        Ok(taken.len() as c_int)
    })
}

/// # Safety
/// As for `ss_queue_poll`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ss_queue_wait(fd: c_int, into: *mut CCompletion, most: c_int, timeout_ms: c_int) -> c_int {
    let until = deadline(timeout_ms);
    loop {
        // SAFETY: as for this function.
        let taken = unsafe { ss_queue_poll(fd, into, most) };
        if taken != 0 || most == 0 {
            return taken;
        }
        let left = until.map(|until| until.saturating_sub(in_milliseconds(0)));
        if left == Some(0) {
            return 0;
        }
        // Outside the engine: a handler runs at once, and ends the wait.
        let Some(descriptor) = borrowed(fd) else { return errno::fail(libc::EBADF) as c_int };
        let left = left.map(|left| rustix::event::Timespec {
            tv_sec: (left / 1_000_000_000) as i64,
            tv_nsec: (left % 1_000_000_000) as i64,
        });
        let mut fds = [rustix::event::PollFd::new(&descriptor, rustix::event::PollFlags::IN)];
        if let Err(error) = rustix::event::poll(&mut fds, left.as_ref()) {
            return errno::fail(error.raw_os_error()) as c_int;
        }
    }
}

fn told(table: &Table, completion: &Completion) -> CCompletion {
    let kind = match completion.kind {
        Kind::Put => 1,
        Kind::Get => 2,
        Kind::Send => 3,
        Kind::Receive => 4,
        Kind::Notice => 5,
        Kind::Export => 6,
        Kind::Closed => 7,
    };
    let (length, error) = match &completion.outcome {
        Ok(length) => (*length as u64, 0),
        Err(error) => (0, error.errno()),
    };
    CCompletion { token: completion.token, length, kind, error, fd: table.fd_of(completion), unused: 0 }
}

/// An operation on a remote region that is posted.
type Post = fn(&Socket, &Remote, usize, Vec<Piece>, u64) -> std::result::Result<(), Error>;

/// # Safety
/// P1: `pieces` is valid for `count` reads.
unsafe fn post(
    (fd, remote, at): (c_int, u64, u64),
    (pieces, count): (*const CPiece, c_int),
    token: u64,
    post: Post,
) -> c_int {
    unit(|table| {
        // SAFETY: as for this function.
        let (at, pieces) = (offset(at)?, unsafe { gathered(table, pieces, count) }?);
        on_remote(table, (fd, remote, usize::MAX), |socket, remote| post(socket, remote, at, pieces, token))
    })
}

/// # Safety
/// P1: `pieces` is valid for `count` reads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ss_post_put(
    fd: c_int,
    remote: u64,
    at: u64,
    pieces: *const CPiece,
    count: c_int,
    token: u64,
) -> c_int {
    // SAFETY: as for this function.
    unsafe { post((fd, remote, at), (pieces, count), token, Socket::post_put) }
}

/// # Safety
/// P1: `pieces` is valid for `count` reads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ss_post_get(
    fd: c_int,
    remote: u64,
    at: u64,
    pieces: *const CPiece,
    count: c_int,
    token: u64,
) -> c_int {
    // SAFETY: as for this function.
    unsafe { post((fd, remote, at), (pieces, count), token, Socket::post_get) }
}

/// # Safety
/// P1: `pieces` is valid for `count` reads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ss_post_send(fd: c_int, pieces: *const CPiece, count: c_int, token: u64) -> c_int {
    unit(|table| {
        // SAFETY: as for this function.
        let pieces = unsafe { gathered(table, pieces, count) }?;
        Ok(socket(table, fd)?.post_send(pieces, token)?)
    })
}

/// # Safety
/// P1: `pieces` is valid for `count` reads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ss_post_recv(fd: c_int, pieces: *const CPiece, count: c_int, token: u64) -> c_int {
    unit(|table| {
        // SAFETY: as for this function.
        let pieces = unsafe { gathered(table, pieces, count) }?;
        Ok(socket(table, fd)?.post_recv(pieces, token)?)
    })
}
