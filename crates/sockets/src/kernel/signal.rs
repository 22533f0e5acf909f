//! Signals and the engine: handlers are put off while a lock of the engine is held, and counted, so that a wait in user
//! space ends with EINTR exactly when one in the kernel would.

use std::{
    cell::Cell,
    sync::atomic::{AtomicPtr, AtomicU64, Ordering},
};

/// What is known of one thread: one variable, since each costs a library a call of its own to find it.
struct Thread {
    /// How many [`Inside`] live.
    depth: Cell<u32>,
    /// How many [`Quiet`] live.
    quiet: Cell<u32>,
    /// A handler waits for the thread to leave the engine.
    put_off: Cell<bool>,
    runs: Cell<Runs>,
}

thread_local! {
    static THREAD: Thread = const {
        Thread {
            depth: Cell::new(0),
            quiet: Cell::new(0),
            put_off: Cell::new(false),
            runs: Cell::new(Runs { all: 0, breaking: 0, cancelled: 0 }),
        }
    };
}

/// How often handlers have run in this thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runs {
    /// Every handler.
    pub all: u64,
    /// Those installed without SA_RESTART.
    pub breaking: u64,
    /// Threads of the process that were cancelled, when this one last looked whether it was among them.
    pub cancelled: u64,
}

static CANCELLED: AtomicU64 = AtomicU64::new(0);

/// A thread of this process has been cancelled: those that sleep look whether it was them.
pub fn cancelled() {
    CANCELLED.fetch_add(1, Ordering::SeqCst);
}

/// A call begins at which threads are cancelled. `true`: this one may have been, and its caller looks.
#[inline]
pub fn may_be_cancelled() -> bool {
    let now = CANCELLED.load(Ordering::Acquire);
    // Before that look: what comes after it changes the count.
    now != 0 && {
        THREAD.with(|thread| thread.runs.set(Runs { cancelled: now, ..thread.runs.get() }));
        true
    }
}

/// What this thread knows when it last looked whether it was cancelled; `None` if no thread has ever been.
#[inline]
pub fn cancelled_before() -> Option<Runs> {
    (CANCELLED.load(Ordering::Relaxed) != 0).then(runs)
}

/// Whether no handler has run in this thread since.
pub fn has_run_none(before: Runs) -> bool {
    runs().all == before.all
}

/// The count of cancelled threads.
pub fn cancellations() -> &'static AtomicU64 {
    &CANCELLED
}

/// Whether a thread of the process was cancelled since.
pub fn was_cancelled(before: Runs) -> bool {
    CANCELLED.load(Ordering::Acquire) != before.cancelled
}

/// While one lives, this thread is inside the engine: its own calls go to the kernel, and handlers wait.
#[derive(Debug)]
pub struct Inside(());

impl Inside {
    /// Enters.
    #[inline]
    pub fn enter() -> Inside {
        THREAD.with(|thread| thread.depth.set(thread.depth.get() + 1));
        Inside(())
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        let raises = THREAD.with(|thread| {
            let left = thread.depth.get() - 1;
            thread.depth.set(left);
            left == 0 && thread.put_off.get()
        });
        if raises {
            raise_again();
        }
    }
}

/// Whether this thread is inside the engine.
#[inline]
pub fn is_inside() -> bool {
    THREAD.with(|thread| thread.depth.get()) != 0
}

/// While one lives, handlers wait, too, but this thread's calls come to the engine: between the two halves of a `fork` the
/// program's own functions run.
#[derive(Debug)]
pub struct Quiet(());

impl Quiet {
    /// Enters.
    pub fn enter() -> Quiet {
        THREAD.with(|thread| thread.quiet.set(thread.quiet.get() + 1));
        Quiet(())
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        THREAD.with(|thread| thread.quiet.set(thread.quiet.get() - 1));
        if !puts_off() && has_put_off() {
            raise_again();
        }
    }
}

/// Whether a handler that comes to this thread now has to wait. If not, the thread has no lock of the engine.
#[inline]
pub fn puts_off() -> bool {
    is_inside() || is_quiet()
}

/// Whether this thread is between the two halves of a `fork`.
#[inline]
pub fn is_quiet() -> bool {
    THREAD.with(|thread| thread.quiet.get()) != 0
}

/// Runs `sleep` as if outside: handlers run at once in it. No lock of the engine may be held.
pub fn outside<T>(sleep: impl FnOnce() -> T) -> T {
    let depth = THREAD.with(|thread| thread.depth.replace(0));
    let outcome = sleep();
    THREAD.with(|thread| thread.depth.set(depth));
    outcome
}

/// Whether a handler waits for this thread to leave the engine.
pub fn has_put_off() -> bool {
    THREAD.with(|thread| thread.put_off.get())
}

/// For a handler that came while the thread is inside: notes that something was put off. The hook set by
/// [`set_raise_again`] runs when the thread leaves.
pub fn put_off() {
    THREAD.with(|thread| thread.put_off.set(true));
}

/// For a handler that runs: counts it.
pub fn ran(restarts: bool) {
    THREAD.with(|thread| {
        let mut now = thread.runs.get();
        now.all += 1;
        now.breaking += u64::from(!restarts);
        thread.runs.set(now);
    });
}

/// Handlers run so far in this thread.
#[inline]
pub fn runs() -> Runs {
    THREAD.with(|thread| thread.runs.get())
}

/// Who raises what was put off; called outside the engine, in the thread that put it off.
pub fn set_raise_again(hook: fn()) {
    RAISE_AGAIN.store(hook as *mut (), Ordering::Release);
}

#[cold]
fn raise_again() {
    if puts_off() {
        return;
    }
    THREAD.with(|thread| thread.put_off.set(false));
    if let Some(hook) = hook() {
        hook();
    }
}

static RAISE_AGAIN: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

fn hook() -> Option<fn()> {
    let pointer = RAISE_AGAIN.load(Ordering::Acquire);
    if pointer.is_null() {
        return None;
    }
    Some(crate::kernel::function_of(pointer))
}
