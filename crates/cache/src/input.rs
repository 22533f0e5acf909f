//! Bytes of a connection that have been read and not yet been used.

/// A buffer that grows up to the longest head of a request.
#[derive(Debug, Default)]
pub struct Input {
    /// All of it is there to be read into; `from..to` is what has come.
    buffer: Vec<u8>,
    from: usize,
    to: usize,
    /// So many of the bytes that have come are known to hold no end of a head.
    seen: usize,
    has_ended: bool,
}

/// Enough for the requests of most clients, and for a few that come at once.
const FIRST: usize = 4 << 10;
/// The longest head of a request; hyper is told the same.
pub const LONGEST_HEAD: usize = 400 << 10;

impl Input {
    /// What has come.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.from..self.to]
    }

    /// Whether nothing is there.
    pub fn is_empty(&self) -> bool {
        self.from == self.to
    }

    /// Whether as much has come as a head may have.
    pub fn is_full(&self) -> bool {
        self.to - self.from >= LONGEST_HEAD
    }

    /// Whether the connection has ended behind what has come.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Whether the bytes may hold a whole head: whether they have not been looked at, or there is an empty line that was not there then.
    /// So a head that comes slowly is looked at twice, however many pieces it has.
    pub fn may_be_whole(&mut self) -> bool {
        if self.seen == 0 {
            return !self.is_empty();
        }
        // An end may have begun in what was seen.
        let new = &self.bytes()[self.seen.saturating_sub(2)..];
        let lines = new.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let found =
            lines.map(|(at, _)| &new[at + 1..]).any(|rest| rest.starts_with(b"\n") || rest.starts_with(b"\r\n"));
        self.seen = self.to - self.from;
        found
    }

    /// They do not hold a whole head.
    pub fn mark_partial(&mut self) {
        self.seen = self.to - self.from;
    }

    /// Room for more, at least a byte unless it is full.
    pub fn room(&mut self) -> &mut [u8] {
        if self.is_empty() {
            (self.from, self.to) = (0, 0);
        }
        if self.to == self.buffer.len() {
            if self.from > 0 {
                self.buffer.copy_within(self.from..self.to, 0);
                (self.from, self.to) = (0, self.to - self.from);
            } else {
                self.buffer.resize((2 * self.to).clamp(FIRST, LONGEST_HEAD), 0);
            }
        }
        &mut self.buffer[self.to..]
    }

    /// So many bytes have been read into the room; none: the connection has ended.
    pub fn add(&mut self, count: usize) {
        self.to += count;
        self.has_ended |= count == 0;
    }

    /// So many bytes have been used.
    pub fn take(&mut self, count: usize) {
        self.from += count;
        self.seen = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(input: &mut Input, bytes: &[u8]) {
        for part in bytes.chunks(1000) {
            let room = input.room();
            let count = part.len().min(room.len());
            room[..count].copy_from_slice(&part[..count]);
            input.add(count);
            if count < part.len() {
                input.room()[..part.len() - count].copy_from_slice(&part[count..]);
                input.add(part.len() - count);
            }
        }
    }

    #[test]
    fn bytes_come_out_as_they_went_in() {
        let mut input = Input::default();
        let sent: Vec<u8> = (0..50_000u32).map(|at| (at % 251) as u8).collect();
        let mut taken = Vec::new();
        for (at, part) in sent.chunks(3500).enumerate() {
            put(&mut input, part);
            let count = (at * 997) % (input.bytes().len() + 1);
            taken.extend_from_slice(&input.bytes()[..count]);
            input.take(count);
        }
        taken.extend_from_slice(input.bytes());
        assert_eq!(taken, sent);
    }

    #[test]
    fn it_grows_up_to_the_longest_head() {
        let mut input = Input::default();
        while !input.is_full() {
            assert!(!input.has_ended());
            let count = input.room().len();
            assert!(count > 0);
            input.add(count);
        }
        assert_eq!(input.bytes().len(), LONGEST_HEAD);
    }

    #[test]
    fn the_end_of_a_head_is_noticed_wherever_it_is_cut() {
        for text in ["GET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\nHost: h\n\n"] {
            for cut in 0..text.len() {
                let mut input = Input::default();
                put(&mut input, &text.as_bytes()[..cut]);
                assert_eq!(input.may_be_whole(), cut > 0, "{cut}: not looked at");
                input.mark_partial();
                assert!(!input.may_be_whole() || cut == 0, "{cut}: nothing new");
                put(&mut input, &text.as_bytes()[cut..]);
                assert!(input.may_be_whole(), "{cut}");
            }
        }
    }
}
