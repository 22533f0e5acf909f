//! Closing descriptors that somebody else made, so that no thread of the program can wait for it.
//!
//! The last close of a descriptor can take as long as its maker likes: a TCP connection with unsent bytes lingers, a file of
//! a FUSE file system is flushed by a process of its own. So what a peer passed, and what is not one of the few kinds that
//! are known to close at once (sealed memory, pipes), is closed by a thread that does nothing else: it closes what it was
//! given, and ends. It has no stack of its own, touches no memory but its list, and hears no signals, so that nothing of the
//! program meets it. There are [`SLOTS`] such threads at most; what has to wait for one is kept open until then.
//!
//! # Invariants
//!
//! - D1. The thread uses registers and its list only: it shares the stack pointer of the thread that made it.
//! - D2. A list is written while its slot is claimed and has no thread. The kernel clears the slot's word when the thread has
//!   ended (`CLONE_CHILD_CLEARTID`), which gives the slot back.

#![allow(unsafe_code)]

use std::{
    arch::asm,
    cell::UnsafeCell,
    os::fd::{IntoRawFd, OwnedFd},
    sync::atomic::{AtomicI32, Ordering},
};

use crate::{
    descriptor,
    lock::{Mutex, MutexGuard},
};

/// Threads that may be closing something at the same time.
pub const SLOTS: usize = 16;
/// Descriptors that may wait for such a thread before this process is [overwhelmed](is_overwhelmed).
const MAX_WAITING: usize = 256;
/// Descriptors of one thread: more than one message carries.
const LIST: usize = 256;
/// Looks at a lock that is held for microseconds.
const TRIES: usize = 1000;

/// One descriptor, and the bit under which its number is noted.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    /// Negative: the end of the list.
    fd: i64,
    word: *const std::sync::atomic::AtomicU64,
    kept_bits: u64,
}

struct Slot {
    /// 0: free; else claimed, or the number of its thread.
    thread: AtomicI32,
    list: UnsafeCell<[Entry; LIST + 1]>,
}

// SAFETY: D2.
unsafe impl Sync for Slot {}

const END: Entry = Entry { fd: -1, word: std::ptr::null(), kept_bits: 0 };
static THREADS: [Slot; SLOTS] =
    [const { Slot { thread: AtomicI32::new(0), list: UnsafeCell::new([END; LIST + 1]) } }; SLOTS];
static WAITING: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());
/// A connection that is closed with this is reset at once: on, no seconds.
static AT_ONCE: [i32; 2] = [1, 0];

/// Closes descriptors that came from a peer. Returns at once, whatever they are.
pub fn discard(descriptors: impl IntoIterator<Item = OwnedFd>) {
    let descriptors = descriptors.into_iter();
    let Some(mut waiting) = waiting() else {
        // Left open, rather than waited for.
        return descriptors.for_each(std::mem::forget);
    };
    waiting.extend(descriptors);
    while !waiting.is_empty() && start(&mut waiting) {}
}

/// Goes on with what had to wait for a thread. For whoever looks after something now and then: else it waits for the next
/// descriptor that is discarded.
pub fn resume() {
    discard([]);
}

/// What waits to be closed. `None`: a thread that is gone since a fork holds it.
fn waiting() -> Option<MutexGuard<'static, Vec<OwnedFd>>> {
    (0..TRIES).find_map(|_| {
        let waiting = WAITING.try_lock().ok();
        if waiting.is_none() {
            std::thread::yield_now();
        }
        waiting
    })
}

/// In a forked child: the threads are the parent's, and so are the descriptors.
pub(crate) fn after_fork() {
    if let Ok(mut waiting) = WAITING.try_lock() {
        waiting.drain(..).for_each(std::mem::forget);
    }
    THREADS.iter().for_each(|slot| slot.thread.store(0, Ordering::Release));
}

/// Whether more has to be closed than this process has threads for: nothing more should be taken from peers now.
pub fn is_overwhelmed() -> bool {
    // What has waited goes first.
    resume();
    waiting().is_none_or(|waiting| waiting.len() >= MAX_WAITING)
}

/// Starts a thread for as many as fit. `false`: there is none to be had now.
fn start(waiting: &mut Vec<OwnedFd>) -> bool {
    let free = |slot: &&Slot| slot.thread.compare_exchange(0, -1, Ordering::Acquire, Ordering::Relaxed).is_ok();
    let Some(slot) = THREADS.iter().find(free) else { return false };
    // SAFETY: D2: the slot was just claimed, and has no thread.
    let list = unsafe { &mut *slot.list.get() };
    let count = waiting.len().min(LIST);
    let first = waiting.len() - count;
    for (entry, descriptor) in list.iter_mut().zip(waiting.drain(first..)) {
        let fd = descriptor.into_raw_fd();
        let (word, kept_bits) = match descriptor::place(fd) {
            Some((word, bit)) => (std::ptr::from_ref(word), !bit),
            None => (std::ptr::null(), 0),
        };
        *entry = Entry { fd: i64::from(fd), word, kept_bits };
    }
    list[count] = END;
    let all = u64::MAX;
    let mut before = 0u64;
    let mask = |how: i32, new: *const u64, old: *mut u64| {
        // SAFETY: both words outlive the call, and are as long as a mask of the kernel's.
        unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, new, old, 8) };
    };
    // No handler can run on the borrowed stack.
    mask(libc::SIG_BLOCK, &raw const all, &raw mut before);
    // SAFETY: D1, D2. What the thread reads is static.
    let started = unsafe { spawn(list.as_ptr(), slot.thread.as_ptr()) };
    mask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
    if started < 0 {
        // SAFETY: the numbers were taken from owners above, and no thread has them.
        waiting.extend(list[..count].iter().map(|entry| unsafe { owner(entry.fd as i32) }));
        slot.thread.store(0, Ordering::Release);
    }
    started >= 0
}

/// # Safety
/// The number must be open, and nobody else's.
unsafe fn owner(fd: i32) -> OwnedFd {
    // SAFETY: the caller's.
    unsafe { std::os::fd::FromRawFd::from_raw_fd(fd) }
}

const FLAGS: i32 = libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM
    | libc::CLONE_CHILD_CLEARTID;

/// Makes the thread. It sets each descriptor of the list to close at once, if it is a connection, forgets its number, and
/// closes it.
///
/// # Safety
/// The list must end with [`END`] and stay as it is until `word` is 0; every signal must be blocked.
#[cfg(target_arch = "x86_64")]
unsafe fn spawn(list: *const Entry, word: *mut i32) -> isize {
    let result: isize;
    // SAFETY: the kernel's calling convention. The child leaves the block by `exit` only, and uses no stack.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 5f",
            "2:",
            "mov rdi, [r12]",
            "test rdi, rdi",
            "js 4f",
            "mov eax, {setsockopt}",
            "mov esi, {socket}",
            "mov edx, {linger}",
            "mov r10, r13",
            "mov r8d, 8",
            "syscall",
            "mov rcx, [r12 + 8]",
            "test rcx, rcx",
            "jz 3f",
            "mov r11, [r12 + 16]",
            "lock and [rcx], r11",
            "3:",
            "mov rdi, [r12]",
            "mov eax, {close}",
            "syscall",
            "add r12, 24",
            "jmp 2b",
            "4:",
            "mov eax, {exit}",
            "xor edi, edi",
            "syscall",
            "ud2",
            "5:",
            setsockopt = const libc::SYS_setsockopt,
            socket = const libc::SOL_SOCKET,
            linger = const libc::SO_LINGER,
            close = const libc::SYS_close,
            exit = const libc::SYS_exit,
            inlateout("rax") libc::SYS_clone as isize => result,
            in("rdi") FLAGS as usize,
            in("rsi") 0usize,
            in("rdx") 0usize,
            in("r10") word,
            in("r8") 0usize,
            in("r12") list,
            in("r13") AT_ONCE.as_ptr(),
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    result
}

/// As above.
///
/// # Safety
/// As above.
#[cfg(target_arch = "aarch64")]
unsafe fn spawn(list: *const Entry, word: *mut i32) -> isize {
    let result: isize;
    // SAFETY: as above.
    unsafe {
        asm!(
            "svc 0",
            "cbnz x0, 5f",
            "2:",
            "ldr x0, [x20]",
            "tbnz x0, #63, 4f",
            "mov x8, {setsockopt}",
            "mov x1, {socket}",
            "mov x2, {linger}",
            "mov x3, x21",
            "mov x4, 8",
            "svc 0",
            "ldr x9, [x20, 8]",
            "cbz x9, 3f",
            "ldr x10, [x20, 16]",
            "6:",
            "ldaxr x11, [x9]",
            "and x11, x11, x10",
            "stlxr w12, x11, [x9]",
            "cbnz w12, 6b",
            "3:",
            "ldr x0, [x20]",
            "mov x8, {close}",
            "svc 0",
            "add x20, x20, 24",
            "b 2b",
            "4:",
            "mov x8, {exit}",
            "mov x0, 0",
            "svc 0",
            "udf 0",
            "5:",
            setsockopt = const libc::SYS_setsockopt,
            socket = const libc::SOL_SOCKET,
            linger = const libc::SO_LINGER,
            close = const libc::SYS_close,
            exit = const libc::SYS_exit,
            in("x8") libc::SYS_clone,
            inlateout("x0") FLAGS as isize => result,
            in("x1") 0usize,
            in("x2") 0usize,
            in("x3") 0usize,
            in("x4") word,
            in("x20") list,
            in("x21") AT_ONCE.as_ptr(),
            lateout("x9") _,
            lateout("x10") _,
            lateout("x11") _,
            lateout("x12") _,
            options(nostack)
        );
    }
    result
}

#[cfg(all(test, not(miri)))]
mod tests;
