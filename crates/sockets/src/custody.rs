//! Custody: how many processes hold a socket. Only a sole holder promotes it.
//!
//! A table in memory that a family of forked processes shares, keyed by SO_COOKIE. A socket is entered when its holder
//! forks, and counts its holders from then on. A holder that dies without closing is never taken off: such a socket
//! stays on TCP.

use std::sync::{
    OnceLock,
    atomic::{
        AtomicBool,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
};

use sidestep_shm::{Memory, memory::Words};

use crate::{kernel, stream::Stage, table};

static TABLE: OnceLock<Option<Table>> = OnceLock::new();

/// Some socket found no place.
static OVERFLOWN: AtomicBool = AtomicBool::new(false);

#[derive(Debug)]
struct Table {
    words: Words,
    _memory: Memory,
}

const PLACES: usize = 4096;
/// Places looked at for one socket.
const PROBES: usize = 64;
/// Cookies are small numbers; a place in the making has this one.
const BUSY: u64 = u64::MAX;

/// Before a fork: every stream gets one more holder.
pub fn forking() {
    for fd in table::numbers(0, u32::MAX) {
        let Some(stream) = table::stream(fd) else { continue };
        if stream.fd() != fd || stream.stage() == Stage::Never {
            continue;
        }
        if let Ok(cookie) = kernel::cookie(fd) {
            change(cookie, 1);
        }
    }
}

/// This process holds the socket behind a descriptor no more; called before it is closed.
pub fn releasing(fd: i32) {
    if let Some(Some(_)) = TABLE.get()
        && let Ok(cookie) = kernel::cookie(fd)
    {
        change(cookie, -1);
    }
}

/// Another process may hold it from now on, and nobody will say when it no longer does.
pub fn given_away(cookie: u64) {
    change(cookie, 1);
}

/// Whether this process alone holds the socket.
pub fn is_sole_holder(cookie: u64) -> bool {
    let Some(table) = TABLE.get() else { return true };
    let Some(table) = table.as_ref().filter(|_| !OVERFLOWN.load(Acquire)) else { return false };
    table.find(cookie).is_none_or(|place| table.words.word(place * 2 + 1).load(Acquire) <= 1)
}

fn change(cookie: u64, by: i64) {
    let Some(table) = TABLE.get_or_init(Table::new) else { return };
    match table.find(cookie) {
        Some(place) => {
            let holders = table.words.word(place * 2 + 1);
            let left = holders.fetch_add(by as u64, AcqRel).wrapping_add(by as u64);
            if left == 0 {
                table.words.word(place * 2).store(0, Release);
            }
        }
        // Not there: one holder so far.
        None if by > 0 => table.enter(cookie, 1 + by as u64),
        None => {}
    }
}

impl Table {
    fn new() -> Option<Table> {
        let memory = Memory::create("sidestep-custody", PLACES * 16).ok()?;
        Some(Table { words: memory.words(0, PLACES * 2).ok()?, _memory: memory })
    }

    fn find(&self, cookie: u64) -> Option<usize> {
        probes(cookie).find(|place| self.words.word(place * 2).load(Acquire) == cookie)
    }

    fn enter(&self, cookie: u64, holders: u64) {
        for place in probes(cookie) {
            let word = self.words.word(place * 2);
            if word.load(Relaxed) == 0 && word.compare_swap(0, BUSY) == 0 {
                self.words.word(place * 2 + 1).store(holders, Relaxed);
                word.store(cookie, Release);
                return;
            }
        }
        // What is not recorded could be held by anyone.
        OVERFLOWN.store(true, Release);
    }
}

fn probes(cookie: u64) -> impl Iterator<Item = usize> {
    let first = (cookie.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize;
    (0..PROBES).map(move |step| first.wrapping_add(step) % PLACES)
}
