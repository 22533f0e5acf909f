//! What a process says of a piece that it has written, in words before the bytes.

use crate::kernel::address::Key;

/// A piece of a stream that was written to a carrier, or its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// What it is.
    pub kind: Kind,
    /// Who has written, and to whom.
    pub key: Key,
    /// SO_COOKIE of the end that has written.
    pub cookie: u64,
    /// When, in nanoseconds of the monotonic clock.
    pub time: u64,
    /// The process that has written.
    pub pid: u32,
    /// Position of its first byte in the stream, counting what went over TCP.
    pub position: u64,
    /// How far the other direction had been read.
    pub read: u64,
    /// Bytes of the piece.
    pub len: u64,
    /// How many of them follow.
    pub kept: u64,
}

/// What a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bytes.
    Bytes = 1,
    /// Nothing follows.
    End = 2,
}

const WORDS: usize = 14;
/// Bytes of a record before the piece's own.
pub const HEADER: usize = WORDS * 8;
/// The most bytes of a piece: it must fit into one IP packet, with its headers.
pub const PIECE: usize = 60_000;

impl Record {
    /// Bytes of the piece, as they lie in a ring.
    pub fn padded(&self) -> usize {
        (self.kept as usize).next_multiple_of(8)
    }

    /// In the form that lies in a ring.
    pub fn to_bytes(self) -> [u8; HEADER] {
        let mut words = [0; WORDS];
        words[..6].copy_from_slice(&self.key.to_words());
        let rest =
            [self.kind as u64, self.cookie, self.time, self.pid.into(), self.position, self.read, self.len, self.kept];
        words[6..].copy_from_slice(&rest);
        let mut bytes = [0; HEADER];
        bytes.chunks_exact_mut(8).zip(words).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
        bytes
    }

    /// Reads that form. `None`: no correct process writes that.
    pub fn from_bytes(bytes: &[u8; HEADER]) -> Option<Record> {
        let word = |at: usize| u64::from_le_bytes(bytes[at * 8..at * 8 + 8].try_into().expect("eight bytes"));
        let kind = match word(6) {
            1 => Kind::Bytes,
            2 => Kind::End,
            _ => return None,
        };
        let (len, kept) = (word(12), word(13));
        (len <= PIECE as u64 && kept <= len).then(|| Record {
            kind,
            key: Key::from_words(std::array::from_fn(word)),
            cookie: word(7),
            time: word(8),
            pid: word(9) as u32,
            position: word(10),
            read: word(11),
            len,
            kept,
        })
    }
}
