//! Bytes that peers have asked to read, as they were when they were asked for, until the stream has taken them.

use std::collections::VecDeque;

/// First in, first out, with two readers: one that computes checksums, one that transmits.
#[derive(Debug, Default)]
pub(super) struct Answers {
    queue: VecDeque<Vec<u8>>,
    /// The number of the first one.
    first: u64,
    gathered: Cursor,
    sent: Cursor,
}

/// A place in all bytes there ever were.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cursor {
    number: u64,
    at: usize,
}

impl Answers {
    /// Adds an answer, which is not empty.
    pub(super) fn push(&mut self, bytes: Vec<u8>) {
        self.queue.push_back(bytes);
    }

    /// The next bytes whose checksum is wanted.
    pub(super) fn gather(&mut self, len: usize) -> &[u8] {
        let mut cursor = self.gathered;
        let range = self.step(&mut cursor, len);
        let index = (self.gathered.number - self.first) as usize;
        self.gathered = cursor;
        self.queue.get(index).map_or(&[], |bytes| &bytes[range])
    }

    /// Where transmission goes on.
    pub(super) fn unsent(&self) -> Cursor {
        self.sent
    }

    /// The bytes at a place, which is moved on.
    pub(super) fn at(&self, cursor: &mut Cursor, len: usize) -> &[u8] {
        let index = (cursor.number - self.first) as usize;
        let range = self.step(cursor, len);
        self.queue.get(index).map_or(&[], |bytes| &bytes[range])
    }

    /// So many bytes were transmitted.
    pub(super) fn advance(&mut self, len: usize) -> Option<Vec<u8>> {
        let mut cursor = self.sent;
        self.step(&mut cursor, len);
        self.sent = cursor;
        if self.sent.number == self.first {
            return None;
        }
        self.first += 1;
        // Without checksums nobody else reads.
        if self.gathered.number < self.first {
            self.gathered = self.sent;
        }
        self.queue.pop_front()
    }

    /// A piece lies within one answer; at the end of one the next begins.
    fn step(&self, cursor: &mut Cursor, len: usize) -> std::ops::Range<usize> {
        let whole = self.queue.get((cursor.number - self.first) as usize).map_or(0, Vec::len);
        let start = cursor.at.min(whole);
        let end = (start + len).min(whole);
        *cursor =
            if end == whole { Cursor { number: cursor.number + 1, at: 0 } } else { Cursor { at: end, ..*cursor } };
        start..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_readers_see_the_same_bytes() {
        let mut answers = Answers::default();
        answers.push(b"abcdef".to_vec());
        answers.push(b"gh".to_vec());
        assert_eq!(answers.gather(4), b"abcd");
        assert_eq!(answers.gather(2), b"ef");
        assert_eq!(answers.gather(2), b"gh");
        let mut cursor = answers.unsent();
        assert_eq!(answers.at(&mut cursor, 4), b"abcd");
        assert_eq!(answers.at(&mut cursor, 2), b"ef");
        assert_eq!(answers.at(&mut cursor, 1), b"g");
        assert_eq!(answers.advance(3), None);
        let mut cursor = answers.unsent();
        assert_eq!(answers.at(&mut cursor, 1), b"d");
        assert_eq!(answers.advance(3), Some(b"abcdef".to_vec()));
        answers.push(b"ij".to_vec());
        assert_eq!(answers.gather(2), b"ij");
        assert_eq!(answers.advance(2), Some(b"gh".to_vec()));
        assert_eq!(answers.advance(2), Some(b"ij".to_vec()));
        // Without checksums.
        answers.push(b"kl".to_vec());
        assert_eq!(answers.advance(2), Some(b"kl".to_vec()));
        answers.push(b"mn".to_vec());
        assert_eq!(answers.gather(2), b"mn");
    }
}
