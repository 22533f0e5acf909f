//! Custody: which processes hold a socket. Only a sole holder promotes it.
//!
//! A table in memory that a family of forked processes shares, keyed by SO_COOKIE. A socket is entered when its holder
//! forks; from then on its record lists the holders: by process number, or, from before a fork until the child has
//! written its number, as one that is expected. A holder whose process is gone holds nothing. A number that was used
//! again looks like a holder, and the socket stays on TCP: the mistake is on the safe side.

use std::sync::{
    OnceLock,
    atomic::{
        AtomicBool,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
};

use sidestep_shm::{Memory, Word64, memory::Words};

use crate::{kernel, numbers, stream::Stream, table};

static TABLE: OnceLock<Option<Table>> = OnceLock::new();
/// Some socket found no place.
static OVERFLOWN: AtomicBool = AtomicBool::new(false);

#[derive(Debug)]
struct Table {
    words: Words,
    _memory: Memory,
}

const PLACES: usize = 4096;
/// Words of a record: cookie, holders expected or unknown, and numbers of processes.
const WORDS: usize = 8;
const EXPECTED: usize = 1;
const FIRST_HOLDER: usize = 2;
/// Places looked at for one socket.
const PROBES: usize = 64;
/// Cookies are small numbers; a place in the making has this one.
const BUSY: u64 = u64::MAX;

/// Before a fork: every stream expects one more holder.
pub fn forking() {
    each_stream(|cookie| {
        if let Some(place) = record(cookie) {
            place.word(EXPECTED).fetch_add(1, AcqRel);
        }
    });
}

/// After a fork, in the child: the holder that was expected is this process.
pub fn forked() {
    let me = u64::from(kernel::process());
    each_stream(|cookie| {
        if let Some(place) = known(cookie)
            && place.add(me)
        {
            place.word(EXPECTED).fetch_add(u64::MAX, AcqRel);
        }
    });
}

/// This process is about to close its last descriptor of the socket.
pub fn releasing(fd: i32) {
    if TABLE.get().is_none() {
        return;
    }
    if let Ok(cookie) = kernel::cookie(fd)
        && let Some(place) = known(cookie)
    {
        place.remove(u64::from(kernel::process()));
        if place.is_vacant() {
            place.word(0).store(0, Release);
        }
    }
}

/// Another process may hold it from now on, and nobody will say when it no longer does.
pub fn given_away(cookie: u64) {
    if let Some(place) = record(cookie) {
        place.word(EXPECTED).fetch_add(1, AcqRel);
    }
}

/// Whether this process alone holds the socket.
pub fn is_sole_holder(cookie: u64) -> bool {
    if TABLE.get().is_none() {
        return true;
    }
    if OVERFLOWN.load(Acquire) {
        return false;
    }
    known(cookie).is_none_or(|place| {
        let me = u64::from(kernel::process());
        place.word(EXPECTED).load(Acquire) == 0
            && place.holders().all(|holder| holder == me || !kernel::is_alive(holder))
    })
}

/// A record.
struct Place<'a> {
    words: &'a Words,
    first: usize,
}

impl Place<'_> {
    fn word(&self, at: usize) -> Word64 {
        self.words.word(self.first + at)
    }

    fn holders(&self) -> impl Iterator<Item = u64> {
        (FIRST_HOLDER..WORDS).map(|at| self.word(at).load(Acquire)).filter(|holder| *holder != 0)
    }

    /// Lists a holder, in a free word or in that of a dead one. `false`: there is none.
    fn add(&self, holder: u64) -> bool {
        (FIRST_HOLDER..WORDS).map(|at| self.word(at)).any(|word| {
            let now = word.load(Acquire);
            now == holder || (now == 0 || !kernel::is_alive(now)) && word.compare_swap(now, holder) == now
        })
    }

    fn remove(&self, holder: u64) {
        for word in (FIRST_HOLDER..WORDS).map(|at| self.word(at)) {
            word.compare_swap(holder, 0);
        }
    }

    fn is_vacant(&self) -> bool {
        self.word(EXPECTED).load(Acquire) == 0 && self.holders().next().is_none()
    }
}

fn each_stream(mut each: impl FnMut(u64)) {
    for fd in table::numbers(0, u32::MAX) {
        // A stream with several numbers is held once. One that listens is never promoted.
        let counts = |stream: &Stream| stream.fd() == fd && (stream.connected.load(Relaxed) || !kernel::listens(fd));
        if table::stream(fd).is_some_and(counts)
            && let Ok(cookie) = kernel::cookie(fd)
        {
            each(cookie);
        }
    }
}

/// The record of a socket, if there is one.
fn known(cookie: u64) -> Option<Place<'static>> {
    let table = TABLE.get()?.as_ref()?;
    let first = probes(cookie).find(|first| table.words.word(*first).load(Acquire) == cookie)?;
    Some(Place { words: &table.words, first })
}

/// The record of a socket; a new one lists this process.
fn record(cookie: u64) -> Option<Place<'static>> {
    let Some(table) = TABLE.get_or_init(Table::new) else {
        OVERFLOWN.store(true, Release);
        return None;
    };
    if let Some(place) = known(cookie) {
        return Some(place);
    }
    for first in probes(cookie) {
        let word = table.words.word(first);
        if word.load(Relaxed) == 0 && word.compare_swap(0, BUSY) == 0 {
            let place = Place { words: &table.words, first };
            (1..WORDS).for_each(|at| place.word(at).store(0, Relaxed));
            place.word(FIRST_HOLDER).store(u64::from(kernel::process()), Relaxed);
            word.store(cookie, Release);
            return Some(place);
        }
    }
    // What is not recorded could be held by anyone.
    OVERFLOWN.store(true, Release);
    None
}

impl Table {
    fn new() -> Option<Table> {
        numbers::choose();
        let memory = Memory::create("sidestep-custody", PLACES * WORDS * 8).ok()?;
        Some(Table { words: memory.words(0, PLACES * WORDS).ok()?, _memory: memory })
    }
}

fn probes(cookie: u64) -> impl Iterator<Item = usize> {
    let first = (cookie.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize;
    (0..PROBES).map(move |step| first.wrapping_add(step) % PLACES * WORDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_sole_holder_is_one() {
        let (a, b) = (1001, 1002);
        assert!(is_sole_holder(a));
        given_away(a);
        assert!(!is_sole_holder(a));
        assert!(is_sole_holder(b));
        let place = record(b).unwrap();
        assert!(is_sole_holder(b));
        assert!(place.add(1));
        assert!(!is_sole_holder(b), "process 1 lives");
        place.remove(1);
        // No process has this number.
        assert!(place.add(u64::from(u32::MAX >> 1)));
        assert!(is_sole_holder(b));
    }
}
