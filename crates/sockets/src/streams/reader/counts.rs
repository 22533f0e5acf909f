//! What a reader counts: for `stat`, and where it is.

use std::sync::atomic::Ordering;

use sidestep_shm::Word64;

use super::growth::LONG;
use crate::{
    registry::Field,
    streams::{READ, Stream},
};

/// Counts of a reader.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub messages: u64,
    /// Bytes that were read from carriers before this one.
    pub former: u64,
    /// While the carrier is read: the position of the stream at which that began, less what the carrier had brought before. Other
    /// holders may move on over TCP meanwhile, behind the switch that this side has not carried out.
    pub entered: u64,
    words: Option<[Word64; 4]>,
    /// Messages that were taken since this side last wrote, how far it had, and how far the carrier had been read then, or when
    /// it was last found to be long.
    pub unanswered: u32,
    pushed: u64,
    long_from: u64,
}

impl Counts {
    /// With a carrier that nothing has come over.
    pub fn begin(&mut self, stream: &Stream) {
        let fields = [Field::ReadRing, Field::ReadMessages, Field::Capacity, Field::ReadLooks];
        let field = |place: crate::streams::Place| fields.map(|field| place.engine.registry.field(place.entry, field));
        self.words = stream.known_place().map(field);
        self.former = stream.carried_bytes(READ, 0);
        (self.unanswered, self.long_from) = (0, 0);
    }

    /// The position of the stream, of whose carrier, which is read or not, so much has been.
    #[inline]
    pub fn position(&self, stream: &Stream, on_carrier: bool, carried: u64) -> u64 {
        if on_carrier { self.entered.wrapping_add(carried) } else { stream.position(READ, carried) }
    }

    /// A message was taken; the carrier was read so far, and this side has written so far.
    #[inline]
    pub fn took(&mut self, position: u64, pushed: u64) {
        self.messages += 1;
        if pushed == self.pushed {
            self.unanswered = self.unanswered.saturating_add(1);
        } else {
            (self.pushed, self.unanswered, self.long_from) = (pushed, 0, position);
        }
        if let Some([bytes, messages, ..]) = &self.words {
            bytes.store(self.former.wrapping_add(position), Ordering::Relaxed);
            messages.store(self.messages, Ordering::Relaxed);
        }
    }

    /// Whether so much has come without an answer that the carrier should be larger.
    #[inline]
    pub fn is_long(&self, position: u64) -> bool {
        position.wrapping_sub(self.long_from) >= LONG
    }

    /// It has been seen to.
    pub fn count_length_from(&mut self, position: u64) {
        self.long_from = position;
    }

    /// This side looks for bytes.
    #[inline]
    pub fn looks(&self) {
        if let Some([.., looks]) = &self.words {
            // Of this direction alone, which is locked.
            looks.store(looks.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }

    /// The carrier takes so many bytes.
    pub fn holds(&self, bytes: usize) {
        if let Some([_, _, capacity, _]) = &self.words {
            capacity.store(bytes as u64, Ordering::Relaxed);
        }
    }
}
