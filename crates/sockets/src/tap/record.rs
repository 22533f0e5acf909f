//! What a process says of a piece that it has written, in words before the bytes.

use sidestep_wire::cursor::little::{Reader, Writer};

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
        let mut bytes = [0; HEADER];
        let mut fields = Writer::new(&mut bytes[..]);
        let rest =
            [self.kind as u64, self.cookie, self.time, self.pid.into(), self.position, self.read, self.len, self.kept];
        for word in self.key.to_words().into_iter().chain(rest) {
            fields.u64(word);
        }
        bytes
    }

    /// Reads that form. `None`: no correct process writes that.
    pub fn from_bytes(bytes: &[u8; HEADER]) -> Option<Record> {
        let mut fields = Reader::new(bytes);
        let mut words = [0; WORDS];
        for word in &mut words {
            *word = fields.u64().ok()?;
        }
        let [a, b, c, d, e, f, kind, cookie, time, pid, position, read, len, kept] = words;
        let kind = match kind {
            1 => Kind::Bytes,
            2 => Kind::End,
            _ => return None,
        };
        let key = Key::from_words([a, b, c, d, e, f]);
        let record = Record { kind, key, cookie, time, pid: pid as u32, position, read, len, kept };
        (len <= PIECE as u64 && kept <= len).then_some(record)
    }
}
