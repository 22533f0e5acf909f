//! The program's signal handlers, each behind a function of ours.
//!
//! The kernel keeps what is installed, so nothing here can disagree with it: an installed handler of the program is one of
//! [`ROOM`] functions of ours, which knows by its own number whom to call. Entries are found again, and never freed.
//!
//! A handler that comes while the thread is inside the engine is *put off*: the signal is queued to the thread again, and
//! the frame that the kernel has built for us is made to return with that signal blocked. When the thread leaves the
//! engine it is unblocked, and the kernel delivers it. Where the kernel has no room to queue it (RLIMIT_SIGPENDING), it is
//! kept here, and the handler is called as the kernel would.

use std::{
    cell::Cell,
    ffi::{c_int, c_void},
    mem::ManuallyDrop,
    sync::atomic::{AtomicU64, Ordering},
};

use libc::siginfo_t;
use sidestep_sockets::{
    jump,
    kernel::{self, Mask},
    signal::{self, Inside},
};

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
        if HAS_KEPT.get() {
            run_kept();
        }
        change_mask(libc::SIG_UNBLOCK, held);
    }
}

/// In a forked child: what was put off before was for the parent.
pub fn after_fork() {
    HAS_KEPT.set(false);
    KEPT.take();
}

/// How many times SIGPIPE has come to this thread's handler.
pub fn broken_pipes() -> u64 {
    PIPES.with(Cell::get)
}

/// Every installed handler comes here.
fn arrive(number: usize, signo: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let handler = Handler::of(ENTRIES[number].load(Ordering::Acquire));
    if signal::puts_off() && !child::runs() && put_off(handler, number, signo, info, context) {
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
    let note = jump::begin_handler(&raw const handler as usize, interrupted_at(context));
    // SAFETY: as above.
    unsafe { function(signo, info, context) };
    jump::end_handler(note);
}

/// Where on its stack the thread was that a handler has interrupted.
fn interrupted_at(context: *mut c_void) -> usize {
    // SAFETY: the kernel's frame, which lives until the handler returns.
    let frame = unsafe { &*context.cast::<libc::ucontext_t>() };
    #[cfg(target_arch = "x86_64")]
    return frame.uc_mcontext.gregs[libc::REG_RSP as usize] as usize;
    #[cfg(target_arch = "aarch64")]
    return frame.uc_mcontext.sp as usize;
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
    let mut plain = sent_by_user(signo);
    let info = if handler.has_info { info } else { &raw mut plain };
    // A standard signal, or one without a value, is always taken.
    if !queue(signo, info) && !keep(number, signo, info) && !queue(signo, &raw mut plain) {
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

/// Keeps a signal that the kernel has no room for. The thread is inside, so that nobody else is at the list; there is one
/// signal of a number at most, since it is blocked from now on.
#[cold]
fn keep(number: usize, signo: c_int, info: *mut siginfo_t) -> bool {
    let mut kept = ManuallyDrop::into_inner(KEPT.take());
    let room = kept.try_reserve(1).is_ok();
    if room {
        // SAFETY: the kernel's, or one made here.
        kept.push(Kept { number, signo, info: unsafe { info.read() } });
    }
    KEPT.set(ManuallyDrop::new(kept));
    HAS_KEPT.set(room || HAS_KEPT.get());
    room
}

/// Calls the handlers of what was kept, with the masks and as often as the kernel would.
#[cold]
fn run_kept() {
    let kept = {
        // A handler that comes here would keep something, too.
        let _inside = Inside::enter();
        HAS_KEPT.set(false);
        ManuallyDrop::into_inner(KEPT.take())
    };
    for Kept { number, signo, mut info } in kept {
        let mut action = [0usize; 4];
        let place = &raw mut action as usize;
        // SAFETY: `action` has the size of the kernel's structure: the handler, flags, the way back, and the mask.
        let read = unsafe { kernel::syscall(libc::SYS_rt_sigaction, [signo as usize, 0, place, 8, 0, 0]) };
        let [handler, flags, _, mask] = action;
        if read.is_err() || handler != GATES[number] as usize {
            // It is another's by now, or nobody's: what it told is lost, not that it came.
            let mut plain = sent_by_user(signo);
            queue(signo, &raw mut plain);
            continue;
        }
        if flags as c_int & libc::SA_RESETHAND != 0 {
            let default = [libc::SIG_DFL, flags, action[2], mask];
            let place = &raw const default as usize;
            plain(libc::SYS_rt_sigaction, [signo as usize, place, 0, 8, 0, 0]);
        }
        let own = 1u64 << (signo - 1);
        let before = kernel::block(Mask(mask as u64 | own));
        // SAFETY: zeros are valid for a structure of integers and pointers.
        let mut context: libc::ucontext_t = unsafe { std::mem::zeroed() };
        // SAFETY: a place of our own.
        unsafe { libc::getcontext(&mut context) };
        arrive(number, signo, &raw mut info, (&raw mut context).cast());
        kernel::set_mask(Mask(before.0 & !own));
    }
}

/// The information of a signal that says no more than that it was sent.
fn sent_by_user(signo: c_int) -> siginfo_t {
    // SAFETY: zeros are valid for a structure of integers.
    let mut plain: siginfo_t = unsafe { std::mem::zeroed() };
    plain.si_signo = signo;
    plain.si_code = libc::SI_USER;
    plain
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
    /// Those for which the kernel had no room.
    static KEPT: Cell<ManuallyDrop<Vec<Kept>>> = const { Cell::new(ManuallyDrop::new(Vec::new())) };
    static HAS_KEPT: Cell<bool> = const { Cell::new(false) };
}

/// A signal, and the number of the gate it came to.
struct Kept {
    number: usize,
    signo: c_int,
    info: siginfo_t,
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
