//! `sigaction`, `signal` and their kin, and SIGPIPE.

use std::{
    ffi::c_int,
    sync::atomic::{AtomicU64, Ordering},
};

use libc::{sighandler_t, ssize_t};
use sidestep_sockets::kernel;

use crate::{
    errno,
    handler::{self, Handler},
    real::call,
};

/// # Safety
/// P1.
pub unsafe fn sigaction(signo: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
    // SAFETY: P1.
    let mut copy = unsafe { new.as_ref() }.copied();
    if let Some(action) = &mut copy {
        let (function, flags) = wrap(signo, action.sa_sigaction, action.sa_flags);
        action.sa_sigaction = function;
        action.sa_flags = flags;
    }
    let new = copy.as_ref().map_or(std::ptr::null(), |action| &raw const *action);
    // SAFETY: P1.
    let result = unsafe { call::sigaction(signo, new, old) };
    // SAFETY: P1.
    if let (0, Some(old)) = (result, unsafe { old.as_mut() }) {
        let (function, flags) = unwrap(old.sa_sigaction, old.sa_flags);
        old.sa_sigaction = function;
        old.sa_flags = flags;
    }
    result
}

/// A request of asynchronous input has been carried out: the signal that its program wants then, if it is one.
pub fn carried_out(event: &libc::sigevent) {
    // As the kernel has it for a signal that is queued: number, error and code, then sender and value.
    #[repr(C)]
    struct Info {
        head: [c_int; 4],
        sender: [u32; 2],
        value: libc::sigval,
        rest: [u64; 12],
    }
    let (own, user) = (rustix::process::getpid(), rustix::process::getuid());
    let own = own.as_raw_nonzero().get();
    let head = [event.sigev_signo, 0, libc::SI_ASYNCIO, 0];
    let info = Info { head, sender: [own as u32, user.as_raw()], value: event.sigev_value, rest: [0; 12] };
    let arguments = [own as usize, event.sigev_signo as usize, &raw const info as usize, 0, 0, 0];
    if event.sigev_signo != 0 {
        // SAFETY: the kernel reads 128 bytes of it.
        let _ = unsafe { kernel::syscall(libc::SYS_rt_sigqueueinfo, arguments) };
    }
}

/// The system call: as the kernel has it in memory, an action begins with the handler and the flags.
///
/// # Safety
/// P1.
pub unsafe fn rt_sigaction(arguments: [usize; 6]) -> ssize_t {
    let [signo, new, old, ..] = arguments;
    let mut changed = arguments;
    let mut copy;
    if new != 0 {
        // SAFETY: P1: the kernel's structure has four words.
        copy = unsafe { (new as *const [usize; 4]).read_unaligned() };
        let (function, flags) = wrap(signo as c_int, copy[0], copy[1] as c_int);
        copy[0] = function;
        copy[1] = copy[1] & !0xffff_ffff | flags as u32 as usize;
        changed[1] = &raw const copy as usize;
    }
    // SAFETY: P1.
    let result = unsafe { kernel::syscall(libc::SYS_rt_sigaction, changed) };
    if result.is_ok() && old != 0 {
        let place = old as *mut [usize; 4];
        // SAFETY: P1: the kernel has written it.
        let mut words = unsafe { place.read_unaligned() };
        let (function, flags) = unwrap(words[0], words[1] as c_int);
        words[0] = function;
        words[1] = words[1] & !0xffff_ffff | flags as u32 as usize;
        // SAFETY: as above.
        unsafe { place.write_unaligned(words) };
    }
    errno::answer(result)
}

/// # Safety
/// P1.
pub unsafe fn signal(signo: c_int, function: sighandler_t) -> sighandler_t {
    if !(1..=64).contains(&signo) || function == libc::SIG_ERR {
        return errno::fail(libc::EINVAL) as sighandler_t;
    }
    let interrupts = INTERRUPTING.load(Ordering::Relaxed) >> (signo - 1) & 1 != 0;
    let flags = if interrupts { 0 } else { libc::SA_RESTART };
    // SAFETY: P1.
    unsafe { install(signo, function, flags, true) }
}

/// # Safety
/// P1.
pub unsafe fn sysv_signal(signo: c_int, function: sighandler_t) -> sighandler_t {
    if !(1..=64).contains(&signo) || function == libc::SIG_ERR {
        return errno::fail(libc::EINVAL) as sighandler_t;
    }
    // SAFETY: P1.
    unsafe { install(signo, function, libc::SA_RESETHAND | libc::SA_NODEFER | SA_INTERRUPT, false) }
}

/// # Safety
/// P1.
pub unsafe fn sigset(signo: c_int, function: sighandler_t) -> sighandler_t {
    let installed = if wraps(signo, function) {
        let flags = Handler { function, restarts: false, wants_info: false, once: false, has_info: false };
        flags.installed().unwrap_or(function)
    } else {
        function
    };
    // SAFETY: P1.
    let old = unsafe { call::sigset(signo, installed) };
    Handler::behind(old).map_or(old, |handler| handler.function)
}

/// # Safety
/// P1.
pub unsafe fn siginterrupt(signo: c_int, interrupts: c_int) -> c_int {
    // SAFETY: zeros are valid for a C structure of integers and a pointer that may be missing.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is our own.
    let result = unsafe { sigaction(signo, std::ptr::null(), &mut action) };
    if result < 0 {
        return result;
    }
    let bit = 1u64 << (signo - 1);
    if interrupts != 0 {
        INTERRUPTING.fetch_or(bit, Ordering::Relaxed);
        action.sa_flags &= !libc::SA_RESTART;
    } else {
        INTERRUPTING.fetch_and(!bit, Ordering::Relaxed);
        action.sa_flags |= libc::SA_RESTART;
    }
    // SAFETY: the structure is our own.
    unsafe { sigaction(signo, &action, std::ptr::null_mut()) }
}

/// Makes a sending call, and raises SIGPIPE if it failed with EPIPE and the kernel has not already raised it.
#[inline]
pub fn broken_pipe(flags: c_int, call: impl FnOnce() -> ssize_t) -> ssize_t {
    let before = handler::broken_pipes();
    let result = call();
    if result < 0 && errno::get() == libc::EPIPE {
        raise_broken_pipe(flags, before);
    }
    result
}

/// After a sending call that has failed, and in which the kernel raises nothing: raises SIGPIPE if it has to be.
#[cold]
pub fn tell_broken_pipe(flags: c_int) {
    if errno::get() == libc::EPIPE {
        raise_broken_pipe(flags, handler::broken_pipes());
    }
}

#[cold]
fn raise_broken_pipe(flags: c_int, before: u64) {
    if flags & libc::MSG_NOSIGNAL != 0 || handler::broken_pipes() != before {
        return;
    }
    // As the kernel raises it: by the process itself, to the thread.
    // SAFETY: zeros are valid for a structure of integers.
    let mut info: Sent = unsafe { std::mem::zeroed() };
    info.signo = libc::SIGPIPE;
    info.code = libc::SI_USER;
    info.pid = kernel::process() as c_int;
    // SAFETY: has no precondition.
    info.uid = unsafe { libc::getuid() };
    handler::queue(libc::SIGPIPE, (&raw mut info).cast());
    // A handler may have changed it.
    errno::set(libc::EPIPE);
}

/// # Safety
/// P1.
unsafe fn install(signo: c_int, function: sighandler_t, flags: c_int, blocks_itself: bool) -> sighandler_t {
    // SAFETY: zeros are valid for a C structure of integers and a pointer that may be missing.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let mut old = action;
    action.sa_sigaction = function;
    action.sa_flags = flags;
    if blocks_itself {
        // SAFETY: the set is our own.
        unsafe { libc::sigaddset(&mut action.sa_mask, signo) };
    }
    // SAFETY: the structures are our own.
    let result = unsafe { sigaction(signo, &action, &mut old) };
    if result < 0 { libc::SIG_ERR } else { old.sa_sigaction }
}

/// What to install for a handler of the program.
fn wrap(signo: c_int, function: sighandler_t, flags: c_int) -> (sighandler_t, c_int) {
    if !wraps(signo, function) {
        return (function, flags);
    }
    let has = |flag: c_int| flags & flag != 0;
    let (wants_info, once) = (has(libc::SA_SIGINFO), has(libc::SA_RESETHAND));
    // The flags of a handler for one signal can be seen when the handler is gone, so they stay as they are.
    let has_info = wants_info || !once;
    let handler = Handler { function, restarts: has(libc::SA_RESTART), wants_info, once, has_info };
    let added = if has_info { libc::SA_SIGINFO } else { 0 };
    handler.installed().map_or((function, flags), |installed| (installed, flags | added))
}

/// What the program had installed.
fn unwrap(function: sighandler_t, flags: c_int) -> (sighandler_t, c_int) {
    match Handler::behind(function) {
        Some(handler) if handler.wants_info => (handler.function, flags),
        Some(handler) => (handler.function, flags & !libc::SA_SIGINFO),
        None => (function, flags),
    }
}

/// Faults are never put off: the instruction would only fault again. The small numbers are SIG_DFL, SIG_IGN and SIG_HOLD.
fn wraps(signo: c_int, function: sighandler_t) -> bool {
    let fault = matches!(
        signo,
        libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGTRAP | libc::SIGSYS | libc::SIGABRT
    );
    (1..=64).contains(&signo) && !fault && function > 2 && function != libc::SIG_ERR
}

/// The beginning of a `siginfo_t` of a signal that a process has sent.
#[repr(C)]
struct Sent {
    signo: c_int,
    errno: c_int,
    code: c_int,
    padding: c_int,
    pid: c_int,
    uid: u32,
    rest: [u64; 13],
}

const _: () = assert!(size_of::<Sent>() == size_of::<libc::siginfo_t>());

/// An old name for "not SA_RESTART", which the kernel ignores.
const SA_INTERRUPT: c_int = 0x2000_0000;

/// Signals for which `siginterrupt` has asked that `signal` leaves SA_RESTART out, one bit each.
static INTERRUPTING: AtomicU64 = AtomicU64::new(0);
