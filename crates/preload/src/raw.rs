//! `syscall`: calls by number.
//!
//! A number that means nothing here goes on to the next `syscall` from a function without a frame, so that even calls
//! which return on another stack work. One that is in the table comes to a body below; if it is for a descriptor of ours
//! the body is that of the function of the same name, else the system call is made as it is.

use std::ffi::{c_int, c_long, c_void};

use libc::sigset_t;
use sidestep_sockets::signal;

use crate::{
    connection, descriptor, engine, file, message, option, process, real::call, sandbox, select, set, signals, startup,
    transfer, vector, wait,
};

mod entry;

/// The next `syscall` is known from now on.
pub fn start() {
    entry::start();
}

/// A number of the table.
///
/// # Safety
/// P1.
unsafe extern "C-unwind" fn handle(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    let arguments = [a, b, c, d, e, f];
    if signal::is_inside() {
        // SAFETY: P1.
        return unsafe { call::syscall(number, a, b, c, d, e, f) };
    }
    // SAFETY: P1.
    if let Some(result) = unsafe { ours(number, arguments) } {
        return result as c_long;
    }
    // SAFETY: P1.
    let result = unsafe { call::syscall(number, a, b, c, d, e, f) };
    after(number, arguments, result);
    result
}

/// Makes the table of numbers, and what is done for each: `None` means that the system call is to be made.
macro_rules! numbers {
    (|$number_argument:ident, $arguments:ident| $($(#[$attribute:meta])* $($number:ident)|+ => $body:expr,)*) => {
        const fn meant() -> [u8; COUNT] {
            let mut table = [0; COUNT];
            $($(#[$attribute])* { $(table[libc::$number as usize] = 1;)+ })*
            table
        }

        /// # Safety
        /// P1.
        #[allow(unused_unsafe)]
        unsafe fn ours($number_argument: c_long, $arguments: [usize; 6]) -> Option<isize> {
            match $number_argument {
                $($(#[$attribute])* $(libc::$number)|+ => $body,)*
                _ => None,
            }
        }
    };
}

numbers! { |number, x|
    // SAFETY: P1, here and below: the arguments are those of the function.
    SYS_read => stream(x).then(|| unsafe { transfer::read(x[0] as c_int, at(x[1]), x[2]) }),
    // SAFETY: P1.
    SYS_write => stream(x).then(|| unsafe { transfer::write(x[0] as c_int, at(x[1]), x[2]) }),
    // SAFETY: P1.
    SYS_readv => stream(x).then(|| unsafe { vector::readv(x[0] as c_int, at(x[1]).cast(), x[2] as c_int) }),
    // SAFETY: P1.
    SYS_writev => stream(x).then(|| unsafe { vector::writev(x[0] as c_int, at(x[1]).cast(), x[2] as c_int) }),
    // SAFETY: P1.
    SYS_preadv2 => stream(x).then(|| unsafe {
        vector::preadv2(x[0] as c_int, at(x[1]).cast(), x[2] as c_int, x[3] as i64, x[5] as c_int)
    }),
    // SAFETY: P1.
    SYS_pwritev2 => stream(x).then(|| unsafe {
        vector::pwritev2(x[0] as c_int, at(x[1]).cast(), x[2] as c_int, x[3] as i64, x[5] as c_int)
    }),
    // SAFETY: P1.
    SYS_recvfrom => stream(x).then(|| unsafe {
        transfer::recvfrom(x[0] as c_int, at(x[1]), x[2], x[3] as c_int, at(x[4]).cast(), at(x[5]).cast())
    }),
    // SAFETY: P1.
    SYS_sendto => stream(x).then(|| unsafe {
        transfer::sendto(x[0] as c_int, at(x[1]), x[2], x[3] as c_int, at(x[4]).cast(), x[5] as u32)
    }),
    // SAFETY: P1.
    SYS_recvmsg => stream(x).then(|| unsafe { message::recvmsg(x[0] as c_int, at(x[1]).cast(), x[2] as c_int) }),
    // SAFETY: P1.
    SYS_sendmsg => Some(unsafe { message::sendmsg(x[0] as c_int, at(x[1]).cast(), x[2] as c_int) }),
    // SAFETY: P1.
    SYS_recvmmsg => stream(x).then(|| unsafe {
        message::recvmmsg(x[0] as c_int, at(x[1]).cast(), x[2] as u32, x[3] as c_int, at(x[4]).cast()) as isize
    }),
    // SAFETY: P1.
    SYS_sendmmsg => Some(unsafe { message::sendmmsg(x[0] as c_int, at(x[1]).cast(), x[2] as u32, x[3] as c_int) as isize }),
    // SAFETY: P1.
    SYS_sendfile => stream(x).then(|| unsafe { file::sendfile(x[0] as c_int, x[1] as c_int, at(x[2]).cast(), x[3]) }),
    SYS_splice => {
        file::leave_if_ours(x[0] as c_int);
        file::leave_if_ours(x[2] as c_int);
        None
    },

    SYS_socket | SYS_accept | SYS_accept4 | SYS_epoll_create1 => None,
    #[cfg(target_arch = "x86_64")]
    SYS_epoll_create => None,
    // SAFETY: P1.
    SYS_connect => Some(unsafe { connection::connect(x[0] as c_int, at(x[1]).cast(), x[2] as u32) as isize }),
    // SAFETY: P1.
    SYS_shutdown => stream(x).then(|| unsafe { connection::shutdown(x[0] as c_int, x[1] as c_int) as isize }),
    // SAFETY: P1.
    SYS_setsockopt => stream(x).then(|| unsafe {
        option::setsockopt(x[0] as c_int, x[1] as c_int, x[2] as c_int, at(x[3]), x[4] as u32) as isize
    }),
    // SAFETY: P1.
    SYS_getsockopt => stream(x).then(|| unsafe {
        option::getsockopt(x[0] as c_int, x[1] as c_int, x[2] as c_int, at(x[3]), at(x[4]).cast()) as isize
    }),

    // SAFETY: P4.
    SYS_close => Some(unsafe { descriptor::close(x[0] as c_int) as isize }),
    // SAFETY: P4.
    SYS_close_range => Some(unsafe { descriptor::close_range(x[0] as u32, x[1] as u32, x[2] as c_int) as isize }),
    // SAFETY: P4.
    SYS_dup => Some(unsafe { descriptor::dup(x[0] as c_int) as isize }),
    #[cfg(target_arch = "x86_64")]
    // SAFETY: P4.
    SYS_dup2 => Some(unsafe { descriptor::dup2(x[0] as c_int, x[1] as c_int) as isize }),
    // SAFETY: P4.
    SYS_dup3 => Some(unsafe { descriptor::dup3(x[0] as c_int, x[1] as c_int, x[2] as c_int) as isize }),
    // SAFETY: P1.
    SYS_fcntl => engine::has_any(x[0] as c_int).then(|| unsafe {
        descriptor::fcntl(x[0] as c_int, x[1] as c_int, x[2]) as isize
    }),
    // SAFETY: P1.
    SYS_ioctl => stream(x).then(|| unsafe { descriptor::ioctl(x[0] as c_int, x[1], x[2]) as isize }),

    #[cfg(target_arch = "x86_64")]
    // SAFETY: P1.
    SYS_poll => Some(unsafe { wait::poll(at(x[0]).cast(), x[1] as u64, x[2] as c_int) as isize }),
    // SAFETY: P1. libc's set of signals begins as the kernel's does.
    SYS_ppoll => Some(unsafe { wait::ppoll(at(x[0]).cast(), x[1] as u64, at(x[2]).cast(), at(x[3]).cast()) as isize }),
    #[cfg(target_arch = "x86_64")]
    // SAFETY: P1.
    SYS_select => Some(unsafe {
        select::select(x[0] as c_int, at(x[1]).cast(), at(x[2]).cast(), at(x[3]).cast(), at(x[4]).cast()) as isize
    }),
    SYS_pselect6 => {
        // SAFETY: P1.
        let mask = unsafe { mask(x[5]) };
        let [readable, writable, special] = [x[1], x[2], x[3]].map(|set| at(set).cast());
        // SAFETY: P1.
        Some(unsafe { select::pselect(x[0] as c_int, readable, writable, special, at(x[4]).cast(), mask) as isize })
    },
    // SAFETY: P1.
    SYS_epoll_ctl => (a_set(x) || engine::has(x[2] as c_int)).then(|| unsafe {
        set::epoll_ctl(x[0] as c_int, x[1] as c_int, x[2] as c_int, at(x[3]).cast()) as isize
    }),
    #[cfg(target_arch = "x86_64")]
    // SAFETY: P1.
    SYS_epoll_wait => a_set(x).then(|| unsafe {
        set::epoll_wait(x[0] as c_int, at(x[1]).cast(), x[2] as c_int, x[3] as c_int) as isize
    }),
    // SAFETY: P1.
    SYS_epoll_pwait => a_set(x).then(|| unsafe {
        set::epoll_pwait(x[0] as c_int, at(x[1]).cast(), x[2] as c_int, x[3] as c_int, at(x[4]).cast()) as isize
    }),
    // SAFETY: P1.
    SYS_epoll_pwait2 => a_set(x).then(|| unsafe {
        set::epoll_pwait2(x[0] as c_int, at(x[1]).cast(), x[2] as c_int, at(x[3]).cast(), at(x[4]).cast()) as isize
    }),

    #[cfg(target_arch = "x86_64")]
    SYS_fork => {
        startup::before_fork();
        None
    },
    SYS_clone | SYS_clone3 => {
        if forks(number, x) {
            startup::before_fork();
        }
        None
    },
    SYS_execve | SYS_execveat => {
        process::before_execution();
        None
    },
    // SAFETY: P1.
    SYS_rt_sigaction => Some(unsafe { signals::rt_sigaction(x) }),
    SYS_setuid => {
        sandbox::before_user(&[x[0] as u32]);
        None
    },
    SYS_setreuid => {
        sandbox::before_user(&[x[0] as u32, x[1] as u32]);
        None
    },
    SYS_setresuid => {
        sandbox::before_user(&[x[0] as u32, x[1] as u32, x[2] as u32]);
        None
    },
    SYS_setgid => {
        sandbox::before_group(&[x[0] as u32]);
        None
    },
    SYS_setregid => {
        sandbox::before_group(&[x[0] as u32, x[1] as u32]);
        None
    },
    SYS_setresgid => {
        sandbox::before_group(&[x[0] as u32, x[1] as u32, x[2] as u32]);
        None
    },
    SYS_setgroups => {
        engine::change_user();
        None
    },
    SYS_chroot => {
        engine::keep_registry();
        None
    },
    SYS_setns => {
        sandbox::leave();
        None
    },
    SYS_seccomp | SYS_landlock_restrict_self => {
        sandbox::shut_in();
        None
    },
    SYS_io_uring_setup => {
        engine::wait_unseen();
        None
    },
    SYS_unshare => {
        sandbox::before_unshare(x[0] as c_int);
        None
    },
    SYS_prctl => {
        sandbox::before_prctl(x[0] as c_int);
        None
    },
}

/// After a system call that was made as it is.
fn after(number: c_long, arguments: [usize; 6], result: c_long) {
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_fork {
        return process::after_fork(result as c_int);
    }
    if forks(number, arguments) {
        return process::after_fork(result as c_int);
    }
    if matches!(number, libc::SYS_execve | libc::SYS_execveat) {
        return process::after_execution();
    }
    if result < 0 {
        return;
    }
    let fd = result as c_int;
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_epoll_create {
        return set::made(fd);
    }
    match number {
        libc::SYS_socket => {
            let [domain, kind, protocol] = [0, 1, 2].map(|at| arguments[at] as c_int);
            connection::made(fd, domain, kind, protocol);
        }
        libc::SYS_accept | libc::SYS_accept4 => {
            let flags = if number == libc::SYS_accept4 { arguments[3] as c_int } else { 0 };
            // SAFETY: P1: the kernel has filled in the address.
            unsafe {
                connection::accepted(arguments[0] as c_int, fd, at(arguments[1]).cast(), at(arguments[2]).cast(), flags)
            };
        }
        libc::SYS_epoll_create1 => set::made(fd),
        libc::SYS_setuid | libc::SYS_setreuid | libc::SYS_setresuid => engine::changed_user(),
        _ => {}
    }
}

/// Whether the first argument is a stream.
fn stream(arguments: [usize; 6]) -> bool {
    engine::has(arguments[0] as c_int)
}

/// Whether the first argument is an epoll set.
fn a_set(arguments: [usize; 6]) -> bool {
    engine::has_set(arguments[0] as c_int) || engine::has_set_alone(arguments[0] as c_int)
}

/// Whether this is a `clone` that makes a process with memory of its own, which goes on where the caller is.
fn forks(number: c_long, arguments: [usize; 6]) -> bool {
    let flags = match number {
        libc::SYS_clone => arguments[0],
        // SAFETY: P1: its argument begins with the flags; the assembly has looked into it already.
        libc::SYS_clone3 => unsafe { *(arguments[0] as *const usize) },
        _ => return false,
    };
    flags & libc::CLONE_VM as usize == 0
}

fn at(address: usize) -> *mut c_void {
    address as *mut c_void
}

/// The mask of `pselect6`: its last argument points at the pointer to it.
///
/// # Safety
/// P1.
unsafe fn mask(argument: usize) -> *const sigset_t {
    if argument == 0 {
        return std::ptr::null();
    }
    // SAFETY: P1.
    unsafe { *(argument as *const *const sigset_t) }
}

/// Numbers below which the table has an entry.
const COUNT: usize = 512;

static MEANT: [u8; COUNT] = meant();
