//! A stack of the engine's own, for what is seldom done and goes deep: the start of the engine, the agreement with a peer. A
//! thread of the program may have little stack, and its handlers less.
//!
//! # Invariants
//!
//! - **T1** A stack is one thread's from when it is taken out of `SPARE`, or made, until it is put back.
//! - **T2** The thread is inside the engine, so that no handler of the program's leaves the stack by a jump.

#![allow(unsafe_code)]

use std::{
    alloc::{self, Layout},
    arch::global_asm,
    cell::Cell,
    ffi::c_void,
    mem::MaybeUninit,
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

use crate::kernel::signal;

/// Much more than the deepest way takes, in debug builds, too. Pages that are never reached take no memory.
const LAYOUT: Layout = match Layout::from_size_align(256 << 10, 4096) {
    Ok(layout) => layout,
    Err(_) => panic!("a whole number of pages"),
};

/// The one that was used last.
static SPARE: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());

thread_local! {
    /// This thread is on one.
    static ON_ONE: Cell<bool> = const { Cell::new(false) };
}

/// Runs a function on a stack of the engine's own; without memory for one, on the thread's. Inside.
pub fn on_own<T, F: FnOnce() -> T>(act: F) -> T {
    debug_assert!(signal::is_inside(), "T2");
    if ON_ONE.get() {
        return act();
    }
    let spare = SPARE.swap(ptr::null_mut(), Ordering::Acquire);
    // SAFETY: the size is not zero.
    let stack = if spare.is_null() { unsafe { alloc::alloc(LAYOUT) } } else { spare };
    if stack.is_null() {
        return act();
    }
    ON_ONE.set(true);
    let mut call = Call { act: Some(act), outcome: MaybeUninit::uninit() };
    let top = stack.wrapping_add(LAYOUT.size());
    // SAFETY: T1: the top of memory that nobody else uses; the function is for this call, which outlives it.
    unsafe { sidestep_on_stack(top, run::<T, F>, (&raw mut call).cast()) };
    ON_ONE.set(false);
    if SPARE.compare_exchange(ptr::null_mut(), stack, Ordering::Release, Ordering::Relaxed).is_err() {
        // SAFETY: made with this layout, and left.
        unsafe { alloc::dealloc(stack, LAYOUT) };
    }
    // SAFETY: `run` has stored it.
    unsafe { call.outcome.assume_init() }
}

struct Call<T, F> {
    act: Option<F>,
    outcome: MaybeUninit<T>,
}

extern "C-unwind" fn run<T, F: FnOnce() -> T>(call: *mut c_void) {
    // SAFETY: the call of `on_own`, which waits for this and touches it no more meanwhile.
    let call = unsafe { &mut *call.cast::<Call<T, F>>() };
    if let Some(act) = call.act.take() {
        call.outcome.write(act());
    }
}

unsafe extern "C-unwind" {
    fn sidestep_on_stack(top: *mut u8, run: extern "C-unwind" fn(*mut c_void), call: *mut c_void);
}

// The frame is found by its pointer, so that a trace, and a panic, goes on in the stack before.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".pushsection .text.sidestep_on_stack, \"ax\", @progbits",
    ".globl sidestep_on_stack",
    ".hidden sidestep_on_stack",
    ".type sidestep_on_stack, @function",
    "sidestep_on_stack:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "mov rsp, rdi",
    "mov rdi, rdx",
    "call rsi",
    "mov rsp, rbp",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size sidestep_on_stack, . - sidestep_on_stack",
    ".popsection",
);
#[cfg(target_arch = "aarch64")]
global_asm!(
    ".pushsection .text.sidestep_on_stack, \"ax\", @progbits",
    ".globl sidestep_on_stack",
    ".hidden sidestep_on_stack",
    ".type sidestep_on_stack, @function",
    "sidestep_on_stack:",
    ".cfi_startproc",
    "stp x29, x30, [sp, -16]!",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset x29, -16",
    ".cfi_offset x30, -8",
    "mov x29, sp",
    ".cfi_def_cfa_register x29",
    "mov sp, x0",
    "mov x0, x2",
    "blr x1",
    "mov sp, x29",
    "ldp x29, x30, [sp], 16",
    ".cfi_def_cfa sp, 0",
    "ret",
    ".cfi_endproc",
    ".size sidestep_on_stack, . - sidestep_on_stack",
    ".popsection",
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::signal::Inside;

    #[test]
    fn it_is_another_stack_and_gives_what_the_function_gives() {
        let _inside = Inside::enter();
        let here = &raw const _inside as usize;
        let (there, nested) = on_own(|| {
            let local = 7u64;
            let at = &raw const local as usize;
            (at, on_own(|| at.abs_diff(&raw const local as usize) == 0))
        });
        assert!(here.abs_diff(there) > 4096 && nested);
        let text = on_own(|| vec!["a".to_string(); 3].concat());
        assert_eq!(text, "aaa");
        let caught = std::panic::catch_unwind(|| on_own(|| panic!("it goes on in the stack before")));
        assert!(caught.is_err());
        ON_ONE.set(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let _inside = Inside::enter();
                    (0..1000u64).for_each(|number| assert_eq!(on_own(|| number * 2), number * 2));
                });
            }
        });
    }
}
