//! Fetches under way. Who wants a document that somebody is fetching waits for it, so that the origin is asked once.
//!
//! Nobody waits twice, or longer than a while, or for a document that was not kept when it was fetched last. An answer that came out of a wait
//! is checked like any other that is kept.

use std::{
    collections::HashMap,
    num::NonZeroUsize,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use lru::LruCache;
use tokio::sync::watch;

use crate::store::Key;

/// The fetches of a proxy.
#[derive(Debug)]
pub(crate) struct Flights(Mutex<State>);

#[derive(Debug)]
struct State {
    under_way: HashMap<Key, watch::Receiver<Landing>>,
    /// Documents that were fetched and may not be kept: to wait for them is of no use.
    unkept: LruCache<Key, ()>,
}

/// What somebody does who wants a document.
#[derive(Debug)]
pub(crate) enum Turn<'a> {
    /// To fetch it for all.
    Lead(Flight<'a>),
    /// To wait until it has been fetched.
    Wait(Waiting),
    /// To fetch it for one's own.
    Alone,
}

/// How a fetch has ended, for those who wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Landing {
    /// Not yet.
    UnderWay,
    /// It is kept.
    Kept,
    /// Such an answer may not be kept.
    Unkept,
    /// It changed meanwhile, or could not be checked.
    Changed,
    /// The origin does not answer.
    Failed,
    /// Whoever fetched it has gone.
    Abandoned,
    /// It takes too long.
    Late,
}

/// A fetch for all. When it is dropped those who wait are told that it was abandoned.
#[derive(Debug)]
pub(crate) struct Flight<'a> {
    flights: &'a Flights,
    key: Key,
    landing: Landing,
    told: watch::Sender<Landing>,
}

/// A fetch by somebody else.
#[derive(Debug)]
pub(crate) struct Waiting(watch::Receiver<Landing>);

/// Enough that a site's own pages are remembered.
const MOST_UNKEPT: NonZeroUsize = NonZeroUsize::new(4096).expect("not none");
/// Longer than most paths. For others nobody waits, so that strangers cannot fill this with paths of their own making.
const LONGEST_KEY: usize = 1024;
/// Longer than most origins take for a document that can be kept.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

impl Flights {
    pub(crate) fn new() -> Flights {
        Flights(Mutex::new(State { under_way: HashMap::new(), unkept: LruCache::new(MOST_UNKEPT) }))
    }

    /// What to do for a document that is not kept.
    pub(crate) fn turn(&self, key: &Key) -> Turn<'_> {
        if key.as_bytes().len() > LONGEST_KEY {
            return Turn::Alone;
        }
        let mut state = self.lock();
        if let Some(landing) = state.under_way.get(key) {
            return Turn::Wait(Waiting(landing.clone()));
        }
        if state.unkept.contains(key) {
            return Turn::Alone;
        }
        let (told, landing) = watch::channel(Landing::UnderWay);
        state.under_way.insert(key.clone(), landing);
        Turn::Lead(Flight { flights: self, key: key.clone(), landing: Landing::Abandoned, told })
    }

    /// A document was fetched for one's own: whether it may be kept.
    pub(crate) fn note(&self, key: &Key, is_kept: bool) {
        let mut state = self.lock();
        if is_kept {
            state.unkept.pop(key);
        } else if key.as_bytes().len() <= LONGEST_KEY {
            state.unkept.put(key.clone(), ());
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flight<'_> {
    /// It has ended like this.
    pub(crate) fn land(mut self, landing: Landing) {
        self.landing = landing;
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        // Before anybody is told, so that one of them can be the next.
        self.flights.lock().under_way.remove(&self.key);
        self.told.send_replace(self.landing);
    }
}

impl Waiting {
    /// Waits until it has ended, but not too long.
    pub(crate) async fn landing(mut self, patience: Duration) -> Landing {
        let landed = self.0.wait_for(|landing| *landing != Landing::UnderWay);
        match tokio::time::timeout(patience, landed).await {
            Ok(landing) => landing.map_or(Landing::Abandoned, |landing| *landing),
            Err(_) => Landing::Late,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
    }

    #[test]
    fn one_leads_and_the_others_are_told() {
        let (flights, key) = (Flights::new(), Key::new(b"h", "/a"));
        for landing in [Landing::Kept, Landing::Changed, Landing::Failed] {
            let Turn::Lead(flight) = flights.turn(&key) else { panic!("nobody else fetches it") };
            let (Turn::Wait(one), Turn::Wait(other)) = (flights.turn(&key), flights.turn(&key)) else {
                panic!("somebody fetches it")
            };
            assert!(matches!(flights.turn(&Key::new(b"h", "/b")), Turn::Lead(_)), "another document");
            flight.land(landing);
            assert_eq!(run(async { (one.landing(PATIENCE).await, other.landing(PATIENCE).await) }), (landing, landing));
        }
    }

    #[test]
    fn who_leaves_is_followed_by_another() {
        let (flights, key) = (Flights::new(), Key::new(b"h", "/a"));
        let Turn::Lead(flight) = flights.turn(&key) else { panic!("nobody else fetches it") };
        let Turn::Wait(waiting) = flights.turn(&key) else { panic!("somebody fetches it") };
        drop(flight);
        assert_eq!(run(waiting.landing(PATIENCE)), Landing::Abandoned);
        assert!(matches!(flights.turn(&key), Turn::Lead(_)));
        assert!(flights.lock().under_way.is_empty());
    }

    #[test]
    fn nobody_waits_for_ever() {
        let (flights, key) = (Flights::new(), Key::new(b"h", "/a"));
        let Turn::Lead(_flight) = flights.turn(&key) else { panic!("nobody else fetches it") };
        let Turn::Wait(waiting) = flights.turn(&key) else { panic!("somebody fetches it") };
        assert_eq!(run(waiting.landing(Duration::from_millis(1))), Landing::Late);
    }

    #[test]
    fn nobody_waits_for_what_is_not_kept() {
        let (flights, key) = (Flights::new(), Key::new(b"h", "/a"));
        flights.note(&key, false);
        assert!(matches!(flights.turn(&key), Turn::Alone));
        flights.note(&key, true);
        assert!(matches!(flights.turn(&key), Turn::Lead(_)));
        for at in 0..2 * MOST_UNKEPT.get() {
            flights.note(&Key::new(b"h", &format!("/{at}")), false);
        }
        assert_eq!(flights.lock().unkept.len(), MOST_UNKEPT.get());
        let long = Key::new(b"h", &format!("/{}", "x".repeat(LONGEST_KEY)));
        flights.note(&long, false);
        assert!(!flights.lock().unkept.contains(&long));
        assert!(matches!((flights.turn(&long), flights.turn(&long)), (Turn::Alone, Turn::Alone)));
    }
}
