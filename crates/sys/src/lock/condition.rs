//! Where threads sleep until what a [`Lock`] protects has changed.

use std::{
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};

use super::{Guard, Lock};

/// As `std::sync::Condvar`, for a [`Lock`].
///
/// Whoever sleeps takes the gate before it lets the lock go, and is asleep once the gate is free again. Whoever notifies has
/// changed the value under the lock before, and passes the gate. So either the sleeper has seen the change, or it is woken.
#[derive(Debug, Default)]
pub struct Condition {
    /// How many sleep.
    gate: Mutex<usize>,
    changed: Condvar,
}

impl Condition {
    /// A place where nobody sleeps.
    pub const fn new() -> Condition {
        Condition { gate: Mutex::new(0), changed: Condvar::new() }
    }

    /// Lets the lock go, sleeps until it is notified, or for so long at most, and takes the lock again. It may wake early.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn wait<'a, T>(&self, guard: Guard<'a, T>, most: Option<Duration>) -> Guard<'a, T> {
        let lock: &'a Lock<T> = guard.lock;
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        drop(guard);
        *gate += 1;
        let mut gate = match most {
            None => self.changed.wait(gate).unwrap_or_else(PoisonError::into_inner),
            Some(most) => self.changed.wait_timeout(gate, most).unwrap_or_else(PoisonError::into_inner).0,
        };
        *gate -= 1;
        drop(gate);
        lock.lock()
    }

    /// Wakes one of those that sleep. What they sleep for was changed under the lock before.
    pub fn notify_one(&self) {
        if self.has_sleepers() {
            self.changed.notify_one();
        }
    }

    /// Wakes all of those that sleep.
    pub fn notify_all(&self) {
        if self.has_sleepers() {
            self.changed.notify_all();
        }
    }

    /// Waking costs a system call even if nobody sleeps.
    fn has_sleepers(&self) -> bool {
        *self.gate.lock().unwrap_or_else(PoisonError::into_inner) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::Arc, thread};

    #[test]
    fn no_change_is_slept_through() {
        const TURNS: u32 = 2000;
        let both = Arc::new((Lock::new(0u32), Condition::new()));
        let play = |both: &(Lock<u32>, Condition), mine: u32| {
            let (turn, changed) = both;
            for _ in 0..TURNS {
                let mut turn = turn.lock();
                while *turn % 2 != mine {
                    turn = changed.wait(turn, None);
                }
                *turn += 1;
                drop(turn);
                changed.notify_one();
            }
        };
        let other = both.clone();
        let thread = thread::spawn(move || play(&other, 1));
        play(&both, 0);
        thread.join().unwrap();
        assert_eq!(*both.0.lock(), 2 * TURNS);
    }

    #[test]
    fn a_sleep_ends_with_its_time() {
        let (lock, changed) = (Lock::new(7), Condition::new());
        let guard = changed.wait(lock.lock(), Some(Duration::from_millis(1)));
        assert_eq!(*guard, 7);
        assert!(lock.try_lock().is_none(), "it is taken again");
        drop(guard);
        changed.notify_all();
        assert_eq!(*changed.gate.lock().unwrap(), 0);
    }
}
