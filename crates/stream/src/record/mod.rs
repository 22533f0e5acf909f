//! The record of one end of a stream: every word that decides where its next byte goes, in memory of the *family*, the
//! processes that have inherited the socket.
//!
//! It is made by the sole holder of a socket, when the stream is promoted, in memory which that process has made itself; so
//! only its descendants see it. A private object that is a cache of it begins again when [`Record::is_current`] says so.
//! Every word is read once and checked, like a peer's: a descendant may be less trusted than its parent.
//!
//! # How a call is driven
//!
//! The path machine ([`crate::path`]) says what to do next; [`crate::driver`] carries that out on this record, on the halves of
//! the present carrier, and on the anchor. Between calls a process keeps nothing of its own but the halves and their number.
//!
//! # Invariants
//!
//! - R1. The reader's words, the writer's words and those that both share lie on separate pairs of cache lines, since
//!   processors fetch lines in pairs.
//! - R2. Bytes of a carrier are the caller's when [`Reading::commit`] says so, and nobody else's: one compare-and-swap on the
//!   carrier's number, its position and whether the rest is offered back.
//! - R3. Carriers are numbered from 1 and used one after the other. [`Record::mount`] begins the words of the next one; only a
//!   sole holder calls it, when the former one is over.
//! - R4. Counts of TCP bytes are never made equal to the kernel's but by [`Reading::recover`] and [`Writing::recover`], under the
//!   lock, after the death of its holder: they are what shows foreign use.

mod reading;
mod shared;
mod writing;

pub use reading::{Position, Reading};
pub use shared::{Options, Shared};
pub use writing::Writing;

use std::alloc::{Layout, handle_alloc_error};

use sidestep_shm::{
    Result as MemoryResult,
    memory::{Memory, Word64},
};

/// Bytes of a record.
pub const LEN: usize = 3 * PAIR;
/// Two cache lines: what a processor fetches at once.
pub const PAIR: usize = 128;
/// Processes that may hold a socket and have it carried: more of them, and it stays on TCP.
pub const MOST_HOLDERS: usize = 8;
/// The highest number of a carrier: a word has fifteen bits for it.
pub const MOST_CARRIERS: u16 = 0x7fff;

/// Where the lock is among the words of a direction.
const LOCK: usize = 0x18;

/// A word holds what none of the holders writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Corrupt(pub &'static str);

/// What reading a word gives.
pub type Result<T> = std::result::Result<T, Corrupt>;

/// The record of one end of a stream.
#[derive(Debug, Clone)]
pub struct Record {
    shared: Shared,
    reading: Reading,
    writing: Writing,
    generation: u32,
}

/// One of the two directions of a stream, seen from one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// What this end reads.
    Read,
    /// What this end writes.
    Write,
}

/// A holder of the socket: its place among at most [`MOST_HOLDERS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Holder(u8);

impl Holder {
    /// The first place: that of a holder which is alone.
    pub const FIRST: Holder = Holder(0);

    /// The holder in this place. `None`: there are not so many.
    pub fn new(place: usize) -> Option<Holder> {
        (place < MOST_HOLDERS).then_some(Holder(place as u8))
    }

    /// Its place.
    pub fn place(self) -> usize {
        usize::from(self.0)
    }
}

impl Record {
    /// Makes a record here, at a multiple of [`PAIR`], owned by its sole holder, for a stream that has taken and sent so many bytes
    /// over TCP. The generation is one that this memory has not had before, and not 0.
    pub fn create(memory: &Memory, at: usize, generation: u32, owner: Holder, tcp: [u64; 2]) -> MemoryResult<Record> {
        let record = Record::over(memory, at, generation)?;
        record.begin(owner, tcp);
        Ok(record)
    }

    /// One in memory that this process shares with nobody.
    pub fn private(owner: Holder) -> Record {
        Memory::heap(LEN)
            .and_then(|memory| Record::create(&memory, 0, 1, owner, [0; 2]))
            .unwrap_or_else(|_| handle_alloc_error(Layout::new::<[u8; LEN]>()))
    }

    /// Makes it the record of another stream, of which nobody else knows.
    pub fn begin(&self, owner: Holder, tcp: [u64; 2]) {
        self.shared.clear();
        self.reading.clear(owner, tcp[0]);
        self.writing.clear(owner, tcp[1]);
        self.shared.begin(self.generation);
    }

    /// The record that lies here. [`Corrupt`] if it is of another generation, or none.
    pub fn attach(memory: &Memory, at: usize, generation: u32) -> MemoryResult<Result<Record>> {
        let record = Record::over(memory, at, generation)?;
        Ok(if record.is_current() { Ok(record) } else { Err(Corrupt("generation")) })
    }

    fn over(memory: &Memory, at: usize, generation: u32) -> MemoryResult<Record> {
        memory.span(at, LEN)?;
        Ok(Record {
            shared: Shared::attach(memory, at)?,
            reading: Reading::attach(memory, at + PAIR)?,
            writing: Writing::attach(memory, at + 2 * PAIR)?,
            generation,
        })
    }

    /// Whether this memory still has the record that was attached. If not, it is another stream's.
    pub fn is_current(&self) -> bool {
        self.shared.generation() == self.generation
    }

    /// Ends the record: whoever has it attached finds it no more. For the last holder.
    pub fn retire(&self) {
        self.shared.begin(0);
    }

    /// The words of both directions.
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The reader's words.
    pub fn reading(&self) -> &Reading {
        &self.reading
    }

    /// The writer's words.
    pub fn writing(&self) -> &Writing {
        &self.writing
    }

    /// Begins the words of the next carrier (R3). `false`: it is not the next one, or the former one is not over.
    pub fn mount(&self, carrier: u16) -> Result<bool> {
        let former = self.reading.mounted()?;
        let next = former < MOST_CARRIERS && carrier == former + 1;
        if !next || former != 0 && !self.has_parted(former)? {
            return Ok(false);
        }
        self.writing.mount();
        self.reading.mount(carrier);
        Ok(true)
    }

    /// Where in a record the 32-bit word of a direction's lock lies, for `sidestep_shm::family`.
    pub fn lock_offset(direction: Direction) -> usize {
        match direction {
            Direction::Read => PAIR + LOCK,
            Direction::Write => 2 * PAIR + LOCK,
        }
    }

    /// Whether a carrier is over both ways: it has been read to its end, and its writer has forgotten it.
    pub fn has_parted(&self, carrier: u16) -> Result<bool> {
        Ok(self.reading.over()? >= carrier && self.writing.forgotten()? >= carrier)
    }
}

/// One line of the layout, for the documents.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Bytes from the beginning of the record.
    pub offset: usize,
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub what: &'static str,
}

/// The words of a record, in order.
pub fn layout() -> impl Iterator<Item = Entry> {
    let at = |base: usize| move |entry: &Entry| Entry { offset: base + entry.offset, ..*entry };
    let parts = [(0, shared::LAYOUT), (PAIR, reading::LAYOUT), (2 * PAIR, writing::LAYOUT)];
    parts.into_iter().flat_map(move |(base, entries)| entries.iter().map(at(base)))
}

/// The words of one pair of lines, and what each is.
macro_rules! words {
    ($(#[$doc:meta])* pub struct $name:ident { $($field:ident: $offset:literal = $what:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $name { $($field: Word64,)* }

        impl $name {
            pub(super) fn attach(memory: &Memory, at: usize) -> MemoryResult<$name> {
                Ok($name { $($field: memory.word64(at + $offset)?,)* })
            }
        }

        pub(super) const LAYOUT: &[Entry] =
            &[$(Entry { offset: $offset, name: stringify!($field), what: $what },)*];
    };
}
use words;

/// The word of who owns a direction: bits 0-31 the holder's place + 1, or 0 for all of them alike; bits 32-63 how often that
/// has changed.
fn owner_of(word: u64) -> Result<Option<Holder>> {
    match word as u32 as usize {
        0 => Ok(None),
        number => Holder::new(number - 1).map(Some).ok_or(Corrupt("owner")),
    }
}

fn owner_word(epoch: u32, owner: Option<Holder>) -> u64 {
    u64::from(epoch) << 32 | owner.map_or(0, |holder| holder.place() as u64 + 1)
}

/// Makes all holders of a direction alike; those that had looked before find another epoch.
fn take_over(word: &Word64) {
    change(word, |held| owner_word(((held >> 32) as u32).wrapping_add(1), None));
}

/// Changes a word by compare-and-swap, for everyone in the same order. Returns what it held.
fn change(word: &Word64, next: impl Fn(u64) -> u64) -> u64 {
    use std::sync::atomic::Ordering::{Relaxed, SeqCst};
    let mut held = word.load(Relaxed);
    loop {
        let found = word.compare_exchange(held, next(held), SeqCst);
        if found == held {
            return held;
        }
        held = found;
    }
}

/// A number of a carrier, as a word holds it.
fn number_of(word: u64, name: &'static str) -> Result<u16> {
    u16::try_from(word).ok().filter(|number| *number <= MOST_CARRIERS).ok_or(Corrupt(name))
}
