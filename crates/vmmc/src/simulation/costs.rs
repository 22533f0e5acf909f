//! What everything takes.

use crate::card::{Dma, Job};

/// Times of a card, its host and its wires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Costs {
    /// To start a copy between host and card.
    pub copy_ns: u64,
    /// For each byte of it, in picoseconds.
    pub copy_byte_ps: u64,
    /// To handle a packet and put it on the wire.
    pub packet_ns: u64,
    /// For each byte on the wire, in picoseconds.
    pub wire_byte_ps: u64,
    /// From one end of the wire to the other.
    pub wire_ns: u64,
    /// From an interrupt until the driver's thread runs.
    pub interrupt_ns: u64,
    /// To refill a line from the host's table.
    pub refill_ns: u64,
    /// To pin pages, in one go.
    pub pin_ns: u64,
    /// For each page of it.
    pub pin_page_ns: u64,
}

/// What goes wrong on the wires, in so many cases of a thousand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weather {
    /// Where the generator starts.
    pub seed: u64,
    /// Packets that are lost.
    pub loss: u32,
    /// Packets that come twice.
    pub duplicate: u32,
    /// Packets that come late, after others.
    pub reorder: u32,
    /// At most so late.
    pub late_ns: u64,
    /// Pages that a host can pin.
    pub pin_limit: usize,
}

impl Default for Costs {
    /// So chosen that the baseline has about the times of the thesis's Table 4.2 (8, 22, 52 and 81 us) and the medians of its
    /// tables 4.6 and 4.7 for a miss.
    fn default() -> Costs {
        Costs {
            copy_ns: 2_500,
            copy_byte_ps: 4_000,
            packet_ns: 3_500,
            wire_byte_ps: 2_600,
            wire_ns: 1_500,
            interrupt_ns: 15_000,
            refill_ns: 12_000,
            pin_ns: 40_000,
            pin_page_ns: 2_000,
        }
    }
}

impl Default for Weather {
    fn default() -> Weather {
        Weather { seed: 1, loss: 0, duplicate: 0, reorder: 0, late_ns: 0, pin_limit: usize::MAX }
    }
}

impl Costs {
    pub(super) fn copy(&self, dma: &Dma) -> u64 {
        let len = match &dma.job {
            Job::Read(len) => *len,
            Job::Write(bytes) => bytes.len(),
        };
        self.copy_ns + len as u64 * self.copy_byte_ps / 1000
    }

    pub(super) fn wire(&self, len: usize) -> u64 {
        self.packet_ns + len as u64 * self.wire_byte_ps / 1000
    }

    pub(super) fn resolve(&self, pinned: u64) -> u64 {
        self.refill_ns + if pinned > 0 { self.pin_ns + pinned * self.pin_page_ns } else { 0 }
    }
}
