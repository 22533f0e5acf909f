//! The memory of the host, as the engine sees it.

use crate::event::WorkId;
use crate::gather::SourceSlice;
use sidestep_wire::Stag;
use sidestep_wire::rdmap::atomic_request::Operation;

/// Where incoming payload goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Into a registered region.
    Region {
        /// The tag of the region.
        stag: Stag,
        /// Bytes from the beginning of the region's memory: the tagged offset less the region's base.
        offset: u64,
    },
    /// Into a posted receive buffer.
    Receive {
        /// The name under which it was posted.
        work: WorkId,
        /// Bytes from the beginning of the buffer.
        offset: u32,
    },
}

/// What a driver does for the engine, at once, while the engine runs.
///
/// - The engine has checked tags, rights and bounds against the [`MemoryTable`](crate::MemoryTable)
///   before it calls; it never asks for a byte outside a region or a receive buffer.
/// - Calls come in the order of the stream. What `place` was given is visible before the completion
///   that reports it, and before an `atomic` that comes later.
/// - Regions with the right of atomics begin at an address that is a multiple of eight.
pub trait Host {
    /// Copies `bytes`, a part of the driver's own input buffer, to `target`.
    fn place(&mut self, target: Target, bytes: &[u8]);

    /// Does `operation` on the eight bytes at `offset` of the region, in one step with respect to all
    /// other atomics on that memory, and returns what was there. The word is in the byte order of the
    /// host.
    fn atomic(&mut self, stag: Stag, offset: u64, operation: Operation) -> u64;

    /// The peer asks for `len` bytes at `offset` of the region, which the table allows. A driver whose readers expect the
    /// bytes of this very moment keeps them now, and sends them when they are gathered; the answers are gathered in
    /// the order of these calls. A read of length zero touches nothing and is told all the same.
    fn read(&mut self, stag: Stag, offset: u64, len: u32) {
        let _ = (stag, offset, len);
    }

    /// Appends the bytes of a short slice to `into`: its frame is then sent in one piece, and the bytes may change from here
    /// on. `false`, with nothing appended, if they are to be sent from where they lie.
    fn copy(&mut self, slice: SourceSlice, into: &mut Vec<u8>) -> bool {
        let _ = (slice, into);
        false
    }

    /// Continues `crc` over the bytes of `slice`; [`crc32c`](sidestep_wire::mpa::crc32c) does it.
    ///
    /// The bytes that are transmitted later must be the ones seen here. A driver whose memory may
    /// change in between copies them first.
    fn checksum(&mut self, crc: u32, slice: SourceSlice) -> u32;
}
