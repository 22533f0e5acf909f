//! Receiving calls with MSG_PEEK: they wait as the others do, and take nothing.

use std::io::IoSliceMut;

use sidestep_sys::clock;

use crate::{
    control::Control,
    kernel::{self, Errno, Result},
    reader::{self, Anchor},
    signal::{self, Inside},
    sleep,
    stream::{READ, Stream},
    table,
};

use super::{NAP_NS, from_kernel, receive_in_kernel, receive_nothing, wait_to_read, wanted};

/// A receiving call with MSG_PEEK. With MSG_WAITALL, or a low-water mark, it waits for so many bytes.
pub fn peek(
    fd: i32,
    stream: &'static Stream,
    parts: &mut [IoSliceMut<'_>],
    flags: i32,
    nonblocking: bool,
    mut control: Option<&mut Control<'_>>,
) -> Result<usize> {
    let before = signal::runs();
    let timeout = stream.timeout(READ);
    let deadline = (timeout != 0).then(|| clock::now() + timeout);
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
            let mut reader = stream.reader();
            let flags = flags & !libc::MSG_WAITALL;
            match reader.peek(stream, parts, flags, !nonblocking, anchor, control.as_deref_mut())? {
                reader::Step::Kernel if nonblocking => {
                    return from_kernel(stream.fd(), parts, flags | libc::MSG_DONTWAIT, control);
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
        let over = |errno: i32| if seen > 0 { Ok(seen) } else { Err(Errno(errno)) };
        if nonblocking {
            return over(libc::EAGAIN);
        }
        if sleep::is_interrupted(before, timeout != 0) {
            return over(libc::EINTR);
        }
        if deadline.is_some_and(|deadline| clock::now() >= deadline) {
            return over(libc::EAGAIN);
        }
        if seen > 0 {
            // What came before the end is looked at once more.
            ended = kernel::look(stream.fd(), libc::POLLRDHUP) != 0;
            if !ended {
                nap(deadline);
            }
            continue;
        }
        let (news, slept) = wait_to_read(stream, carrier, deadline, before);
        stream.keep_up_now();
        anchor = if news { Anchor::News } else { Anchor::SleptOn };
        let broken = slept == Err(Errno(libc::EINTR)) || signal::was_cancelled(before);
        if broken && !sleep::is_interrupted(before, timeout != 0) {
            return Err(Errno::RESTART);
        }
    }
}

/// Bytes lie there, but fewer than the call waits for: news of them cannot be told from themselves, and is looked for. A short sleep, which handlers of signals end.
fn nap(deadline: Option<u64>) {
    let until = (clock::now() + NAP_NS).min(deadline.unwrap_or(u64::MAX));
    let _inside = Inside::enter();
    let _ = sleep::in_kernel(|| kernel::poll(&mut [], sleep::left(Some(until)), None));
}
