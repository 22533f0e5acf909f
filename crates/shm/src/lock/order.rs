//! In debug builds: notices locks that are taken in two orders, whether or not two threads meet there.
//!
//! Two threads that each hold what the other wants wait for ever, but seldom: every test would have to meet that moment. The
//! two orders themselves show in any run. Locks are told apart by the types of what they guard.

use std::{any::type_name, cell::RefCell, collections::BTreeSet, sync::Mutex};

type Kind = &'static str;

thread_local! {
    static HELD: RefCell<Vec<Kind>> = const { RefCell::new(Vec::new()) };
    /// What this thread has seen need not be looked up again.
    static KNOWN: RefCell<BTreeSet<(Kind, Kind)>> = const { RefCell::new(BTreeSet::new()) };
}

static SEEN: Mutex<BTreeSet<(Kind, Kind)>> = Mutex::new(BTreeSet::new());

/// Before a lock is taken that may have to be waited for.
pub(super) fn wanted<T>() {
    let _ = HELD.try_with(|held| {
        let Ok(held) = held.try_borrow() else { return };
        held.iter().for_each(|first| note(first, type_name::<T>()));
    });
}

/// A lock was taken.
pub(super) fn taken<T>() {
    let _ = HELD.try_with(|held| held.try_borrow_mut().map(|mut held| held.push(type_name::<T>())));
}

/// It was given back.
pub(super) fn given<T>() {
    let _ = HELD.try_with(|held| {
        let Ok(mut held) = held.try_borrow_mut() else { return };
        if let Some(last) = held.iter().rposition(|kind| *kind == type_name::<T>()) {
            held.remove(last);
        }
    });
}

fn note(first: Kind, second: Kind) {
    let known = KNOWN.try_with(|known| known.try_borrow_mut().is_ok_and(|mut known| !known.insert((first, second))));
    if first == second || known.unwrap_or(true) {
        return;
    }
    // A forked child may find it held for ever: it does without.
    if let Ok(mut seen) = SEEN.try_lock() {
        seen.insert((first, second));
        let both = seen.contains(&(second, first));
        drop(seen);
        assert!(!both, "locks are taken in two orders: of {first} before {second}, and the other way round");
    }
}
