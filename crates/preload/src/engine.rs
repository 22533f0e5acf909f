//! The way to the engine: whether a call is for it, and `errno` around it.

use std::sync::atomic::{AtomicBool, Ordering};

use libc::{c_int, ssize_t};
use sidestep_sockets::{
    Errno, Result,
    calls::{self, Found},
    kernel,
    reason::Reason,
    signal::{self, Inside},
};

use crate::{errno, startup};

/// Whether a call on this descriptor is for the engine: a stream, and the engine is not itself the caller.
#[inline]
pub fn has(fd: c_int) -> bool {
    find(fd).is_some()
}

/// The stream that such a call is on.
#[inline]
pub fn find(fd: c_int) -> Option<Found> {
    let found = calls::find(fd)?;
    if signal::is_inside() || has_left(fd) { None } else { Some(found) }
}

/// The same for epoll sets.
#[inline]
pub fn has_set(fd: c_int) -> bool {
    calls::is_set(fd) && !signal::is_inside() && !(is_shut_in() && calls::is_kernels_set(fd))
}

/// The same for either.
#[inline]
pub fn has_any(fd: c_int) -> bool {
    has(fd) || has_set(fd)
}

/// Whether the process has shut itself in, and this set is one whose members may have bytes that the kernel knows nothing of.
#[inline]
pub fn has_set_alone(fd: c_int) -> bool {
    is_shut_in() && calls::is_set(fd) && !signal::is_inside()
}

/// A call that the engine answers, and at which threads are cancelled.
#[inline]
pub fn ask(mut call: impl FnMut() -> Result<usize>) -> isize {
    let before = errno::Kept::new();
    loop {
        if signal::may_be_cancelled() {
            // SAFETY: ends the thread if it was cancelled; no frame from here up has anything to drop.
            unsafe { pthread_testcancel() };
        }
        match call() {
            Ok(value) => {
                before.restore();
                return value as isize;
            }
            Err(Errno::RESTART) => {}
            Err(error) => {
                errno::set(error.0);
                return -1;
            }
        }
    }
}

unsafe extern "C-unwind" {
    fn pthread_testcancel();
}

/// A call that the engine answers at once, with 0 or an error.
#[inline]
pub fn ask_unit(call: impl FnOnce() -> Result<()>) -> c_int {
    let before = errno::get();
    match call() {
        Ok(()) => {
            errno::set(before);
            0
        }
        Err(error) => errno::fail(error.0) as c_int,
    }
}

/// Something that the engine is told.
pub fn tell(event: impl FnOnce()) {
    let before = errno::get();
    event();
    errno::set(before);
}

/// A socket has become one that may be a stream.
pub fn took(fd: c_int, event: impl FnOnce(c_int)) {
    if SHUT_IN.load(Ordering::Relaxed) {
        return;
    }
    startup::ensure();
    tell(|| event(fd));
}

/// A stream is about to be used by a call that only the kernel can carry out.
#[cold]
pub fn leave(fd: c_int) {
    tell(|| calls::leave(fd, Reason::Option));
}

/// All streams of the process go back to TCP, since more are handed on than can be named.
#[cold]
pub fn pass_all() {
    if !signal::is_inside() {
        tell(|| calls::leave_all(Reason::Passed));
    }
}

/// The process is about to shut itself in. From then on only those calls are safe that it makes itself: every stream that
/// has left is the kernel's alone.
#[cold]
pub fn shut_in() {
    if !signal::is_inside() {
        tell(|| calls::leave_all(Reason::Sandboxed));
        crate::HEAP.seal();
        SHUT_IN.store(true, Ordering::Relaxed);
    }
}

/// The program makes an io_uring: it may wait for any stream without the library.
#[cold]
pub fn wait_unseen() {
    if !signal::is_inside() {
        tell(calls::waits_unseen);
    }
}

/// The process is about to be another user's. What comes later meets the processes of that one.
#[cold]
pub fn change_user() {
    if !signal::is_inside() && !is_shut_in() {
        tell(calls::change_user);
    }
}

/// It has tried to become that.
#[cold]
pub fn changed_user() {
    if !signal::is_inside() && !is_shut_in() {
        tell(calls::changed_user);
    }
}

/// The process is about to change its root.
#[cold]
pub fn keep_registry() {
    if !signal::is_inside() {
        tell(calls::keep_registry);
    }
}

/// The process is about to be elsewhere. The engine cannot follow if it has begun; if not, it will begin there.
#[cold]
pub fn move_away() {
    if calls::has_begun() {
        shut_in();
    }
}

/// A stream or set is about to be another process's, too.
#[cold]
pub fn pass(fd: c_int) {
    tell(|| calls::passing(&[fd]));
}

/// A program is started in a child, which will find these open. It has been when this returns, unless that has failed.
#[cold]
pub fn start_with_inherited<T>(start: impl FnOnce() -> T, succeeded: impl FnOnce(&T) -> bool) -> T {
    let fds: Vec<c_int> = inherited().collect();
    if fds.is_empty() {
        return start();
    }
    tell(|| calls::starting(&fds));
    let result = start();
    tell(|| calls::started(succeeded(&result)));
    result
}

/// The same for a program that takes this one's place.
#[cold]
pub fn execute_inherited() {
    let fds: Vec<c_int> = inherited().collect();
    tell(|| calls::executing(&fds));
}

/// It has not.
#[cold]
pub fn stay() {
    tell(calls::stays);
}

/// A standard descriptor leads to this stream now.
#[cold]
pub fn is_standard(fd: c_int) {
    tell(|| calls::is_standard(fd));
}

/// A stream is about to be read inside libc, where nothing that lies here is found.
#[cold]
pub fn leave_whole(fd: c_int) {
    tell(|| calls::leave_whole(fd));
}

/// The kernel has just given out this number.
#[cold]
pub fn lost(fd: c_int) {
    tell(|| calls::lost(fd));
}

/// A call has failed. `true`: because the number was closed past libc, and is another file's by now. The call is to be made as
/// it is.
#[cold]
pub fn is_lost(fd: c_int) -> bool {
    let error = errno::get();
    if !matches!(error, libc::ENOTSOCK | libc::EBADF) || signal::is_inside() || is_shut_in() {
        return false;
    }
    let lost = calls::is_lost(fd);
    errno::set(error);
    lost
}

/// Something else is at this number now, or will be.
#[cold]
pub fn forget(fd: c_int) {
    tell(|| calls::replaced(fd));
}

/// Streams and sets that a program executed now would inherit.
pub fn inherited() -> impl Iterator<Item = c_int> {
    calls::numbers()
        .filter(|fd| kernel::control(*fd, libc::F_GETFD, 0).is_ok_and(|flags| flags & libc::FD_CLOEXEC as usize == 0))
}

/// Whether the process has shut itself in, and this stream is on TCP for good.
#[inline]
fn has_left(fd: c_int) -> bool {
    is_shut_in() && calls::is_kernels(fd)
}

/// Whether the process has shut itself in.
#[inline]
pub fn is_shut_in() -> bool {
    SHUT_IN.load(Ordering::Relaxed)
}

/// A receiving call of the program's own has given this. In a process that has shut itself in it is counted, for others that
/// hold the stream.
#[inline]
pub fn received(fd: c_int, flags: c_int, result: ssize_t) -> ssize_t {
    if is_shut_in() && result > 0 && flags & libc::MSG_PEEK == 0 {
        calls::count_alone(fd, true, result as usize);
    }
    result
}

/// The same of a sending call.
#[inline]
pub fn sent(fd: c_int, result: ssize_t) -> ssize_t {
    if is_shut_in() && result > 0 {
        calls::count_alone(fd, false, result as usize);
    }
    result
}

/// Passes this thread's calls to the kernel for as long as it lives.
pub fn bypass() -> Inside {
    Inside::enter()
}

static SHUT_IN: AtomicBool = AtomicBool::new(false);
