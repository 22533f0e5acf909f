//! System calls that may block, and how a cancelled thread gets out of them.
//!
//! libc's own calls are points of cancellation; these are not libc's. So `pthread_cancel` sends the thread that it is for
//! a signal, if that thread may be in such a call ([`may_wait`]), and the handler looks where it has come
//! ([`Spot::cancelled`]): if the call was about to be made, or to be made again, it is not, and gives
//! [`Errno::RESTART`](super::Errno::RESTART). What a call has already done is kept: the thread is past the spot then.
//!
//! No signal is missed. Who cancels counts the cancellation and then looks whether the thread waits; who waits says so and
//! then looks at the count, within the spot.

#![allow(unsafe_code)]

use std::{
    arch::global_asm,
    sync::atomic::{AtomicU32, AtomicU64, Ordering, fence},
};

use super::{Errno, Result};
use crate::kernel::signal;

/// Threads that may be in a call that blocks: a count per remainder of their address.
static WAITING: [AtomicU32; PLACES] = [const { AtomicU32::new(0) }; PLACES];
const PLACES: usize = 1024;

/// Whether a thread may be in a call that blocks.
pub fn may_wait(thread: libc::pthread_t) -> bool {
    fence(Ordering::SeqCst);
    place(thread).load(Ordering::Relaxed) != 0
}

/// A system call that may block.
///
/// # Safety
/// The arguments must be what the call of this number expects.
pub unsafe fn syscall(number: i64, arguments: [usize; 6]) -> Result<usize> {
    // SAFETY: has no precondition.
    let place = place(unsafe { libc::pthread_self() });
    place.fetch_add(1, Ordering::SeqCst);
    // Pairs with `may_wait`: it sees this thread, or the spot sees its count. (The addition is a fence there.)
    #[cfg(not(target_arch = "x86_64"))]
    fence(Ordering::SeqCst);
    let (count, before) = (signal::cancellations(), signal::cancelled_before());
    let seen = before.map_or(0, |before| before.cancelled);
    // SAFETY: as for this function; the rest are references that outlive the call.
    let result = unsafe { sidestep_wait(number as isize, &arguments, count, seen) };
    place.fetch_sub(1, Ordering::Release);
    match -result as i32 {
        // A call that the kernel never restarts, and no handler of the program's ran.
        libc::EINTR if count.load(Ordering::Relaxed) != seen && before.is_none_or(signal::has_run_none) => {
            Err(Errno::RESTART)
        }
        errno if (-4095..0).contains(&result) => Err(Errno(errno)),
        _ => Ok(result as usize),
    }
}

fn place(thread: libc::pthread_t) -> &'static AtomicU32 {
    // Addresses that differ by the size of a stack, mostly.
    &WAITING[(thread.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize % PLACES]
}

/// The instructions between the look at the count and the system call.
#[derive(Debug)]
pub struct Spot(());

impl Spot {
    /// Where a thread that was interrupted at this address goes on, if it must not make its call.
    pub fn cancelled(at: usize) -> Option<usize> {
        let address = |label: unsafe extern "C" fn()| label as *const () as usize;
        let inside = address(sidestep_wait_begin)..address(sidestep_wait_end);
        inside.contains(&at).then(|| address(sidestep_wait_cancelled))
    }
}

unsafe extern "C" {
    fn sidestep_wait(number: isize, arguments: &[usize; 6], count: &AtomicU64, seen: u64) -> isize;
    fn sidestep_wait_begin();
    fn sidestep_wait_end();
    fn sidestep_wait_cancelled();
}

// No stack is used, so that the spot can be left from anywhere within it.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".pushsection .text.sidestep_wait, \"ax\", @progbits",
    ".globl sidestep_wait, sidestep_wait_begin, sidestep_wait_end, sidestep_wait_cancelled",
    ".hidden sidestep_wait, sidestep_wait_begin, sidestep_wait_end, sidestep_wait_cancelled",
    ".type sidestep_wait, @function",
    "sidestep_wait:",
    ".cfi_startproc",
    "mov rax, rdi",
    "mov r11, rdx",
    "mov rdi, [rsi]",
    "mov rdx, [rsi + 16]",
    "mov r10, [rsi + 24]",
    "mov r8, [rsi + 32]",
    "mov r9, [rsi + 40]",
    "mov rsi, [rsi + 8]",
    "sidestep_wait_begin:",
    "cmp [r11], rcx",
    "jne sidestep_wait_cancelled",
    "syscall",
    "sidestep_wait_end:",
    "ret",
    "sidestep_wait_cancelled:",
    "mov rax, {restart}",
    "ret",
    ".cfi_endproc",
    ".size sidestep_wait, . - sidestep_wait",
    ".popsection",
    restart = const -(Errno::RESTART.0 as i64),
);
#[cfg(target_arch = "aarch64")]
global_asm!(
    ".pushsection .text.sidestep_wait, \"ax\", @progbits",
    ".globl sidestep_wait, sidestep_wait_begin, sidestep_wait_end, sidestep_wait_cancelled",
    ".hidden sidestep_wait, sidestep_wait_begin, sidestep_wait_end, sidestep_wait_cancelled",
    ".type sidestep_wait, @function",
    "sidestep_wait:",
    ".cfi_startproc",
    "mov x8, x0",
    "mov x9, x1",
    "mov x10, x2",
    "mov x11, x3",
    "ldp x0, x1, [x9]",
    "ldp x2, x3, [x9, 16]",
    "ldp x4, x5, [x9, 32]",
    "sidestep_wait_begin:",
    "ldr x12, [x10]",
    "cmp x12, x11",
    "b.ne sidestep_wait_cancelled",
    "svc 0",
    "sidestep_wait_end:",
    "ret",
    "sidestep_wait_cancelled:",
    "mov x0, {restart}",
    "ret",
    ".cfi_endproc",
    ".size sidestep_wait, . - sidestep_wait",
    ".popsection",
    restart = const -(Errno::RESTART.0 as i64),
);
