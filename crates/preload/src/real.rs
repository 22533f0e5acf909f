//! The next function of a name: libc's, or that of a library that was preloaded after this one.
//!
//! All are looked up when the library starts, so that none is looked up in a signal handler or in a child of `fork`. Who
//! calls before that makes the look-up itself; who calls from within a look-up (an allocator that reads a file, say) gets
//! the system call.

use std::{
    cell::Cell,
    ffi::{c_char, c_int, c_long, c_uint, c_void},
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

use libc::{
    FILE, aiocb, epoll_event, fd_set, gid_t, iovec, mmsghdr, msghdr, nfds_t, off_t, pid_t, pollfd, sighandler_t,
    sigset_t, size_t, sockaddr, socklen_t, ssize_t, timespec, timeval, uid_t,
};

use crate::{
    asynchronous, cancel, connection, descriptor, file, limit, message, option, process, sandbox, select, set, signals,
    transfer, vector, wait,
};

include!("list.rs");

/// The place of one function.
pub struct Next {
    name: &'static str,
    pointer: AtomicPtr<c_void>,
}

impl Next {
    /// Not looked up yet. The name ends with a zero.
    pub const fn new(name: &'static str) -> Next {
        Next { name, pointer: AtomicPtr::new(ptr::null_mut()) }
    }

    /// The function; `None` if libc has none, or from within a look-up.
    #[inline]
    pub fn get(&self) -> Option<*mut c_void> {
        let pointer = self.pointer.load(Ordering::Acquire);
        if !pointer.is_null() {
            return Some(pointer);
        }
        if LOOKING.with(Cell::get) { None } else { self.find() }
    }

    /// The same, from within a look-up, too.
    #[inline]
    pub fn find(&self) -> Option<*mut c_void> {
        let pointer = self.pointer.load(Ordering::Acquire);
        if pointer.is_null() { self.look() } else { Some(pointer) }
    }

    /// What is known so far, for functions written in assembly.
    pub fn known(&self) -> *mut c_void {
        self.pointer.load(Ordering::Acquire)
    }

    #[cold]
    fn look(&self) -> Option<*mut c_void> {
        let before = LOOKING.with(|looking| looking.replace(true));
        let errno = crate::errno::get();
        // SAFETY: the name ends with a zero. RTLD_NEXT goes by the address of the caller, which is in this library.
        let pointer = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr().cast()) };
        self.pointer.store(pointer, Ordering::Release);
        crate::errno::set(errno);
        LOOKING.with(|looking| looking.set(before));
        (!pointer.is_null()).then_some(pointer)
    }
}

/// Looks all of them up.
pub fn look_up_all() {
    for next in next::ALL {
        next.find();
    }
}

/// What a function of this type returns when it fails.
pub trait Failed {
    /// That value.
    const FAILED: Self;
}

impl Failed for c_int {
    const FAILED: c_int = -1;
}

impl Failed for isize {
    const FAILED: isize = -1;
}

impl Failed for usize {
    /// SIG_ERR.
    const FAILED: usize = usize::MAX;
}

impl Failed for i64 {
    const FAILED: i64 = -1;
}

impl<T> Failed for *mut T {
    const FAILED: *mut T = ptr::null_mut();
}

impl Failed for () {
    const FAILED: () = ();
}

thread_local! {
    static LOOKING: Cell<bool> = const { Cell::new(false) };
}
