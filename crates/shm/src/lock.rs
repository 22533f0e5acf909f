//! A lock inside one process, for state that is held for well below a microsecond on paths that count nanoseconds.
//!
//! Taking it is one atomic step, as with any lock; giving it back is a plain store, where a lock whose waiters sleep in the
//! kernel needs a second atomic step to learn of them. Who finds it taken looks for a while, then gives the core away, and
//! then sleeps for short times, so that a holder of lower priority gets on.
//!
//! # Invariants
//!
//! - **L1** `held` goes from false to true by one atomic step, whose doer alone has a [`Guard`]; it goes back when the guard
//!   is dropped. So there is at most one guard, and it alone reaches the value.

#![allow(unsafe_code)]

use std::{
    cell::UnsafeCell,
    fmt,
    ops::{Deref, DerefMut},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

/// A value that one thread at a time can reach.
#[derive(Default)]
#[repr(C)]
pub struct Lock<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

/// The right to the value, until it is dropped.
#[derive(Debug)]
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
}

// SAFETY: L1: the value is reached by one thread at a time, so it need only be one that may move between threads.
unsafe impl<T: Send> Sync for Lock<T> {}

const SPINS: u32 = 128;
const NAPS_FROM: u32 = SPINS + 64;
const NAP: Duration = Duration::from_micros(20);

impl<T> Lock<T> {
    /// A lock around a value.
    pub const fn new(value: T) -> Lock<T> {
        Lock { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Takes it, and waits if another thread has it.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        match self.try_lock() {
            Some(guard) => guard,
            None => self.wait(),
        }
    }

    /// Takes it if nobody has it.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        // Acquire pairs with the Release of `Guard::drop`: what the last holder did is visible.
        let taken = self.held.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        // Not `then_some`: a guard that is made and dropped would give the lock of another thread back.
        if taken.is_ok() { Some(Guard { lock: self }) } else { None }
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
}
