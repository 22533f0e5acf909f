//! Where a running card shows its counts, and how others read them: a small memory of its process that has a name, which the kernel
//! lists among the descriptors of that process. Nothing is asked of the card, so one that is stopped is read too. A card process
//! shows its counts whenever it has nothing to do.
//!
//! | word | what |
//! |---|---|
//! | 0 | magic |
//! | 1, 2 | kind; bytes of memory that the card has in all |
//! | 3..6 | C, L, A of the cache of translations |
//! | 6..12 | pages found and lines lacked on the way out and in, buffers found and lacked |
//! | 12, 13 | packets that were dropped for a miss, and sent again |
//! | 14..22 | the name, filled up with zeros |

use std::sync::atomic::Ordering;

use sidestep_shm::Memory;

use crate::budget::Budget;
use crate::card::Counters;
use crate::config::{CacheShape, Config};
use crate::error::Result;

/// The counts of one card, for others to read.
#[derive(Debug)]
pub(crate) struct Board {
    memory: Memory,
}

/// A card that runs, as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The process that it is in.
    pub pid: u32,
    /// What it is.
    pub kind: Kind,
    /// The name of a card process; of a link, the scheme underneath.
    pub name: String,
    /// All memory of the card, in bytes.
    pub memory: u64,
    /// Its cache of translations.
    pub vmh: CacheShape,
    /// Its counts; those that no table of this module names are zero.
    pub counters: Counters,
}

/// Whose card it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A card process.
    Process,
    /// A link of a node.
    Link,
}

impl Board {
    pub(crate) fn new(kind: Kind, name: &str, config: &Config) -> Result<Board> {
        let memory = Memory::create(NAME, BYTES)?;
        let board = Board { memory };
        let kind = if kind == Kind::Process { 1 } else { 2 };
        let CacheShape { entries, line, ways } = config.vmh;
        let shape = [kind, Budget::of(config).total(), entries, line, ways];
        (1..).zip(shape).for_each(|(at, value)| board.store(at, value as u64));
        let mut letters = [0; 8 * NAME_WORDS];
        letters.iter_mut().zip(name.as_bytes()).for_each(|(to, from)| *to = *from);
        for (at, word) in letters.chunks_exact(8).enumerate() {
            board.store(FIRST_OF_NAME + at, u64::from_ne_bytes(word.try_into().expect("eight bytes")));
        }
        board.store(0, MAGIC);
        Ok(board)
    }

    pub(crate) fn show(&self, counters: &Counters) {
        let Counters { vmh_hits, vmh_misses, cbh_hits, cbh_misses, dropped, resent, .. } = *counters;
        let counts = [vmh_hits[0], vmh_hits[1], vmh_misses[0], vmh_misses[1], cbh_hits, cbh_misses, dropped, resent];
        (FIRST_COUNT..).zip(counts).for_each(|(at, value)| self.store(at, value));
    }

    fn store(&self, at: usize, value: u64) {
        // Every word stands for itself, so no order is needed.
        let _ = self.memory.store64(8 * at, value, Ordering::Relaxed);
    }
}

/// What the bytes of a board say. Any process can make such a memory: what makes no sense is not shown.
#[must_use]
pub fn read(pid: u32, bytes: &[u8]) -> Option<Shown> {
    let bytes: &[u8; WORDS * 8] = bytes.try_into().ok()?;
    let word = |at: usize| u64::from_ne_bytes(bytes[8 * at..8 * at + 8].try_into().expect("eight bytes"));
    let kind = match (word(0), word(1)) {
        (MAGIC, 1) => Kind::Process,
        (MAGIC, 2) => Kind::Link,
        _ => return None,
    };
    let letters = &bytes[8 * FIRST_OF_NAME..8 * (FIRST_OF_NAME + NAME_WORDS)];
    let letters = letters.split(|byte| *byte == 0).next().unwrap_or_default();
    let name = String::from_utf8_lossy(letters).replace(char::is_control, "?");
    let vmh = CacheShape { entries: word(3) as usize, line: word(4) as usize, ways: word(5) as usize };
    let counters = Counters {
        vmh_hits: [word(6), word(7)],
        vmh_misses: [word(8), word(9)],
        cbh_hits: word(10),
        cbh_misses: word(11),
        dropped: word(12),
        resent: word(13),
        ..Counters::default()
    };
    Some(Shown { pid, kind, name, memory: word(2), vmh, counters })
}

const MAGIC: u64 = u64::from_be_bytes(*b"VMMCcrd1");
const FIRST_COUNT: usize = 6;
const FIRST_OF_NAME: usize = 14;
const NAME_WORDS: usize = 8;
const WORDS: usize = FIRST_OF_NAME + NAME_WORDS;
/// The name of such a memory.
pub const NAME: &str = "sidestep-card";
/// How long it is, in bytes.
pub const BYTES: usize = 8 * WORDS;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_board_says_what_it_shows() {
        let board = Board::new(Kind::Process, "board-of-a-test", &Config::default()).unwrap();
        let counters =
            Counters { vmh_hits: [1, 2], vmh_misses: [3, 4], cbh_hits: 5, cbh_misses: 6, ..Counters::default() };
        let counters = Counters { dropped: 7, resent: 8, ..counters };
        board.show(&counters);
        let mut bytes = [0; BYTES];
        board.memory.span(0, BYTES).unwrap().copy_out(0, &mut bytes).unwrap();
        let shown = read(7, &bytes).expect("a board");
        let expected = (7, Kind::Process, Config::default().vmh, counters);
        assert_eq!((shown.pid, shown.kind, shown.vmh, shown.counters), expected);
        assert_eq!(shown.name, "board-of-a-test");
        assert_eq!(shown.memory, Budget::of(&Config::default()).total() as u64);
    }

    #[test]
    fn what_is_no_board_is_not_shown() {
        assert_eq!(read(1, &[0; WORDS * 8]), None);
        assert_eq!(read(1, b"VMMCcrd1"), None);
    }
}
