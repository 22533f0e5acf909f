//! The memory of one connection, as the engine sees it: regions of this node under the tags that the peer has bound,
//! the buffers of this side's reads, and the bytes that are on their way out.
//!
//! Every access of the peer is checked twice: by the engine against the tag's bounds and rights, and by the node
//! against the cookie, which may have been revoked since. What the node refuses changes nothing, and the peer is told
//! before the answer that would end the request.

use std::collections::{BTreeMap, VecDeque};

use sidestep_iwarp::{self as iwarp, Passage, Stag};

use super::{MAX_MESSAGE, MAX_TRANSFER, answers::Answers, asks::TAG_MASK, control::Control, outgoing::Outgoing};
use crate::{
    cookie::{Cookie, Rights},
    error::Refusal,
    link::{PeerNumber, Target},
};

/// What a connection keeps of memory.
#[derive(Debug)]
pub(super) struct Memory {
    peer: PeerNumber,
    bound: BTreeMap<Stag, Bound>,
    /// The tag of this side's read buffers.
    pub(super) sink: Stag,
    /// The buffers of reads under way; answers come in order.
    pub(super) gets: VecDeque<Vec<u8>>,
    next_get: u64,
    pub(super) answers: Answers,
    pub(super) outgoing: Outgoing,
    /// The message that is coming in.
    pub(super) message: Vec<u8>,
    /// Refusals to tell the peer of, as sends.
    pub(super) notices: Vec<Vec<u8>>,
    /// With markers, payload comes in pieces; they are put together, so that a word is placed whole.
    pub(super) pieces: Option<Pieces>,
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
pub(super) struct Pieces {
    /// Tag, place, and whether anything is waiting.
    pub(super) at: Option<(Stag, u64)>,
    pub(super) bytes: Vec<u8>,
}

/// Tags that a peer may have bound.
const MAX_BOUND: usize = 1024;
/// Reads of this side that may be under way.
const MAX_GETS: usize = 64;

impl Memory {
    pub(super) fn new(peer: PeerNumber, sink: Stag) -> Memory {
        Memory {
            peer,
            bound: BTreeMap::new(),
            sink,
            gets: VecDeque::new(),
            next_get: 0,
            answers: Answers::default(),
            outgoing: Outgoing::default(),
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
        self.gets.push_back(Vec::with_capacity(len));
        Some(slot * MAX_TRANSFER as u64)
    }

    /// So many bytes of answers were transmitted.
    pub(super) fn answers_sent(&mut self, len: usize) {
        if let Some(bytes) = self.answers.advance(len) {
            self.outgoing.recycle(bytes);
        }
    }

    /// Notes that nothing more is carried out under a tag, and tells the peer, once.
    pub(super) fn refuse(&mut self, stag: Stag, refusal: Refusal) {
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
    pub(super) fn carry_out<T>(
        &mut self,
        stag: Stag,
        units: u64,
        work: impl FnOnce(PeerNumber, &Cookie) -> Result<T, Refusal>,
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

    /// Whose cookie a tag stands for, if something may be carried out under it.
    pub(super) fn holder(&self, stag: Stag) -> Option<(PeerNumber, Cookie)> {
        let bound = self.bound.get(&stag).filter(|bound| !bound.refused && !self.closed)?;
        Some((self.peer, bound.cookie))
    }

    /// Places the last word of a write whose other bytes are in their place.
    pub(super) fn finish_passage(&mut self, passage: &Passage, word: &[u8], target: &dyn Target) {
        if self.closed {
            return;
        }
        let Passage { stag, offset, payload, .. } = *passage;
        let front = payload - word.len();
        self.placed += payload;
        self.carry_out(stag, payload as u64, |peer, cookie| {
            target.place(peer, cookie, offset + front as u64, word)?;
            target.landed(cookie, offset, front);
            Ok(())
        });
    }

    pub(super) fn place_message(&mut self, offset: u32, bytes: &[u8]) {
        if offset == 0 {
            self.message.clear();
        }
        // The engine keeps to the capacity of the receive buffer.
        if self.message.len() == offset as usize && self.message.len() + bytes.len() <= MAX_MESSAGE + 1 {
            self.message.extend_from_slice(bytes);
        }
    }

    pub(super) fn place_answer(&mut self, offset: u64, bytes: &[u8]) {
        let at = (offset % MAX_TRANSFER as u64) as usize;
        // The engine takes an answer only as it continues, and no more of it than was asked for.
        if let Some(get) = self.gets.front_mut().filter(|get| get.len() == at) {
            get.extend_from_slice(bytes);
        }
    }
}
