//! What the extended sockets of a process do, for others to read: a small memory that has a name, which the kernel lists among the
//! descriptors of the process. Nothing is asked of the process, so one that is stopped is read too (`sidestep stat --extended`).
//!
//! | word | what |
//! |---|---|
//! | 0 | magic |
//! | 8 + 24 n | row n: the number of a socket, 0: the row is free |
//! | 1..7 of a row | the connection, as [`Key::to_words`] has it |
//! | 7 of a row | 1: the other end's memory is mapped, 2: it is reached over iWARP |
//! | 8.. of a row | how often, in the order of [`Count`] |
//!
//! Counting is a load and a store: two threads that count at the same moment may count one. It must not cost more, since an operation
//! on mapped memory takes 13 ns.

use std::{
    net::SocketAddr,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use sidestep_shm::{Memory, memory::Words};
use sidestep_sockets::kernel::address::Key;

/// The rows of a stack.
#[derive(Debug)]
pub(crate) struct Board {
    words: Words,
}

/// The row of one socket. Dropping it frees the row.
#[derive(Debug)]
pub(crate) struct Row {
    board: Arc<Board>,
    first: usize,
}

/// What is counted of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Regions that this end has exported.
    Exports,
    /// Their bytes.
    ExportedBytes,
    /// Regions that this end has imported.
    Imports,
    /// Their bytes.
    ImportedBytes,
    /// Writes to memory of the other end, posted or not.
    Puts,
    /// Reads of it.
    Gets,
    /// Atomic operations on it.
    Atomics,
    /// Messages that were sent.
    Sends,
    /// Messages that were received.
    Receives,
    /// Notices that came.
    Notices,
}

/// An extended socket, as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Its number in its process.
    pub number: u64,
    /// The ends of its connection: this one and the other.
    pub ends: [SocketAddr; 2],
    /// Whether the other end's memory is mapped; otherwise it is on another host.
    pub is_mapped: bool,
    counts: [u64; COUNTS],
}

/// The name of the memory.
pub const NAME: &str = "sidestep-extended";
/// How long it is, in bytes.
pub const BYTES: usize = 8 * WORDS;

const MAGIC: u64 = u64::from_be_bytes(*b"SSextbd1");
const HEAD: usize = 8;
const ROW: usize = 24;
/// Sockets of one stack that are shown; what further ones do is not.
const ROWS: usize = 256;
const WORDS: usize = HEAD + ROWS * ROW;
const FIRST_COUNT: usize = 8;
const COUNTS: usize = Count::Notices as usize + 1;
const _: () = assert!(FIRST_COUNT + COUNTS <= ROW);

impl Board {
    /// A board, or none where there is no memory for it: then nothing is shown.
    pub(crate) fn new() -> Option<Arc<Board>> {
        let memory = Memory::create(NAME, BYTES).ok()?;
        let words = memory.words(0, WORDS).ok()?;
        words.store(0, MAGIC, Relaxed);
        Some(Arc::new(Board { words }))
    }

    /// A row for a socket; `None` if all are taken.
    pub(crate) fn row(self: &Arc<Board>, number: u64, key: &Key, is_mapped: bool) -> Option<Row> {
        let free = |first: &usize| self.words.word(*first).compare_swap(0, number) == 0;
        let first = (HEAD..WORDS).step_by(ROW).find(free)?;
        let row = [key.to_words().as_slice(), &[if is_mapped { 1 } else { 2 }], &[0; COUNTS]].concat();
        (first + 1..).zip(row).for_each(|(at, word)| self.words.store(at, word, Relaxed));
        Some(Row { board: self.clone(), first })
    }
}

impl Row {
    #[inline]
    pub(crate) fn add(&self, count: Count, value: u64) {
        let at = self.first + FIRST_COUNT + count as usize;
        self.board.words.store(at, self.board.words.load(at, Relaxed).wrapping_add(value), Relaxed);
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        self.board.words.store(self.first, 0, Relaxed);
    }
}

impl Shown {
    /// How often something was done.
    pub fn count(&self, count: Count) -> u64 {
        self.counts[count as usize]
    }
}

/// What the bytes of a board say. Any process can make such a memory: what makes no sense is not shown.
pub fn read(bytes: &[u8]) -> Vec<Shown> {
    let words: Vec<u64> =
        bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes"))).collect();
    if words.len() != WORDS || words[0] != MAGIC {
        return Vec::new();
    }
    words[HEAD..].chunks_exact(ROW).filter(|row| row[0] != 0).map(read_row).collect()
}

fn read_row(row: &[u64]) -> Shown {
    let key = Key::from_words(row[1..7].try_into().expect("six words"));
    let counts = row[FIRST_COUNT..FIRST_COUNT + COUNTS].try_into().expect("as many words");
    Shown { number: row[0], ends: [key.local, key.remote], is_mapped: row[7] == 1, counts }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(board: &Board) -> Vec<u8> {
        (0..WORDS).flat_map(|at| board.words.load(at, Relaxed).to_ne_bytes()).collect()
    }

    #[test]
    fn rows_come_and_go_with_their_sockets() {
        let board = Board::new().unwrap();
        let ends = ["10.0.0.1:80".parse().unwrap(), "10.0.0.2:40000".parse().unwrap()];
        let key = Key { namespace: 7, local: ends[0], remote: ends[1] };
        let rows: Vec<_> = (1..=ROWS as u64).map(|number| board.row(number, &key, number != 2).unwrap()).collect();
        assert!(board.row(1000, &key, true).is_none());
        rows[1].add(Count::Gets, 1);
        rows[1].add(Count::Gets, 1);
        rows[1].add(Count::Notices, 5);
        let shown = read(&bytes_of(&board));
        assert_eq!(shown.len(), ROWS);
        assert_eq!((shown[1].number, shown[1].ends, shown[1].is_mapped), (2, ends, false));
        assert_eq!((shown[1].count(Count::Gets), shown[1].count(Count::Notices)), (2, 5));
        assert_eq!((shown[0].is_mapped, shown[0].count(Count::Gets)), (true, 0));
        drop(rows);
        assert_eq!(read(&bytes_of(&board)), []);
        // The next socket of the row begins anew.
        let _row = board.row(9, &key, true).unwrap();
        assert_eq!(read(&bytes_of(&board))[0].count(Count::Gets), 0);
    }

    #[test]
    fn any_bytes_are_a_board_or_not() {
        for len in [0, 7, 8, BYTES - 1, BYTES] {
            assert_eq!(read(&vec![0xff; len]), []);
        }
        // Of a hostile process: the right magic, and nothing that makes sense.
        let mut bytes = vec![0xff; BYTES];
        bytes[..8].copy_from_slice(&MAGIC.to_ne_bytes());
        assert_eq!(read(&bytes).len(), ROWS);
    }
}
