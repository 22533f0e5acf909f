//! The table of custody: one file of memory that a family of processes shares, over `fork` and `exec`. Its bytes are words, and
//! their numbers beyond the last word are what holders lock.

use std::{
    os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd},
    sync::{
        Arc,
        atomic::{
            Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
            fence,
        },
    },
};

use rustix::fs::OFlags;
use sidestep_shm::{Memory, Word64, memory::Words};
use sidestep_sys::{descriptor, procfs};

use crate::{descriptors::numbers, kernel};

/// More sockets than a family of processes has ports for. Memory of places that nobody uses is not touched.
pub const PLACES: usize = 65_536;
/// Words of a record: cookie, whether the family counts its bytes, those, what holders have read of a ring, and holders.
const WORDS: usize = 16;
const COUNTED: usize = 1;
const TCP: usize = 2;
const FORMER: usize = 4;
const HEIRLOOM: usize = 6;
const HOLDERS: usize = 9;
/// Words before the records: the last number that was given out, what shows that this is such a table, and how often a holder was
/// listed.
const HEADER: usize = 8;
const MARK: usize = 1;
const LISTINGS: usize = 2;
/// Looks at the holders of a socket before they are taken for others than one hopes.
const LOOKS: usize = 8;
/// Changes with the layout.
const LAYOUT: u64 = 0x7369_6465_7374_6504;
const LEN: usize = (HEADER + PLACES * WORDS) * 8;
/// Places looked at for one socket.
const PROBES: usize = 64;
/// Cookies are small numbers; a place in the making has this one.
const BUSY: u64 = u64::MAX;
/// A holder that nobody sees.
pub const UNKNOWN: u64 = u64::MAX;
/// Of a number: that holder is a program to be, which nobody sees until it says that it is there.
pub const EXPECTED: u64 = 1 << 63;
/// The first number of a holder, so that the bytes that are locked are none of the table's.
const FIRST: u64 = 1 << 24;

/// The table.
#[derive(Debug)]
pub struct Table {
    words: Words,
    file: Arc<OwnedFd>,
}

/// A record.
pub struct Place<'a> {
    words: &'a Words,
    first: usize,
}

impl Place<'_> {
    fn word(&self, at: usize) -> Word64 {
        self.words.word(self.first + at)
    }

    /// Its holders.
    pub fn holders(&self) -> impl Iterator<Item = u64> {
        (HOLDERS..WORDS).map(|at| self.words.load(self.first + at, Acquire)).filter(|holder| *holder != 0)
    }

    /// Puts a holder in the place of another, or of none (0).
    pub fn replace(&self, former: u64, holder: u64) -> bool {
        (HOLDERS..WORDS)
            .map(|at| self.word(at))
            .any(|word| word.load(Relaxed) == former && word.compare_swap(former, holder) == former)
    }

    /// Which record of the table it is.
    fn index(&self) -> u32 {
        ((self.first - HEADER) / WORDS) as u32
    }
}

impl Table {
    /// A new one.
    pub fn new() -> Option<Table> {
        numbers::choose();
        let memory = Memory::create_untouched("sidestep-custody", LEN).ok()?;
        let table = Table::over(&memory)?;
        table.words.word(0).store(FIRST, Relaxed);
        table.words.word(MARK).store(LAYOUT, Release);
        Some(table)
    }

    /// One that another program has left. `None`: it is none.
    pub fn attach(file: OwnedFd) -> Option<Table> {
        let table = Table::over(&Memory::attach(file, LEN).ok()?)?;
        (table.words.load(MARK, Acquire) == LAYOUT).then_some(table)
    }

    fn over(memory: &Memory) -> Option<Table> {
        Some(Table { words: memory.words(0, LEN / 8).ok()?, file: memory.descriptor()? })
    }

    /// The file.
    pub fn fd(&self) -> i32 {
        self.file.as_raw_fd()
    }

    /// A new holder, and the open file that keeps it alive.
    pub fn claim(&self) -> Option<(u64, i32)> {
        let holder = self.words.word(0).fetch_add(1, Relaxed).wrapping_add(1);
        // A descriptor of the same open file would not do: the lock belongs to that.
        let token = descriptor::keep(procfs::open_again(self.file.as_fd(), OFlags::RDWR | OFlags::CLOEXEC).ok()?);
        let locked = is_number(holder) && kernel::lock_byte(token.as_raw_fd(), holder);
        if !locked {
            descriptor::closed(token.as_raw_fd());
        }
        locked.then(|| (holder, token.into_raw_fd()))
    }

    /// Whether a number has been given out.
    pub fn has_given_out(&self, holder: u64) -> bool {
        is_number(holder) && holder <= self.words.load(0, Acquire)
    }

    /// The records of a socket.
    pub fn places(&self, cookie: u64) -> impl Iterator<Item = Place<'_>> {
        self.probes(cookie).filter(move |place| place.words.load(place.first, Acquire) == cookie)
    }

    /// Where they may be.
    fn probes(&self, cookie: u64) -> impl Iterator<Item = Place<'_>> {
        let first = (cookie.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize;
        let at = move |step| HEADER + first.wrapping_add(step) % PLACES * WORDS;
        (0..PROBES).map(move |step| Place { words: &self.words, first: at(step) })
    }

    /// Lists a holder of a socket. `false`: there is no room.
    pub fn list(&self, cookie: u64, holder: u64) -> bool {
        if self.places(cookie).any(|place| place.holders().any(|other| other == holder)) {
            return true;
        }
        let added = self.places(cookie).any(|place| place.replace(0, holder))
            || self.places(cookie).any(|place| {
                let mut dead = place.holders().filter(|other| self.is_dead(*other));
                dead.any(|other| place.replace(other, holder))
            });
        let listed = added || self.make(cookie, holder);
        self.words.word(LISTINGS).fetch_add(1, AcqRel);
        listed
    }

    /// Whether this holds of every holder of a socket at one moment, if it holds for good once it does. Holders are looked at one
    /// after the other: one that lists another where was looked before, and then ends, shows in the count of listings. A process
    /// ends, forks or executes a program only behind that.
    pub fn all_holders(&self, cookie: u64, holds: impl Fn(u64) -> bool) -> bool {
        for _ in 0..LOOKS {
            let before = self.words.load(LISTINGS, Acquire);
            if !self.places(cookie).all(|place| place.holders().all(&holds)) {
                return false;
            }
            fence(SeqCst);
            if self.words.load(LISTINGS, Acquire) == before {
                return true;
            }
        }
        false
    }

    /// Lists it no more, and gives the records back if nobody is left.
    pub fn strike(&self, cookie: u64, holder: u64) {
        self.places(cookie).for_each(|place| {
            place.replace(holder, 0);
        });
        if self.is_abandoned(cookie) {
            self.places(cookie).for_each(|place| {
                place.word(0).compare_swap(cookie, 0);
            });
        }
    }

    fn make(&self, cookie: u64, holder: u64) -> bool {
        let free = |place: &Place<'_>| place.word(0).load(Relaxed) == 0 && place.word(0).compare_swap(0, BUSY) == 0;
        let abandoned = |place: &Place<'_>| {
            let other = place.word(0).load(Acquire);
            other != BUSY && self.is_abandoned(other) && place.word(0).compare_swap(other, BUSY) == other
        };
        let Some(place) = self.probes(cookie).find(free).or_else(|| self.probes(cookie).find(abandoned)) else {
            return false;
        };
        (1..WORDS).for_each(|at| place.word(at).store(0, Relaxed));
        place.word(HOLDERS).store(holder, Relaxed);
        place.word(0).store(cookie, Release);
        true
    }

    /// Whether nobody of this family holds the socket any more: others do not ask here (C1).
    pub fn is_abandoned(&self, cookie: u64) -> bool {
        self.all_holders(cookie, |holder| self.is_gone(holder))
    }

    /// Whether a holder will not ask here again. A program that does not say that it is there may still do so as long as it has
    /// what it was given.
    fn is_gone(&self, holder: u64) -> bool {
        match holder {
            UNKNOWN => true,
            expected if is_unseen(expected) => !kernel::is_byte_locked(self.fd(), expected & !EXPECTED),
            other => self.is_dead(other),
        }
    }

    /// Whether a holder has died. Nobody knows of one that is not seen.
    pub fn is_dead(&self, holder: u64) -> bool {
        !is_unseen(holder) && Some(holder) != super::own() && !kernel::is_byte_locked(self.fd(), holder)
    }

    /// The record in which the family counts the bytes of a socket. Made the first time, with none.
    pub fn tally(&self, cookie: u64) -> Option<u32> {
        let counted = |place: &Place<'_>| place.word(COUNTED).load(Acquire) != 0;
        let place = self.places(cookie).find(counted).or_else(|| self.places(cookie).next())?;
        place.word(COUNTED).store(1, Release);
        Some(place.index())
    }

    /// Bytes of a direction that the family has counted in such a record.
    pub fn counted(&self, tally: u32, direction: usize) -> u64 {
        self.words.load(at(tally, TCP + direction), Acquire)
    }

    /// Adds to that.
    pub fn count(&self, tally: u32, direction: usize, bytes: u64) {
        self.words.word(at(tally, TCP + direction)).fetch_add(bytes, Release);
    }

    /// Bytes of a direction that went over carriers, as of the last time that this was noted.
    pub fn former(&self, tally: u32, direction: usize) -> u64 {
        self.words.load(at(tally, FORMER + direction), Acquire)
    }

    /// Notes that.
    pub fn set_former(&self, tally: u32, direction: usize, bytes: u64) {
        self.words.word(at(tally, FORMER + direction)).store(bytes, Release);
    }

    /// The three words of what the holders share of a ring ([`Heirloom`](crate::processes::heirloom::Heirloom)).
    pub fn heirloom_words(&self, tally: u32) -> [Word64; 3] {
        [0, 1, 2].map(|word| self.words.word(at(tally, HEIRLOOM + word)))
    }
}

/// A word of a record.
fn at(tally: u32, word: usize) -> usize {
    HEADER + tally as usize % PLACES * WORDS + word
}

/// Whether this can be the number of a holder.
fn is_number(holder: u64) -> bool {
    (FIRST..1 << 40).contains(&holder)
}

/// Whether nobody sees when this holder ends.
fn is_unseen(holder: u64) -> bool {
    holder & EXPECTED != 0
}
