//! `pthread_cancel`, and the signal that gets a thread out of a system call of the engine's.
//!
//! libc sends its own signal for cancellation to threads in its own calls only. The same signal, which no program can block,
//! is sent from here to a thread in a call of the engine's, with a mark of ours by which libc's handler knows nothing to do.
//! A handler in front of libc's lets the thread leave its call; the wrapper then finds the thread cancelled.

use std::{
    ffi::{c_int, c_void},
    sync::atomic::{AtomicUsize, Ordering},
};

use libc::siginfo_t;
use sidestep_sockets::{
    calls,
    kernel::{self, waiting},
};

use crate::{engine, real::call};

/// # Safety
/// P1.
pub unsafe fn pthread_cancel(thread: usize) -> c_int {
    let mut clock = 0;
    // The thread must not be gone, as for libc.
    // SAFETY: P1.
    let known = unsafe { libc::pthread_getcpuclockid(thread as libc::pthread_t, &mut clock) } == 0;
    // SAFETY: P1.
    let outcome = unsafe { call::pthread_cancel(thread) };
    engine::tell(|| {
        calls::cancelled();
        if known && waiting::may_wait(thread as libc::pthread_t) && stands_in_front() {
            // A clock of a thread has its number in it, inverted, above three bits.
            let number = !(clock >> 3) as usize;
            rouse(number);
        }
    });
    outcome
}

/// Sends the signal to a thread by its number.
fn rouse(thread: usize) {
    // SAFETY: zeros are valid for a structure of integers.
    let mut info: siginfo_t = unsafe { std::mem::zeroed() };
    info.si_signo = SIGNAL;
    info.si_code = libc::SI_QUEUE;
    let arguments = [kernel::process() as usize, thread, SIGNAL as usize, &raw const info as usize, 0, 0];
    // SAFETY: the structure outlives the call.
    let _ = unsafe { kernel::syscall(libc::SYS_rt_tgsigqueueinfo, arguments) };
}

/// Puts the handler in front of libc's. `false`: libc has none.
fn stands_in_front() -> bool {
    let mut action = [0usize; 4];
    let place = &raw mut action as usize;
    // SAFETY: `action` has the size of the kernel's structure, which begins with the handler.
    let read = unsafe { kernel::syscall(libc::SYS_rt_sigaction, [SIGNAL as usize, 0, place, 8, 0, 0]) };
    if read.is_err() || action[0] == libc::SIG_DFL || action[0] == libc::SIG_IGN {
        return false;
    }
    let own = arrive as *const () as usize;
    if action[0] == own {
        return true;
    }
    BEHIND.store(action[0], Ordering::Release);
    action[0] = own;
    let place = &raw const action as usize;
    // Flags, mask and the way back stay libc's.
    // SAFETY: as above.
    unsafe { kernel::syscall(libc::SYS_rt_sigaction, [SIGNAL as usize, place, 0, 8, 0, 0]) }.is_ok()
}

/// The handler. Touches nothing but the kernel's frame.
extern "C-unwind" fn arrive(signo: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel's frame, which lives until this handler returns.
    let frame = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    #[cfg(target_arch = "x86_64")]
    let at = &mut frame.uc_mcontext.gregs[libc::REG_RIP as usize];
    #[cfg(target_arch = "aarch64")]
    let at = &mut frame.uc_mcontext.pc;
    if let Some(cancelled) = waiting::Spot::cancelled(*at as usize) {
        *at = cancelled as _;
        return;
    }
    // SAFETY: libc's handler, which takes what the kernel gives. It acts on signals of libc's own only.
    let behind: unsafe extern "C-unwind" fn(c_int, *mut siginfo_t, *mut c_void) =
        unsafe { std::mem::transmute(BEHIND.load(Ordering::Acquire)) };
    // SAFETY: as above.
    unsafe { behind(signo, info, context) };
}

/// The handler of libc's.
static BEHIND: AtomicUsize = AtomicUsize::new(0);

/// What libc uses for cancellation: the first of the real-time signals, which it keeps from programs.
const SIGNAL: c_int = 32;
