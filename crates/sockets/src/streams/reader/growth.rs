//! When a reader offers a larger ring: bulk pays for one, and a ring that overflowed was too small.

use sidestep_stream::carrier::Inbound;

use super::Reader;
use crate::{config::config, kernel::stack};

/// Reads of at least so many bytes are bulk.
const BULK: usize = 16 << 10;
/// Those that found the ring half full, before a larger one is offered.
const CROWDED: u32 = 8;
/// Bytes without an answer, before the largest is.
pub(super) const LONG: u64 = 8 << 20;

/// Whether a larger ring is offered to the writer.
#[derive(Debug, Default)]
pub(super) struct Growth {
    /// Reads that found the ring half full.
    crowded: u32,
    /// It stays as it is.
    over: bool,
}

impl Growth {
    /// Whether a read of so many bytes is of interest.
    #[inline]
    pub fn watches(&self, count: usize) -> bool {
        count >= BULK && !self.over
    }

    /// The ring stays as it is.
    pub fn stop(&mut self) {
        self.over = true;
    }
}

impl Reader {
    /// Bulk pays for a larger ring.
    #[cold]
    pub(super) fn watch_crowding(&mut self, count: usize) {
        let Some(ring) = &mut self.ring else { return };
        let grows = self.carrier.as_ref().is_some_and(|carrier| carrier.capabilities().grows);
        let bulk = config().rings[1];
        let capacity = ring.capacity();
        if grows && capacity < bulk && (count + ring.available()) * 2 >= capacity {
            self.growth.crowded += 1;
            if self.growth.crowded == CROWDED {
                self.growth.crowded = 0;
                self.grow(bulk);
            }
        }
    }

    /// A stream that goes on one way pays for the largest ring, whose pages have to be touched once more: lines of a ring that is
    /// larger than the cache of a core lie in the cache that both cores share, and are had from there two or three times as fast
    /// as from the other core.
    #[cold]
    pub(super) fn watch_length(&mut self, position: u64) {
        self.counts.count_length_from(position);
        let grows = self.carrier.as_ref().is_some_and(|carrier| carrier.capabilities().grows);
        let most = config().rings[2];
        if grows && self.ring.as_mut().is_some_and(|ring| ring.capacity() < most) {
            self.grow(most);
        }
    }

    /// Offers a larger ring.
    #[cold]
    pub(super) fn grow(&mut self, larger: usize) {
        let may = !self.growth.over && self.shared.is_none();
        let Some(ring) = self.ring.as_mut().filter(|_| may) else { return };
        let larger = config().affordable_ring(larger);
        if stack::on_own(|| ring.grow(larger)) {
            self.counts.holds(larger);
        }
    }
}
