//! Reading and writing calls, from the first try to the last sleep.

use std::{
    io::{IoSlice, IoSliceMut},
    sync::{Arc, atomic::Ordering},
};

use sidestep_stream::carrier::{Carrier, Watch};
use sidestep_sys::clock;

use crate::{
    control::Control,
    engine,
    kernel::{self, Errno, Result},
    poll::{self, Others},
    reader::{self, Anchor},
    readiness::{ring_is_next, switch_is_reached},
    signal::{self, Inside, Runs},
    sleep,
    stream::{InKernel, READ, Stage, Stream, WRITE},
    table, writer,
};

mod file;
mod peek;
mod young;

pub use file::{give_back, send_file, splice_in, splice_out};

/// Bytes that the kernel is given at a time by calls that wait.
const KERNEL_PIECE: usize = 256 << 10;

/// So many parts of a call are listed on the stack; the kernel does the same (UIO_FASTIOV).
const FEW: usize = 8;

/// What a call waits for may come without waking it: it looks that often.
const NAP_NS: u64 = 1_000_000;

/// Any of the receiving calls. The list of parts is used up as bytes come.
#[inline]
pub fn receive(
    fd: i32,
    stream: &'static Stream,
    parts: &mut [IoSliceMut<'_>],
    flags: i32,
    mut control: Option<&mut Control<'_>>,
) -> Result<usize> {
    if stream.is_young()
        && let Some(outcome) = young::receive(fd, stream, parts, flags, control.as_deref_mut())
    {
        return outcome;
    }
    let nonblocking = stream.is_nonblocking() || flags & libc::MSG_DONTWAIT != 0;
    if flags & (libc::MSG_WAITALL | libc::MSG_PEEK) == 0
        && !parts.iter().all(|part| part.is_empty())
        && stream.low_water() <= 1
    {
        let _inside = Inside::enter();
        let mut reader = stream.reader();
        if table::slot(fd).is_some_and(|slot| slot.is(stream)) {
            let anchor = Anchor::before(nonblocking);
            match reader.step_with(stream, parts, flags, !nonblocking, anchor, control.as_deref_mut())? {
                reader::Step::Got(count) => {
                    let has_room = || parts.iter().map(|part| part.len()).sum::<usize>() > count;
                    let more = count > 0 && has_room() && reader.goes_on(stream);
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
fn wanted(stream: &Stream, parts: &[IoSliceMut<'_>], flags: i32) -> (usize, usize) {
    let all = parts.iter().map(|part| part.len()).sum();
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
    let before = signal::runs();
    let timeout = stream.timeout(READ);
    let deadline = (timeout != 0).then(|| clock::now() + timeout);
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
            let mut reader = stream.reader();
            if total > 0 && is_next_an_error(&mut reader, stream) {
                return Ok(total);
            }
            let flags = flags & !libc::MSG_WAITALL;
            let step = reader.step_with(stream, parts, flags, false, anchor, control.as_deref_mut());
            match step {
                Ok(reader::Step::Kernel | reader::Step::Empty) if total >= target => return Ok(total),
                Ok(reader::Step::Kernel) => {
                    if nonblocking {
                        let flags = flags | libc::MSG_DONTWAIT;
                        return match from_kernel(stream.fd(), parts, flags, control) {
                            Ok(count) => {
                                stream.count(READ, count);
                                Ok(total + count)
                            }
                            // What was taken before it is the caller's.
                            Err(_) if total > 0 => Ok(total),
                            Err(errno) => Err(errno),
                        };
                    }
                    // S3: counted before the lock is given back.
                    call = Some(stream.in_kernel(READ));
                    None
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
        let over = |errno: i32| if total > 0 { Ok(total) } else { Err(Errno(errno)) };
        if nonblocking {
            return over(libc::EAGAIN);
        }
        if sleep::is_interrupted(before, timeout != 0) {
            return over(libc::EINTR);
        }
        if deadline.is_some_and(|deadline| clock::now() >= deadline) {
            return over(libc::EAGAIN);
        }
        // The kernel tells of bytes from the low-water mark on. Near a switch it has a part of them only, which wakes nobody.
        let nap = (stream.low_water() > 1).then(|| clock::now() + NAP_NS);
        let (news, slept) = wait_to_read(stream, carrier, deadline.into_iter().chain(nap).min(), before);
        stream.keep_up_now();
        anchor = if news || nap.is_some() { Anchor::News } else { Anchor::SleptOn };
        // With the thread outside, what was put off has run.
        let ended = slept == Err(Errno(libc::EINTR)) || signal::was_cancelled(before);
        if ended && total == 0 && !sleep::is_interrupted(before, timeout != 0) {
            return Err(Errno::RESTART);
        }
    }
}

/// The kernel's own call, without a lock; it has been counted.
fn receive_in_kernel(
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

fn from_kernel(fd: i32, parts: &mut [IoSliceMut<'_>], flags: i32, control: Option<&mut Control<'_>>) -> Result<usize> {
    match control {
        Some(control) => kernel::receive_message(fd, parts, flags, control),
        None => kernel::receive(fd, parts, flags),
    }
}

/// A receiving call for no bytes: it waits for some, and takes none.
#[cold]
fn receive_nothing(stream: &'static Stream, flags: i32, nonblocking: bool) -> Result<usize> {
    let mut entry = [libc::pollfd { fd: stream.fd(), events: libc::POLLIN, revents: 0 }];
    let timeout = if nonblocking { Some(std::time::Duration::ZERO) } else { None };
    let _ = flags;
    match poll::poll(&mut entry, timeout, None, signal::runs(), Others::Sometimes)? {
        0 => Err(Errno(libc::EAGAIN)),
        _ => Ok(0),
    }
}

/// Sleeps until there may be something to read. `true`: the anchor has news.
fn wait_to_read(
    stream: &'static Stream,
    carrier: Arc<Carrier>,
    deadline: Option<u64>,
    before: Runs,
) -> (bool, Result<usize>) {
    let _inside = Inside::enter();
    count_sleep(stream);
    let ended = carrier.has_ended();
    carrier.watch().arm_arrival();
    // A switch that TCP has not reached is no news: the bytes before it wake this call by the anchor.
    let in_ring = || carrier.has_bytes() && ring_is_next(stream, &carrier);
    let news = || in_ring() || switch_is_reached(stream, &carrier) || carrier.has_ended() != ended;
    let ready = || {
        engine::see_to_links();
        carrier.watch().settle();
        news() || signal::was_cancelled(before) || !stream.is_carried_by(&carrier)
    };
    let until = sleep::announce(stream, &carrier, (libc::EPOLLIN | libc::EPOLLRDHUP) as u32, deadline, &ready);
    drop(carrier);
    until.sleep()
}

/// Any of the sending calls.
#[inline]
pub fn send(fd: i32, stream: &'static Stream, parts: &[IoSlice<'_>], flags: i32) -> Result<usize> {
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
        if writer.is_on_ring(stream) && table::slot(fd).is_some_and(|slot| slot.is(stream)) {
            match writer.step(stream, parts, !nonblocking)? {
                writer::Step::Sent(count) if count == part.len() || nonblocking && !writer.may_give_way() => {
                    return Ok(count);
                }
                writer::Step::Sent(count) => done = count,
                writer::Step::Full if nonblocking => return Err(Errno(libc::EAGAIN)),
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
    let before = signal::runs();
    let timeout = stream.timeout(WRITE);
    let deadline = (timeout != 0).then(|| clock::now() + timeout);
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
                        if stream.stage() != Stage::Never
                            && let Some(piece) = parts.first().and_then(|part| part.get(..KERNEL_PIECE))
                            && piece.len() < parts.iter().map(|part| part.len()).sum::<usize>()
                        {
                            // Not all at once: between two pieces the stream may go over to the ring.
                            let outcome = send_in_kernel(stream, call, &[IoSlice::new(piece)], flags);
                            if outcome == Ok(KERNEL_PIECE)
                                && !sleep::is_interrupted(before, true)
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
                        return Ok(total);
                    }
                    continue;
                }
                Ok(writer::Step::Full) => (stream.carrier(), writer.stall_deadline()),
                Err(errno) => return if total > 0 { Ok(total) } else { Err(errno) },
            }
        };
        let (carrier, stall) = waiting;
        let over = |errno: i32| if total > 0 { Ok(total) } else { Err(Errno(errno)) };
        if nonblocking {
            return over(libc::EAGAIN);
        }
        if sleep::is_interrupted(before, timeout != 0) {
            return over(libc::EINTR);
        }
        if deadline.is_some_and(|deadline| clock::now() >= deadline) {
            return over(libc::EAGAIN);
        }
        let Some(carrier) = carrier else { continue };
        stream.keep_up(&carrier);
        let until = deadline.into_iter().chain(stall).min();
        let slept = wait_to_write(stream, carrier, until);
        let ended = slept == Err(Errno(libc::EINTR)) || signal::was_cancelled(before);
        if ended && total == 0 && !sleep::is_interrupted(before, timeout != 0) {
            return Err(Errno::RESTART);
        }
    }
}

fn send_in_kernel(stream: &'static Stream, call: InKernel, parts: &[IoSlice<'_>], flags: i32) -> Result<usize> {
    let outcome = kernel::send(stream.fd(), parts, flags);
    call.end(outcome.unwrap_or(0));
    outcome
}

/// Whether an error has come, which waits for the next call: not for the next piece of this one.
fn has_failed(stream: &Stream) -> bool {
    kernel::look(stream.fd(), 0) & libc::POLLERR != 0
}

/// Sleeps until there may be space.
fn wait_to_write(stream: &'static Stream, carrier: Arc<Carrier>, deadline: Option<u64>) -> Result<usize> {
    let _inside = Inside::enter();
    count_sleep(stream);
    let read = carrier.watch().read();
    carrier.watch().arm_space();
    let ready = || {
        engine::see_to_links();
        carrier.watch().settle();
        let space = carrier.watch().read() != read || carrier.watch().has_other_space();
        space || !stream.is_carried_by(&carrier)
    };
    let until = sleep::announce(stream, &carrier, 0, deadline, &ready);
    drop(carrier);
    until.sleep().1
}

fn count_sleep(stream: &Stream) {
    if let Some(place) = stream.known_place() {
        place.engine.registry.field(place.entry, crate::registry::Field::Sleeps).fetch_add(1, Ordering::Relaxed);
    }
}
