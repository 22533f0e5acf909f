//! From requests and messages of the node to requests of the engine.

use sidestep_iwarp::{self as iwarp, BufferId, ReadRequest, SendKind, Source, SourceSlice, Stag, TaggedOffset, WorkId};

use super::{ANSWERED, DEPTH, GET, KIND_SHIFT, SENT, State};
use crate::{
    cookie::{Cookie, Rights},
    error::{CloseReason, Error, Refusal, Result},
    link::{
        Atomic, Request, Ticket,
        iwarp::{asks::Kind, control::Control, lent::Lent},
    },
};

const PLAIN: SendKind = SendKind { solicited: false, invalidate: None };

impl State {
    /// Sends a word of this link.
    pub(super) fn send(&mut self, control: &Control<'_>, invalidate: Option<Stag>) -> Result<()> {
        let id = self.memory.outgoing.name();
        let len = self.memory.outgoing.keep(id, |bytes| control.emit(bytes));
        let kind = SendKind { invalidate, ..PLAIN };
        let posted = self.connection.post_send(work(SENT, id), whole(id, len), kind);
        self.note_posted(id, posted)
    }

    /// Tells the peer of a refusal before anything else goes out.
    pub(super) fn tell_first(&mut self, notice: Vec<u8>) {
        let id = self.memory.outgoing.name();
        let len = self.memory.outgoing.keep(id, |bytes| bytes.extend_from_slice(&notice));
        let posted = self.connection.post_send_first(work(SENT, id), whole(id, len), PLAIN);
        if self.note_posted(id, posted).is_err() && self.ended.is_none() {
            self.memory.violation = Some("it asks for more than it hears the answers of");
        }
    }

    fn note_posted(&mut self, id: BufferId, posted: Result<(), iwarp::Error>) -> Result<()> {
        match posted {
            Ok(()) => {
                self.work.posted += 1;
                Ok(())
            }
            Err(error) => {
                self.memory.outgoing.release(id.0);
                Err(match error {
                    iwarp::Error::QueueFull { limit } => Error::Full { what: "the engine of the link", limit },
                    _ => Error::Closed(CloseReason::Link("the connection is closing")),
                })
            }
        }
    }

    /// Asks the peer. Bytes that are still the caller's are returned.
    pub(super) fn ask<'a>(
        &mut self,
        ticket: Ticket,
        cookie: &Cookie,
        request: Request<'a>,
    ) -> Result<Option<(BufferId, Lent<'a>)>> {
        if let Request::Put { offset, bytes } = request
            && !bytes.is_empty()
        {
            return self.ask_put(ticket, cookie, offset, Lent::Bytes(bytes), true);
        }
        if let Request::Get { len, .. } = request
            && len > 0
            && self.memory.gets.len() >= DEPTH as usize
        {
            return Err(Error::Full { what: "the reads under way", limit: DEPTH as usize });
        }
        let stag = self.tag(cookie)?;
        match (request, impossible(cookie, &request)) {
            (Request::Get { offset, len }, None) if len > 0 => {
                let full = Error::Full { what: "the reads under way", limit: DEPTH as usize };
                let sink_offset = TaggedOffset(self.memory.expect_get(len).ok_or(full)?);
                let (sink, source, source_offset) = (self.memory.sink, stag, TaggedOffset(offset));
                self.read(GET, ReadRequest { sink, sink_offset, size: len as u32, source, source_offset })?;
                self.asks.push(ticket, stag, 1, Kind::Get);
            }
            (Request::Atomic { offset, atomic }, None) => {
                let operation = match atomic {
                    Atomic::FetchAdd(add) => iwarp::Operation::FetchAdd { add, mask: 0 },
                    Atomic::CompareSwap { expected, new } => iwarp::Operation::CompareSwap {
                        swap: new,
                        swap_mask: u64::MAX,
                        compare: expected,
                        compare_mask: u64::MAX,
                    },
                };
                let id = BufferId(0);
                let posted = self.connection.post_atomic(work(ANSWERED, id), stag, TaggedOffset(offset), operation);
                self.note_posted(id, posted)?;
                self.asks.push(ticket, stag, 1, Kind::Atomic);
            }
            (request, impossible) => {
                let kind = match (request, impossible) {
                    (_, Some(refusal)) => Kind::Refused(refusal),
                    (Request::Map, None) => Kind::Map,
                    (Request::Get { .. }, None) => Kind::EmptyGet,
                    _ => Kind::Put,
                };
                self.ask_check(ticket, stag, kind)?;
            }
        }
        // A write is done when it is done; whoever asks for something else waits for it.
        self.flush(!matches!(request, Request::Put { .. }))?;
        Ok(None)
    }

    /// Asks the peer to take bytes, of which there are some. Those that were not taken here are returned. With `still`, no
    /// peer can change them during the call.
    pub(super) fn ask_put<'a>(
        &mut self,
        ticket: Ticket,
        cookie: &Cookie,
        offset: u64,
        lent: Lent<'a>,
        still: bool,
    ) -> Result<Option<(BufferId, Lent<'a>)>> {
        let stag = self.tag(cookie)?;
        let len = lent.len();
        if let Some(refusal) = forbidden(cookie, Rights::WRITE, offset, len as u64) {
            self.ask_check(ticket, stag, Kind::Refused(refusal))?;
            self.flush(false)?;
            return Ok(None);
        }
        let id = self.memory.outgoing.name();
        let mut unsent = Some((id, lent));
        if self.crc && !still {
            // What is sent must be what the checksum is of, and another peer may change it in between.
            self.memory.outgoing.keep_copy(id, lent);
            unsent = None;
        }
        let posted = self.connection.post_write(work(SENT, id), whole(id, len as u32), stag, TaggedOffset(offset));
        self.note_posted(id, posted)?;
        self.asks.push(ticket, stag, len as u64, Kind::Put);
        self.memory.outgoing.lent = unsent.map(|(id, _)| id);
        self.flush(false)?;
        Ok(unsent)
    }

    /// Asks whether the cookie of a tag is good, on behalf of a request that has no other use for the peer.
    fn ask_check(&mut self, ticket: Ticket, stag: Stag, kind: Kind) -> Result<()> {
        self.send(&Control::Check { stag }, None)?;
        self.asks.push(ticket, stag, 0, kind);
        Ok(())
    }

    /// The tag of a cookie, of which the peer was told.
    fn tag(&mut self, cookie: &Cookie) -> Result<Stag> {
        let (stag, new) = self.asks.bind(cookie);
        if new {
            if let Some(spare) = self.asks.spare() {
                self.send(&Control::Unbind, Some(spare))?;
            }
            self.send(&Control::Bind { stag, cookie: *cookie }, None)?;
        }
        Ok(stag)
    }

    /// Asks for an answer behind what was asked last, if it has none of its own: now, or if it is a lot.
    pub(in super::super) fn flush(&mut self, now: bool) -> Result<()> {
        if self.asks.flush(now) {
            let nothing = (Stag(0), TaggedOffset(0));
            let ((sink, sink_offset), (source, source_offset)) = (nothing, nothing);
            self.read(ANSWERED, ReadRequest { sink, sink_offset, size: 0, source, source_offset })?;
        }
        Ok(())
    }

    fn read(&mut self, kind: u64, request: ReadRequest) -> Result<()> {
        let id = BufferId(0);
        let posted = self.connection.post_read(work(kind, id), request, &self.table);
        self.note_posted(id, posted)
    }
}

/// What a request asks that its own cookie says it may not.
fn impossible(cookie: &Cookie, request: &Request<'_>) -> Option<Refusal> {
    match *request {
        Request::Map => None,
        Request::Put { offset, bytes } => forbidden(cookie, Rights::WRITE, offset, bytes.len() as u64),
        Request::Get { offset, len } => forbidden(cookie, Rights::READ, offset, len as u64),
        Request::Atomic { offset, .. } => forbidden(cookie, Rights::ATOMIC, offset, 8)
            .or_else(|| (offset % 8 != 0).then_some(Refusal::Range { offset, len: 8 })),
    }
}

fn forbidden(cookie: &Cookie, wanted: Rights, offset: u64, len: u64) -> Option<Refusal> {
    if !cookie.rights().allow(wanted) {
        return Some(Refusal::Rights { held: cookie.rights(), wanted });
    }
    let inside = offset.checked_add(len).is_some_and(|end| end <= cookie.len);
    (!inside).then_some(Refusal::Range { offset, len })
}

fn whole(id: BufferId, len: u32) -> SourceSlice {
    SourceSlice { source: Source::Buffer(id), offset: 0, len }
}

fn work(kind: u64, id: BufferId) -> WorkId {
    WorkId(kind << KIND_SHIFT | id.0)
}
