//! Calls that move bytes between a stream and a file or a pipe: by copies, since the kernel knows nothing of the ring.

use std::{
    cell::Cell,
    io::{IoSlice, IoSliceMut},
    sync::atomic::Ordering,
};

use crate::{
    kernel::{self, Errno, Result},
    signal::{self, Inside},
    stream::{Stream, WRITE},
};

use super::{receive, send};

/// Bytes that are copied at a time: few enough to stay in the nearest caches between the two copies.
const PIECE: usize = 32 << 10;

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Room for a piece. It goes back to its thread for the next call; a call in a handler makes another.
struct Piece(Vec<u8>);

impl Piece {
    fn new() -> Piece {
        let mut bytes = SPARE.try_with(Cell::take).unwrap_or_default();
        bytes.resize(PIECE, 0);
        Piece(bytes)
    }

    fn of(&mut self, count: usize) -> &mut [u8] {
        &mut self.0[..PIECE.min(count)]
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.0);
        let _ = SPARE.try_with(|spare| spare.set(bytes));
    }
}

/// `splice` from a stream to a pipe: what the pipe takes is taken from the stream, and nothing more.
pub fn splice_out(fd: i32, stream: &'static Stream, pipe: i32, count: usize, nonblocking: bool) -> Result<usize> {
    let mut buffer = Piece::new();
    let buffer = buffer.of(count);
    let wait = if nonblocking { libc::MSG_DONTWAIT } else { 0 };
    let seen = receive(fd, stream, &mut [IoSliceMut::new(&mut *buffer)], libc::MSG_PEEK | wait)?;
    if seen == 0 {
        return Ok(0);
    }
    let taken = kernel::write_file(pipe, &buffer[..seen])?;
    receive(fd, stream, &mut [IoSliceMut::new(&mut buffer[..taken])], libc::MSG_DONTWAIT)
}

/// `splice` from a pipe to a stream. What has left the pipe is sent, also if that must wait.
pub fn splice_in(fd: i32, stream: &'static Stream, pipe: i32, count: usize) -> Result<usize> {
    let mut buffer = Piece::new();
    let buffer = buffer.of(count);
    let read = kernel::read_file(pipe, buffer, None)?;
    let mut sent = 0;
    while sent < read {
        match send(fd, stream, &[IoSlice::new(&buffer[sent..read])], libc::MSG_NOSIGNAL) {
            Ok(more) => sent += more,
            Err(Errno(libc::EAGAIN)) => {
                let mut entry = [libc::pollfd { fd, events: libc::POLLOUT, revents: 0 }];
                crate::poll::poll(&mut entry, None, None, signal::runs())?;
            }
            Err(Errno(libc::EINTR) | Errno::RESTART) => {}
            Err(errno) => return if sent > 0 { Ok(sent) } else { Err(errno) },
        }
    }
    Ok(sent)
}

/// `sendfile`: over the ring by copies, else by the kernel.
pub fn send_file(fd: i32, stream: &'static Stream, file: i32, offset: Option<&mut i64>, count: usize) -> Result<usize> {
    let on_ring = {
        let _inside = Inside::enter();
        stream.passes(WRITE);
        stream.writer().prefers_ring(stream)
    };
    if !on_ring {
        // Nothing of it may go to the ring meanwhile.
        stream.in_kernel[WRITE].fetch_add(1, Ordering::SeqCst);
        let still = !stream.writer().is_on_ring();
        let outcome = if still { kernel::send_file(stream.fd(), file, offset, count) } else { Err(Errno(libc::EINTR)) };
        if let Ok(count) = outcome {
            stream.count(WRITE, count);
        }
        stream.in_kernel[WRITE].fetch_sub(1, Ordering::SeqCst);
        return outcome;
    }
    let nonblocking = stream.nonblocking.load(Ordering::Relaxed);
    let mut at = offset.as_deref().copied();
    let mut buffer = Piece::new();
    let buffer = buffer.of(count);
    let mut total = 0;
    let mut failed = None;
    while total < count {
        // No more than can be sent at once, by a call that does not wait: the rest would be read again.
        let space = if nonblocking { stream.writer().space().max(1) } else { usize::MAX };
        let wanted = buffer.len().min(count - total).min(space);
        let read = match kernel::read_file(file, &mut buffer[..wanted], at) {
            Ok(0) => break,
            Ok(read) => read,
            Err(errno) => {
                failed = Some(errno);
                break;
            }
        };
        let sent = send(fd, stream, &[IoSlice::new(&buffer[..read])], 0);
        let count = *sent.as_ref().unwrap_or(&0);
        match &mut at {
            Some(at) => *at += count as i64,
            // What was read and not sent is read again.
            None if count < read => _ = kernel::seek_by(file, count as i64 - read as i64),
            None => {}
        }
        total += count;
        if count < read {
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
