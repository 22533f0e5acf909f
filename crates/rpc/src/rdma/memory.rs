//! The memory of one connection: every region, source and receive buffer is a vector.

use std::collections::HashMap;

use sidestep_iwarp::{BufferId, Host, Operation, Source, SourceSlice, Stag, Target, WorkId, crc32c};

/// What the engine reads from and places into.
#[derive(Default)]
pub(super) struct Memory {
    /// Registered memory.
    pub regions: HashMap<Stag, Vec<u8>>,
    /// What is sent.
    pub buffers: HashMap<BufferId, Vec<u8>>,
    /// What is received.
    pub receives: HashMap<WorkId, Vec<u8>>,
}

impl Memory {
    /// The bytes of a source. The engine asks only for what was posted or registered, and is there.
    pub fn source(&self, slice: SourceSlice) -> &[u8] {
        let memory = match slice.source {
            Source::Region(stag) => self.regions.get(&stag),
            Source::Buffer(id) => self.buffers.get(&id),
        };
        let start = slice.offset as usize;
        memory.and_then(|bytes| bytes.get(start..start + slice.len as usize)).unwrap_or_default()
    }
}

impl Host for Memory {
    fn place(&mut self, target: Target, bytes: &[u8]) {
        let (memory, start) = match target {
            Target::Region { stag, offset } => (self.regions.get_mut(&stag), offset as usize),
            Target::Receive { work, offset } => (self.receives.get_mut(&work), offset as usize),
        };
        if let Some(place) = memory.and_then(|memory| memory.get_mut(start..start + bytes.len())) {
            place.copy_from_slice(bytes);
        }
    }

    /// No region here grants the right.
    fn atomic(&mut self, _: Stag, _: u64, _: Operation) -> u64 {
        0
    }

    fn checksum(&mut self, crc: u32, slice: SourceSlice) -> u32 {
        crc32c(crc, self.source(slice))
    }
}
