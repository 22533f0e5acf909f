//! New processes and new programs: `vfork`, `clone`, `exec`, `posix_spawn`, `system`, `popen`. `fork` itself is seen by `pthread_atfork`.

use std::{
    arch::naked_asm,
    ffi::{c_char, c_int, c_void},
};

use libc::{FILE, pid_t};
use sidestep_sockets::{
    kernel::{self, Errno},
    signal,
};

use crate::{child, engine, errno, real::call, startup};

/// # Safety
/// P1.
pub unsafe fn execve(path: *const c_char, arguments: *const *const c_char, environment: *const *const c_char) -> c_int {
    // SAFETY: P1.
    execute(|| unsafe { call::execve(path, arguments, environment) })
}

/// # Safety
/// P1.
pub unsafe fn execv(path: *const c_char, arguments: *const *const c_char) -> c_int {
    // SAFETY: P1.
    execute(|| unsafe { call::execv(path, arguments) })
}

/// # Safety
/// P1.
pub unsafe fn execvp(file: *const c_char, arguments: *const *const c_char) -> c_int {
    // SAFETY: P1.
    execute(|| unsafe { call::execvp(file, arguments) })
}

/// # Safety
/// P1.
pub unsafe fn execvpe(
    file: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    // SAFETY: P1.
    execute(|| unsafe { call::execvpe(file, arguments, environment) })
}

/// # Safety
/// P1.
pub unsafe fn fexecve(fd: c_int, arguments: *const *const c_char, environment: *const *const c_char) -> c_int {
    // SAFETY: P1.
    execute(|| unsafe { call::fexecve(fd, arguments, environment) })
}

/// # Safety
/// P1.
pub unsafe fn execveat(
    folder: c_int,
    path: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
    flags: c_int,
) -> c_int {
    // SAFETY: P1.
    execute(|| unsafe { call::execveat(folder, path, arguments, environment, flags) })
}

/// # Safety
/// P1.
pub unsafe fn posix_spawn(
    pid: *mut pid_t,
    path: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    let start = || {
        // SAFETY: P1.
        unsafe { call::posix_spawn(pid, path, actions, attributes, arguments, environment) }
    };
    start_program(start, |error| *error == 0)
}

/// # Safety
/// P1.
pub unsafe fn posix_spawnp(
    pid: *mut pid_t,
    file: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    let start = || {
        // SAFETY: P1.
        unsafe { call::posix_spawnp(pid, file, actions, attributes, arguments, environment) }
    };
    start_program(start, |error| *error == 0)
}

/// # Safety
/// P1.
pub unsafe fn adddup2(actions: *mut c_void, fd: c_int, new: c_int) -> c_int {
    if engine::has_any(fd) {
        engine::pass(fd);
    }
    // SAFETY: P1.
    unsafe { call::posix_spawn_file_actions_adddup2(actions, fd, new) }
}

/// # Safety
/// P1.
pub unsafe fn system(command: *const c_char) -> c_int {
    // SAFETY: P1.
    start_program(|| unsafe { call::system(command) }, |status| *status != -1)
}

/// # Safety
/// P1.
pub unsafe fn popen(command: *const c_char, mode: *const c_char) -> *mut FILE {
    // SAFETY: P1.
    start_program(|| unsafe { call::popen(command, mode) }, |stream| !stream.is_null())
}

/// Takes another program in this one's place. Returns only if that fails.
pub fn execute(call: impl FnOnce() -> c_int) -> c_int {
    before_execution();
    let result = call();
    after_execution();
    result
}

/// Streams that the next program will find open go over to it.
pub fn before_execution() {
    if child::runs() {
        engine::inherited().for_each(child::hands_on);
    } else if !signal::is_inside() && !engine::is_shut_in() {
        engine::execute_inherited();
    }
}

/// There is no next program.
pub fn after_execution() {
    if !child::runs() && !signal::is_inside() && !engine::is_shut_in() {
        engine::stay();
    }
}

/// Starts a program in a child. Streams that it will find open are its own, too.
fn start_program<T>(start: impl FnOnce() -> T, succeeded: impl FnOnce(&T) -> bool) -> T {
    if child::runs() {
        engine::inherited().for_each(child::hands_on);
    } else if !signal::is_inside() && !engine::is_shut_in() {
        return engine::start_with_inherited(start, succeeded);
    }
    start()
}

/// # Safety
/// P1.
pub unsafe fn fork_bare() -> c_int {
    if signal::is_inside() {
        // SAFETY: P1.
        return unsafe { call::_Fork() };
    }
    startup::before_fork();
    // SAFETY: P1.
    let pid = unsafe { call::_Fork() };
    after_fork(pid);
    pid
}

/// # Safety
/// P1, P3.
#[allow(clippy::too_many_arguments)]
pub unsafe fn clone(
    function: *mut c_void,
    stack: *mut c_void,
    flags: c_int,
    argument: *mut c_void,
    parent: *mut c_void,
    local: *mut c_void,
    child: *mut c_void,
) -> c_int {
    if flags & libc::CLONE_VM == 0 && !function.is_null() && !signal::is_inside() {
        // In the child's copy of this memory it lies at the same address.
        let mut start = Start { function, argument };
        let argument = (&raw mut start).cast();
        startup::before_fork();
        // SAFETY: P1, P3.
        let pid = unsafe { call::clone(begin_child as *mut c_void, stack, flags, argument, parent, local, child) };
        startup::after_fork_in_parent();
        return pid;
    }
    let borrows = flags & libc::CLONE_VFORK != 0 && flags & libc::CLONE_THREAD == 0 && !signal::is_inside();
    if borrows {
        self::child::begin();
    }
    // SAFETY: P1, P3.
    let pid = unsafe { call::clone(function, stack, flags, argument, parent, local, child) };
    if borrows {
        self::child::end();
    }
    pid
}

/// After a `fork` that no handler of `pthread_atfork` sees: in the child 0, in the parent its number or an error.
pub fn after_fork(pid: c_int) {
    let before = errno::get();
    if pid == 0 {
        startup::after_fork_in_child();
    } else {
        startup::after_fork_in_parent();
    }
    errno::set(before);
}

/// `_exit`, and `_Exit`.
pub unsafe fn exit_at_once(status: c_int) {
    startup::end();
    // SAFETY: P1, P3.
    unsafe { call::_exit(status) };
    // SAFETY: ends the process.
    let _ = unsafe { kernel::syscall(libc::SYS_exit_group, [status as usize, 0, 0, 0, 0, 0]) };
}

/// What the program wanted a child to begin with.
struct Start {
    function: *mut c_void,
    argument: *mut c_void,
}

extern "C-unwind" fn begin_child(start: *mut c_void) -> c_int {
    // SAFETY: made by `clone` above, in the memory that this is a copy of.
    let start = unsafe { start.cast::<Start>().read() };
    startup::after_fork_in_child();
    // SAFETY: P1: what the program gave to `clone`.
    let function: unsafe extern "C-unwind" fn(*mut c_void) -> c_int = unsafe { std::mem::transmute(start.function) };
    // SAFETY: P1.
    unsafe { function(start.argument) }
}

/// `vfork` returns twice into the caller's frame, so it has none of its own: the return address waits in a register.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn vfork() -> c_int {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        "sub rsp, 8",
        "call {before}@PLT",
        "add rsp, 8",
        "pop rdi",
        "mov eax, {number}",
        "syscall",
        "push rdi",
        "test rax, rax",
        "jz 2f",
        "mov rdi, rax",
        "sub rsp, 8",
        "call {after}@PLT",
        "add rsp, 8",
        "2:",
        "ret",
        before = sym before_vfork,
        after = sym after_vfork,
        number = const libc::SYS_vfork,
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        "stp x29, x30, [sp, #-16]!",
        "bl {before}",
        "ldp x29, x30, [sp], #16",
        "mov x0, {flags}",
        "mov x1, #0",
        "mov x2, #0",
        "mov x3, #0",
        "mov x4, #0",
        "mov x8, {number}",
        "svc #0",
        "cbz x0, 2f",
        "stp x29, x30, [sp, #-16]!",
        "bl {after}",
        "ldp x29, x30, [sp], #16",
        "2:",
        "ret",
        before = sym before_vfork,
        after = sym after_vfork,
        flags = const libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
        number = const libc::SYS_clone,
    );
}

/// The other name.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn __vfork() -> c_int {
    #[cfg(target_arch = "x86_64")]
    naked_asm!("jmp {vfork}@PLT", vfork = sym vfork);
    #[cfg(target_arch = "aarch64")]
    naked_asm!("b {vfork}", vfork = sym vfork);
}

extern "C" fn before_vfork() {
    child::begin();
}

/// In the parent only.
extern "C" fn after_vfork(result: isize) -> c_int {
    child::end();
    let result = if result < 0 { Err(Errno(-result as i32)) } else { Ok(result as usize) };
    errno::answer(result) as c_int
}
