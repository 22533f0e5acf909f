//! In debug builds: notices locks that are taken in two orders, whether or not two threads meet there.
//!
//! Two threads that each hold what the other wants wait for ever, but seldom: every test would have to meet that moment. The
//! two orders themselves show in any run. In release builds nothing of this is left.

/// From now on a lock is taken only where this says that no handler of a signal can come: one that did, and took the lock, too,
/// would wait for itself.
pub fn only_where(handlers_wait: fn() -> bool) {
    #[cfg(debug_assertions)]
    watch::set_handlers(handlers_wait);
    #[cfg(not(debug_assertions))]
    let _ = handlers_wait;
}

/// In this thread no handler comes at all: all signals are blocked from its start on.
pub fn no_handler_comes() {
    #[cfg(debug_assertions)]
    watch::exempt();
}

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
    #[cfg_attr(debug_assertions, track_caller)]
    pub(super) fn wanted<T>(self) {
        #[cfg(debug_assertions)]
        watch::check_handlers();
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
    use std::{
        cell::Cell,
        panic::Location,
        sync::{Mutex, OnceLock},
    };

    pub(super) type Place = (&'static str, &'static Location<'static>);

    // Without destructors: who registers one allocates, and locks are taken where that must not be.
    thread_local! {
        static HELD: Cell<[Option<Place>; MOST]> = const { Cell::new([None; MOST]) };
        /// Pairs that this thread has seen need not be looked up again; by their addresses.
        static KNOWN: Cell<[usize; KNOWN_PAIRS]> = const { Cell::new([0; KNOWN_PAIRS]) };
        static EXEMPT: Cell<bool> = const { Cell::new(false) };
    }

    /// Locks that a thread holds at once; more are not watched.
    const MOST: usize = 8;
    const KNOWN_PAIRS: usize = 16;

    static HANDLERS_WAIT: OnceLock<fn() -> bool> = OnceLock::new();

    pub(super) fn set_handlers(wait: fn() -> bool) {
        let _ = HANDLERS_WAIT.set(wait);
    }

    pub(super) fn exempt() {
        EXEMPT.set(true);
    }

    #[track_caller]
    pub(super) fn check_handlers() {
        if let Some(wait) = HANDLERS_WAIT.get() {
            assert!(EXEMPT.get() || wait(), "a lock is taken where a handler could come");
        }
    }

    static SEEN: Mutex<Pairs> = Mutex::new(Pairs { len: 0, pairs: [None; MOST_PAIRS] });

    /// Pairs of locks, in order. Nothing is allocated for them: locks are taken where that must not be, and tests count.
    struct Pairs {
        len: usize,
        pairs: [Option<(Place, Place)>; MOST_PAIRS],
    }

    /// Pairs of kinds of locks in one program; more are not watched.
    const MOST_PAIRS: usize = 2048;

    impl Pairs {
        fn find(&self, pair: (Place, Place)) -> Result<usize, usize> {
            self.pairs[..self.len].binary_search(&Some(pair))
        }

        fn insert(&mut self, pair: (Place, Place)) {
            if let Err(at) = self.find(pair)
                && self.len < MOST_PAIRS
            {
                self.pairs[at..=self.len].rotate_right(1);
                self.pairs[at] = Some(pair);
                self.len += 1;
            }
        }
    }

    pub(super) fn wanted(place: Place) {
        HELD.get().into_iter().flatten().for_each(|first| note(first, place));
    }

    pub(super) fn taken(place: Place) {
        let mut held = HELD.get();
        if let Some(free) = held.iter_mut().find(|held| held.is_none()) {
            *free = Some(place);
            HELD.set(held);
        }
    }

    pub(super) fn given(place: Place) {
        let mut held = HELD.get();
        if let Some(last) = held.iter_mut().rev().find(|held| **held == Some(place)) {
            *last = None;
            HELD.set(held);
        }
    }

    fn note(first: Place, second: Place) {
        let address = |place: Place| place.0.as_ptr() as usize ^ std::ptr::from_ref(place.1) as usize;
        let pair = address(first).rotate_left(17) ^ address(second);
        let mut known = KNOWN.get();
        let at = pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let before = std::mem::replace(&mut known[at % KNOWN_PAIRS], pair);
        if first == second || before == pair {
            return;
        }
        KNOWN.set(known);
        // A forked child may find it held for ever: it does without.
        if let Ok(mut seen) = SEEN.try_lock() {
            seen.insert((first, second));
            let both = seen.find((second, first)).is_ok();
            drop(seen);
            let text = |(guarded, made): Place| format!("of {guarded} ({made})");
            assert!(!both, "locks are taken in two orders: {} before {}, and back", text(first), text(second));
        }
    }
}
