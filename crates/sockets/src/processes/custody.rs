//! Custody: which processes hold a socket. Only a sole holder promotes it.
//!
//! A table in memory that a family of forked processes shares, keyed by SO_COOKIE. A socket is entered when its holder
//! forks; from then on its records list the holders. A holder is the number of a byte in the family's *lock file*, which an
//! open file of that process alone has locked: the kernel unlocks it when the process ends, in whatever way and in whatever
//! pid namespace. The parent opens the file for its child and locks the byte before it forks, so there is no moment at which
//! a child holds a socket and seems to be dead.
//!
//! # Invariants
//!
//! - C1. A holder is added to a socket's records only by a process that is listed there and lives. So records whose holders
//!   are all dead stay as they are, and whoever needs room may take them.
//! - C2. Numbers of holders are given out once.

use std::{
    os::fd::{AsRawFd, IntoRawFd, OwnedFd},
    sync::{
        OnceLock,
        atomic::{
            AtomicBool, AtomicI32, AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
};

use rustix::fs::OFlags;
use sidestep_shm::{Memory, Word64, memfd, memory::Words};
use sidestep_sys::{descriptor, procfs};

use crate::{
    descriptors::{numbers, table},
    kernel,
    streams::Stream,
};

static TABLE: OnceLock<Option<Table>> = OnceLock::new();
/// This process as a holder; 0: it has not been one yet.
static SELF: AtomicU64 = AtomicU64::new(0);
/// The open file that has its byte locked.
static TOKEN: AtomicI32 = AtomicI32::new(NONE);
/// While a thread forks: the child as a holder, and its open file.
static CHILD: AtomicU64 = AtomicU64::new(0);
static CHILD_TOKEN: AtomicI32 = AtomicI32::new(NONE);
/// Some socket found no place.
static OVERFLOWN: AtomicBool = AtomicBool::new(false);

#[derive(Debug)]
struct Table {
    words: Words,
    lock_file: OwnedFd,
    _memory: Memory,
}

/// As many sockets as the registry has room for.
const PLACES: usize = 16_384;
/// Words of a record: cookie, and holders.
const WORDS: usize = 8;
/// Words before the records: the last number that was given out.
const HEADER: usize = 8;
/// Places looked at for one socket.
const PROBES: usize = 64;
/// Cookies are small numbers; a place in the making has this one.
const BUSY: u64 = u64::MAX;
/// A holder that nobody sees.
const UNKNOWN: u64 = u64::MAX;
const NONE: i32 = -1;
const LOCK_FILE_LEN: usize = 4096;

/// Before a fork: the child will hold every stream.
pub fn forking() {
    let mut cookies = Vec::new();
    each_stream(|cookie| cookies.push(cookie));
    if cookies.is_empty() {
        return;
    }
    let (me, (child, token)) = (myself(), claim().unwrap_or((UNKNOWN, NONE)));
    CHILD.store(child, Relaxed);
    CHILD_TOKEN.store(token, Relaxed);
    for cookie in cookies {
        // What is not recorded could be held by anyone.
        if !(list(cookie, me) && list(cookie, child)) {
            OVERFLOWN.store(true, Release);
        }
    }
}

/// After a fork, in the parent: what was opened for the child is the child's alone.
pub fn has_forked() {
    CHILD.store(0, Relaxed);
    let token = CHILD_TOKEN.swap(NONE, Relaxed);
    if token != NONE {
        descriptor::closed(token);
        let _ = kernel::close(token);
    }
}

/// After a fork, in the child: it is the holder that its parent has listed. If it was made without `fork`, nobody has
/// listed it, and it promotes nothing that it has inherited.
pub fn forked() {
    let child = CHILD.swap(0, Relaxed);
    let is_listed = child != 0 && child != UNKNOWN;
    SELF.store(if is_listed { child } else { 0 }, Relaxed);
    TOKEN.store(CHILD_TOKEN.swap(NONE, Relaxed), Relaxed);
    if !is_listed {
        each_stream(given_away);
    }
}

/// Whether a child needs this descriptor of its parent's.
pub fn keeps(fd: i32) -> bool {
    let lock_file = TABLE.get().and_then(Option::as_ref).map(|table| table.lock_file.as_raw_fd());
    lock_file == Some(fd) || TOKEN.load(Relaxed) == fd
}

/// This process is about to close its last descriptor of the socket.
pub fn releasing(fd: i32) {
    let Some(table) = TABLE.get().and_then(Option::as_ref) else { return };
    let Ok(cookie) = kernel::cookie(fd) else { return };
    let me = SELF.load(Relaxed);
    for place in table.places(cookie) {
        place.remove(me);
        if table.is_abandoned(&place) {
            place.word(0).compare_swap(cookie, 0);
        }
    }
}

/// Another process may hold it from now on, and nobody will say when it no longer does.
pub fn given_away(cookie: u64) {
    if !(list(cookie, myself()) && list(cookie, UNKNOWN)) {
        OVERFLOWN.store(true, Release);
    }
}

/// Whether this process alone holds the socket.
pub fn is_sole_holder(cookie: u64) -> bool {
    let Some(table) = TABLE.get() else { return true };
    let Some(table) = table.as_ref().filter(|_| !OVERFLOWN.load(Acquire)) else { return false };
    table
        .places(cookie)
        .all(|place| place.holders().all(|holder| holder == SELF.load(Relaxed) || table.is_dead(holder)))
}

/// This process as a holder.
fn myself() -> u64 {
    let known = SELF.load(Relaxed);
    if known != 0 {
        return known;
    }
    let Some((me, token)) = claim() else { return UNKNOWN };
    match SELF.compare_exchange(0, me, Relaxed, Relaxed) {
        Ok(_) => {
            TOKEN.store(token, Relaxed);
            me
        }
        Err(other) => {
            // Another thread was faster.
            descriptor::closed(token);
            let _ = kernel::close(token);
            other
        }
    }
}

/// A new holder, and the open file that keeps it alive.
fn claim() -> Option<(u64, i32)> {
    let table = TABLE.get_or_init(Table::new).as_ref()?;
    let holder = table.words.word(0).fetch_add(1, Relaxed) + 1;
    // A descriptor of the same open file would not do: the lock belongs to that.
    let token = procfs::open_again(&table.lock_file, OFlags::RDWR | OFlags::CLOEXEC).ok()?;
    let token = descriptor::keep(token);
    kernel::lock_byte(token.as_raw_fd(), holder).then(|| (holder, token.into_raw_fd()))
}

/// Lists a holder of a socket. `false`: there is no room.
fn list(cookie: u64, holder: u64) -> bool {
    let Some(table) = TABLE.get_or_init(Table::new) else { return false };
    if table.places(cookie).any(|place| place.holders().any(|other| other == holder)) {
        return true;
    }
    let added = table.places(cookie).any(|place| place.replace(0, holder))
        || table.places(cookie).any(|place| {
            let mut dead = place.holders().filter(|other| table.is_dead(*other));
            dead.any(|other| place.replace(other, holder))
        });
    added || table.make(cookie, holder)
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
        (1..WORDS).map(|at| self.word(at).load(Acquire)).filter(|holder| *holder != 0)
    }

    /// Puts a holder in the place of another, or of none (0).
    fn replace(&self, former: u64, holder: u64) -> bool {
        (1..WORDS)
            .map(|at| self.word(at))
            .any(|word| word.load(Relaxed) == former && word.compare_swap(former, holder) == former)
    }

    fn remove(&self, holder: u64) {
        self.replace(holder, 0);
    }
}

impl Table {
    fn new() -> Option<Table> {
        numbers::choose();
        let lock_file = memfd::create_sealed("sidestep-custody", LOCK_FILE_LEN).ok()?;
        let len = HEADER + PLACES * WORDS;
        let memory = Memory::family(len * 8).ok()?;
        Some(Table { words: memory.words(0, len).ok()?, lock_file, _memory: memory })
    }

    /// The records of a socket.
    fn places(&self, cookie: u64) -> impl Iterator<Item = Place<'_>> {
        self.probes(cookie).filter(move |place| place.word(0).load(Acquire) == cookie)
    }

    /// Where they may be.
    fn probes(&self, cookie: u64) -> impl Iterator<Item = Place<'_>> {
        let first = (cookie.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize;
        let at = move |step| HEADER + first.wrapping_add(step) % PLACES * WORDS;
        (0..PROBES).map(move |step| Place { words: &self.words, first: at(step) })
    }

    fn make(&self, cookie: u64, holder: u64) -> bool {
        let free = |place: &Place<'_>| place.word(0).load(Relaxed) == 0 && place.word(0).compare_swap(0, BUSY) == 0;
        let abandoned = |place: &Place<'_>| {
            let other = place.word(0).load(Acquire);
            other != BUSY && self.is_abandoned(place) && place.word(0).compare_swap(other, BUSY) == other
        };
        let Some(place) = self.probes(cookie).find(free).or_else(|| self.probes(cookie).find(abandoned)) else {
            return false;
        };
        (1..WORDS).for_each(|at| place.word(at).store(0, Relaxed));
        place.word(1).store(holder, Relaxed);
        place.word(0).store(cookie, Release);
        true
    }

    /// Whether nobody of this family holds the socket any more: others do not ask here (C1).
    fn is_abandoned(&self, place: &Place<'_>) -> bool {
        place.holders().all(|holder| holder == UNKNOWN || self.is_dead(holder))
    }

    fn is_dead(&self, holder: u64) -> bool {
        holder != UNKNOWN && holder != SELF.load(Relaxed) && !kernel::is_byte_locked(self.lock_file.as_raw_fd(), holder)
    }
}

fn each_stream(mut each: impl FnMut(u64)) {
    for fd in table::numbers(0, u32::MAX) {
        // A stream with several numbers is held once. One that listens is never promoted.
        let counts =
            |stream: &Stream| stream.fd() == fd && (stream.origin.connected.load(Relaxed) || !kernel::listens(fd));
        if table::stream(fd).is_some_and(counts)
            && let Ok(cookie) = kernel::cookie(fd)
        {
            each(cookie);
        }
    }
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
        assert!(list(b, myself()));
        assert!(is_sole_holder(b));
        // More holders than a record has words for.
        let others: Vec<(u64, i32)> = (0..20).map(|_| claim().unwrap()).collect();
        assert!(others.iter().all(|(holder, _)| list(b, *holder)));
        for (_, token) in others {
            assert!(!is_sole_holder(b), "another holder lives");
            kernel::close(token).unwrap();
        }
        assert!(is_sole_holder(b), "all others are dead");
    }

    #[test]
    fn records_of_the_dead_are_used_again() {
        // As servers do that fork for each connection: far more sockets than there are records.
        for cookie in 5000..5000 + 3 * PLACES as u64 {
            let (child, token) = claim().unwrap();
            assert!(list(cookie, child), "no room for {cookie}");
            assert!(cookie % 7 != 0 || list(cookie, UNKNOWN));
            kernel::close(token).unwrap();
        }
    }
}
