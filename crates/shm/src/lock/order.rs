//! In debug builds: notices locks that are taken in two orders, whether or not two threads meet there.
//!
//! Two threads that each hold what the other wants wait for ever, but seldom: every test would have to meet that moment. The
//! two orders themselves show in any run. In release builds nothing of this is left.

/// Locks are told apart by where they were made, and by the types of what they guard.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    #[cfg(debug_assertions)]
    place: &'static std::panic::Location<'static>,
}

/// A lock of that kind is held until this is dropped.
#[derive(Debug)]
pub(super) struct Mark {
    #[cfg(debug_assertions)]
    place: watch::Place,
}

impl Kind {
    /// The kind of locks that are made where this is called.
    #[track_caller]
    pub(super) const fn here() -> Kind {
        Kind {
            #[cfg(debug_assertions)]
            place: std::panic::Location::caller(),
        }
    }

    /// Before one is taken that may have to be waited for.
    #[inline]
    pub(super) fn wanted<T>(self) {
        #[cfg(debug_assertions)]
        watch::wanted((std::any::type_name::<T>(), self.place));
    }

    /// One was taken.
    #[inline]
    pub(super) fn taken<T>(self) -> Mark {
        #[cfg(debug_assertions)]
        watch::taken((std::any::type_name::<T>(), self.place));
        Mark {
            #[cfg(debug_assertions)]
            place: (std::any::type_name::<T>(), self.place),
        }
    }
}

#[cfg(debug_assertions)]
impl Drop for Mark {
    fn drop(&mut self) {
        watch::given(self.place);
    }
}

#[cfg(debug_assertions)]
mod watch {
    use std::{cell::RefCell, collections::BTreeSet, panic::Location, sync::Mutex};

    pub(super) type Place = (&'static str, &'static Location<'static>);

    thread_local! {
        static HELD: RefCell<Vec<Place>> = const { RefCell::new(Vec::new()) };
        /// What this thread has seen need not be looked up again.
        static KNOWN: RefCell<BTreeSet<(Place, Place)>> = const { RefCell::new(BTreeSet::new()) };
    }

    static SEEN: Mutex<BTreeSet<(Place, Place)>> = Mutex::new(BTreeSet::new());

    pub(super) fn wanted(place: Place) {
        let _ = HELD.try_with(|held| {
            let Ok(held) = held.try_borrow() else { return };
            held.iter().for_each(|first| note(*first, place));
        });
    }

    pub(super) fn taken(place: Place) {
        let _ = HELD.try_with(|held| held.try_borrow_mut().map(|mut held| held.push(place)));
    }

    pub(super) fn given(place: Place) {
        let _ = HELD.try_with(|held| {
            let Ok(mut held) = held.try_borrow_mut() else { return };
            if let Some(last) = held.iter().rposition(|other| *other == place) {
                held.remove(last);
            }
        });
    }

    fn note(first: Place, second: Place) {
        let known =
            KNOWN.try_with(|known| known.try_borrow_mut().is_ok_and(|mut known| !known.insert((first, second))));
        if first == second || known.unwrap_or(true) {
            return;
        }
        // A forked child may find it held for ever: it does without.
        if let Ok(mut seen) = SEEN.try_lock() {
            seen.insert((first, second));
            let both = seen.contains(&(second, first));
            drop(seen);
            let text = |(guarded, made): Place| format!("of {guarded} ({made})");
            assert!(!both, "locks are taken in two orders: {} before {}, and back", text(first), text(second));
        }
    }
}
