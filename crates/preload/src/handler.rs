//! The program's signal handlers, each behind a function of ours.
//!
//! The kernel keeps what is installed, so nothing here can disagree with it: an installed handler of the program is one of
//! [`ROOM`] functions of ours, which knows by its own number whom to call. Entries are found again, and never freed.
//!
//! A handler that comes while the thread is inside the engine is *put off*: the signal is queued to the thread again, and
//! the frame that the kernel has built for us is made to return with that signal blocked. When the thread leaves the
//! engine it is unblocked, and the kernel delivers it.

use std::{
    cell::Cell,
    ffi::{c_int, c_void},
    sync::atomic::{AtomicU64, Ordering},
};

use libc::siginfo_t;
use sidestep_sockets::{kernel, signal};

use crate::child;

/// What is known of a handler besides its address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Handler {
    /// The program's function.
    pub function: usize,
    /// SA_RESTART.
    pub restarts: bool,
    /// SA_SIGINFO, as the program has it.
    pub wants_info: bool,
    /// SA_RESETHAND.
    pub once: bool,
    /// Whether the kernel has SA_SIGINFO, so that there is information to keep.
    pub has_info: bool,
}

impl Handler {
    /// The function of ours that stands for it; `None` if there is no room for another.
    pub fn installed(self) -> Option<usize> {
        let word = self.word();
        for (number, entry) in ENTRIES.iter().enumerate() {
            let taken = entry.compare_exchange(0, word, Ordering::AcqRel, Ordering::Acquire);
            if taken.is_ok() || taken == Err(word) {
                return Some(GATES[number] as usize);
            }
        }
        None
    }

    /// The program's handler behind an installed function, if that is one of ours.
    pub fn behind(installed: usize) -> Option<Handler> {
        let number = GATES.iter().position(|gate| *gate as usize == installed)?;
        Some(Handler::of(ENTRIES[number].load(Ordering::Acquire)))
    }

    fn word(self) -> u64 {
        let flag = |set: bool, bit: u32| u64::from(set) << bit;
        self.function as u64
            | flag(self.restarts, RESTARTS)
            | flag(self.wants_info, WANTS_INFO)
            | flag(self.once, ONCE)
            | flag(self.has_info, HAS_INFO)
    }

    fn of(word: u64) -> Handler {
        let has = |bit: u32| word >> bit & 1 != 0;
        Handler {
            function: (word & ADDRESS) as usize,
            restarts: has(RESTARTS),
            wants_info: has(WANTS_INFO),
            once: has(ONCE),
            has_info: has(HAS_INFO),
        }
    }
}

/// Delivers what was put off in this thread; called when it leaves the engine.
pub fn deliver() {
    let held = HELD.with(|held| held.replace(0));
    if held != 0 {
        change_mask(libc::SIG_UNBLOCK, held);
    }
}

/// How many times SIGPIPE has come to this thread's handler.
pub fn broken_pipes() -> u64 {
    PIPES.with(Cell::get)
}

/// Every installed handler comes here.
fn arrive(number: usize, signo: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let handler = Handler::of(ENTRIES[number].load(Ordering::Acquire));
    if signal::is_inside() && !child::runs() && put_off(handler, number, signo, info, context) {
        return;
    }
    signal::ran(handler.restarts);
    if signo == libc::SIGPIPE {
        PIPES.with(|pipes| pipes.set(pipes.get() + 1));
    }
    // SAFETY: P1: the program gave this function to `sigaction`. One without SA_SIGINFO is called by the kernel with
    // all three arguments, too.
    let function: unsafe extern "C-unwind" fn(c_int, *mut siginfo_t, *mut c_void) =
        unsafe { std::mem::transmute(handler.function) };
    // SAFETY: as above.
    unsafe { function(signo, info, context) };
}

/// Keeps a signal for later. Makes system calls only.
#[cold]
fn put_off(handler: Handler, number: usize, signo: c_int, info: *mut siginfo_t, context: *mut c_void) -> bool {
    let bit = 1u64 << (signo - 1);
    // With SA_NODEFER it is not blocked now.
    change_mask(libc::SIG_BLOCK, bit);
    if handler.once {
        install_again(number, signo);
    }
    // SAFETY: zeros are valid for a structure of integers.
    let mut plain: siginfo_t = unsafe { std::mem::zeroed() };
    plain.si_signo = signo;
    plain.si_code = libc::SI_USER;
    let info = if handler.has_info { info } else { &raw mut plain };
    if !queue(signo, info) {
        return false;
    }
    // SAFETY: the kernel's frame, which lives until this handler returns.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    let mask = (&raw mut context.uc_sigmask).cast::<u64>();
    // SAFETY: a mask of the kernel has 64 bits.
    unsafe { *mask |= bit };
    HELD.with(|held| held.set(held.get() | bit));
    signal::put_off();
    true
}

/// Queues a signal to this thread.
pub fn queue(signo: c_int, info: *mut siginfo_t) -> bool {
    let thread = plain(libc::SYS_gettid, [0; 6]);
    let arguments = [kernel::process() as usize, thread, signo as usize, info as usize, 0, 0];
    // SAFETY: `info` is one of the kernel's or one made here.
    unsafe { kernel::syscall(libc::SYS_rt_tgsigqueueinfo, arguments) }.is_ok()
}

/// The kernel has taken a handler for one signal out before calling it; flags and mask it has kept.
fn install_again(number: usize, signo: c_int) {
    let mut action = [0usize; 4];
    let place = &raw mut action as usize;
    // SAFETY: `action` has the size of the kernel's structure, which begins with the handler.
    let read = unsafe { kernel::syscall(libc::SYS_rt_sigaction, [signo as usize, 0, place, 8, 0, 0]) };
    if read.is_ok() && action[0] == libc::SIG_DFL {
        action[0] = GATES[number] as usize;
        let place = &raw const action as usize;
        // SAFETY: as above.
        let _ = unsafe { kernel::syscall(libc::SYS_rt_sigaction, [signo as usize, place, 0, 8, 0, 0]) };
    }
}

fn change_mask(how: c_int, bits: u64) {
    let set = &raw const bits as usize;
    plain(libc::SYS_rt_sigprocmask, [how as usize, set, 0, 8, 0, 0]);
}

/// A system call of this file that cannot fail.
fn plain(number: libc::c_long, arguments: [usize; 6]) -> usize {
    // SAFETY: pointers among the arguments are of variables that outlive the call.
    unsafe { kernel::syscall(number, arguments) }.unwrap_or(0)
}

thread_local! {
    /// Signals that were put off, one bit each.
    static HELD: Cell<u64> = const { Cell::new(0) };
    static PIPES: Cell<u64> = const { Cell::new(0) };
}

type Gate = extern "C-unwind" fn(c_int, *mut siginfo_t, *mut c_void);

extern "C-unwind" fn gate<const NUMBER: usize>(signo: c_int, info: *mut siginfo_t, context: *mut c_void) {
    arrive(NUMBER, signo, info, context);
}

macro_rules! gates {
    ($($row:literal)*) => {
        [$(
            gate::<{ $row * 8 }>, gate::<{ $row * 8 + 1 }>, gate::<{ $row * 8 + 2 }>, gate::<{ $row * 8 + 3 }>,
            gate::<{ $row * 8 + 4 }>, gate::<{ $row * 8 + 5 }>, gate::<{ $row * 8 + 6 }>, gate::<{ $row * 8 + 7 }>,
        )*]
    };
}

/// So many handlers, each with its flags, may a program have over time; later ones pass.
const ROOM: usize = 128;

static GATES: [Gate; ROOM] = gates!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);

static ENTRIES: [AtomicU64; ROOM] = [const { AtomicU64::new(0) }; ROOM];

/// No address of a program uses the bits above.
const ADDRESS: u64 = (1 << HAS_INFO) - 1;
const HAS_INFO: u32 = 60;
const ONCE: u32 = 61;
const WANTS_INFO: u32 = 62;
const RESTARTS: u32 = 63;
