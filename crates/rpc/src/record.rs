//! A byte stream cut into messages (RFC 5531 §11), without I/O.
//!
//! A message that lies whole in the bytes that have come is given away where it lies. Otherwise its bytes are
//! collected, and no more memory is taken than bytes have come.

use sidestep_wire::oncrpc::record::{self, Header};

/// Room for a mark before a message, so that both are written at once.
pub const ROOM: usize = record::LEN;

/// Writes the mark of a frame: `ROOM` bytes and a message.
pub fn mark(frame: &mut [u8]) {
    let length = frame.len() - ROOM;
    record::Repr { last: true, length }.emit(frame);
}

/// A message is longer than it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

/// Takes bytes, gives messages.
#[derive(Debug)]
pub struct Assembler {
    max: usize,
    /// The part of the message that has come.
    message: Vec<u8>,
    mark: [u8; record::LEN],
    mark_len: usize,
    /// How much of the fragment is still to come; the mark is whole.
    missing: usize,
    last: bool,
}

impl Assembler {
    pub fn new(max: usize) -> Self {
        Self { max, message: Vec::new(), mark: [0; record::LEN], mark_len: 0, missing: 0, last: false }
    }

    /// Takes the next bytes of the stream and gives every message that they complete.
    pub fn feed(&mut self, mut bytes: &[u8], mut take: impl FnMut(&[u8])) -> Result<(), TooLong> {
        loop {
            if self.mark_len < record::LEN {
                let wanted = (record::LEN - self.mark_len).min(bytes.len());
                self.mark[self.mark_len..][..wanted].copy_from_slice(&bytes[..wanted]);
                self.mark_len += wanted;
                bytes = &bytes[wanted..];
                let Some(header) = Header::new_checked(&self.mark[..self.mark_len]).ok() else {
                    return Ok(());
                };
                (self.last, self.missing) = (header.last(), header.length());
                if self.missing > self.max - self.message.len() {
                    return Err(TooLong);
                }
            }
            if self.last && self.message.is_empty() && bytes.len() >= self.missing {
                let (whole, rest) = bytes.split_at(self.missing);
                take(whole);
                bytes = rest;
                self.mark_len = 0;
                continue;
            }
            let here = self.missing.min(bytes.len());
            self.message.extend_from_slice(&bytes[..here]);
            bytes = &bytes[here..];
            self.missing -= here;
            if self.missing > 0 {
                return Ok(());
            }
            self.mark_len = 0;
            if self.last {
                take(&self.message);
                // A connection that was used for a large message once does not hold its memory for ever.
                if self.message.capacity() > 1 << 16 { self.message = Vec::new() } else { self.message.clear() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(messages: &[&[&[u8]]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for fragments in messages {
            for (index, fragment) in fragments.iter().enumerate() {
                let mut mark = [0; 4];
                record::Repr { last: index + 1 == fragments.len(), length: fragment.len() }.emit(&mut mark);
                bytes.extend(mark);
                bytes.extend(*fragment);
            }
        }
        bytes
    }

    #[test]
    fn messages_are_found_wherever_the_stream_is_cut() {
        let bytes = stream(&[&[b"one"], &[b"t", b"", b"wo"], &[b""], &[b"three", b""]]);
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let mut assembler = Assembler::new(5);
                let mut found = Vec::new();
                for part in [&bytes[..first], &bytes[first..second], &bytes[second..]] {
                    assembler.feed(part, |message| found.push(message.to_vec())).unwrap();
                }
                assert_eq!(found, [b"one".as_slice(), b"two", b"", b"three"], "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn messages_that_are_too_long_are_refused_before_they_come() {
        assert_eq!(Assembler::new(4).feed(&[0x80, 0, 0, 5], |_| ()), Err(TooLong));
        let bytes = stream(&[&[b"abc", b"de"]]);
        assert_eq!(Assembler::new(4).feed(&bytes, |_| ()), Err(TooLong));
        assert_eq!(Assembler::new(5).feed(&bytes, |_| ()), Ok(()));
    }
}
