//! `execl`, `execle` and `execlp`: programs whose arguments are those of the call.
//!
//! Each makes a list of them where they lie: those that came in registers are put right before those on the stack.

use std::{
    arch::naked_asm,
    ffi::{c_char, c_int},
};

use crate::{process::execute, real::call};

/// The body of a naked function that calls another with its first argument and a list of the others.
macro_rules! with_list {
    ($body:path) => {{
        #[cfg(target_arch = "x86_64")]
        naked_asm!(
            "pop r10", // where to return to: the list goes on behind it
            "push r9",
            "push r8",
            "push rcx",
            "push rdx",
            "push rsi",
            "mov rsi, rsp",
            "push r10",
            "call {body}@PLT",
            "pop r10",
            "add rsp, 40",
            "push r10",
            "ret",
            body = sym $body,
        );
        #[cfg(target_arch = "aarch64")]
        naked_asm!(
            "stp x30, x1, [sp, #-64]!",
            "stp x2, x3, [sp, #16]",
            "stp x4, x5, [sp, #32]",
            "stp x6, x7, [sp, #48]",
            "add x1, sp, #8",
            "bl {body}",
            "ldr x30, [sp], #64",
            "ret",
            body = sym $body,
        );
    }};
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn execl(path: *const c_char, argument: *const c_char) -> c_int {
    with_list!(execute_path)
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn execle(path: *const c_char, argument: *const c_char) -> c_int {
    with_list!(execute_with_environment)
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn execlp(file: *const c_char, argument: *const c_char) -> c_int {
    with_list!(execute_file)
}

/// # Safety
/// P1: the list ends with a null pointer.
unsafe extern "C" fn execute_path(path: *const c_char, list: *const *const c_char) -> c_int {
    // SAFETY: as for this function.
    execute(|| unsafe { call::execv(path, list) })
}

/// # Safety
/// P1: the list ends with a null pointer, behind which the environment is.
unsafe extern "C" fn execute_with_environment(path: *const c_char, list: *const *const c_char) -> c_int {
    let mut end = list;
    // SAFETY: as for this function.
    while !unsafe { *end }.is_null() {
        // SAFETY: there is another one behind it.
        end = unsafe { end.add(1) };
    }
    // SAFETY: as for this function.
    let behind = unsafe { end.add(1) };
    // SAFETY: as above.
    let environment = unsafe { *behind }.cast();
    // SAFETY: as for this function.
    execute(|| unsafe { call::execve(path, list, environment) })
}

/// # Safety
/// P1: the list ends with a null pointer.
unsafe extern "C" fn execute_file(file: *const c_char, list: *const *const c_char) -> c_int {
    // SAFETY: as for this function.
    execute(|| unsafe { call::execvp(file, list) })
}
