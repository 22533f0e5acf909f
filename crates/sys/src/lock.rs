//! A lock inside one process, for state that is held for well below a microsecond on paths that count nanoseconds.
//!
//! Taking it is one atomic step, as with any lock; giving it back is a plain store, where a lock whose waiters sleep in the
//! kernel needs a second atomic step to learn of them. Who finds it taken looks for a while, then gives the core away, and
//! then sleeps for short times, so that a holder of lower priority gets on.
//!
//! Debug builds panic where locks of two kinds are taken in both orders, of these and of [`Mutex`].
//!
//! A lock may belong to one thread ([`Threads`]): that one takes it without an atomic step, and any other panics.
//!
//! # Invariants
//!
//! - **L1** `held` goes from false to true by one atomic step, whose doer alone has a [`Guard`]; it goes back when the guard
//!   is dropped. So there is at most one guard, and it alone reaches the value.
//! - **L2** Where a lock belongs to a thread, no other thread gets as far as `held`, so that looking and storing is one step.
//!   Numbers of threads are given out once.
//! - **L3** The same holds in a process that has one thread. It says so itself ([`learn_threads`]); the C library's own locks rely
//!   on that, too.

#![allow(unsafe_code)]

use std::{
    cell::{Cell, UnsafeCell},
    fmt,
    ops::{Deref, DerefMut},
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    thread,
    time::Duration,
};

mod alone;
mod condition;
mod mutex;
mod order;

pub use self::{
    alone::learn_threads,
    condition::Condition,
    mutex::{Mutex, MutexGuard},
    order::{no_handler_comes, only_where},
};

/// A value that one thread at a time can reach.
#[repr(C)]
pub struct Lock<T> {
    held: AtomicBool,
    threads: Threads,
    kind: order::Kind,
    value: UnsafeCell<T>,
}

/// Which threads may take a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Threads(u32);

impl Threads {
    /// Any.
    pub const ANY: Threads = Threads(0);

    /// The one that calls this, and no other.
    pub fn this() -> Threads {
        Threads(number_of_this())
    }
}

thread_local! {
    /// The number of a thread; zero until it is asked for.
    static NUMBER: Cell<u32> = const { Cell::new(0) };
}

#[inline]
fn number_of_this() -> u32 {
    match NUMBER.get() {
        0 => new_number(),
        number => number,
    }
}

#[cold]
fn new_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let given = NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| next.checked_add(1));
    NUMBER.set(given.expect("fewer than four thousand million threads"));
    NUMBER.get()
}

/// The right to the value, until it is dropped.
#[derive(Debug)]
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
    _mark: order::Mark,
}

// SAFETY: L1, L2: the value is reached by one thread at a time, so it need only be one that may move between threads.
unsafe impl<T: Send> Sync for Lock<T> {}

const SPINS: u32 = 128;
const NAPS_FROM: u32 = SPINS + 64;
const NAP: Duration = Duration::from_micros(20);

impl<T> Lock<T> {
    /// A lock around a value.
    #[track_caller]
    pub const fn new(value: T) -> Lock<T> {
        Lock::within(Threads::ANY, value)
    }

    /// A lock that only these threads may take.
    #[track_caller]
    pub const fn within(threads: Threads, value: T) -> Lock<T> {
        Lock { held: AtomicBool::new(false), threads, kind: order::Kind::here(), value: UnsafeCell::new(value) }
    }

    /// Takes it, and waits if another thread has it.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn lock(&self) -> Guard<'_, T> {
        self.kind.wanted::<T>();
        match self.try_lock() {
            Some(guard) => guard,
            None => self.wait(),
        }
    }

    /// Takes it if nobody has it.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        if self.threads != Threads::ANY {
            return self.try_own();
        }
        if alone::is_alone() {
            return self.try_alone();
        }
        // Acquire pairs with the Release of `Guard::drop`: what the last holder did is visible.
        let taken = self.held.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        // Not `then_some`: a guard that is made and dropped would give the lock of another thread back.
        if taken.is_ok() { Some(Guard::of(self)) } else { None }
    }

    /// As `try_lock`, for the thread it belongs to.
    #[inline]
    fn try_own(&self) -> Option<Guard<'_, T>> {
        assert!(self.threads.0 == number_of_this(), "it belongs to another thread");
        self.try_alone()
    }

    /// As `try_lock`, where no other thread can.
    #[inline]
    fn try_alone(&self) -> Option<Guard<'_, T>> {
        // L2, L3: nobody comes between the two.
        if self.held.load(Ordering::Relaxed) {
            return None;
        }
        self.held.store(true, Ordering::Relaxed);
        Some(Guard::of(self))
    }

    /// Whether some thread has it at this moment. If not, everything that was done under it before is visible.
    #[inline]
    pub fn is_held(&self) -> bool {
        // Pairs with `Guard::drop`.
        self.held.load(Ordering::Acquire)
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) -> Guard<'_, T> {
        let mut looks = 0u32;
        loop {
            if !self.held.load(Ordering::Relaxed)
                && let Some(guard) = self.try_lock()
            {
                return guard;
            }
            looks = looks.saturating_add(1);
            match looks {
                ..SPINS => std::hint::spin_loop(),
                SPINS..NAPS_FROM => thread::yield_now(),
                _ => thread::sleep(NAP),
            }
        }
    }
}

impl<T: Default> Default for Lock<T> {
    #[track_caller]
    fn default() -> Lock<T> {
        Lock::new(T::default())
    }
}

impl<'a, T> Guard<'a, T> {
    /// For who has just set `held`.
    #[inline]
    fn of(lock: &'a Lock<T>) -> Guard<'a, T> {
        Guard { lock, _mark: lock.kind.taken::<T>() }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: L1: this guard is the only one.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: L1: this guard is the only one, and borrowed exclusively.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Pairs with `try_lock`.
        self.lock.held.store(false, Ordering::Release);
    }
}

impl<T: fmt::Debug> fmt::Debug for Lock<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.threads != Threads::ANY && self.threads != Threads::this() {
            return out.write_str("of another thread");
        }
        match self.try_lock() {
            Some(guard) => guard.fmt(out),
            None => out.write_str("taken"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let lock = Lock::new((0u64, 0u64));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..10_000 {
                        let mut guard = lock.lock();
                        assert_eq!(guard.0, guard.1);
                        guard.0 += 1;
                        if round % 1000 == 0 {
                            thread::yield_now();
                        }
                        guard.1 += 1;
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), (40_000, 40_000));
        let held = lock.lock();
        assert!(lock.try_lock().is_none());
        drop(held);
        assert!(lock.try_lock().is_some());
    }

    #[cfg(debug_assertions)]
    #[test]
    fn two_orders_are_noticed() {
        let (one, two) = (Lock::new(1u8), Lock::new(2u16));
        for _ in 0..2 {
            let first = one.lock();
            drop(two.lock());
            drop(first);
        }
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _first = two.lock();
            let _second = one.lock();
        }));
        assert!(outcome.is_err(), "the other way round, in one thread");
        // Who does not wait may try.
        let _first = two.lock();
        assert!(one.try_lock().is_some());
    }

    #[test]
    fn one_that_belongs_to_a_thread_is_taken_by_no_other() {
        let lock = Lock::within(Threads::this(), 7);
        let held = lock.lock();
        assert!(lock.try_lock().is_none());
        drop(held);
        *lock.lock() += 1;
        let other = thread::scope(|scope| scope.spawn(|| *lock.lock()).join());
        assert!(other.is_err(), "it panics");
        assert_eq!(*lock.lock(), 8);
        assert_ne!(thread::spawn(Threads::this).join().ok(), Some(Threads::this()));
    }
}
