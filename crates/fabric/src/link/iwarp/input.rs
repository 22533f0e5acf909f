//! What has come from a stream and was not handled: at most a frame that is not whole, when all is well.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::socket;

#[derive(Debug, Default)]
pub(super) struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

/// The room that a stream begins with, and the most it gets: a few of the largest frames.
const FIRST_ROOM: usize = 4 * 1024;
const MAX_ROOM: usize = 256 * 1024;
/// A read into less than this is not worth its call.
const LEAST_READ: usize = 64 * 1024;

impl Input {
    /// What was not handled.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// So much of it was.
    pub(super) fn consume(&mut self, count: usize) {
        self.start += count.min(self.end - self.start);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Reads more: how much, nothing at the end of the stream, `None` if there is none now.
    pub(super) fn fill(&mut self, socket: &OwnedFd) -> Result<Option<usize>, Errno> {
        if self.end == self.bytes.len() && self.bytes.len() < MAX_ROOM {
            let room = (self.bytes.len() * 4).clamp(FIRST_ROOM, MAX_ROOM);
            self.bytes.resize(room, 0);
        }
        if self.start > 0 && self.bytes.len() - self.end < LEAST_READ {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let count = socket::receive(socket, &mut self.bytes[self.end..])?;
        self.end += count.unwrap_or(0);
        Ok(count)
    }

    /// Whether the last read may have left something behind.
    pub(super) fn is_full(&self) -> bool {
        self.end == self.bytes.len()
    }
}
