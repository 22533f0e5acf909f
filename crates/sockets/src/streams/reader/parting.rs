//! What a reader tells its writer beyond switches, and what it knows of bytes that do not come.

use sidestep_stream::carrier::Inbound;

use super::Reader;
use crate::streams::{READ, Stream};

impl Reader {
    /// Whether a peer that died had written bytes that have not come: what a link held, or what was on a wire, went with it.
    pub(super) fn has_lost_bytes(&mut self, stream: &Stream) -> bool {
        let Some(carrier) = self.carrier.as_ref().filter(|carrier| carrier.capabilities().holds_back) else {
            return false;
        };
        let (Some(ring), Some(place)) = (&mut self.ring, stream.known_place()) else { return false };
        // Its place in the registry may have been given back already.
        let written = place.engine.registry.written(&place.key.reversed());
        written.map_or(self.on_ring && carrier.capabilities().far, |written| {
            written > stream.carried_bytes(READ, ring.position())
        })
    }

    /// Says that this side wants to part with the carrier.
    pub fn part(&mut self, stream: &Stream) {
        let _ = self.cross(stream);
        if self.ring.is_some() && !self.note.parting {
            self.note.parting = true;
            self.tell();
        }
    }

    /// Whether that was said, and nothing comes over the carrier before the peer has said so, too.
    pub fn has_parted(&mut self, stream: &Stream) -> bool {
        let _ = self.cross(stream);
        let switching = self.carrier.as_ref().is_none_or(|carrier| carrier.announced(self.note.done).is_some());
        self.note.parting && !self.note.leaving && !self.on_ring && !switching && self.is_dry()
    }

    /// Whether the carrier was never taken up, so that the peer has not been let into it.
    pub fn is_unopened(&self) -> bool {
        self.ring.is_none() && self.kept.is_empty() && self.aside.is_none()
    }

    /// Whether nothing lies here that the program has not read.
    pub fn is_dry(&mut self) -> bool {
        self.kept.is_empty() && self.aside.is_none() && !self.note.leaving && !self.has_news()
    }

    /// The carrier is given up. Returns how far it was read.
    pub fn forget_carrier(&mut self) -> u64 {
        let position = self.ring.as_mut().map_or(0, Inbound::position);
        let reader = std::mem::take(self);
        (self.counts, self.cut_off, self.looked) = (reader.counts, reader.cut_off, reader.looked);
        self.returning = reader.returning;
        position
    }
}
