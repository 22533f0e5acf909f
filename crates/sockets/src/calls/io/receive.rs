//! Receiving calls, from the first try to the last sleep.

use std::io::IoSliceMut;

use sidestep_sys::clock;

use super::{NAP_NS, has_failed, peek, wait::Wait, young};
use crate::{
    descriptors::table::{self, Found},
    kernel::{
        self, Errno, Result,
        messages::Control,
        signal::{self, Inside},
    },
    readiness::poll::{self, Others},
    streams::{
        InKernel, READ, Stream,
        reader::{self, Anchor},
    },
};

/// Any of the receiving calls. The list of parts is used up as bytes come.
#[inline]
pub fn receive(
    fd: i32,
    found: Found,
    parts: &mut [IoSliceMut<'_>],
    flags: i32,
    mut control: Option<&mut Control<'_>>,
) -> Result<usize> {
    let stream = found.stream;
    if stream.is_young()
        && let Some(outcome) = young::receive(fd, stream, parts, flags, control.as_deref_mut())
    {
        return outcome;
    }
    let nonblocking = stream.is_nonblocking() || flags & libc::MSG_DONTWAIT != 0;
    let room = room(parts);
    if flags & (libc::MSG_WAITALL | libc::MSG_PEEK) == 0 && room > 0 && stream.low_water() <= 1 {
        let _inside = Inside::enter();
        let mut reader = stream.reader_for_call();
        if found.stays() {
            let anchor = Anchor::before(nonblocking);
            match reader.step_with(stream, parts, flags, !nonblocking, anchor, control.as_deref_mut())? {
                reader::Step::Got(count) => {
                    let more = count > 0 && count < room && reader.goes_on(stream);
                    return Ok(if more { count + fill_up(&mut reader, stream, parts, flags, count) } else { count });
                }
                reader::Step::Empty if nonblocking => return Err(Errno(libc::EAGAIN)),
                _ => {}
            }
        }
    }
    match flags & libc::MSG_PEEK {
        0 => receive_slowly(fd, stream, parts, flags, nonblocking, control),
        _ => peek::peek(fd, stream, parts, flags, nonblocking, control),
    }
}

/// How many bytes a receiving call has room for.
#[inline]
fn room(parts: &[IoSliceMut<'_>]) -> usize {
    match parts {
        [part] => part.len(),
        parts => parts.iter().map(|part| part.len()).sum(),
    }
}

/// What has come lies on two paths, near a switch: one call gives all of it, as on one path.
#[cold]
fn fill_up(
    reader: &mut reader::Reader,
    stream: &Stream,
    mut parts: &mut [IoSliceMut<'_>],
    flags: i32,
    got: usize,
) -> usize {
    IoSliceMut::advance_slices(&mut parts, got);
    let mut more = 0;
    while parts.iter().any(|part| !part.is_empty()) && (more == 0 || reader.goes_on(stream)) {
        if is_next_an_error(reader, stream) {
            break;
        }
        match reader.step(stream, parts, flags, false, Anchor::Unknown) {
            Ok(reader::Step::Got(count)) if count > 0 => {
                more += count;
                IoSliceMut::advance_slices(&mut parts, count);
            }
            // The carrier was given up, or what was inherited is used up.
            Ok(reader::Step::Kernel) => {
                let count = from_kernel(stream.fd(), parts, flags | libc::MSG_DONTWAIT, None).unwrap_or(0);
                stream.count(READ, count);
                return more + count;
            }
            Ok(_) => break,
            Err(errno) => {
                reader.hold(errno);
                break;
            }
        }
    }
    more
}

/// Whether an error has come, and nothing before it. A call that has bytes does not ask for it: it waits for the next call,
/// whichever that is.
fn is_next_an_error(reader: &mut reader::Reader, stream: &Stream) -> bool {
    reader.available(stream) == Ok(0) && has_failed(stream) && reader.available(stream) == Ok(0)
}

/// How many bytes a receiving call has room for, and with how many a blocking one returns if there is no end before.
pub(super) fn wanted(stream: &Stream, parts: &[IoSliceMut<'_>], flags: i32) -> (usize, usize) {
    let all = room(parts);
    let low_water = stream.low_water() as usize;
    (all, if flags & libc::MSG_WAITALL != 0 { all } else { all.min(low_water) })
}

#[inline(never)]
fn receive_slowly(
    fd: i32,
    stream: &'static Stream,
    mut parts: &mut [IoSliceMut<'_>],
    flags: i32,
    nonblocking: bool,
    mut control: Option<&mut Control<'_>>,
) -> Result<usize> {
    let wait = Wait::new(stream, READ, nonblocking);
    let (all, target) = wanted(stream, parts, flags);
    let mut total = 0;
    let mut anchor = Anchor::before(nonblocking);
    let _in_use = stream.in_use();
    if !table::slot(fd).is_some_and(|slot| slot.is(stream)) {
        return from_kernel(fd, parts, flags, control);
    }
    if all == 0 {
        return receive_nothing(stream, flags, nonblocking);
    }
    let mut call = None;
    loop {
        let carrier = {
            let _inside = Inside::enter();
            stream.passes(READ);
            let mut reader = stream.reader_for_call();
            if total > 0 && is_next_an_error(&mut reader, stream) {
                return Ok(total);
            }
            let flags = flags & !libc::MSG_WAITALL;
            let step = reader.step_with(stream, parts, flags, false, anchor, control.as_deref_mut());
            match step {
                Ok(reader::Step::Empty) if total >= target => return Ok(total),
                Ok(reader::Step::Kernel) => {
                    let written = stream.written_carrier();
                    // Also a call that has what it waits for takes what the kernel has behind that.
                    if nonblocking || total >= target || written.is_some() {
                        let flags = flags | libc::MSG_DONTWAIT;
                        let outcome = from_kernel(stream.fd(), parts, flags, control.as_deref_mut());
                        let count = outcome.unwrap_or(0);
                        stream.count(READ, count);
                        total += count;
                        match outcome {
                            // It waits where it hears of what the peer asks for.
                            Err(Errno(libc::EAGAIN)) if total < target && written.is_some() && !nonblocking => written,
                            Ok(count @ 1..) if total < target && written.is_some() && !nonblocking => {
                                IoSliceMut::advance_slices(&mut parts, count);
                                continue;
                            }
                            // What was taken before it is the caller's.
                            Err(errno) if total == 0 => return Err(errno),
                            _ => return Ok(total),
                        }
                    } else {
                        // S3: counted before the lock is given back.
                        call = Some(stream.in_kernel(READ));
                        None
                    }
                }
                Ok(reader::Step::Got(count)) => {
                    total += count;
                    // What lies on the other path, near a switch, belongs to the same call.
                    if count == 0 || total >= target && (total == all || !reader.goes_on(stream)) {
                        return Ok(total);
                    }
                    IoSliceMut::advance_slices(&mut parts, count);
                    anchor = Anchor::before(nonblocking);
                    continue;
                }
                Ok(reader::Step::Empty) => stream.carrier(),
                Err(errno) if total > 0 => {
                    reader.hold(errno);
                    return Ok(total);
                }
                Err(errno) => return Err(errno),
            }
        };
        let Some(carrier) = carrier else {
            let outcome = receive_in_kernel(stream, call, parts, flags, control);
            return match outcome {
                Ok(count) => Ok(total + count),
                Err(_) if total > 0 => Ok(total),
                Err(errno) => Err(errno),
            };
        };
        if let Some(errno) = wait.is_over() {
            return if total > 0 { Ok(total) } else { Err(errno) };
        }
        // The kernel tells of bytes from the low-water mark on. Near a switch it has a part of them only, which wakes nobody.
        let nap = (stream.low_water() > 1).then(|| clock::now() + NAP_NS);
        let (news, slept) = wait.to_read(stream, carrier, nap);
        stream.keep_up_now();
        anchor = if news || nap.is_some() { Anchor::News } else { Anchor::SleptOn };
        if total == 0 && wait.restarts(slept) {
            return Err(Errno::RESTART);
        }
    }
}

/// The kernel's own call, without a lock; it has been counted.
pub(super) fn receive_in_kernel(
    stream: &'static Stream,
    call: Option<InKernel>,
    parts: &mut [IoSliceMut<'_>],
    flags: i32,
    control: Option<&mut Control<'_>>,
) -> Result<usize> {
    let outcome = from_kernel(stream.fd(), parts, flags, control);
    let taken = if flags & libc::MSG_PEEK == 0 { outcome.unwrap_or(0) } else { 0 };
    if let Some(call) = call {
        call.end(taken);
    }
    outcome
}

pub(super) fn from_kernel(
    fd: i32,
    parts: &mut [IoSliceMut<'_>],
    flags: i32,
    control: Option<&mut Control<'_>>,
) -> Result<usize> {
    match control {
        Some(control) => kernel::receive_message(fd, parts, flags, control),
        None => kernel::receive(fd, parts, flags),
    }
}

/// A receiving call for no bytes: it waits for some, and takes none.
#[cold]
pub(super) fn receive_nothing(stream: &'static Stream, flags: i32, nonblocking: bool) -> Result<usize> {
    let mut entry = [libc::pollfd { fd: stream.fd(), events: libc::POLLIN, revents: 0 }];
    let timeout = if nonblocking { Some(std::time::Duration::ZERO) } else { None };
    let _ = flags;
    match poll::poll(&mut entry, timeout, None, signal::runs(), Others::Sometimes)? {
        0 => Err(Errno(libc::EAGAIN)),
        _ => Ok(0),
    }
}
