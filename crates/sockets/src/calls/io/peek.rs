//! Receiving calls with MSG_PEEK: they wait as the others do, and take nothing.

use std::io::IoSliceMut;

use sidestep_sys::clock;

use crate::{
    descriptors::table,
    kernel::{self, Errno, Result, messages::Control, signal::Inside},
    readiness::sleep,
    streams::{
        READ, Stream,
        reader::{self, Anchor},
    },
};

use super::{
    NAP_NS,
    receive::{from_kernel, receive_in_kernel, receive_nothing, wanted},
    wait::Wait,
};

/// A receiving call with MSG_PEEK. With MSG_WAITALL, or a low-water mark, it waits for so many bytes.
pub fn peek(
    fd: i32,
    stream: &'static Stream,
    parts: &mut [IoSliceMut<'_>],
    flags: i32,
    nonblocking: bool,
    mut control: Option<&mut Control<'_>>,
) -> Result<usize> {
    let wait = Wait::new(stream, READ, nonblocking);
    let (all, target) = wanted(stream, parts, flags);
    let _in_use = stream.in_use();
    if !table::slot(fd).is_some_and(|slot| slot.is(stream)) {
        return from_kernel(fd, parts, flags, control);
    }
    if all == 0 {
        return receive_nothing(stream, flags, nonblocking);
    }
    let (mut anchor, mut ended, mut call) = (Anchor::before(nonblocking), false, None);
    loop {
        let (carrier, seen) = {
            let _inside = Inside::enter();
            stream.passes(READ);
            let mut reader = stream.reader_for_call();
            let flags = flags & !libc::MSG_WAITALL;
            match reader.peek(stream, parts, flags, !nonblocking, anchor, control.as_deref_mut())? {
                reader::Step::Kernel if nonblocking => {
                    return from_kernel(stream.fd(), parts, flags | libc::MSG_DONTWAIT, control);
                }
                reader::Step::Kernel if let Some(carrier) = stream.written_carrier() => {
                    match from_kernel(stream.fd(), parts, flags | libc::MSG_DONTWAIT, control.as_deref_mut()) {
                        Ok(count) if count == 0 || count >= target || ended => return Ok(count),
                        Ok(count) => (Some(carrier), count),
                        // It waits where it hears of what the peer asks for.
                        Err(Errno(libc::EAGAIN)) => (Some(carrier), 0),
                        Err(errno) => return Err(errno),
                    }
                }
                reader::Step::Kernel => {
                    // S3: counted before the lock is given back.
                    call = Some(stream.in_kernel(READ));
                    (None, 0)
                }
                reader::Step::Got(count) if count == 0 || count >= target || nonblocking || ended => return Ok(count),
                reader::Step::Got(count) => (stream.carrier(), count),
                reader::Step::Empty => (stream.carrier(), 0),
            }
        };
        let Some(carrier) = carrier else { return receive_in_kernel(stream, call, parts, flags, control) };
        if let Some(errno) = wait.is_over() {
            return if seen > 0 { Ok(seen) } else { Err(errno) };
        }
        if seen > 0 {
            // What came before the end is looked at once more.
            ended = kernel::look(stream.fd(), libc::POLLRDHUP) != 0;
            if !ended {
                nap(&wait);
            }
            continue;
        }
        let (news, slept) = wait.to_read(stream, carrier, None);
        stream.keep_up_now();
        anchor = if news { Anchor::News } else { Anchor::SleptOn };
        if wait.restarts(slept) {
            return Err(Errno::RESTART);
        }
    }
}

/// Bytes lie there, but fewer than the call waits for: news of them cannot be told from themselves, and is looked for. A short sleep, which handlers of signals end.
fn nap(wait: &Wait) {
    let until = wait.until(Some(clock::now() + NAP_NS));
    let _inside = Inside::enter();
    let _ = sleep::in_kernel(|| kernel::poll(&mut [], sleep::left(until), None));
}
