//! A byte stream cut into messages (RFC 5531 §11), without I/O.
//!
//! A message that lies whole in the bytes that have come is given away where it lies. Otherwise its bytes are
//! collected, and no more memory is taken than bytes have come.

use std::io;

use sidestep_wire::oncrpc::record::{self, Header};

/// Room for a mark before a message, so that both are written at once.
pub const ROOM: usize = record::LEN;

/// Writes the mark of a frame: `ROOM` bytes and a message.
#[inline]
pub fn mark(frame: &mut [u8]) {
    let mark = mark_of(frame.len());
    // A frame that was as long before has it, and whoever copies the frame next need not wait for it.
    if frame[..ROOM] != mark {
        frame[..ROOM].copy_from_slice(&mark);
    }
}

/// The mark of a frame of so many bytes.
#[inline]
pub fn mark_of(frame_len: usize) -> [u8; ROOM] {
    let mut mark = [0; ROOM];
    record::Repr { last: true, length: frame_len - ROOM }.emit(&mut mark);
    mark
}

/// A message is longer than it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

/// Takes bytes, gives messages.
#[derive(Debug)]
pub struct Assembler {
    max: usize,
    /// Memory for a message, of which the first `have` bytes have come.
    message: Vec<u8>,
    have: usize,
    mark: [u8; record::LEN],
    mark_len: usize,
    /// How much of the fragment is still to come; the mark is whole.
    missing: usize,
    last: bool,
}

/// What a connection keeps of the memory of a message: enough for 64 KiB of data and their headers.
const KEPT: usize = 72 << 10;

impl Assembler {
    pub fn new(max: usize) -> Self {
        Self { max, message: Vec::new(), have: 0, mark: [0; record::LEN], mark_len: 0, missing: 0, last: false }
    }

    /// Takes the next bytes of the stream and gives every message that they complete.
    pub fn feed(&mut self, mut bytes: &[u8], mut take: impl FnMut(&[u8])) -> Result<(), TooLong> {
        loop {
            if self.mark_len == 0
                && let Some((mark, rest)) = bytes.split_first_chunk()
            {
                // Nothing of the mark is here yet, and all of it there: most messages come so.
                (self.mark, self.mark_len, bytes) = (*mark, record::LEN, rest);
                self.begin_fragment()?;
            }
            if self.mark_len < record::LEN {
                let wanted = (record::LEN - self.mark_len).min(bytes.len());
                self.mark[self.mark_len..][..wanted].copy_from_slice(&bytes[..wanted]);
                self.mark_len += wanted;
                bytes = &bytes[wanted..];
                if self.mark_len < record::LEN {
                    return Ok(());
                }
                self.begin_fragment()?;
            }
            if self.last && self.have == 0 && bytes.len() >= self.missing {
                let (whole, rest) = bytes.split_at(self.missing);
                take(whole);
                bytes = rest;
                self.mark_len = 0;
                continue;
            }
            let here = self.missing.min(bytes.len());
            self.space(here).copy_from_slice(&bytes[..here]);
            bytes = &bytes[here..];
            if !self.filled(here, &mut take) {
                return Ok(());
            }
        }
    }

    /// The same, and whether there was a message.
    pub fn feed_any(&mut self, bytes: &[u8], take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        let mut any = false;
        let fed = self.feed(bytes, |message| {
            any = true;
            take(message);
        });
        fed.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a message is too long"))?;
        Ok(any)
    }

    /// Whether nothing has come of the next message.
    #[inline]
    pub fn is_between(&self) -> bool {
        self.mark_len == 0 && self.have == 0
    }

    /// The message in the bytes that have come, if they are all of it. If nothing else has come
    /// [before](Self::is_between), it need not be [fed](Self::feed).
    #[inline]
    pub fn whole<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let (mark, message) = bytes.split_first_chunk()?;
        (*mark == mark_of(bytes.len()) && message.len() <= self.max).then_some(message)
    }

    /// The mark of a fragment is whole.
    #[inline]
    fn begin_fragment(&mut self) -> Result<(), TooLong> {
        if let Ok(header) = Header::new_checked(&self.mark) {
            (self.last, self.missing) = (header.last(), header.length());
        }
        if self.missing > self.max - self.have { Err(TooLong) } else { Ok(()) }
    }

    /// Memory for the next bytes of a message that has begun, at most so many: whoever fills it spares a copy. None
    /// between messages.
    pub fn rest(&mut self, most: usize) -> Option<&mut [u8]> {
        let count = self.missing.min(most);
        self.is_inside().then(|| self.space(count))
    }

    /// Whether a message has begun and more of its fragment is to come.
    pub fn is_inside(&self) -> bool {
        self.mark_len == record::LEN && self.missing > 0
    }

    /// So many bytes of [`Assembler::rest`] were filled. Gives the message if it is whole; `false`: the fragment is not.
    pub fn filled(&mut self, count: usize, mut take: impl FnMut(&[u8])) -> bool {
        self.have += count;
        self.missing -= count;
        if self.missing > 0 {
            return false;
        }
        self.mark_len = 0;
        if self.last {
            take(&self.message[..self.have]);
            self.have = 0;
            // A connection that was used for a large message once does not hold its memory for ever.
            if self.message.len() > KEPT {
                self.message = Vec::new();
            }
        }
        true
    }

    /// Memory behind what has come. What was used before is not cleared again.
    fn space(&mut self, count: usize) -> &mut [u8] {
        let end = self.have + count;
        if self.message.len() < end {
            self.message.resize(end, 0);
        }
        &mut self.message[self.have..end]
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
                    match assembler.whole(part).filter(|_| assembler.is_between()) {
                        Some(message) => found.push(message.to_vec()),
                        None => assembler.feed(part, |message| found.push(message.to_vec())).unwrap(),
                    }
                }
                assert_eq!(found, [b"one".as_slice(), b"two", b"", b"three"], "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn what_is_missing_can_be_filled_in_place() {
        let bytes = stream(&[&[b"one"], &[b"fragments of ", b"a message"], &[b"three"]]);
        let mut assembler = Assembler::new(100);
        let mut found = Vec::new();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let count = match assembler.rest(2) {
                Some(space) => {
                    let count = space.len().min(rest.len());
                    space[..count].copy_from_slice(&rest[..count]);
                    assembler.filled(count, |message: &[u8]| found.push(message.to_vec()));
                    count
                }
                None => {
                    let count = rest.len().min(5);
                    assembler.feed(&rest[..count], |message| found.push(message.to_vec())).unwrap();
                    count
                }
            };
            rest = &rest[count..];
        }
        assert_eq!(found, [b"one".as_slice(), b"fragments of a message", b"three"]);
    }

    #[test]
    fn messages_that_are_too_long_are_refused_before_they_come() {
        assert_eq!(Assembler::new(4).feed(&[0x80, 0, 0, 5], |_| ()), Err(TooLong));
        let five = stream(&[&[b"abcde"]]);
        assert_eq!(Assembler::new(4).whole(&five), None);
        assert_eq!(Assembler::new(5).whole(&five), Some(b"abcde".as_slice()));
        let bytes = stream(&[&[b"abc", b"de"]]);
        assert_eq!(Assembler::new(4).feed(&bytes, |_| ()), Err(TooLong));
        assert_eq!(Assembler::new(5).feed(&bytes, |_| ()), Ok(()));
    }
}
