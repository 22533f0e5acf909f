//! `longjmp` and its kin: a handler that does not return leaves the call that it has interrupted.

use std::{
    arch::naked_asm,
    ffi::{c_int, c_void},
};

use sidestep_sockets::jump;

use crate::{
    errno,
    real::{Next, next},
};

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn longjmp(buffer: *mut c_void, value: c_int) {
    hook_then_go_on!(before_longjmp)
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn _longjmp(buffer: *mut c_void, value: c_int) {
    hook_then_go_on!(before_plain_longjmp)
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn siglongjmp(buffer: *mut c_void, value: c_int) {
    hook_then_go_on!(before_siglongjmp)
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn __longjmp_chk(buffer: *mut c_void, value: c_int) {
    hook_then_go_on!(before_longjmp_chk)
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn setcontext(context: *const c_void) -> c_int {
    hook_then_go_on!(before_setcontext)
}

extern "C" fn before_longjmp(buffer: *const usize) -> *mut c_void {
    before_jump(buffer, &next::longjmp)
}

extern "C" fn before_plain_longjmp(buffer: *const usize) -> *mut c_void {
    before_jump(buffer, &next::_longjmp)
}

extern "C" fn before_siglongjmp(buffer: *const usize) -> *mut c_void {
    before_jump(buffer, &next::siglongjmp)
}

extern "C" fn before_longjmp_chk(buffer: *const usize) -> *mut c_void {
    before_jump(buffer, &next::__longjmp_chk)
}

extern "C" fn before_setcontext(context: *const libc::ucontext_t) -> *mut c_void {
    // SAFETY: P1: `getcontext` has filled it in.
    let context = unsafe { &*context };
    #[cfg(target_arch = "x86_64")]
    let target = context.uc_mcontext.gregs[libc::REG_RSP as usize] as usize;
    #[cfg(target_arch = "aarch64")]
    let target = context.uc_mcontext.sp as usize;
    leave_to(target);
    next::setcontext.find().unwrap_or(std::ptr::null_mut())
}

fn before_jump(buffer: *const usize, next: &Next) -> *mut c_void {
    // SAFETY: P1: `setjmp` has filled it in.
    if let Some(target) = unsafe { stack_of(buffer) } {
        leave_to(target);
    }
    next.find().unwrap_or(std::ptr::null_mut())
}

fn leave_to(target: usize) {
    let before = errno::get();
    jump::leave_to(&raw const before as usize, target);
    errno::set(before);
}

/// The stack pointer that a jump sets. libc keeps it turned and mixed with a number of its own.
///
/// # Safety
/// `setjmp` has filled the buffer in.
#[cfg(target_arch = "x86_64")]
unsafe fn stack_of(buffer: *const usize) -> Option<usize> {
    /// Its place among the registers in the buffer.
    const STACK: usize = 6;
    let guard: usize;
    // SAFETY: libc keeps the number there, for its own code in every program.
    unsafe { std::arch::asm!("mov {}, fs:[0x30]", out(reg) guard, options(nostack, readonly, pure)) };
    // SAFETY: as for this function: eight words.
    let place = unsafe { buffer.add(STACK) };
    // SAFETY: as above.
    let mixed = unsafe { place.read() };
    Some(mixed.rotate_right(17) ^ guard)
}

/// What libc mixes it with is not within reach here: the end of the thread takes back what a jump has left.
#[cfg(target_arch = "aarch64")]
unsafe fn stack_of(_: *const usize) -> Option<usize> {
    None
}
