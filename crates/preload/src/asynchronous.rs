//! POSIX asynchronous input and output: threads of libc that read and write inside it.

use std::{
    ffi::{c_int, c_void},
    fs::File,
    io::{IoSliceMut, Write},
    os::fd::{AsRawFd, OwnedFd},
    slice,
    time::Duration,
};

use libc::aiocb;
use rustix::pipe::PipeFlags;
use sidestep_sockets::calls;

use crate::{
    engine, errno,
    real::{Next, call},
    signals,
};

/// Most bytes that a pipe takes at once.
const PIPE: usize = 64 << 10;
/// How long libc may need to read from a pipe that has them: looks, and the time between two.
const LOOKS: usize = 20_000;
const LOOK: Duration = Duration::from_micros(50);

static AIO_ERROR: Next = Next::new("aio_error\0");

/// # Safety
/// P1.
pub unsafe fn aio_read(block: *mut aiocb) -> c_int {
    // SAFETY: P1.
    unsafe { leave(block) };
    // SAFETY: P1.
    let stand_in = unsafe { StandIn::of(block) };
    // SAFETY: P1.
    let result = unsafe { call::aio_read(block) };
    if let Some(stand_in) = stand_in {
        stand_in.end(result == 0);
    }
    result
}

/// # Safety
/// P1.
pub unsafe fn aio_write(block: *mut aiocb) -> c_int {
    // SAFETY: P1.
    unsafe { leave(block) };
    // SAFETY: P1.
    unsafe { call::aio_write(block) }
}

/// # Safety
/// P1.
pub unsafe fn lio_listio(mode: c_int, list: *const *mut aiocb, count: c_int, event: *mut c_void) -> c_int {
    let mut stand_ins = Vec::new();
    if !list.is_null() && count > 0 {
        // SAFETY: P1.
        for block in unsafe { slice::from_raw_parts(list, count as usize) } {
            // SAFETY: P1.
            unsafe { leave(*block) };
            // SAFETY: P1.
            let reads = unsafe { block.as_ref() }.is_some_and(|block| block.aio_lio_opcode == libc::LIO_READ);
            // SAFETY: P1.
            stand_ins.extend(reads.then(|| unsafe { StandIn::of(*block) }).flatten());
        }
    }
    // SAFETY: P1.
    let result = unsafe { call::lio_listio(mode, list, count, event) };
    // One that could not be begun has an error, and its bytes stay where they are.
    stand_ins.into_iter().for_each(|stand_in| stand_in.end(true));
    result
}

/// # Safety
/// P1.
unsafe fn leave(block: *mut aiocb) {
    // SAFETY: P1.
    if let Some(block) = unsafe { block.as_ref() } {
        let fd = block.aio_fildes;
        if engine::has(fd) {
            engine::leave_whole(fd);
        }
    }
}

/// A pipe that libc reads from instead of a stream, which has bytes that its peer could not send over TCP: they come first. The stream
/// parts with them when libc has read them, and the program is told of it afterwards. A request that makes a thread when it has been
/// carried out has none: libc alone knows how.
struct StandIn {
    block: *mut aiocb,
    fd: c_int,
    notify: c_int,
    bytes: Vec<u8>,
    pipe: OwnedFd,
}

impl StandIn {
    /// For a request to read that is about to be made. `None`: libc finds everything with the kernel.
    ///
    /// # Safety
    /// P1; the block lives until [`StandIn::end`].
    unsafe fn of(block: *mut aiocb) -> Option<StandIn> {
        // SAFETY: P1.
        let request = unsafe { block.as_mut() }?;
        let (fd, notify) = (request.aio_fildes, request.aio_sigevent.sigev_notify);
        let is_told = matches!(notify, libc::SIGEV_NONE | libc::SIGEV_SIGNAL);
        if !is_told || !engine::has(fd) || !calls::has_rest(fd) {
            return None;
        }
        let mut bytes = vec![0; request.aio_nbytes.min(PIPE)];
        let before = errno::Kept::new();
        let found = receive(fd, &mut bytes, libc::MSG_PEEK);
        before.restore();
        let found = found.filter(|found| *found > 0)?;
        bytes.truncate(found);
        let (pipe, into) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).ok()?;
        File::from(into).write_all(&bytes).ok()?;
        request.aio_fildes = pipe.as_raw_fd();
        request.aio_sigevent.sigev_notify = libc::SIGEV_NONE;
        Some(StandIn { block, fd, notify, bytes, pipe })
    }

    /// Waits until libc has read, if it does; the stream then has so much less.
    fn end(mut self, is_begun: bool) {
        let before = errno::Kept::new();
        let is_late = is_begun && !(0..LOOKS).any(|_| self.is_carried_out());
        // SAFETY: as for `of`.
        let request = unsafe { &mut *self.block };
        request.aio_sigevent.sigev_notify = self.notify;
        let mut unread = 0;
        if is_late {
            // Every thread of libc is busy with something else: it reads this later, and tells of it.
            std::mem::forget(self.pipe);
        } else {
            request.aio_fildes = self.fd;
            unread = rustix::io::ioctl_fionread(&self.pipe).map_or(0, |unread| unread as usize);
        }
        let mut read = self.bytes.len() - unread.min(self.bytes.len());
        let is_read = read > 0;
        while let Some(count @ 1..) = receive(self.fd, &mut self.bytes[..read], 0) {
            read -= count;
        }
        if is_read && !is_late && self.notify == libc::SIGEV_SIGNAL {
            signals::carried_out(&request.aio_sigevent);
        }
        before.restore();
    }

    fn is_carried_out(&self) -> bool {
        let Some(function) = AIO_ERROR.get() else { return true };
        // SAFETY: the function of this name has this type.
        let aio_error: unsafe extern "C" fn(*const aiocb) -> c_int = unsafe { std::mem::transmute(function) };
        // SAFETY: as for `of`.
        let is_over = unsafe { aio_error(self.block) } != libc::EINPROGRESS;
        if !is_over {
            std::thread::sleep(LOOK);
        }
        is_over
    }
}

/// Receives what is there, or looks at it.
fn receive(fd: c_int, bytes: &mut [u8], flags: c_int) -> Option<usize> {
    let count = engine::ask(|| calls::receive(fd, &mut [IoSliceMut::new(bytes)], flags | libc::MSG_DONTWAIT));
    usize::try_from(count).ok()
}
