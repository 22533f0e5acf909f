//! The simplest memory of one end: every region, source buffer and receive buffer is a vector.

use std::collections::HashMap;

use sidestep_wire::{Stag, mpa::crc32c, rdmap::atomic_request::Operation};

use crate::{
    event::WorkId,
    gather::{BufferId, Gather, Piece, Source, SourceSlice},
    host::{Host, Target},
};

/// What the engine reads from and places into.
#[derive(Debug, Default)]
pub struct Vectors {
    /// Registered memory.
    pub regions: HashMap<Stag, Vec<u8>>,
    /// What is sent.
    pub buffers: HashMap<BufferId, Vec<u8>>,
    /// What is received.
    pub receives: HashMap<WorkId, Vec<u8>>,
}

impl Vectors {
    /// The bytes of a source. The engine asks only for what the owner has posted or registered.
    pub fn source(&self, slice: SourceSlice) -> &[u8] {
        let memory = match slice.source {
            Source::Region(stag) => self.regions.get(&stag),
            Source::Buffer(id) => self.buffers.get(&id),
        };
        let start = slice.offset as usize;
        memory.and_then(|bytes| bytes.get(start..start + slice.len as usize)).unwrap_or_default()
    }

    /// Takes what is to be sent out of a gather, as bytes for the stream.
    pub fn collect(&self, gather: &mut Gather, output: &mut Vec<u8>) {
        for piece in gather.pieces() {
            match piece {
                Piece::Bytes(bytes) => output.extend_from_slice(bytes),
                Piece::Source(slice) => output.extend_from_slice(self.source(slice)),
            }
        }
        gather.advance(gather.len());
    }
}

impl Host for Vectors {
    fn place(&mut self, target: Target, bytes: &[u8]) {
        let (memory, start) = match target {
            Target::Region { stag, offset } => (self.regions.get_mut(&stag), offset as usize),
            Target::Receive { work, offset } => (self.receives.get_mut(&work), offset as usize),
        };
        if let Some(place) = memory.and_then(|memory| memory.get_mut(start..start + bytes.len())) {
            place.copy_from_slice(bytes);
        }
    }

    fn atomic(&mut self, stag: Stag, offset: u64, operation: Operation) -> u64 {
        let start = offset as usize;
        let word = self.regions.get_mut(&stag).and_then(|region| region.get_mut(start..)?.first_chunk_mut());
        let Some(word) = word else { return 0 };
        let original = u64::from_ne_bytes(*word);
        *word = operation.apply(original).to_ne_bytes();
        original
    }

    fn checksum(&mut self, crc: u32, slice: SourceSlice) -> u32 {
        crc32c(crc, self.source(slice))
    }
}
