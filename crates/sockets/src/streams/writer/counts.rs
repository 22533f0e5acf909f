//! What a writer counts for `stat`, and when it gives pages of an idle ring back.

use std::sync::atomic::Ordering;

use sidestep_shm::Word64;
use sidestep_stream::carrier::{AnyOutbound, Outbound, Written};

use crate::{
    registry::Field,
    streams::{Stream, WRITE},
};

/// Fewer bytes than this have not touched enough pages.
const WORTH_RELEASING: u64 = 16 << 10;

/// Counts of a writer.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub messages: u64,
    /// Bytes that were written to carriers before this one.
    former: u64,
    words: Option<[Word64; 4]>,
    /// How far had been written at the last sweep of idle rings, and when pages were last given back.
    swept: u64,
    released: u64,
}

impl Counts {
    /// With a carrier that nothing has gone over.
    pub fn begin(&mut self, stream: &Stream) {
        let fields = [Field::WrittenRing, Field::WrittenMessages, Field::Doorbells, Field::WriteLooks];
        let words =
            stream.known_place().map(|place| fields.map(|field| place.engine.registry.field(place.entry, field)));
        let former = stream.carried_bytes(WRITE, 0);
        *self = Counts { messages: self.messages, former, words, swept: 0, released: 0 };
    }

    /// A message has gone out.
    #[inline]
    pub fn sent(&mut self, written: Written) {
        self.messages += 1;
        if let Some([bytes, messages, doorbells, _]) = &self.words {
            bytes.store(self.former + written.position, Ordering::Relaxed);
            messages.store(self.messages, Ordering::Relaxed);
            doorbells.store(written.alarms, Ordering::Relaxed);
        }
    }

    /// The carrier was left, and has carried no more than this: what was taken back goes over TCP. A peer that finds more bytes counted
    /// here than it has received takes them for lost if this process dies.
    pub fn took_back(&self, position: u64) {
        if let Some([bytes, ..]) = &self.words {
            bytes.store(self.former + position, Ordering::Relaxed);
        }
    }

    /// This side looks for space.
    pub fn looks(&self) {
        if let Some([.., looks]) = &self.words {
            looks.store(looks.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }

    /// Called now and then: gives the pages of a ring back that nothing was written to since the last time.
    pub fn sweep(&mut self, ring: &mut AnyOutbound) {
        let position = ring.position();
        if position == self.swept && position.wrapping_sub(self.released) >= WORTH_RELEASING {
            ring.release();
            self.released = position;
        }
        self.swept = position;
    }
}
