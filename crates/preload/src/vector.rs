//! `readv`, `writev` and their kin: several buffers. Messages with a header come here, too.

use std::{
    ffi::{c_int, c_void},
    io::{IoSlice, IoSliceMut},
    slice,
};

use libc::{iovec, off_t, ssize_t};
use sidestep_sockets::{Control, Errno, Result, calls};

use crate::{
    alone, engine, errno,
    real::call,
    signals,
    transfer::{LIMIT, is_nowhere},
};

/// # Safety
/// P1.
pub unsafe fn readv(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    if !engine::has(fd) || !fits(parts, count) {
        // SAFETY: P1. The kernel finds the error in what does not fit.
        return engine::received(fd, 0, unsafe { call::readv(fd, parts, count) });
    }
    // SAFETY: P1.
    if unsafe { are_empty(parts, count) } {
        return 0;
    }
    // SAFETY: P1.
    let own = || unsafe { call::readv(fd, parts, count) };
    // SAFETY: P1.
    let result = unsafe { receive_parts(fd, parts, count as usize, 0, None, own) };
    if result < 0 && engine::is_lost(fd) {
        // SAFETY: P1.
        return unsafe { call::readv(fd, parts, count) };
    }
    result
}

/// # Safety
/// P1.
pub unsafe fn writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    if !engine::has(fd) || !fits(parts, count) {
        // SAFETY: P1. The kernel finds the error in what does not fit.
        return engine::sent(fd, unsafe { call::writev(fd, parts, count) });
    }
    // SAFETY: P1.
    let own = || unsafe { call::writev(fd, parts, count) };
    // SAFETY: P1.
    let result = unsafe { transmit_parts(fd, parts, count as usize, 0, own) };
    if result < 0 && engine::is_lost(fd) {
        // SAFETY: P1.
        return unsafe { call::writev(fd, parts, count) };
    }
    result
}

/// # Safety
/// P1.
pub unsafe fn preadv2(fd: c_int, parts: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t {
    if engine::has(fd) && offset == -1 {
        if flags == 0 {
            // SAFETY: P1.
            return unsafe { readv(fd, parts, count) };
        }
        engine::leave(fd);
        if calls::has_rest(fd) && fits(parts, count) {
            // The peer did not follow: what lies here comes first.
            let mode = if flags & libc::RWF_NOWAIT != 0 { libc::MSG_DONTWAIT } else { 0 };
            // SAFETY: P1.
            let own = || unsafe { call::preadv2(fd, parts, count, offset, flags) };
            // SAFETY: P1.
            return unsafe { receive_parts(fd, parts, count as usize, mode, None, own) };
        }
    }
    // SAFETY: P1.
    unsafe { call::preadv2(fd, parts, count, offset, flags) }
}

/// # Safety
/// P1.
pub unsafe fn pwritev2(fd: c_int, parts: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t {
    if engine::has(fd) && offset == -1 {
        if flags == 0 {
            // SAFETY: P1.
            return unsafe { writev(fd, parts, count) };
        }
        engine::leave(fd);
    }
    // SAFETY: P1.
    unsafe { call::pwritev2(fd, parts, count, offset, flags) }
}

/// # Safety
/// P1, and [`fits`].
unsafe fn are_empty(parts: *const iovec, count: c_int) -> bool {
    // SAFETY: P1.
    count == 0 || unsafe { slice::from_raw_parts(parts, count as usize) }.iter().all(|part| part.iov_len == 0)
}

/// Receives into several buffers, with room for control messages if the call has some.
///
/// # Safety
/// P1, and `parts` has `count` entries that [`fits`] has seen.
pub unsafe fn receive_parts(
    fd: c_int,
    parts: *const iovec,
    count: usize,
    flags: c_int,
    mut control: Option<&mut Control<'_>>,
    own: impl FnOnce() -> ssize_t,
) -> ssize_t {
    // SAFETY: as for this function.
    let parts = unsafe { listed(parts, count) };
    if engine::is_shut_in() {
        return receive_alone(fd, parts, flags, own);
    }
    // Nothing that has to be freed lives where a cancelled thread ends.
    engine::ask(|| {
        let mut copy = Copy::of(parts)?;
        let parts = copy.unfilled();
        match &mut control {
            Some(control) => calls::receive_message(fd, parts, flags, control),
            None => calls::receive(fd, parts, flags),
        }
    })
}

/// Sends several buffers.
///
/// # Safety
/// P1, and `parts` has `count` entries that [`fits`] has seen.
pub unsafe fn transmit_parts(
    fd: c_int,
    parts: *const iovec,
    count: usize,
    flags: c_int,
    own: impl FnOnce() -> ssize_t,
) -> ssize_t {
    if engine::is_shut_in() {
        return engine::sent(fd, own());
    }
    // SAFETY: as for this function.
    let parts = unsafe { listed(parts, count) };
    let send = |parts: &[iovec]| {
        // SAFETY: an `IoSlice` has the layout of an `iovec`, and every part has an address.
        let parts = unsafe { slice::from_raw_parts(parts.as_ptr().cast::<IoSlice<'_>>(), parts.len()) };
        calls::send(fd, parts, flags | libc::MSG_NOSIGNAL)
    };
    let send_all = || if is_plain(parts) { send(parts) } else { send(Copy::of(parts)?.as_slice()) };
    signals::broken_pipe(flags, || engine::ask(send_all))
}

/// In a process that has shut itself in.
#[cold]
#[inline(never)]
fn receive_alone(fd: c_int, parts: &[iovec], flags: c_int, own: impl FnOnce() -> ssize_t) -> ssize_t {
    // On the stack, all of it: the allocator could call the kernel, which this process may have forbidden.
    let mut room = [EMPTY; MANY];
    let room = &mut room[..parts.len()];
    match copy_within_bounds(parts, room) {
        Ok(()) => alone::parts(fd, as_buffers(room), flags, own),
        Err(error) => errno::fail(error.0),
    }
}

/// Whether the kernel would take a list of buffers.
pub fn fits(parts: *const iovec, count: c_int) -> bool {
    if count == 0 {
        return true;
    }
    if is_nowhere(parts) || !(0..=MANY as c_int).contains(&count) {
        return false;
    }
    // SAFETY: P1: the list has as many entries as the program says.
    let parts = unsafe { slice::from_raw_parts(parts, count as usize) };
    parts.iter().all(|part| part.iov_len <= isize::MAX as usize)
}

/// # Safety
/// P1, and [`fits`].
unsafe fn listed<'a>(parts: *const iovec, count: usize) -> &'a [iovec] {
    match count {
        0 => &[],
        // SAFETY: P1.
        _ => unsafe { slice::from_raw_parts(parts, count) },
    }
}

/// Whether a list is within bounds and has an address in every part.
fn is_plain(parts: &[iovec]) -> bool {
    let mut sum = 0usize;
    parts.iter().all(|part| {
        sum = sum.saturating_add(part.iov_len);
        !is_nowhere(part.iov_base) && sum <= LIMIT
    })
}

/// A copy of a list of buffers, within bounds and with an address in every part. The engine uses it up as bytes come. The
/// program's own list is never written: it may be used again, and may lie where nothing can be written.
struct Copy {
    few: [iovec; FEW],
    many: Vec<iovec>,
    count: usize,
}

impl Copy {
    #[inline]
    fn of(parts: &[iovec]) -> Result<Copy> {
        let mut copy = Copy { few: [EMPTY; FEW], many: Vec::new(), count: parts.len() };
        if parts.len() > FEW {
            // The kernel needs memory for so many, too, and has the same error.
            copy.many.try_reserve_exact(parts.len()).map_err(|_| Errno(libc::ENOMEM))?;
            copy.many.resize(parts.len(), EMPTY);
        }
        copy_within_bounds(parts, copy.as_mut_slice())?;
        Ok(copy)
    }

    fn as_slice(&self) -> &[iovec] {
        if self.count > FEW { &self.many } else { &self.few[..self.count] }
    }

    fn as_mut_slice(&mut self) -> &mut [iovec] {
        if self.count > FEW { &mut self.many } else { &mut self.few[..self.count] }
    }

    fn unfilled(&mut self) -> &mut [IoSliceMut<'_>] {
        as_buffers(self.as_mut_slice())
    }
}

/// A list that was copied within bounds, as buffers to write to.
fn as_buffers(parts: &mut [iovec]) -> &mut [IoSliceMut<'_>] {
    // SAFETY: an `IoSliceMut` has the layout of an `iovec`; every part has an address, and is valid by P1.
    unsafe { slice::from_raw_parts_mut(parts.as_mut_ptr().cast(), parts.len()) }
}

fn copy_within_bounds(parts: &[iovec], room: &mut [iovec]) -> Result<()> {
    let mut left = LIMIT;
    for (copy, part) in room.iter_mut().zip(parts) {
        if !is_nowhere(part.iov_base) {
            let len = part.iov_len.min(left);
            *copy = iovec { iov_base: part.iov_base, iov_len: len };
            left -= len;
        } else if part.iov_len > 0 {
            return Err(Errno(libc::EFAULT));
        }
    }
    Ok(())
}

/// So many parts are copied to the stack; the kernel does the same (UIO_FASTIOV).
const FEW: usize = 8;

const EMPTY: iovec = iovec { iov_base: std::ptr::NonNull::<c_void>::dangling().as_ptr(), iov_len: 0 };

/// How many buffers the kernel takes in one call.
const MANY: usize = libc::UIO_MAXIOV as usize;
