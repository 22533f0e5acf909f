//! What has come from a stream and was not handled: at most a frame that is not whole, when all is well; and how far a
//! write is whose payload goes from the stream straight to its place.
//!
//! A read asks for the rest of the frame that is coming and a little more, so that the next frame begins in this buffer,
//! with its headers, and the buffer stays small enough for the caches.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use sidestep_iwarp::Passage;
use sidestep_shm::{Span, stream};

use super::socket;

#[derive(Debug, Default)]
pub(super) struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// The write that is being placed while it comes.
    pub(super) passing: Option<Passing>,
    /// Large writes were passing lately, and so may the next: frames before that is forgotten.
    bulk: u32,
    /// How many bytes the frame takes that is coming, as far as that is known.
    needed: usize,
    /// Whether the last read may have left something behind.
    pub(super) has_more: bool,
}

/// A write that is being placed while it comes, but for its last word, which is placed with it whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passing {
    pub(super) passage: Passage,
    /// Bytes of the payload that are in their place, or were dropped.
    done: usize,
}

/// The room that a stream begins with, and the most it gets: a few of the largest frames.
const FIRST_ROOM: usize = 4 * 1024;
const MAX_ROOM: usize = 256 * 1024;
/// A read asks for so much beyond the end of a frame.
const LEAD: usize = 2 * 1024;
/// Frames that are handled as a whole before the next one is no longer taken for a large write.
const BULK_FRAMES: u32 = 4;
/// A read asks for no more, unless a frame takes more: one of the largest frames, and a few small ones.
const PLENTY: usize = 64 * 1024 + 2 * LEAD;
/// The last bytes of a write that is placed while it comes: a word that may be a flag is stored whole, and last.
pub(super) const WORD: usize = 8;

impl Passing {
    /// Bytes that go to their place before the last word, and are not there yet.
    pub(super) fn front_left(&self) -> usize {
        self.passage.payload - WORD - self.done
    }

    /// Where the next of them go.
    pub(super) fn next(&self) -> u64 {
        self.passage.offset + self.done as u64
    }

    /// Bytes behind them.
    fn rest_len(&self) -> usize {
        WORD + self.passage.trailer
    }
}

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
        let have = self.end - self.start;
        let (wanted, most) = if self.bulk > 0 && have == 0 {
            // Its headers tell where the payload goes.
            (LEAD, LEAD)
        } else {
            let room = if self.has_more { (4 * self.bytes.len()).min(PLENTY) } else { FIRST_ROOM };
            let wanted = room.max(self.needed.saturating_sub(have) + LEAD);
            (wanted, wanted.max(PLENTY))
        };
        self.make_room(wanted);
        let into = self.end..self.bytes.len().min(self.end + most);
        let asked = into.len();
        let count = socket::receive(socket, &mut self.bytes[into])?;
        self.note_read(count, asked);
        Ok(count)
    }

    /// Reads payload of the write that is passing to its place, and a little more.
    pub(super) fn fill_place(&mut self, socket: &OwnedFd, place: &Span) -> Result<Option<usize>, Errno> {
        self.make_room(LEAD);
        let front = place.len();
        let into = self.end..self.bytes.len().min(self.end + LEAD);
        let asked = front + into.len();
        let count = stream::receive(socket, (place, 0, front), &mut self.bytes[into])?;
        self.note_passed(count.unwrap_or(0).min(front));
        self.note_read(count.map(|count| count.saturating_sub(front)), asked - front);
        Ok(count)
    }

    /// A write begins to pass, of which so much payload was here.
    pub(super) fn begin_passing(&mut self, passage: Passage, here: usize) {
        self.consume(passage.headers + here);
        self.passing = Some(Passing { passage, done: here });
        self.needed = 0;
        self.bulk = BULK_FRAMES;
    }

    /// So much more of the write that is passing is in its place, or was dropped.
    fn note_passed(&mut self, count: usize) {
        if let Some(passing) = &mut self.passing {
            passing.done += count;
        }
    }

    /// Whether all of the write that is passing is here. Bytes that are here and not in its place may not go there, and are
    /// dropped.
    pub(super) fn has_passed(&mut self) -> bool {
        let Some(passing) = self.passing else { return true };
        let dropped = passing.front_left().min(self.rest().len());
        self.consume(dropped);
        self.note_passed(dropped);
        dropped == passing.front_left() && self.rest().len() >= passing.rest_len()
    }

    /// The write that was passing has ended.
    pub(super) fn end_passing(&mut self) {
        if let Some(passing) = self.passing.take() {
            self.consume(passing.rest_len());
        }
    }

    /// What was read was handled, and no write is passing. The next frame takes so many bytes.
    pub(super) fn note_needed(&mut self, needed: usize) {
        self.needed = needed;
    }

    /// A frame was handled as a whole.
    pub(super) fn note_whole(&mut self) {
        self.bulk = self.bulk.saturating_sub(1);
    }

    fn note_read(&mut self, count: Option<usize>, asked: usize) {
        self.end += count.unwrap_or(0);
        self.has_more = count.unwrap_or(0) == asked;
    }

    /// Makes room behind what is left, which moves to the beginning where that is cheap: the same memory is used again
    /// and again, and stays in the caches.
    fn make_room(&mut self, wanted: usize) {
        let left = self.end - self.start;
        if left > LEAD && self.bytes.len() - self.end >= wanted {
            return;
        }
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, left);
        let room = (self.end + wanted).next_power_of_two().clamp(FIRST_ROOM, MAX_ROOM);
        if self.bytes.len() < room {
            self.bytes.resize(room, 0);
        }
    }
}
