//! What a card counts.

use crate::vmh::Lookup;

/// Which way of the data a page was looked up for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Path {
    /// Bytes leave the host: the source of a send, or what another fetches.
    Send,
    /// Bytes come to the host: what another sends, or what was fetched.
    Receive,
}

/// Counts since the card was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Pages that were found, by [`Path`].
    pub vmh_hits: [u64; 2],
    /// Lines that were not there and had to be asked for, by [`Path`].
    pub vmh_misses: [u64; 2],
    /// Lookups that found a fill awaited.
    pub vmh_pending: u64,
    /// Buffers that were found, or known not to be there.
    pub cbh_hits: u64,
    /// Buffers that had to be asked for.
    pub cbh_misses: u64,
    /// Packets that were dropped for a miss.
    pub dropped: u64,
    /// Packets that there was no room for.
    pub overflowed: u64,
    /// Packets that no card sends.
    pub malformed: u64,
    /// Operations that were refused here.
    pub refused: u64,
    /// Operations of this card's processes that have ended.
    pub completed: u64,
    /// Packets that were put on the wire.
    pub packets_sent: u64,
    /// Packets that were put on the wire again.
    pub resent: u64,
    /// Retransmissions: how often that began, with one packet or with all that were under way.
    pub went_back: u64,
    /// How often a process was given a queue on the card.
    pub queues_mapped: u64,
}

impl Counters {
    /// Lines asked for, for each page that was found.
    #[must_use]
    pub fn vmh_miss_ratio(&self) -> f64 {
        ratio(self.vmh_misses.iter().sum(), self.vmh_hits.iter().sum())
    }

    /// Descriptors asked for, for each buffer that was found.
    #[must_use]
    pub fn cbh_miss_ratio(&self) -> f64 {
        ratio(self.cbh_misses, self.cbh_hits)
    }

    pub(crate) fn count(&mut self, path: Path, found: &Lookup) {
        match found {
            Lookup::Hit { .. } | Lookup::Invalid(_) => self.vmh_hits[path as usize] += 1,
            Lookup::Miss { .. } => self.vmh_misses[path as usize] += 1,
            Lookup::Pending => self.vmh_pending += 1,
        }
    }
}

fn ratio(misses: u64, hits: u64) -> f64 {
    if hits == 0 { 0.0 } else { misses as f64 / hits as f64 }
}
