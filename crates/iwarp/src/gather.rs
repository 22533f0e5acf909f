//! Output without copies: a list of pieces, some of them bytes, some of them names of memory.

use sidestep_wire::Stag;
use std::collections::VecDeque;
use std::ops::Range;

/// The caller's name for memory that it sends from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BufferId(pub u64);

/// Memory that is sent from. The driver knows where it lies; a buffer may as well be a list of
/// several pieces of memory that are counted through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// A registered region.
    Region(Stag),
    /// A buffer of the caller.
    Buffer(BufferId),
}

/// A part of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceSlice {
    /// The memory.
    pub source: Source,
    /// Bytes from the beginning of the memory.
    pub offset: u64,
    /// How many bytes.
    pub len: u32,
}

/// One piece of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// The bytes of this memory.
    Source(SourceSlice),
}

/// Output that is to be transmitted, in order. The driver owns it, has it filled by
/// [`poll_transmit`](crate::Connection::poll_transmit), writes its [`pieces`](Gather::pieces) with one
/// gathered write, and calls [`advance`](Gather::advance) with what the stream took.
#[derive(Debug, Default)]
pub struct Gather {
    bytes: Vec<u8>,
    pieces: VecDeque<Stored>,
    len: u64,
}

/// So many bytes are moved at most once for as many that were transmitted.
const RECLAIM_AT: usize = 64 * 1024;

#[derive(Debug, Clone)]
enum Stored {
    Bytes(Range<usize>),
    Source(SourceSlice),
}

impl Gather {
    /// Nothing to transmit.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many bytes are to be transmitted.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is nothing to transmit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// In how many pieces.
    #[must_use]
    pub fn piece_count(&self) -> usize {
        self.pieces.len()
    }

    /// The pieces, in order. None is empty.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        self.pieces.iter().map(|piece| match piece {
            Stored::Bytes(range) => Piece::Bytes(&self.bytes[range.clone()]),
            Stored::Source(slice) => Piece::Source(*slice),
        })
    }

    /// Forgets the first `count` bytes, or all if there are fewer.
    pub fn advance(&mut self, count: u64) {
        let mut count = count.min(self.len);
        self.len -= count;
        while let Some(first) = self.pieces.front_mut() {
            let len = first.len();
            if count < len {
                first.cut(count);
                break;
            }
            count -= len;
            self.pieces.pop_front();
        }
        self.reclaim();
    }

    /// Gives back the room of bytes that were transmitted, also if the list is never empty.
    fn reclaim(&mut self) {
        let mut ranges = self.pieces.iter_mut().filter_map(|piece| match piece {
            Stored::Bytes(range) => Some(range),
            Stored::Source(_) => None,
        });
        let Some(first) = ranges.next() else {
            return self.bytes.clear();
        };
        let spent = first.start;
        if spent < RECLAIM_AT {
            return;
        }
        for range in std::iter::once(first).chain(ranges) {
            *range = range.start - spent..range.end - spent;
        }
        self.bytes.drain(..spent);
    }

    /// Appends bytes; neighbours become one piece.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.note_bytes(start);
    }

    /// The bytes from `start` on are new, and there are some.
    fn note_bytes(&mut self, start: usize) {
        let end = self.bytes.len();
        self.len += (end - start) as u64;
        match self.pieces.back_mut() {
            Some(Stored::Bytes(range)) if range.end == start => range.end = end,
            _ => self.pieces.push_back(Stored::Bytes(start..end)),
        }
    }

    /// Appends what `fill` appends, or nothing if that is `false`.
    pub(crate) fn append(&mut self, fill: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        let start = self.bytes.len();
        if !fill(&mut self.bytes) {
            self.bytes.truncate(start);
            return false;
        }
        self.note_bytes(start);
        true
    }

    /// Appends the bytes of some memory.
    pub(crate) fn push_source(&mut self, slice: SourceSlice) {
        if slice.len > 0 {
            self.len += u64::from(slice.len);
            self.pieces.push_back(Stored::Source(slice));
        }
    }
}

impl Stored {
    fn len(&self) -> u64 {
        match self {
            Stored::Bytes(range) => range.len() as u64,
            Stored::Source(slice) => u64::from(slice.len),
        }
    }

    /// Drops the first bytes, of which there are more than `count`.
    fn cut(&mut self, count: u64) {
        match self {
            Stored::Bytes(range) => range.start += count as usize,
            Stored::Source(slice) => {
                slice.offset += count;
                slice.len -= count as u32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(offset: u64, len: u32) -> SourceSlice {
        SourceSlice { source: Source::Buffer(BufferId(7)), offset, len }
    }

    #[test]
    fn neighbouring_bytes_become_one_piece() {
        let mut gather = Gather::new();
        gather.push_bytes(b"ab");
        gather.push_bytes(b"");
        gather.push_bytes(b"cd");
        gather.push_source(slice(10, 5));
        gather.push_source(slice(0, 0));
        gather.push_bytes(b"ef");
        let pieces: Vec<_> = gather.pieces().collect();
        assert_eq!(pieces, [Piece::Bytes(b"abcd"), Piece::Source(slice(10, 5)), Piece::Bytes(b"ef")]);
        assert_eq!((gather.len(), gather.piece_count()), (11, 3));
    }

    #[test]
    fn advance_cuts_anywhere() {
        for cut in 0..=12 {
            let mut gather = Gather::new();
            gather.push_bytes(b"abcd");
            gather.push_source(slice(10, 5));
            gather.push_bytes(b"ef");
            gather.advance(cut);
            assert_eq!(gather.len(), 11u64.saturating_sub(cut));
            let sum: u64 = gather
                .pieces()
                .map(|piece| match piece {
                    Piece::Bytes(bytes) => bytes.len() as u64,
                    Piece::Source(slice) => {
                        assert_eq!(slice.offset + u64::from(slice.len), 15);
                        u64::from(slice.len)
                    }
                })
                .sum();
            assert_eq!(sum, gather.len());
        }
    }

    #[test]
    fn an_empty_list_starts_over() {
        let mut gather = Gather::new();
        gather.push_bytes(b"abcd");
        gather.advance(2);
        gather.push_bytes(b"ef");
        assert_eq!(gather.pieces().collect::<Vec<_>>(), [Piece::Bytes(b"cdef")]);
        gather.advance(100);
        assert!(gather.is_empty() && gather.bytes.is_empty());
    }

    #[test]
    fn a_list_that_is_never_empty_does_not_grow() {
        let mut gather = Gather::new();
        gather.push_bytes(b"x");
        for round in 0..1000u64 {
            gather.push_source(slice(round, 10));
            gather.push_bytes(&[round as u8; 1000]);
            gather.advance(1010);
            assert!(gather.bytes.len() < RECLAIM_AT + 2000);
            assert_eq!(gather.pieces().collect::<Vec<_>>(), [Piece::Bytes(&[round as u8][..])]);
        }
    }
}
