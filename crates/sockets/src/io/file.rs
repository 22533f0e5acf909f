//! Bytes between streams and files or pipes: `sendfile` and `splice`.

use std::{
    cell::Cell,
    io::{IoSlice, IoSliceMut},
    sync::atomic::Ordering,
};

use crate::{
    kernel::{self, Errno, Result},
    poll,
    signal::{self, Inside},
    sleep,
    stream::{Stream, WRITE},
    table,
};

use super::{KERNEL_PIECE, receive, send};

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
        if outcome.is_ok_and(|sent| sent < asked) || sleep::is_interrupted(before, true) {
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
    stream.in_kernel[WRITE].fetch_add(1, Ordering::SeqCst);
    let still = !stream.writer().is_on_ring();
    let outcome = still.then(|| kernel::send_file(stream.fd(), file, offset, count));
    if let Some(Ok(count)) = outcome {
        stream.count(WRITE, count);
    }
    if matches!(outcome, Some(Ok(sent)) if sent < count) || outcome == Some(Err(Errno(libc::EAGAIN))) {
        stream.is_full();
    }
    stream.in_kernel[WRITE].fetch_sub(1, Ordering::SeqCst);
    outcome
}

fn copy_file(fd: i32, stream: &'static Stream, file: i32, offset: Option<&mut i64>, count: usize) -> Result<usize> {
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
