//! The kernel, called directly: not through libc, whose names are the preload library's own.
//!
//! # Invariants
//!
//! - K1. Every pointer handed to the kernel comes from a reference or a slice that outlives the call.
//! - K2. A descriptor is a number of the program's; closing the wrong one is a bug, not undefined behaviour.

#![allow(unsafe_code)]

use std::{
    arch::asm,
    io::{IoSlice, IoSliceMut},
    sync::atomic::AtomicU64,
    time::Duration,
};

pub mod address;
pub mod counts;
pub mod diag;
mod identity;
mod lock_byte;
pub mod messages;
pub mod signal;
mod socket;
pub mod stack;
pub mod thread_end;
pub mod waiting;

pub use identity::{keep_pid_namespace, namespace, network_namespace, opens_files_as_itself, pid_namespace, users};
pub use lock_byte::{is_byte_locked, lock_byte};
use messages::Control;
pub use socket::{
    SO_MAX_PACING_RATE, SO_NETNS_COOKIE, TCP_CLOSE, TCP_ESTABLISHED, TCP_SYN_SENT, address, cookie, has_filter,
    has_peer_ended, is_tcp, listens, option, option64, push_out, read_option, reset_at_close, set_option, state,
};

/// An error number of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// Never seen by a program: a signal came that none of its handlers was for. The caller looks whether its thread was
    /// cancelled, and calls again.
    pub const RESTART: Errno = Errno(512);
}

/// What a call gives.
pub type Result<T> = std::result::Result<T, Errno>;

/// A signal mask as the kernel has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mask(pub u64);

impl Mask {
    /// Every signal.
    pub const ALL: Mask = Mask(u64::MAX);
}

impl From<&libc::sigset_t> for Mask {
    fn from(set: &libc::sigset_t) -> Mask {
        // SAFETY: a `sigset_t` is at least eight bytes long, and any bytes are a number.
        Mask(unsafe { std::ptr::from_ref(set).cast::<u64>().read_unaligned() })
    }
}

/// Sets the signal mask of this thread; returns the one before.
pub fn set_mask(mask: Mask) -> Mask {
    change_mask(libc::SIG_SETMASK, mask)
}

/// Adds to the signal mask of this thread; returns the one before.
pub fn block(mask: Mask) -> Mask {
    change_mask(libc::SIG_BLOCK, mask)
}

fn change_mask(how: i32, mask: Mask) -> Mask {
    let mut old = Mask(0);
    let arguments = [how as usize, &raw const mask.0 as usize, &raw mut old.0 as usize, KERNEL_MASK, 0, 0];
    // It cannot fail: the arguments are fixed and valid.
    let _ = plain(libc::SYS_rt_sigprocmask, arguments);
    old
}

/// One system call.
///
/// # Safety
/// The arguments must be what the call of this number expects.
#[inline]
pub unsafe fn syscall(number: i64, arguments: [usize; 6]) -> Result<usize> {
    let result: isize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the kernel's calling convention; rcx and r11 are lost. The caller answers for the arguments.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            in("r8") arguments[4],
            in("r9") arguments[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the kernel's calling convention. The caller answers for the arguments.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") arguments[0] as isize => result,
            in("x1") arguments[1],
            in("x2") arguments[2],
            in("x3") arguments[3],
            in("x4") arguments[4],
            in("x5") arguments[5],
            options(nostack)
        );
    }
    if (-4095..0).contains(&result) { Err(Errno(-result as i32)) } else { Ok(result as usize) }
}

/// A system call whose arguments are numbers.
fn plain(number: i64, arguments: [usize; 6]) -> Result<usize> {
    // SAFETY: used in this file for calls without pointers only, or with pointers under K1.
    unsafe { syscall(number, arguments) }
}

/// The same for one that waits, if it may.
fn patient(waits: bool, number: i64, arguments: [usize; 6]) -> Result<usize> {
    if !waits {
        return plain(number, arguments);
    }
    // SAFETY: as for `plain`.
    unsafe { waiting::syscall(number, arguments) }
}

/// `recvmsg`; also on descriptors in blocking mode.
pub fn receive(fd: i32, parts: &mut [IoSliceMut<'_>], flags: i32) -> Result<usize> {
    let waits = flags & libc::MSG_DONTWAIT == 0;
    if let [part] = parts {
        // K1: `part` outlives the call.
        let arguments = [fd as usize, part.as_mut_ptr() as usize, part.len(), flags as usize, 0, 0];
        return patient(waits, libc::SYS_recvfrom, arguments);
    }
    // SAFETY: a C struct of integers and pointers, for which zeros are valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // An `IoSliceMut` has the layout of an `iovec`.
    message.msg_iov = parts.as_mut_ptr().cast();
    message.msg_iovlen = parts.len();
    patient(waits, libc::SYS_recvmsg, [fd as usize, &raw mut message as usize, flags as usize, 0, 0, 0])
}

/// `recvmsg`, with the control messages that the kernel has for it.
pub fn receive_message(fd: i32, parts: &mut [IoSliceMut<'_>], flags: i32, control: &mut Control<'_>) -> Result<usize> {
    let waits = flags & libc::MSG_DONTWAIT == 0;
    // SAFETY: a C struct of integers and pointers, for which zeros are valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // An `IoSliceMut` has the layout of an `iovec`.
    message.msg_iov = parts.as_mut_ptr().cast();
    message.msg_iovlen = parts.len();
    let room = control.room();
    message.msg_control = room.as_mut_ptr().cast();
    message.msg_controllen = room.len();
    // K1: parts and room outlive the call.
    let arguments = [fd as usize, &raw mut message as usize, flags as usize, 0, 0, 0];
    let count = patient(waits, libc::SYS_recvmsg, arguments)?;
    control.filled_by_kernel(message.msg_controllen, message.msg_flags & !libc::MSG_CMSG_CLOEXEC);
    Ok(count)
}

/// `sendmsg`.
pub fn send(fd: i32, parts: &[IoSlice<'_>], flags: i32) -> Result<usize> {
    let waits = flags & libc::MSG_DONTWAIT == 0;
    if let [part] = parts {
        // K1: `part` outlives the call.
        let arguments = [fd as usize, part.as_ptr() as usize, part.len(), flags as usize, 0, 0];
        return patient(waits, libc::SYS_sendto, arguments);
    }
    // SAFETY: a C struct of integers and pointers, for which zeros are valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // An `IoSlice` has the layout of an `iovec`; the kernel only reads it.
    message.msg_iov = parts.as_ptr().cast_mut().cast();
    message.msg_iovlen = parts.len();
    patient(waits, libc::SYS_sendmsg, [fd as usize, &raw const message as usize, flags as usize, 0, 0, 0])
}

/// `pread`, or `read` if there is no offset.
pub fn read_file(fd: i32, bytes: &mut [u8], offset: Option<i64>) -> Result<usize> {
    let (pointer, len) = (bytes.as_mut_ptr() as usize, bytes.len());
    match offset {
        Some(offset) => plain(libc::SYS_pread64, [fd as usize, pointer, len, offset as usize, 0, 0]),
        None => patient(true, libc::SYS_read, [fd as usize, pointer, len, 0, 0, 0]),
    }
}

/// `write`.
pub fn write_file(fd: i32, bytes: &[u8]) -> Result<usize> {
    patient(true, libc::SYS_write, [fd as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0])
}

/// `lseek` from the present position.
pub fn seek_by(fd: i32, by: i64) -> Result<i64> {
    plain(libc::SYS_lseek, [fd as usize, by as usize, libc::SEEK_CUR as usize, 0, 0, 0]).map(|at| at as i64)
}

/// `lseek` to a position.
pub fn seek_to(fd: i32, position: i64) -> Result<i64> {
    plain(libc::SYS_lseek, [fd as usize, position as usize, libc::SEEK_SET as usize, 0, 0, 0]).map(|at| at as i64)
}

/// `sendfile`.
pub fn send_file(out: i32, file: i32, offset: Option<&mut i64>, count: usize) -> Result<usize> {
    let offset = offset.map_or(0, |offset| &raw mut *offset as usize);
    patient(true, libc::SYS_sendfile, [out as usize, file as usize, offset, count, 0, 0])
}

/// `close`.
pub fn close(fd: i32) -> Result<()> {
    plain(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]).map(drop)
}

/// `close_range` without flags.
pub fn close_range(first: u32, last: u32) -> Result<()> {
    plain(libc::SYS_close_range, [first as usize, last as usize, 0, 0, 0, 0]).map(drop)
}

/// `shutdown`.
pub fn shutdown(fd: i32, how: i32) -> Result<()> {
    plain(libc::SYS_shutdown, [fd as usize, how as usize, 0, 0, 0, 0]).map(drop)
}

/// `ppoll`. The time-out is not changed.
pub fn poll(fds: &mut [libc::pollfd], timeout: Option<Duration>, mask: Option<Mask>) -> Result<usize> {
    poll_at(fds.as_mut_ptr() as usize, fds.len(), timeout, mask)
}

/// The same for a list that the thread keeps, of which entries from `from` on are looked at.
pub fn poll_kept(fds: KeptList, from: usize, timeout: Option<Duration>, mask: Option<Mask>) -> Result<usize> {
    let from = from.min(fds.len);
    poll_at(fds.at.wrapping_add(from) as usize, fds.len - from, timeout, mask)
}

/// Where a list lies for the kernel that outlives the call, and is nobody's to drop if that is left by a jump.
#[derive(Debug, Clone, Copy)]
pub struct KeptList {
    at: *const AtomicU64,
    len: usize,
}

impl KeptList {
    /// These words, each of which is an entry ([`to_word`]).
    pub fn of(words: &[AtomicU64]) -> KeptList {
        KeptList { at: words.as_ptr(), len: words.len() }
    }
}

/// An entry of a list as a word of memory, as the kernel has it.
pub fn to_word(entry: libc::pollfd) -> u64 {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&entry.fd.to_ne_bytes());
    bytes[4..6].copy_from_slice(&entry.events.to_ne_bytes());
    bytes[6..].copy_from_slice(&entry.revents.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

/// What the kernel has found for such an entry.
pub fn found_in(word: u64) -> i16 {
    let bytes = word.to_ne_bytes();
    i16::from_ne_bytes([bytes[6], bytes[7]])
}

// K1: the list outlives the call.
fn poll_at(fds: usize, count: usize, timeout: Option<Duration>, mask: Option<Mask>) -> Result<usize> {
    let waits = timeout != Some(Duration::ZERO);
    let mut time = timeout.map(timespec);
    let time = time.as_mut().map_or(0, |time| &raw mut *time as usize);
    let mask = mask.as_ref().map_or(0, |mask| &raw const mask.0 as usize);
    patient(waits, libc::SYS_ppoll, [fds, count, time, mask, KERNEL_MASK, 0])
}

/// `epoll_pwait2`, or `epoll_pwait` on kernels without it.
pub fn epoll_wait(
    set: i32,
    events: &mut [libc::epoll_event],
    timeout: Option<Duration>,
    mask: Option<Mask>,
) -> Result<usize> {
    let waits = timeout != Some(Duration::ZERO);
    let mask = mask.as_ref().map_or(0, |mask| &raw const mask.0 as usize);
    let (pointer, count) = (events.as_mut_ptr() as usize, events.len());
    let whole = timeout.is_none_or(|timeout| timeout.subsec_nanos() % 1_000_000 == 0);
    if !whole {
        let mut time = timeout.map(timespec);
        let time = time.as_mut().map_or(0, |time| &raw mut *time as usize);
        match patient(waits, libc::SYS_epoll_pwait2, [set as usize, pointer, count, time, mask, KERNEL_MASK]) {
            Err(Errno(libc::ENOSYS)) => {}
            outcome => return outcome,
        }
    }
    let millis = timeout.map_or(-1, |timeout| {
        // Up, so that a wait is never shorter than asked for.
        let part = u64::from(timeout.subsec_nanos().div_ceil(1_000_000));
        i32::try_from(timeout.as_secs().saturating_mul(1000).saturating_add(part)).unwrap_or(i32::MAX)
    });
    patient(waits, libc::SYS_epoll_pwait, [set as usize, pointer, count, millis as usize, mask, KERNEL_MASK])
}

/// `epoll_ctl`.
pub fn epoll_control(set: i32, op: i32, fd: i32, event: Option<libc::epoll_event>) -> Result<()> {
    let mut event = event;
    let event = event.as_mut().map_or(0, |event| &raw mut *event as usize);
    plain(libc::SYS_epoll_ctl, [set as usize, op as usize, fd as usize, event, 0, 0]).map(drop)
}

/// `ioctl`: whether the next byte of TCP is the urgent one.
pub const SIOCATMARK: u64 = 0x8905;

/// An `ioctl` that gives one integer: FIONREAD, SIOCOUTQ, [`SIOCATMARK`].
pub fn ask(fd: i32, request: u64) -> Result<i32> {
    let mut value = 0i32;
    plain(libc::SYS_ioctl, [fd as usize, request as usize, &raw mut value as usize, 0, 0, 0]).map(|_| value)
}

/// `fcntl` with an integer argument.
pub fn control(fd: i32, command: i32, argument: usize) -> Result<usize> {
    plain(libc::SYS_fcntl, [fd as usize, command as usize, argument, 0, 0, 0])
}

/// Whether the descriptor is in non-blocking mode.
pub fn is_nonblocking(fd: i32) -> bool {
    control(fd, libc::F_GETFL, 0).is_ok_and(|flags| flags & libc::O_NONBLOCK as usize != 0)
}

/// Another number for the same open file, out of the program's way.
pub fn duplicate_high(fd: i32) -> Result<i32> {
    copy_high(fd).map(std::os::fd::IntoRawFd::into_raw_fd)
}

/// Another descriptor of the same open file, out of the program's way.
pub fn copy_high(fd: i32) -> Result<std::os::fd::OwnedFd> {
    // SAFETY: K2: only a number for the kernel, which refuses one that is not open.
    let borrowed = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
    sidestep_sys::descriptor::keep_copy(borrowed).map_err(|errno| Errno(errno.raw_os_error()))
}

/// Another descriptor of the same open file, with this number. `None`: that is taken, or cannot be had.
pub fn copy_at(fd: i32, number: i32) -> Option<std::os::fd::OwnedFd> {
    // SAFETY: K2: as above.
    let borrowed = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
    sidestep_sys::descriptor::keep_copy_at(borrowed, number)
}

/// What the kernel says of a descriptor now, of these events and of errors.
pub fn look(fd: i32, events: i16) -> i16 {
    let mut entry = [libc::pollfd { fd, events, revents: 0 }];
    match poll(&mut entry, Some(Duration::ZERO), None) {
        Ok(_) => entry[0].revents,
        Err(_) => 0,
    }
}

/// Sleeps for a while.
pub fn pause(time: Duration) {
    let time = timespec(time);
    // K1. One that a signal ends was long enough.
    let _ = plain(libc::SYS_ppoll, [0, 0, &raw const time as usize, 0, 0, 0]);
}

/// Writes to the standard error of the program, if someone reads it and there is room.
pub fn complain(text: &str) {
    // To a pipe that nobody reads a write is a signal.
    if look(libc::STDERR_FILENO, libc::POLLOUT) == libc::POLLOUT {
        // K1.
        let _ = plain(libc::SYS_write, [libc::STDERR_FILENO as usize, text.as_ptr() as usize, text.len(), 0, 0, 0]);
    }
}

/// The process's number.
pub fn process() -> u32 {
    plain(libc::SYS_getpid, [0; 6]).map_or(0, |pid| pid as u32)
}

/// The number of its parent.
pub fn parent() -> u32 {
    plain(libc::SYS_getppid, [0; 6]).map_or(0, |pid| pid as u32)
}

/// Whether there is a process with this number.
pub fn is_alive(process: u64) -> bool {
    plain(libc::SYS_kill, [process as usize, 0, 0, 0, 0, 0]) != Err(Errno(libc::ESRCH))
}

/// The hook behind a pointer that was made from one.
pub(crate) fn function_of(pointer: *mut ()) -> fn() {
    // SAFETY: the only caller keeps pointers made from `fn()` values.
    unsafe { std::mem::transmute::<*mut (), fn()>(pointer) }
}

fn timespec(time: Duration) -> libc::timespec {
    libc::timespec { tv_sec: time.as_secs() as libc::time_t, tv_nsec: libc::c_long::from(time.subsec_nanos() as i32) }
}

/// Bytes of a signal mask in the kernel's eyes.
const KERNEL_MASK: usize = 8;
