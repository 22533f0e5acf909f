//! The entry of `syscall`: a function without a frame, which goes on to the next `syscall` or to the table of numbers.

use std::{
    arch::naked_asm,
    ffi::{c_long, c_void},
    sync::atomic::{AtomicPtr, Ordering},
};

use sidestep_sockets::kernel;

use crate::{errno, real::next};

use super::{COUNT, MEANT, handle};

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        "cmp rdi, {count}",
        "jae 2f",
        // A child with a stack of its own finds there what its maker has put there, and no frame of ours.
        "cmp rdi, {clone}",
        "jne 4f",
        "test rdx, rdx",
        "jnz 2f",
        "4:",
        "cmp rdi, {clone3}",
        "jne 5f",
        "test rsi, rsi",
        "jz 2f",
        "cmp qword ptr [rsi + {stack}], 0",
        "jne 2f",
        "5:",
        "mov rax, [rip + {meant}@GOTPCREL]",
        "cmp byte ptr [rax + rdi], 0",
        "je 2f",
        "jmp {handle}@PLT",
        "2:",
        "mov rax, [rip + {following}@GOTPCREL]",
        "mov r11, [rax]",
        "test r11, r11",
        "jz 3f",
        "xor eax, eax",
        "jmp r11",
        "3:",
        "jmp {first}@PLT",
        count = const COUNT,
        meant = sym MEANT,
        handle = sym handle,
        following = sym FOLLOWING,
        first = sym straight,
        clone = const libc::SYS_clone,
        clone3 = const libc::SYS_clone3,
        stack = const STACK,
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        "cmp x0, {count}",
        "b.hs 2f",
        // A child with a stack of its own finds there what its maker has put there, and no frame of ours.
        "cmp x0, {clone}",
        "b.ne 4f",
        "cbnz x2, 2f",
        "4:",
        "cmp x0, {clone3}",
        "b.ne 5f",
        "cbz x1, 2f",
        "ldr x9, [x1, {stack}]",
        "cbnz x9, 2f",
        "5:",
        "adrp x9, :got:{meant}",
        "ldr x9, [x9, :got_lo12:{meant}]",
        "ldrb w9, [x9, x0]",
        "cbz w9, 2f",
        "b {handle}",
        "2:",
        "adrp x9, :got:{following}",
        "ldr x9, [x9, :got_lo12:{following}]",
        "ldr x16, [x9]",
        "cbz x16, 3f",
        "br x16",
        "3:",
        "b {first}",
        count = const COUNT,
        meant = sym MEANT,
        handle = sym handle,
        following = sym FOLLOWING,
        first = sym straight,
        clone = const libc::SYS_clone,
        clone3 = const libc::SYS_clone3,
        stack = const STACK,
    );
}

/// The next `syscall` is known from now on.
pub(super) fn start() {
    FOLLOWING.store(next::syscall.known(), Ordering::Release);
}

/// Before the next `syscall` is known.
///
/// # Safety
/// P1.
unsafe extern "C-unwind" fn straight(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    // SAFETY: P1.
    errno::answer(unsafe { kernel::syscall(number, [a, b, c, d, e, f]) }) as c_long
}

/// Where the argument of `clone3` has the address of the child's stack.
const STACK: usize = 40;

/// The next `syscall`, once known.
static FOLLOWING: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
