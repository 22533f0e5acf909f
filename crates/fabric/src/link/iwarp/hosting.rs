//! The engine's host: where it finds what it sends, and leaves what it places, for the length of one call.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use sidestep_iwarp::{self as iwarp, BufferId, Operation, Source, SourceSlice, Stag};
use sidestep_shm::stream::{self, Area};

use super::{MAX_TRANSFER, lent::Lent, memory::Memory};
use crate::link::{Atomic, Target};

/// The engine's host for the length of one call.
pub(super) struct Hosting<'a> {
    pub(super) memory: &'a mut Memory,
    /// Where requests of the peer are carried out.
    pub(super) target: Option<&'a dyn Target>,
    /// Bytes of the caller, which are there as long as the call lasts.
    pub(super) caller: Option<(BufferId, Lent<'a>)>,
}

/// Pieces of a write for which no list is allocated.
const FEW_PIECES: usize = 16;
/// Bytes that are put together for a write.
const SMALL: usize = 1024;

impl Hosting<'_> {
    fn place_region(&mut self, stag: Stag, offset: u64, bytes: &[u8]) {
        let Some(target) = self.target.filter(|_| !self.memory.closed) else { return };
        self.memory.placed += bytes.len();
        self.memory.carry_out(stag, bytes.len() as u64, |peer, cookie| target.place(peer, cookie, offset, bytes));
    }

    /// All pieces of a frame are here.
    pub(super) fn finish_frame(&mut self) {
        let Some(pieces) = &mut self.memory.pieces else { return };
        let Some((stag, offset)) = pieces.at.take() else { return };
        let bytes = std::mem::take(&mut pieces.bytes);
        self.place_region(stag, offset, &bytes);
        if let Some(pieces) = &mut self.memory.pieces {
            pieces.bytes = bytes;
        }
    }

    /// The bytes of a source.
    fn source(&self, id: BufferId) -> Lent<'_> {
        match self.caller {
            Some((caller, lent)) if caller == id => lent,
            _ => self.memory.outgoing.get(id),
        }
    }
}

impl iwarp::Host for Hosting<'_> {
    fn place(&mut self, target: iwarp::Target, bytes: &[u8]) {
        match target {
            iwarp::Target::Receive { offset, .. } => self.memory.place_message(offset, bytes),
            iwarp::Target::Region { stag, offset } if stag == self.memory.sink => {
                self.memory.place_answer(offset, bytes)
            }
            iwarp::Target::Region { stag, offset } => match &mut self.memory.pieces {
                None => self.place_region(stag, offset, bytes),
                Some(pieces) => {
                    if pieces.at.is_none() {
                        pieces.at = Some((stag, offset));
                        pieces.bytes.clear();
                    }
                    pieces.bytes.extend_from_slice(bytes);
                }
            },
        }
    }

    fn atomic(&mut self, stag: Stag, offset: u64, operation: Operation) -> u64 {
        self.memory.urgent = true;
        let Some(target) = self.target.filter(|_| !self.memory.closed) else { return 0 };
        let atomic = match operation {
            Operation::FetchAdd { add, mask: 0 } => Atomic::FetchAdd(add),
            Operation::CompareSwap { swap, swap_mask: u64::MAX, compare, compare_mask: u64::MAX } => {
                Atomic::CompareSwap { expected: compare, new: swap }
            }
            _ => {
                self.memory.violation = Some("an atomic on a part of a word");
                return 0;
            }
        };
        let held = self.memory.carry_out(stag, 1, |peer, cookie| target.atomic(peer, cookie, offset, atomic));
        held.unwrap_or(0)
    }

    /// The bytes are taken now, so that a write that comes later does not show in them.
    fn read(&mut self, stag: Stag, offset: u64, len: u32) {
        if len == 0 {
            self.memory.patient += 1;
            return;
        }
        self.memory.urgent = true;
        if len as usize > MAX_TRANSFER {
            self.memory.violation = Some("a read of more bytes than agreed");
            return;
        }
        let mut bytes = self.memory.outgoing.buffer();
        // What was in it is written over.
        bytes.resize(len as usize, 0);
        let target = self.target.filter(|_| !self.memory.closed);
        let fetched = target.and_then(|target| {
            self.memory.carry_out(stag, 1, |peer, cookie| target.fetch(peer, cookie, offset, &mut bytes))
        });
        if fetched.is_none() {
            bytes.fill(0);
        }
        self.memory.answers.push(bytes);
    }

    /// Answers are sent from where they are kept.
    fn copy(&mut self, slice: SourceSlice, into: &mut Vec<u8>) -> bool {
        let Source::Buffer(id) = slice.source else { return false };
        let area = self.source(id).area(slice.offset as usize, slice.len as usize);
        let start = into.len();
        into.resize(start + area.len(), 0);
        area.copy_out(&mut into[start..]);
        true
    }

    fn checksum(&mut self, crc: u32, slice: SourceSlice) -> u32 {
        match slice.source {
            Source::Region(_) => iwarp::crc32c(crc, self.memory.answers.gather(slice.len as usize)),
            Source::Buffer(id) => self.source(id).checksum(crc, slice.offset as usize, slice.len as usize),
        }
    }
}

impl Hosting<'_> {
    /// Writes what is gathered, as much as the stream takes. With `more`, the rest of a message follows at once.
    pub(super) fn send(&self, socket: &OwnedFd, gather: &iwarp::Gather, more: bool) -> Result<usize, Errno> {
        let mut pieces = gather.pieces();
        if let (Some(iwarp::Piece::Bytes(bytes)), None) = (pieces.next(), pieces.next()) {
            return stream::send_bytes(socket, bytes);
        }
        let mut cursor = self.memory.answers.unsent();
        let areas = gather.pieces().map(|piece| match piece {
            iwarp::Piece::Bytes(bytes) => Area::of(bytes),
            iwarp::Piece::Source(SourceSlice { source: Source::Region(_), len, .. }) => {
                Area::of(self.memory.answers.at(&mut cursor, len as usize))
            }
            iwarp::Piece::Source(SourceSlice { source: Source::Buffer(id), offset, len }) => {
                self.source(id).area(offset as usize, len as usize)
            }
        });
        if gather.len() <= SMALL as u64 {
            // Put together, which costs less than a list of pieces.
            let (mut bytes, mut filled) = ([0; SMALL], 0);
            for area in areas {
                filled += area.copy_out(&mut bytes[filled..]);
            }
            return stream::send_bytes(socket, &bytes[..filled]);
        }
        if gather.piece_count() > FEW_PIECES {
            return stream::send(socket, &areas.collect::<Vec<_>>(), more);
        }
        let mut few = [Area::of(&[]); FEW_PIECES];
        let mut count = 0;
        for (area, into) in areas.zip(&mut few) {
            *into = area;
            count += 1;
        }
        stream::send(socket, &few[..count], more)
    }
}
