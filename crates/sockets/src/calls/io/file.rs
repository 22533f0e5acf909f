//! Bytes between streams and files or pipes: `sendfile` and `splice`.

use std::{
    cell::Cell,
    io::{IoSlice, IoSliceMut},
    mem::ManuallyDrop,
};

use sidestep_shm::cached::CachedFile;

use crate::{
    calls::{receive, send},
    descriptors::table,
    kernel::{
        self, Errno, Result,
        signal::{self, Inside},
        thread_end::{self, Kept},
    },
    promotion::engine,
    readiness::{poll, sleep},
    streams::{Stream, WRITE},
};

use super::{KERNEL_PIECE, has_failed};

/// Bytes that are copied at a time: few enough to stay in the nearest caches between the two copies.
const PIECE: usize = 32 << 10;
/// Bytes that are read straight into the ring at a time, so that the peer reads meanwhile; and from how many on it is done.
const STRAIGHT: usize = 64 << 10;
const LEAST_STRAIGHT: usize = 8 << 10;

thread_local! {
    static SPARE: Cell<ManuallyDrop<Vec<u8>>> = const { Cell::new(ManuallyDrop::new(Vec::new())) };
}

/// Room for a piece. It goes back to its thread for the next call; a call in a handler makes another.
struct Piece(Vec<u8>);

impl Piece {
    fn new() -> Piece {
        let mut bytes = ManuallyDrop::into_inner(SPARE.take());
        bytes.resize(PIECE, 0);
        Piece(bytes)
    }

    fn of(&mut self, count: usize) -> &mut [u8] {
        &mut self.0[..PIECE.min(count)]
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        thread_end::note(Kept::Buffer, give_back);
        drop(ManuallyDrop::into_inner(SPARE.replace(ManuallyDrop::new(std::mem::take(&mut self.0)))));
    }
}

/// The thread ends.
fn give_back() {
    drop(ManuallyDrop::into_inner(SPARE.take()));
}

/// `splice` from a stream to a pipe: what the pipe takes is taken from the stream, and nothing more.
pub fn splice_out(fd: i32, pipe: i32, count: usize, nonblocking: bool) -> Result<usize> {
    let mut buffer = Piece::new();
    let buffer = buffer.of(count);
    let wait = if nonblocking { libc::MSG_DONTWAIT } else { 0 };
    let seen = receive(fd, &mut [IoSliceMut::new(&mut *buffer)], libc::MSG_PEEK | wait)?;
    if seen == 0 {
        return Ok(0);
    }
    let taken = kernel::write_file(pipe, &buffer[..seen])?;
    receive(fd, &mut [IoSliceMut::new(&mut buffer[..taken])], libc::MSG_DONTWAIT)
}

/// `splice` from a pipe to a stream. What has left the pipe is sent, also if that must wait.
pub fn splice_in(fd: i32, pipe: i32, count: usize) -> Result<usize> {
    let mut buffer = Piece::new();
    let buffer = buffer.of(count);
    let read = kernel::read_file(pipe, buffer, None)?;
    let mut sent = 0;
    while sent < read {
        match send(fd, &[IoSlice::new(&buffer[sent..read])], libc::MSG_NOSIGNAL) {
            Ok(more) => sent += more,
            Err(Errno(libc::EAGAIN)) => {
                let mut entry = [libc::pollfd { fd, events: libc::POLLOUT, revents: 0 }];
                poll::poll(&mut entry, None, None, signal::runs(), poll::Others::Sometimes)?;
            }
            Err(Errno(libc::EINTR) | Errno::RESTART) => {}
            Err(errno) => return if sent > 0 { Ok(sent) } else { Err(errno) },
        }
    }
    Ok(sent)
}

/// `sendfile`: over the ring by copies, else by the kernel. Also one call for a whole large file, as servers make it, goes
/// over to the ring on its way.
pub fn send_file(
    fd: i32,
    stream: &'static Stream,
    file: i32,
    mut offset: Option<&mut i64>,
    count: usize,
) -> Result<usize> {
    let before = signal::runs();
    let _in_use = stream.in_use();
    if count == 0 || !table::slot(fd).is_some_and(|slot| slot.is(stream)) {
        return kernel::send_file(fd, file, offset, count);
    }
    let mut total = 0;
    while total < count {
        let rest = count - total;
        let (outcome, asked) = if goes_over_ring(stream) {
            (copy_file(fd, stream, file, offset.as_deref_mut(), rest), rest)
        } else {
            let piece = rest.min(KERNEL_PIECE);
            match send_file_in_kernel(stream, file, offset.as_deref_mut(), piece) {
                Some(outcome) => (outcome, piece),
                None => continue,
            }
        };
        match outcome {
            Ok(sent) => total += sent,
            Err(errno) if total == 0 => return Err(errno),
            Err(_) => break,
        }
        // The end of the file, no space and no waiting, or a handler that ran: the kernel would end here, too.
        if outcome.is_ok_and(|sent| sent < asked)
            || sleep::is_interrupted(before, true)
            || total < count && has_failed(stream)
        {
            break;
        }
    }
    Ok(total)
}

fn goes_over_ring(stream: &Stream) -> bool {
    let _inside = Inside::enter();
    stream.passes(WRITE);
    stream.writer().prefers_ring(stream)
}

/// `None`: another thread has taken the stream over to the ring.
fn send_file_in_kernel(
    stream: &'static Stream,
    file: i32,
    offset: Option<&mut i64>,
    count: usize,
) -> Option<Result<usize>> {
    // Nothing of it may go to the ring meanwhile.
    let (call, still) = {
        let _inside = Inside::enter();
        (stream.in_kernel(WRITE), !stream.writer().uses_ring(stream))
    };
    let outcome = still.then(|| kernel::send_file(stream.fd(), file, offset, count));
    call.end(outcome.and_then(Result::ok).unwrap_or(0));
    if matches!(outcome, Some(Ok(sent)) if sent < count) || outcome == Some(Err(Errno(libc::EAGAIN))) {
        stream.is_full();
    }
    outcome
}

/// Sends a file over the ring: what the kernel has of it in memory goes straight there, the rest by way of a buffer.
fn copy_file(fd: i32, stream: &'static Stream, file: i32, offset: Option<&mut i64>, count: usize) -> Result<usize> {
    let cached = (count >= LEAST_STRAIGHT && !engine::is_disabled()).then(|| CachedFile::new(file));
    let mut at = offset.as_deref().copied();
    let mut buffer = Piece::new();
    let mut total = 0;
    let mut failed = None;
    while total < count {
        let rest = count - total;
        let straight = match cached.as_ref().map_or(Ok(0), |file| read_into_ring(fd, stream, file, at, rest)) {
            Ok(0) => refuse_if_full(stream).map(|()| 0),
            straight => straight,
        };
        let (sent, goes_on) = match straight {
            Ok(0) => copy_piece(fd, stream, file, at, buffer.of(rest)),
            Ok(_) => (straight, true),
            Err(_) => (straight, false),
        };
        let count = *sent.as_ref().unwrap_or(&0);
        total += count;
        if let Some(at) = &mut at {
            *at += count as i64;
        }
        if !goes_on {
            failed = sent.err();
            break;
        }
    }
    if let (Some(offset), Some(at)) = (offset, at) {
        *offset = at;
    }
    match failed {
        Some(errno) if total == 0 => Err(errno),
        _ => Ok(total),
    }
}

/// Zero: it does not go this way at present.
fn read_into_ring(fd: i32, stream: &Stream, file: &CachedFile, at: Option<i64>, count: usize) -> Result<usize> {
    let _inside = Inside::enter();
    let mut writer = stream.writer();
    if !writer.is_on_ring(stream) || !table::slot(fd).is_some_and(|slot| slot.is(stream)) {
        return Ok(0);
    }
    writer.push_file(stream, file, at.map(|at| at as u64), count.min(STRAIGHT))
}

/// The error of a call that does not wait and finds the ring full.
fn refuse_if_full(stream: &Stream) -> Result<()> {
    let _inside = Inside::enter();
    let full = stream.is_nonblocking() && stream.writer().is_full_for_file(stream)?;
    if full { Err(Errno(libc::EAGAIN)) } else { Ok(()) }
}

/// What was sent, and whether there may be more to send.
fn copy_piece(
    fd: i32,
    stream: &'static Stream,
    file: i32,
    at: Option<i64>,
    buffer: &mut [u8],
) -> (Result<usize>, bool) {
    // No more than can be sent at once, by a call that does not wait: the rest would be read again.
    let nonblocking = stream.is_nonblocking();
    let space = if nonblocking {
        let _inside = Inside::enter();
        stream.writer().space().max(1)
    } else {
        usize::MAX
    };
    let wanted = buffer.len().min(space);
    let read = match kernel::read_file(file, &mut buffer[..wanted], at) {
        Ok(read @ 1..) => read,
        outcome => return (outcome, false),
    };
    let sent = send(fd, &[IoSlice::new(&buffer[..read])], 0);
    let count = *sent.as_ref().unwrap_or(&0);
    if at.is_none() && count < read {
        // What was read and not sent is read again.
        let _ = kernel::seek_by(file, count as i64 - read as i64);
    }
    (sent, count == read)
}
