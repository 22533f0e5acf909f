//! When a reader offers a larger ring: bulk pays for one, and a ring that overflowed was too small.

use sidestep_stream::carrier::Inbound;

use super::Reader;
use crate::{config::config, kernel::stack};

/// A ring that overflowed becomes so many times as large as one for bulk.
pub const AFTER_OVERFLOW: usize = 2;
/// Crowded reads before a larger ring is offered, and the least of them.
const CROWDED: u32 = 8;
const CROWD: usize = 16 << 10;

/// Whether a larger ring is offered to the writer.
#[derive(Debug, Default)]
pub(super) struct Growth {
    /// Reads that found the ring almost full.
    crowded: u32,
    offer: Offer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Offer {
    /// None was made.
    #[default]
    NotYet,
    /// One was; another one may be.
    Made,
    /// None will be.
    Never,
}

impl Growth {
    /// Whether a read of so many bytes is of interest.
    #[inline]
    pub fn watches(&self, count: usize) -> bool {
        count >= CROWD && self.offer == Offer::NotYet
    }

    /// The ring stays as it is.
    pub fn stop(&mut self) {
        self.offer = Offer::Never;
    }
}

impl Reader {
    /// Bulk pays for a larger ring.
    #[cold]
    pub(super) fn watch_crowding(&mut self, count: usize) {
        let Some(ring) = &mut self.ring else { return };
        if !self.carrier.as_ref().is_some_and(|carrier| carrier.capabilities().grows) {
            return self.growth.stop();
        }
        if (count + ring.available()) * 2 < ring.capacity() {
            return;
        }
        self.growth.crowded += 1;
        if self.growth.crowded == CROWDED {
            self.grow(config().rings.1);
        }
    }

    /// Offers a larger ring.
    #[cold]
    pub(super) fn grow(&mut self, larger: usize) {
        let may = self.growth.offer != Offer::Never && self.shared.is_none();
        let Some(ring) = self.ring.as_mut().filter(|_| may) else { return };
        let larger = config().affordable_ring(larger);
        if stack::on_own(|| ring.grow(larger)) {
            self.growth.offer = Offer::Made;
            self.counts.holds(larger);
        }
    }
}
