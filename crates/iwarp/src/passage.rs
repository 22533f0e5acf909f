//! Writes whose payload goes from the stream straight to its place, while it comes.
//!
//! Without CRC and markers nothing behind the headers of a write can make it invalid. So once its headers are here and
//! checked, the driver may receive the payload where it belongs, instead of in a buffer of its own.

use crate::connection::{Connection, Phase};
use crate::mem::MemoryTable;
use sidestep_wire::Stag;
use std::time::Duration;

/// A write that the driver places by itself, after all checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage {
    /// The tag of the region.
    pub stag: Stag,
    /// Where in the region's memory the payload goes.
    pub offset: u64,
    /// Bytes of the FPDU before the payload.
    pub headers: usize,
    /// Bytes of payload.
    pub payload: usize,
    /// Bytes of the FPDU behind the payload.
    pub trailer: usize,
}

impl Connection {
    /// Whether the FPDU that begins with `rest`, what [`handle_input`](Self::handle_input) left, is a write that may be
    /// placed while it comes. If so, the driver takes it from the stream by itself, places all of its payload, and calls
    /// [`finish_passage`](Self::finish_passage) before it hands over what follows.
    ///
    /// `None` for everything else, also for what is not allowed: it is handled as a whole.
    pub fn begin_passage(&mut self, rest: &[u8], table: &MemoryTable) -> Option<Passage> {
        let receives = matches!(self.phase, Phase::Operating | Phase::Closing | Phase::Finished { receiving: true });
        let passage = self.rx.passage(rest, self.config.identity, table).filter(|_| receives)?;
        self.unfinished = passage.len();
        Some(passage)
    }

    /// All of a passage was taken from the stream.
    pub fn finish_passage(&mut self, now: Duration, passage: &Passage) {
        self.unfinished = 0;
        self.rx.count_passed(passage.len());
        self.note_received(now);
        self.advance(now);
    }
}

impl Passage {
    /// Bytes of the FPDU.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "an FPDU is never empty")]
    pub fn len(&self) -> usize {
        self.headers + self.payload + self.trailer
    }
}
