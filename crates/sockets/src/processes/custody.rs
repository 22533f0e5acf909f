//! Custody: which processes hold a socket, and what they have counted of it. Only a sole holder promotes it.
//!
//! A [table](table::Table) in memory that a family of processes shares, keyed by SO_COOKIE. A socket is entered when its holder
//! forks, or executes a program that will have it; from then on its records list the holders, and count the bytes that they
//! move over TCP. A holder is the number of a byte of the table's file, which an open file of that process alone has locked: the
//! kernel unlocks it when the process ends, in whatever way and in whatever pid namespace. The parent opens the file for its
//! child and locks the byte before it forks, so there is no moment at which a child holds a socket and seems to be dead.
//!
//! # Invariants
//!
//! - C1. A holder is added to a socket's records only by a process that is listed there and lives. So records whose holders
//!   are all dead at one moment stay as they are, and whoever needs room may take them, all records of a socket at once.
//! - C2. Numbers of holders are given out once.
//! - C3. A count is that of the calls that the holders have made. It is never made equal to the kernel's.
//! - C4. A holder that is struck off uses nothing of the records any more: they may be another socket's soon.

use std::sync::{
    OnceLock,
    atomic::{
        AtomicBool, AtomicI32, AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
};

use sidestep_shm::Word64;
use sidestep_sys::descriptor;

use crate::{descriptors::table as descriptors, kernel, streams::Stream};

pub mod program;
pub mod rest;
mod table;

use table::{EXPECTED, Table, UNKNOWN};

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

const NONE: i32 = -1;

/// Before a fork: the child will hold every stream.
pub fn forking() {
    let streams: Vec<(&Stream, u64)> = streams().collect();
    if streams.is_empty() {
        return;
    }
    let (me, (child, token)) = (myself(), claim().unwrap_or((UNKNOWN, NONE)));
    CHILD.store(child, Relaxed);
    CHILD_TOKEN.store(token, Relaxed);
    for (stream, cookie) in streams {
        // What is not recorded could be held by anyone.
        match list(cookie, me) && list(cookie, child) {
            true => stream.count_in_family(cookie),
            false => OVERFLOWN.store(true, Release),
        }
    }
}

/// After a fork, in the parent: what was opened for the child is the child's alone.
pub fn has_forked() {
    CHILD.store(0, Relaxed);
    drop_token(CHILD_TOKEN.swap(NONE, Relaxed));
}

/// After a fork, in the child: it is the holder that its parent has listed. If it was made without `fork`, nobody has
/// listed it, and it promotes nothing that it has inherited.
pub fn forked() {
    let child = CHILD.swap(0, Relaxed);
    let is_listed = child != 0 && child != UNKNOWN;
    SELF.store(if is_listed { child } else { 0 }, Relaxed);
    TOKEN.store(CHILD_TOKEN.swap(NONE, Relaxed), Relaxed);
    if !is_listed {
        streams().for_each(|(_, cookie)| given_away(cookie));
    }
}

/// Whether a child needs this descriptor of its parent's.
pub fn keeps(fd: i32) -> bool {
    known().is_some_and(|table| table.fd() == fd) || TOKEN.load(Relaxed) == fd
}

/// This process is about to close its last descriptor of the socket.
pub fn releasing(fd: i32) {
    if let Some(table) = known()
        && let Ok(cookie) = kernel::cookie(fd)
    {
        table.strike(cookie, SELF.load(Relaxed));
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
    table.all_holders(cookie, |holder| Some(holder) == own() || table.is_dead(holder))
}

/// Where the family counts the bytes of a socket. `None`: nobody but this process does.
pub fn tally(cookie: u64) -> Option<u32> {
    known()?.tally(cookie)
}

/// Bytes of a direction that the family has counted there.
pub fn counted(tally: u32, direction: usize) -> u64 {
    known().map_or(0, |table| table.counted(tally, direction))
}

/// Adds to that.
pub fn count(tally: u32, direction: usize, bytes: u64) {
    if let Some(table) = known() {
        table.count(tally, direction, bytes);
    }
}

/// Where the holders of a socket agree on how far they have read its ring. Programs that are executed have it, too.
pub fn heirloom_words(tally: u32) -> Option<[Word64; 3]> {
    known().map(|table| table.heirloom_words(tally))
}

/// This process as a holder, if it has been one.
pub fn own() -> Option<u64> {
    Some(SELF.load(Relaxed)).filter(|number| *number != 0)
}

/// Whether a holder has died.
pub fn is_dead(holder: u64) -> bool {
    known().is_some_and(|table| table.is_dead(holder))
}

/// The table, if there is one.
fn known() -> Option<&'static Table> {
    TABLE.get().and_then(Option::as_ref)
}

/// This process as a holder.
fn myself() -> u64 {
    if let Some(known) = own() {
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
            drop_token(token);
            other
        }
    }
}

/// A new holder, and the open file that keeps it alive.
fn claim() -> Option<(u64, i32)> {
    TABLE.get_or_init(Table::new).as_ref()?.claim()
}

fn drop_token(token: i32) {
    if token != NONE {
        descriptor::closed(token);
        let _ = kernel::close(token);
    }
}

/// Lists a holder of a socket. `false`: there is no room.
fn list(cookie: u64, holder: u64) -> bool {
    TABLE.get_or_init(Table::new).as_ref().is_some_and(|table| table.list(cookie, holder))
}

/// The streams that may be promoted, and their cookies.
fn streams() -> impl Iterator<Item = (&'static Stream, u64)> {
    descriptors::numbers(0, u32::MAX).filter_map(|fd| {
        // A stream with several numbers is held once. One that listens is never promoted.
        let counts =
            |stream: &&Stream| stream.fd() == fd && (stream.origin.connected.load(Relaxed) || !kernel::listens(fd));
        let stream = descriptors::stream(fd).filter(counts)?;
        Some((stream, kernel::cookie(fd).ok()?))
    })
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

    /// Each holder lists the next one and ends, as programs do that execute one another.
    #[test]
    fn a_socket_that_is_handed_on_is_never_abandoned() {
        let cookie = 3001;
        let (first, token) = claim().unwrap();
        assert!(list(cookie, first));
        let table = known().unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let looks = scope.spawn(|| {
                let mut looks = 0;
                while !over.load(Relaxed) {
                    assert!(!table.is_abandoned(cookie), "in look {looks}");
                    looks += 1;
                }
                looks
            });
            let mut last = token;
            for _ in 0..20_000 {
                let (next, token) = claim().unwrap();
                assert!(list(cookie, next));
                drop_token(last);
                last = token;
            }
            over.store(true, Relaxed);
            assert!(looks.join().unwrap() > 0);
            drop_token(last);
        });
        assert!(table.is_abandoned(cookie));
    }

    #[test]
    fn records_of_the_dead_are_used_again() {
        // As servers do that fork for each connection: far more sockets than there are records.
        for cookie in 5000..5000 + 3 * table::PLACES as u64 {
            let (child, token) = claim().unwrap();
            assert!(list(cookie, child), "no room for {cookie}");
            assert!(cookie % 7 != 0 || list(cookie, UNKNOWN));
            kernel::close(token).unwrap();
        }
    }
}
