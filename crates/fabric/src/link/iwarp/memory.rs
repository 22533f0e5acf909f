//! The memory of one connection, as the engine sees it: regions of this node under the tags that the peer has bound,
//! the buffers of this side's reads, and the bytes that are on their way out.
//!
//! Every access of the peer is checked twice: by the engine against the tag's bounds and rights, and by the node
//! against the cookie, which may have been revoked since. What the node refuses changes nothing, and the peer is told
//! before the answer that would end the request.

use std::collections::{HashMap, VecDeque};

use sidestep_iwarp::{self as iwarp, BufferId, Operation, Source, SourceSlice, Stag};

use super::{MAX_MESSAGE, MAX_TRANSFER, answers::Answers, asks::TAG_MASK, control::Control};
use crate::{
    cookie::{Cookie, Rights},
    error::Refusal,
    link::{Atomic, PeerId, Target},
};

/// What a connection keeps of memory.
#[derive(Debug)]
pub(super) struct Memory {
    peer: PeerId,
    bound: HashMap<Stag, Bound>,
    /// The tag of this side's read buffers.
    pub(super) sink: Stag,
    /// The buffers of reads under way; answers come in order.
    pub(super) gets: VecDeque<Vec<u8>>,
    next_get: u64,
    pub(super) answers: Answers,
    outgoing: HashMap<u64, Vec<u8>>,
    next_outgoing: u64,
    /// Bytes of them.
    pub(super) queued: usize,
    /// Bytes of a caller that are being transmitted.
    pub(super) lent: Option<BufferId>,
    pool: Vec<Vec<u8>>,
    /// The message that is coming in.
    pub(super) message: Vec<u8>,
    /// Refusals to tell the peer of, as sends.
    pub(super) notices: Vec<Vec<u8>>,
    /// With markers, payload comes in pieces; they are put together, so that a word is placed whole.
    pieces: Option<Pieces>,
    /// What the peer has done that no correct peer does.
    pub(super) violation: Option<&'static str>,
    /// Answers without bytes that may wait a little for company.
    pub(super) patient: u32,
    /// Anything else that wants an answer.
    pub(super) urgent: bool,
    /// Bytes placed since this was last looked at.
    pub(super) placed: usize,
    /// The connection is over: nothing is carried out any more.
    pub(super) closed: bool,
}

#[derive(Debug)]
struct Bound {
    cookie: Cookie,
    /// What was carried out under the tag: bytes written, reads and atomics.
    units: u64,
    refused: bool,
}

#[derive(Debug, Default)]
struct Pieces {
    /// Tag, place, and whether anything is waiting.
    at: Option<(Stag, u64)>,
    bytes: Vec<u8>,
}

/// The engine's host for the length of one call.
pub(super) struct Hosting<'a> {
    pub(super) memory: &'a mut Memory,
    /// Where requests of the peer are carried out.
    pub(super) target: Option<&'a dyn Target>,
    /// Bytes of the caller, which are there as long as the call lasts.
    pub(super) caller: Option<(BufferId, &'a [u8])>,
}

/// Tags that a peer may have bound.
const MAX_BOUND: usize = 1024;
/// Reads of this side that may be under way.
const MAX_GETS: usize = 64;
/// Buffers kept for the next use.
const KEPT_BUFFERS: usize = 16;

impl Memory {
    pub(super) fn new(peer: PeerId, sink: Stag) -> Memory {
        Memory {
            peer,
            bound: HashMap::new(),
            sink,
            gets: VecDeque::new(),
            next_get: 0,
            answers: Answers::default(),
            outgoing: HashMap::new(),
            next_outgoing: 0,
            queued: 0,
            lent: None,
            pool: Vec::new(),
            message: Vec::new(),
            notices: Vec::new(),
            pieces: None,
            violation: None,
            patient: 0,
            urgent: false,
            placed: 0,
            closed: false,
        }
    }

    /// Length of the region of read buffers.
    pub(super) const SINK_LEN: u64 = (MAX_GETS * MAX_TRANSFER) as u64;

    /// The stream has markers.
    pub(super) fn expect_pieces(&mut self) {
        self.pieces = Some(Pieces::default());
    }

    /// Lets a tag stand for a cookie: the region to register.
    pub(super) fn bind(&mut self, stag: Stag, cookie: Cookie) -> Result<(u64, iwarp::Rights), &'static str> {
        if stag.0 == 0 || stag.0 > TAG_MASK || self.bound.contains_key(&stag) {
            return Err("it bound a tag that is not free");
        }
        if self.bound.len() >= MAX_BOUND {
            return Err("it bound too many tags");
        }
        self.bound.insert(stag, Bound { cookie, units: 0, refused: false });
        let mut rights = iwarp::Rights::INVALIDATE;
        for (ours, theirs) in [
            (Rights::READ, iwarp::Rights::READ),
            (Rights::WRITE, iwarp::Rights::WRITE),
            (Rights::ATOMIC, iwarp::Rights::ATOMIC),
        ] {
            if cookie.rights().allow(ours) {
                rights = rights | theirs;
            }
        }
        Ok((cookie.len, rights))
    }

    /// Forgets a tag.
    pub(super) fn unbind(&mut self, stag: Stag) {
        self.bound.remove(&stag);
    }

    /// Looks whether the cookie of a tag is good.
    pub(super) fn check(&mut self, stag: Stag, target: &dyn Target) -> Result<(), &'static str> {
        let Some(bound) = self.bound.get(&stag) else { return Err("it asked about a tag that is not bound") };
        if let Err(refusal) = target.grant(self.peer, &bound.cookie) {
            self.refuse(stag, refusal);
        }
        Ok(())
    }

    /// Room for one more read of so many bytes: its place in the sink.
    pub(super) fn expect_get(&mut self, len: usize) -> Option<u64> {
        if self.gets.len() >= MAX_GETS {
            return None;
        }
        let slot = self.next_get % MAX_GETS as u64;
        self.next_get += 1;
        self.gets.push_back(vec![0; len]);
        Some(slot * MAX_TRANSFER as u64)
    }

    /// A name for bytes on their way out.
    pub(super) fn name_outgoing(&mut self) -> BufferId {
        self.next_outgoing += 1;
        BufferId(self.next_outgoing)
    }

    /// Keeps bytes until the stream has taken them.
    pub(super) fn keep(&mut self, id: BufferId, fill: impl FnOnce(&mut Vec<u8>)) -> u32 {
        let mut bytes = self.pool.pop().unwrap_or_default();
        bytes.clear();
        fill(&mut bytes);
        let len = bytes.len();
        self.queued += len;
        self.outgoing.insert(id.0, bytes);
        len as u32
    }

    /// The stream has taken them.
    pub(super) fn release(&mut self, id: u64) {
        self.lent.take_if(|lent| lent.0 == id);
        if let Some(bytes) = self.outgoing.remove(&id) {
            self.queued -= bytes.len();
            self.recycle(bytes);
        }
    }

    /// So many bytes of answers were transmitted.
    pub(super) fn answers_sent(&mut self, len: usize) {
        if let Some(bytes) = self.answers.advance(len) {
            self.recycle(bytes);
        }
    }

    /// Bytes on their way out.
    pub(super) fn outgoing(&self, id: BufferId) -> &[u8] {
        self.outgoing.get(&id.0).map_or(&[], Vec::as_slice)
    }

    fn recycle(&mut self, bytes: Vec<u8>) {
        if self.pool.len() < KEPT_BUFFERS && bytes.capacity() <= 2 * MAX_TRANSFER {
            self.pool.push(bytes);
        }
    }

    /// Notes that nothing more is carried out under a tag, and tells the peer, once.
    fn refuse(&mut self, stag: Stag, refusal: Refusal) {
        let Some(bound) = self.bound.get_mut(&stag) else { return };
        if std::mem::replace(&mut bound.refused, true) {
            return;
        }
        let mut notice = Vec::new();
        Control::Refused { stag, units: bound.units, refusal }.emit(&mut notice);
        self.notices.push(notice);
        self.urgent = true;
    }

    /// Does something under a tag that counts `units`, unless it was refused before.
    fn carry_out<T>(
        &mut self,
        stag: Stag,
        units: u64,
        work: impl FnOnce(PeerId, &Cookie) -> Result<T, Refusal>,
    ) -> Option<T> {
        let peer = self.peer;
        let bound = self.bound.get_mut(&stag).filter(|bound| !bound.refused)?;
        match work(peer, &bound.cookie) {
            Ok(done) => {
                bound.units += units;
                Some(done)
            }
            Err(refusal) => {
                self.refuse(stag, refusal);
                None
            }
        }
    }

    fn place_message(&mut self, offset: u32, bytes: &[u8]) {
        if offset == 0 {
            self.message.clear();
        }
        // The engine keeps to the capacity of the receive buffer.
        if self.message.len() == offset as usize && self.message.len() + bytes.len() <= MAX_MESSAGE + 1 {
            self.message.extend_from_slice(bytes);
        }
    }

    fn place_answer(&mut self, offset: u64, bytes: &[u8]) {
        let at = (offset % MAX_TRANSFER as u64) as usize;
        if let Some(into) = self.gets.front_mut().and_then(|get| get.get_mut(at..at + bytes.len())) {
            into.copy_from_slice(bytes);
        }
    }
}

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
    fn source(&self, id: BufferId) -> &[u8] {
        match self.caller {
            Some((caller, bytes)) if caller == id => bytes,
            _ => self.memory.outgoing(id),
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
        let mut bytes = self.memory.pool.pop().unwrap_or_default();
        bytes.clear();
        if len as usize > MAX_TRANSFER {
            self.memory.violation = Some("a read of more bytes than agreed");
            return;
        }
        bytes.resize(len as usize, 0);
        if let Some(target) = self.target.filter(|_| !self.memory.closed) {
            let fetched = self.memory.carry_out(stag, 1, |peer, cookie| target.fetch(peer, cookie, offset, &mut bytes));
            if fetched.is_none() {
                bytes.fill(0);
            }
        }
        self.memory.answers.push(bytes);
    }

    fn checksum(&mut self, crc: u32, slice: SourceSlice) -> u32 {
        match slice.source {
            Source::Region(_) => iwarp::crc32c(crc, self.memory.answers.gather(slice.len as usize)),
            Source::Buffer(id) => {
                let start = slice.offset as usize;
                let bytes = self.source(id).get(start..start + slice.len as usize);
                iwarp::crc32c(crc, bytes.unwrap_or_default())
            }
        }
    }
}

impl Hosting<'_> {
    /// The pieces of a gathered write.
    pub(super) fn gathered<'a>(&'a self, gather: &'a iwarp::Gather, pieces: &mut Vec<std::io::IoSlice<'a>>) {
        let mut cursor = self.memory.answers.unsent();
        for piece in gather.pieces() {
            let bytes = match piece {
                iwarp::Piece::Bytes(bytes) => bytes,
                iwarp::Piece::Source(SourceSlice { source: Source::Region(_), len, .. }) => {
                    self.memory.answers.at(&mut cursor, len as usize)
                }
                iwarp::Piece::Source(SourceSlice { source: Source::Buffer(id), offset, len }) => {
                    let start = offset as usize;
                    self.source(id).get(start..start + len as usize).unwrap_or_default()
                }
            };
            pieces.push(std::io::IoSlice::new(bytes));
        }
    }
}
