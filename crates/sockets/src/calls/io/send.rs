//! Sending calls, from the first try to the last sleep.

use std::io::IoSlice;

use super::{KERNEL_PIECE, has_failed, wait::Wait, young};
use crate::{
    descriptors::table::{self, Found},
    kernel::{self, Errno, Result, signal::Inside},
    readiness::sleep,
    streams::{InKernel, Stream, WRITE, writer},
};

/// So many parts of a call are listed on the stack; the kernel does the same (UIO_FASTIOV).
const FEW: usize = 8;

/// Any of the sending calls.
#[inline]
pub fn send(fd: i32, found: Found, parts: &[IoSlice<'_>], flags: i32) -> Result<usize> {
    let stream = found.stream;
    if stream.is_young()
        && let Some(outcome) = young::send(fd, stream, parts, flags)
    {
        return outcome;
    }
    let nonblocking = stream.is_nonblocking() || flags & libc::MSG_DONTWAIT != 0;
    let mut done = 0;
    if let [part] = parts {
        let _inside = Inside::enter();
        let mut writer = stream.writer();
        if writer.is_on_ring(stream) && found.stays() {
            match writer.step(stream, parts, !nonblocking)? {
                writer::Step::Sent(count) if count == part.len() => return Ok(count),
                writer::Step::Sent(count) if nonblocking && !writer.may_give_way() => {
                    stream.is_full();
                    return Ok(count);
                }
                writer::Step::Sent(count) => done = count,
                writer::Step::Full if nonblocking => {
                    stream.is_full();
                    return Err(Errno(libc::EAGAIN));
                }
                _ => {}
            }
        }
    }
    match parts {
        [part] => send_slowly(fd, stream, &mut [IoSlice::new(&part[done..])], flags, nonblocking, done),
        // What was sent is taken off a list of this function's own.
        parts if parts.len() <= FEW => {
            let mut few = [IoSlice::new(&[]); FEW];
            let few = &mut few[..parts.len()];
            few.copy_from_slice(parts);
            send_slowly(fd, stream, few, flags, nonblocking, 0)
        }
        parts => {
            let mut many = Vec::new();
            many.try_reserve_exact(parts.len()).map_err(|_| Errno(libc::ENOMEM))?;
            many.extend_from_slice(parts);
            send_slowly(fd, stream, &mut many, flags, nonblocking, 0)
        }
    }
}

#[inline(never)]
fn send_slowly(
    fd: i32,
    stream: &'static Stream,
    mut parts: &mut [IoSlice<'_>],
    flags: i32,
    nonblocking: bool,
    mut total: usize,
) -> Result<usize> {
    let wait = Wait::new(stream, WRITE, nonblocking);
    let _in_use = stream.in_use();
    if total == 0 && !table::slot(fd).is_some_and(|slot| slot.is(stream)) {
        return kernel::send(fd, parts, flags);
    }
    loop {
        let waiting = {
            let inside = Inside::enter();
            stream.passes(WRITE);
            let mut writer = stream.writer();
            match writer.step(stream, parts, !nonblocking) {
                Ok(writer::Step::Kernel) => {
                    // Raised by the caller, who knows the program's handlers.
                    let flags = flags | libc::MSG_NOSIGNAL;
                    let outcome = if nonblocking {
                        let outcome = kernel::send(stream.fd(), parts, flags | libc::MSG_DONTWAIT);
                        if let Ok(count) = outcome {
                            stream.count(WRITE, count);
                        }
                        let all = parts.iter().map(|part| part.len()).sum();
                        if matches!(outcome, Ok(count) if count < all) || outcome == Err(Errno(libc::EAGAIN)) {
                            stream.is_full();
                        }
                        outcome
                    } else {
                        let call = stream.in_kernel(WRITE);
                        if let Some(carrier) = stream.carrier() {
                            stream.keep_up(&carrier);
                        }
                        drop(writer);
                        drop(inside);
                        if !stream.stays()
                            && let Some(piece) = parts.first().and_then(|part| part.get(..KERNEL_PIECE))
                            && piece.len() < parts.iter().map(|part| part.len()).sum::<usize>()
                        {
                            // Not all at once: between two pieces the stream may go over to the ring.
                            let outcome = send_in_kernel(stream, call, &[IoSlice::new(piece)], flags);
                            if outcome == Ok(KERNEL_PIECE)
                                && !sleep::is_interrupted(wait.before, true)
                                && !has_failed(stream)
                            {
                                total += KERNEL_PIECE;
                                IoSlice::advance_slices(&mut parts, KERNEL_PIECE);
                                continue;
                            }
                            outcome
                        } else {
                            send_in_kernel(stream, call, parts, flags)
                        }
                    };
                    return match outcome {
                        Ok(count) => Ok(total + count),
                        Err(_) if total > 0 => Ok(total),
                        Err(errno) => Err(errno),
                    };
                }
                Ok(writer::Step::Sent(count)) => {
                    total += count;
                    IoSlice::advance_slices(&mut parts, count);
                    let all = parts.iter().all(|part| part.is_empty());
                    if all || nonblocking && !writer.may_give_way() {
                        if !all {
                            stream.is_full();
                        }
                        return Ok(total);
                    }
                    continue;
                }
                Ok(writer::Step::Full) => (stream.carrier(), writer.stall_deadline()),
                Err(errno) => return if total > 0 { Ok(total) } else { Err(errno) },
            }
        };
        let (carrier, stall) = waiting;
        if let Some(errno) = wait.is_over() {
            // As in the kernel: whoever was told that there is no space is told when there is some, also if it came at once.
            stream.is_full();
            return if total > 0 { Ok(total) } else { Err(errno) };
        }
        let Some(carrier) = carrier else { continue };
        stream.keep_up(&carrier);
        let slept = wait.to_write(stream, carrier, stall);
        if total == 0 && wait.restarts(slept) {
            return Err(Errno::RESTART);
        }
    }
}

fn send_in_kernel(stream: &'static Stream, call: InKernel, parts: &[IoSlice<'_>], flags: i32) -> Result<usize> {
    let outcome = kernel::send(stream.fd(), parts, flags);
    call.end(outcome.unwrap_or(0));
    outcome
}
