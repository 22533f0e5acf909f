//! What a session knows under its lock.

use std::{collections::VecDeque, time::Duration};

use rustix::io::Errno;
use sidestep_iwarp::{
    self as iwarp, BufferId, Connection, Event, Gather, Interval, MemoryTable, ReadRequest, SendKind, SetupFailure,
    Source, SourceSlice, Stag, StreamId, StreamIdentity, TaggedOffset, WorkId,
};

use super::{
    MAX_MESSAGE, MAX_TRANSFER,
    asks::{Answer, Asks, Kind, TAG_MASK},
    control::{Control, Hello},
    memory::{Hosting, Memory},
    options::IwarpOptions,
};
use crate::{
    cookie::{Cookie, Rights},
    error::{CloseReason, Error, Refusal, Result},
    link::{Atomic, Outcome, PeerId, Request, Target, Ticket},
    random::Random,
};

#[derive(Debug)]
pub(super) struct State {
    pub(super) connection: Connection,
    pub(super) table: MemoryTable,
    pub(super) gather: Gather,
    pub(super) memory: Memory,
    asks: Asks,
    /// What was posted and asked before the connection was made.
    early: VecDeque<Early>,
    identity: StreamIdentity,
    open: bool,
    /// The node knows of the peer.
    pub(super) known: bool,
    /// How it ended, and whether the node was told.
    pub(super) ended: Option<CloseReason>,
    reported: bool,
    /// Nothing is left to send or to receive.
    pub(super) gone: bool,
    pub(super) cannot_send: bool,
    pub(super) wants_writable: bool,
    pub(super) finished: bool,
    /// The engine was told the time, and may have something to say.
    pub(super) has_timed_out: bool,
    /// Polls since an answer was held back.
    pub(super) held_polls: u32,
    /// What the engine has not completed.
    posted: usize,
    /// Completions for the node, found while sending.
    unhandled: Vec<iwarp::Completion>,
}

/// What the node is told.
#[derive(Debug)]
pub(super) enum Delivery {
    Opened,
    Message(Vec<u8>),
    Completed(Ticket, Outcome),
    Closed(CloseReason),
}

#[derive(Debug)]
enum Early {
    Post(Vec<u8>),
    Map(Ticket, Cookie),
    Put(Ticket, Cookie, u64, Vec<u8>),
    Get(Ticket, Cookie, u64, usize),
    Atomic(Ticket, Cookie, u64, Atomic),
}

/// Bytes that wait for the stream before messages and requests are turned away.
const MAX_QUEUED: usize = 4 << 20;
/// Requests of the engine that may wait.
const QUEUE_LIMIT: usize = 8192;
/// Requests of the engine that one request of the fabric takes, with a tag given back.
const MOST_POSTS: usize = 4;
/// Reads and atomics that are served, and may be under way.
const DEPTH: u16 = 32;
/// Messages that may come before one is looked at; frames are handled one by one.
const RECEIVES: usize = 4;
const PLAIN: SendKind = SendKind { solicited: false, invalidate: None };

impl State {
    /// The side that connects.
    pub(super) fn initiate(peer: PeerId, options: &IwarpOptions, now: Duration) -> Result<State> {
        let config = config(peer, options);
        let connection = Connection::initiate(config.clone(), &HELLO.to_bytes(), now);
        let connection = connection.map_err(|_| Error::Unsupported("private data of this length"))?;
        let mut state = State::new(peer, connection, config.identity);
        state.known = true;
        Ok(state)
    }

    /// The side that was reached.
    pub(super) fn respond(peer: PeerId, options: &IwarpOptions, now: Duration) -> State {
        let config = config(peer, options);
        State::new(peer, Connection::respond(config.clone(), now), config.identity)
    }

    fn new(peer: PeerId, connection: Connection, identity: StreamIdentity) -> State {
        let mut table = MemoryTable::new();
        let region = iwarp::Region {
            base: TaggedOffset(0),
            length: Memory::SINK_LEN,
            rights: iwarp::Rights::NONE,
            domain: identity.domain,
            stream: Some(identity.stream),
        };
        let random = || Random::key() as u32 | !TAG_MASK;
        let sink = table.register(region, random).expect("the first tag of a table is free");
        let mut state = State {
            connection,
            table,
            gather: Gather::new(),
            memory: Memory::new(peer, sink),
            asks: Asks::default(),
            early: VecDeque::new(),
            identity,
            open: false,
            known: false,
            ended: None,
            reported: false,
            gone: false,
            cannot_send: false,
            wants_writable: false,
            finished: false,
            has_timed_out: false,
            held_polls: 0,
            posted: 0,
            unhandled: Vec::new(),
        };
        for _ in 0..RECEIVES {
            let _ = state.connection.post_receive(RECEIVE, MAX_MESSAGE as u32 + 1);
        }
        state
    }

    /// Sends a message, now or when the connection is made.
    pub(super) fn post(&mut self, bytes: &[u8]) -> Result<()> {
        self.check_room(0)?;
        if !self.open {
            self.early.push_back(Early::Post(bytes.to_vec()));
            return Ok(());
        }
        self.send(&Control::Message(bytes), None)
    }

    /// Starts a request, now or when the connection is made. Bytes that are still the caller's are returned.
    pub(super) fn request<'a>(
        &mut self,
        ticket: Ticket,
        cookie: &Cookie,
        request: Request<'a>,
    ) -> Result<Option<(BufferId, &'a [u8])>> {
        self.check_room(MOST_POSTS)?;
        if !self.open {
            self.early.push_back(match request {
                Request::Map => Early::Map(ticket, *cookie),
                Request::Put { offset, bytes } => Early::Put(ticket, *cookie, offset, bytes.to_vec()),
                Request::Get { offset, len } => Early::Get(ticket, *cookie, offset, len),
                Request::Atomic { offset, atomic } => Early::Atomic(ticket, *cookie, offset, atomic),
            });
            return Ok(None);
        }
        self.ask(ticket, cookie, request)
    }

    /// After a transmission: keeps the caller's bytes if the stream has not taken all of them.
    pub(super) fn keep_unsent(&mut self, id: BufferId, bytes: &[u8]) {
        // What the engine has completed is not asked for again.
        let unsent = self.memory.lent.take().is_some();
        if unsent && !(self.gather.is_empty() && self.connection.has_gathered_all()) {
            self.memory.keep(id, |kept| kept.extend_from_slice(bytes));
        }
    }

    /// Ends the connection from this side.
    pub(super) fn close(&mut self, reason: CloseReason, now: Duration) -> bool {
        if self.ended.is_some() {
            return false;
        }
        if let CloseReason::Violation(_) = reason {
            self.connection.abort(now);
        } else {
            // A connection that is not made yet has nobody to take leave of.
            let _ = self.send(&Control::Goodbye, None);
            self.connection.close(now);
        }
        self.end(reason);
        true
    }

    /// Feeds the engine one frame.
    pub(super) fn handle_input(&mut self, now: Duration, frame: &[u8], target: &dyn Target) -> usize {
        let State { connection, table, memory, .. } = self;
        let mut host = Hosting { memory, target: Some(target), caller: None };
        let taken = connection.handle_input(now, frame, table, &mut host);
        host.finish_frame();
        taken
    }

    /// The peer has closed its half.
    pub(super) fn end_of_stream(&mut self, now: Duration, target: &dyn Target, deliveries: &mut Vec<Delivery>) {
        self.connection.handle_end(now);
        self.collect(now, target, deliveries);
        // A peer that takes leave says so first.
        self.lose(CloseReason::Died);
    }

    /// The stream is of no more use.
    pub(super) fn lose(&mut self, reason: CloseReason) {
        self.end(reason);
        self.connection.reset();
        self.gone = true;
    }

    /// What a failed read says about the peer.
    pub(super) fn reason_of(errno: Errno) -> CloseReason {
        match errno {
            Errno::CONNRESET | Errno::PIPE => CloseReason::Died,
            Errno::TIMEDOUT => CloseReason::Link("the peer no longer answers"),
            _ => CloseReason::Link("the network no longer reaches the peer"),
        }
    }

    /// The stream has taken so many bytes.
    pub(super) fn transmitted(&mut self, now: Duration, count: usize) {
        let mut left = count as u64;
        for piece in self.gather.pieces() {
            if left == 0 {
                break;
            }
            let (len, answer) = match piece {
                iwarp::Piece::Bytes(bytes) => (bytes.len() as u64, false),
                iwarp::Piece::Source(slice) => (u64::from(slice.len), matches!(slice.source, Source::Region(_))),
            };
            let taken = len.min(left);
            left -= taken;
            if answer {
                self.memory.answers_sent(taken as usize);
            }
        }
        self.gather.advance(count as u64);
        self.connection.handle_transmitted(now, count as u64);
        while let Some(completion) = self.connection.poll_completion() {
            if completion.work.0 >> KIND_SHIFT == SENT {
                self.posted -= 1;
                self.memory.release(completion.work.0 & ID_MASK);
            } else {
                self.unhandled.push(completion);
            }
        }
    }

    /// Takes what the engine has to say.
    pub(super) fn collect(&mut self, now: Duration, target: &dyn Target, deliveries: &mut Vec<Delivery>) {
        for completion in std::mem::take(&mut self.unhandled) {
            self.complete(completion, target, deliveries);
        }
        loop {
            if let Some(completion) = self.connection.poll_completion() {
                self.complete(completion, target, deliveries);
            } else if let Some(event) = self.connection.poll_event() {
                self.handle_event(event, now, deliveries);
            } else {
                break;
            }
        }
        for notice in std::mem::take(&mut self.memory.notices) {
            self.tell_first(notice);
        }
        if let Some(what) = self.memory.violation.take() {
            self.close(CloseReason::Violation(what), now);
        }
    }

    /// Reports the end, once, after everything else.
    pub(super) fn report(&mut self, deliveries: &mut Vec<Delivery>) {
        let Some(reason) = self.ended.filter(|_| !self.reported) else { return };
        self.reported = true;
        if !self.known {
            return;
        }
        let mut ended = |ticket, outcome| deliveries.push(Delivery::Completed(ticket, outcome));
        self.asks.fail(reason, &mut ended);
        for early in self.early.drain(..) {
            if let Some(ticket) = early.ticket() {
                ended(ticket, Outcome::Closed(reason));
            }
        }
        deliveries.push(Delivery::Closed(reason));
    }

    /// Whether a poll has something to do though nothing has come.
    pub(super) fn wants_look(&self) -> bool {
        self.ended.is_some()
            || self.has_timed_out
            || self.wants_writable
            || self.memory.urgent
            || !self.unhandled.is_empty()
    }

    pub(super) fn is_reported(&self) -> bool {
        self.reported || self.ended.is_none()
    }

    fn check_room(&self, posts: usize) -> Result<()> {
        if let Some(reason) = self.ended {
            return Err(Error::Closed(reason));
        }
        let early: usize = if self.open { 0 } else { self.early.iter().map(Early::len).sum() };
        let full = self.memory.queued + early >= MAX_QUEUED
            || self.posted + self.early.len() + posts >= QUEUE_LIMIT / 2
            || (posts > 0 && self.asks.is_full());
        if full { Err(Error::Full { what: "the stream to the peer", limit: MAX_QUEUED }) } else { Ok(()) }
    }

    fn end(&mut self, reason: CloseReason) {
        if self.ended.is_none() {
            self.ended = Some(reason);
            self.memory.closed = true;
            self.open = false;
        }
    }

    fn send(&mut self, control: &Control<'_>, invalidate: Option<Stag>) -> Result<()> {
        let id = self.memory.name_outgoing();
        let len = self.memory.keep(id, |bytes| control.emit(bytes));
        let kind = SendKind { invalidate, ..PLAIN };
        let posted = self.connection.post_send(work(SENT, id), whole(id, len), kind);
        self.note_posted(id, posted)
    }

    /// Tells the peer of a refusal before anything else goes out.
    fn tell_first(&mut self, notice: Vec<u8>) {
        let id = self.memory.name_outgoing();
        let len = self.memory.keep(id, |bytes| bytes.extend_from_slice(&notice));
        let posted = self.connection.post_send_first(work(SENT, id), whole(id, len), PLAIN);
        if self.note_posted(id, posted).is_err() && self.ended.is_none() {
            self.memory.violation = Some("it asks for more than it hears the answers of");
        }
    }

    fn note_posted(&mut self, id: BufferId, posted: Result<(), iwarp::Error>) -> Result<()> {
        match posted {
            Ok(()) => {
                self.posted += 1;
                Ok(())
            }
            Err(error) => {
                self.memory.release(id.0);
                Err(match error {
                    iwarp::Error::QueueFull { limit } => Error::Full { what: "the engine of the link", limit },
                    _ => Error::Closed(CloseReason::Link("the connection is closing")),
                })
            }
        }
    }

    fn ask<'a>(
        &mut self,
        ticket: Ticket,
        cookie: &Cookie,
        request: Request<'a>,
    ) -> Result<Option<(BufferId, &'a [u8])>> {
        if let Request::Get { len, .. } = request
            && len > 0
            && self.memory.gets.len() >= DEPTH as usize
        {
            return Err(Error::Full { what: "the reads under way", limit: DEPTH as usize });
        }
        let (stag, new) = self.asks.bind(cookie);
        if new {
            if let Some(spare) = self.asks.spare() {
                self.send(&Control::Unbind, Some(spare))?;
            }
            self.send(&Control::Bind { stag, cookie: *cookie }, None)?;
        }
        let mut lent = None;
        match (request, impossible(cookie, &request)) {
            (Request::Put { offset, bytes }, None) if !bytes.is_empty() => {
                let id = self.memory.name_outgoing();
                let source = whole(id, bytes.len() as u32);
                let posted = self.connection.post_write(work(SENT, id), source, stag, TaggedOffset(offset));
                self.note_posted(id, posted)?;
                self.asks.push(ticket, stag, bytes.len() as u64, Kind::Put);
                self.memory.lent = Some(id);
                lent = Some((id, bytes));
            }
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
                self.send(&Control::Check { stag }, None)?;
                let kind = match (request, impossible) {
                    (_, Some(refusal)) => Kind::Refused(refusal),
                    (Request::Map, None) => Kind::Map,
                    (Request::Get { .. }, None) => Kind::EmptyGet,
                    _ => Kind::Put,
                };
                self.asks.push(ticket, stag, 0, kind);
            }
        }
        self.flush()?;
        Ok(lent)
    }

    /// Asks for an answer behind what was asked last, if it has none of its own.
    fn flush(&mut self) -> Result<()> {
        if self.asks.flush() {
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

    fn complete(&mut self, completion: iwarp::Completion, target: &dyn Target, deliveries: &mut Vec<Delivery>) {
        let (kind, id) = (completion.work.0 >> KIND_SHIFT, completion.work.0 & ID_MASK);
        if completion.work == RECEIVE {
            if let iwarp::Outcome::Received { invalidated, .. } = completion.outcome {
                let _ = self.connection.post_receive(RECEIVE, MAX_MESSAGE as u32 + 1);
                let message = std::mem::take(&mut self.memory.message);
                if let Err(what) = self.heard(&message, invalidated, target, deliveries) {
                    self.memory.violation = Some(what);
                }
                self.memory.message = message;
                self.memory.message.clear();
            } else if completion.outcome != iwarp::Outcome::Flushed {
                self.memory.violation = Some("immediate data, which nobody waits for");
            }
            return;
        }
        self.posted -= 1;
        let answer = match (kind, completion.outcome) {
            (SENT, _) => return self.memory.release(id),
            (_, iwarp::Outcome::Flushed) => return,
            (GET, _) => self.memory.gets.pop_front().map_or(Answer::Flush, Answer::Bytes),
            (_, iwarp::Outcome::Atomic { original }) => Answer::Value(original),
            _ => Answer::Flush,
        };
        if self.ended.is_some() {
            return;
        }
        let idle = self.asks.answered(answer, |ticket, outcome| deliveries.push(Delivery::Completed(ticket, outcome)));
        // A connection that ends meanwhile has no use for tags.
        for stag in idle {
            let _ = self.send(&Control::Unbind, Some(stag));
        }
        let _ = self.flush();
        self.memory.urgent |= !self.connection.has_gathered_all();
    }

    /// A send of the peer.
    fn heard(
        &mut self,
        bytes: &[u8],
        invalidated: Option<Stag>,
        target: &dyn Target,
        deliveries: &mut Vec<Delivery>,
    ) -> Result<(), &'static str> {
        if self.ended.is_some() {
            return Ok(());
        }
        if let Some(stag) = invalidated {
            self.memory.unbind(stag);
            self.table.deregister(stag);
        }
        match Control::parse(bytes)? {
            Control::Message(message) => deliveries.push(Delivery::Message(message.to_vec())),
            Control::Bind { stag, cookie } => {
                let (length, rights) = self.memory.bind(stag, cookie)?;
                let (domain, stream) = (self.identity.domain, Some(self.identity.stream));
                let region = iwarp::Region { base: TaggedOffset(0), length, rights, domain, stream };
                self.table.register(region, || stag.0).map_err(|_| "it bound a tag that is not free")?;
            }
            Control::Check { stag } => self.memory.check(stag, target)?,
            Control::Refused { stag, units, refusal } => self.asks.refuse(stag, units, refusal)?,
            Control::Goodbye => self.lose(CloseReason::Peer),
            Control::Unbind => {}
        }
        Ok(())
    }

    fn handle_event(&mut self, event: Event, now: Duration, deliveries: &mut Vec<Delivery>) {
        match event {
            Event::Requested { private_data, .. } => {
                let answered = match Hello::parse(&private_data) {
                    Ok(hello) if hello == HELLO => self.connection.accept(&HELLO.to_bytes()),
                    _ => self.connection.reject(now, &HELLO.to_bytes()),
                };
                if answered.is_err() {
                    self.lose(CloseReason::Link("set-up failed"));
                }
            }
            Event::Established { private_data, agreement } => {
                if self.known && Hello::parse(&private_data) != Ok(HELLO) {
                    return self.lose(CloseReason::Violation("it does not speak the protocol of the fabric"));
                }
                if agreement.markers_received.is_some() {
                    self.memory.expect_pieces();
                }
                self.established(deliveries);
            }
            Event::Rejected { .. } => self.lose(CloseReason::Link("the peer refused the set-up")),
            Event::FallBack { .. } => self.lose(CloseReason::Died),
            Event::SetupFailed(SetupFailure::TimedOut { .. }) => {
                self.lose(CloseReason::Link("the peer did not finish set-up in time"));
            }
            Event::SetupFailed(SetupFailure::StreamEnded { .. }) => self.lose(CloseReason::Died),
            Event::SetupFailed(_) => self.lose(CloseReason::Violation("a set-up frame that is none")),
            // A peer that takes leave says goodbye first.
            Event::PeerClosed | Event::Lost { .. } => self.lose(CloseReason::Died),
            Event::PeerTerminated(_) => self.lose(CloseReason::Link("the peer ended it with a terminate message")),
            Event::Failed(fault) => self.end(CloseReason::Violation(fault.check().description())),
            Event::Closed => {
                self.end(CloseReason::Link("the peer did not close in time"));
                self.gone = true;
            }
        }
    }

    /// The connection is made: what was posted before goes out.
    fn established(&mut self, deliveries: &mut Vec<Delivery>) {
        self.open = true;
        if !std::mem::replace(&mut self.known, true) {
            deliveries.push(Delivery::Opened);
        }
        for early in std::mem::take(&mut self.early) {
            let ticket = early.ticket();
            let begun = match &early {
                Early::Post(bytes) => self.send(&Control::Message(bytes), None).map(|()| None),
                Early::Map(ticket, cookie) => self.ask(*ticket, cookie, Request::Map),
                Early::Put(ticket, cookie, offset, bytes) => {
                    self.ask(*ticket, cookie, Request::Put { offset: *offset, bytes })
                }
                Early::Get(ticket, cookie, offset, len) => {
                    self.ask(*ticket, cookie, Request::Get { offset: *offset, len: *len })
                }
                Early::Atomic(ticket, cookie, offset, atomic) => {
                    self.ask(*ticket, cookie, Request::Atomic { offset: *offset, atomic: *atomic })
                }
            };
            match begun {
                Ok(Some((id, bytes))) => {
                    self.memory.keep(id, |kept| kept.extend_from_slice(bytes));
                }
                Ok(None) => {}
                Err(error) => deliveries.extend(ticket.map(|it| Delivery::Completed(it, Outcome::Failed(error)))),
            }
        }
        self.memory.urgent = true;
    }
}

impl Early {
    fn ticket(&self) -> Option<Ticket> {
        match self {
            Early::Post(_) => None,
            Early::Map(ticket, ..) | Early::Put(ticket, ..) | Early::Get(ticket, ..) | Early::Atomic(ticket, ..) => {
                Some(*ticket)
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Early::Post(bytes) | Early::Put(_, _, _, bytes) => bytes.len(),
            _ => 0,
        }
    }
}

/// What a request asks that its own cookie says it may not.
fn impossible(cookie: &Cookie, request: &Request<'_>) -> Option<Refusal> {
    let (wanted, offset, len, aligned) = match *request {
        Request::Map => return None,
        Request::Put { offset, bytes } => (Rights::WRITE, offset, bytes.len() as u64, true),
        Request::Get { offset, len } => (Rights::READ, offset, len as u64, true),
        Request::Atomic { offset, .. } => (Rights::ATOMIC, offset, 8, offset % 8 == 0),
    };
    if !cookie.rights().allow(wanted) {
        return Some(Refusal::Rights { held: cookie.rights(), wanted });
    }
    let inside = offset.checked_add(len).is_some_and(|end| end <= cookie.len);
    (!inside || !aligned).then_some(Refusal::Range { offset, len })
}

fn config(peer: PeerId, options: &IwarpOptions) -> iwarp::Config {
    let domain = iwarp::DomainId(1);
    iwarp::Config {
        identity: StreamIdentity { domain, stream: StreamId(u64::from(peer.0)) },
        crc: options.crc,
        markers: options.markers.and_then(|bytes| Interval::new(bytes).ok()),
        ird: DEPTH,
        ord: DEPTH,
        peer_to_peer: true,
        segment_size: options.frame,
        queue_limit: QUEUE_LIMIT,
        setup_timeout: options.setup_timeout,
        close_timeout: options.close_timeout,
        ..iwarp::Config::default()
    }
}

fn whole(id: BufferId, len: u32) -> SourceSlice {
    SourceSlice { source: Source::Buffer(id), offset: 0, len }
}

fn work(kind: u64, id: BufferId) -> WorkId {
    WorkId(kind << KIND_SHIFT | id.0)
}

/// What both sides say of themselves.
const HELLO: Hello = Hello { max_message: MAX_MESSAGE as u16, max_transfer: MAX_TRANSFER as u32 };

/// Names of work: what it is, and the number of its buffer.
const KIND_SHIFT: u32 = 56;
const ID_MASK: u64 = (1 << KIND_SHIFT) - 1;
const SENT: u64 = 1;
const ANSWERED: u64 = 2;
const GET: u64 = 3;
const RECEIVE: WorkId = WorkId(4 << KIND_SHIFT);
