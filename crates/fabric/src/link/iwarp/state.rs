//! What a session knows under its lock.

mod ask;
mod early;
mod ending;
mod hear;

use std::{collections::VecDeque, time::Duration};

use rustix::io::Errno;
use sidestep_iwarp::{
    self as iwarp, BufferId, Connection, Gather, Interval, MemoryTable, Passage, Source, StreamId, StreamIdentity,
    TaggedOffset, Transport, WorkId,
};

use self::early::Early;
use super::{
    MAX_MESSAGE, MAX_TRANSFER,
    asks::{Asks, TAG_MASK},
    control::{Control, Hello},
    hosting::Hosting,
    lent::Lent,
    memory::Memory,
    session::Around,
};
use crate::{
    cookie::Cookie,
    error::{CloseReason, Error, Result},
    link::{LinkOptions, Outcome, PeerNumber, Request, Target, Ticket},
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
    /// Frames have checksums.
    crc: bool,
    pub(super) told: Told,
    /// How it ended.
    pub(super) ended: Option<CloseReason>,
    pub(super) stream: Stream,
    /// The engine was told the time, and may have something to say.
    pub(super) has_timed_out: bool,
    pub(super) held: Held,
    work: Work,
}

/// What the engine was asked for.
#[derive(Debug, Default)]
struct Work {
    /// What it has not completed.
    posted: usize,
    /// Completions for the node, found while sending.
    unhandled: Vec<iwarp::Completion>,
}

/// What the node was told of.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The peer.
    pub(super) peer: bool,
    /// The end.
    end: bool,
}

/// What is known of the socket underneath.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// Nothing is left to send or to receive.
    pub(super) gone: bool,
    /// Why nothing can be sent any more. The kernel tells it once, and whoever reads then finds a plain end.
    pub(super) cannot_send: Option<Errno>,
    pub(super) wants_writable: bool,
    /// It is not in the link's set.
    pub(super) is_muted: bool,
    pub(super) finished: bool,
}

/// Answers that are held back for company.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Polls since there is one.
    pub(super) polls: u32,
    /// The link knows of it.
    pub(super) is_known: bool,
}

/// What the node is told.
#[derive(Debug)]
pub(super) enum Delivery {
    Opened,
    Message(Vec<u8>),
    Completed(Ticket, Outcome),
    Closed(CloseReason),
}

/// Bytes that wait for the stream before messages are turned away, and requests: what those write is better left where it
/// is.
const MAX_QUEUED: usize = 4 << 20;
const MAX_WAITING: usize = 256 * 1024;
/// Requests of the engine that may wait.
const QUEUE_LIMIT: usize = 8192;
/// Requests of the engine that one request of the fabric takes, with a tag given back.
const MOST_POSTS: usize = 4;
/// Reads and atomics that are served, and may be under way.
const DEPTH: u16 = 32;
/// Messages that may come before one is looked at; frames are handled one by one.
const RECEIVES: usize = 4;

impl State {
    /// The side that connects.
    pub(super) fn initiate(peer: PeerNumber, options: &LinkOptions, now: Duration) -> Result<State> {
        let config = config(peer, options);
        let connection = Connection::initiate(config.clone(), &HELLO.to_bytes(), now);
        let connection = connection.map_err(|_| Error::Unsupported("private data of this length"))?;
        let mut state = State::new(peer, connection, config.identity);
        state.told.peer = true;
        Ok(state)
    }

    /// The side that was reached.
    pub(super) fn respond(peer: PeerNumber, options: &LinkOptions, now: Duration) -> State {
        let config = config(peer, options);
        State::new(peer, Connection::respond(config.clone(), now), config.identity)
    }

    fn new(peer: PeerNumber, connection: Connection, identity: StreamIdentity) -> State {
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
            crc: true,
            told: Told::default(),
            ended: None,
            stream: Stream::default(),
            has_timed_out: false,
            held: Held::default(),
            work: Work::default(),
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
    ) -> Result<Option<(BufferId, Lent<'a>)>> {
        self.check_room(MOST_POSTS)?;
        if !self.open {
            self.early.push_back(Early::of(ticket, cookie, request));
            return Ok(None);
        }
        self.ask(ticket, cookie, request)
    }

    /// Starts a put of bytes that lie in a region, now or when the connection is made. Those that were not taken are
    /// returned. With `still`, no peer can change them during the call.
    pub(super) fn put<'a>(
        &mut self,
        ticket: Ticket,
        cookie: &Cookie,
        offset: u64,
        source: Lent<'a>,
        still: bool,
    ) -> Result<Option<(BufferId, Lent<'a>)>> {
        self.check_room(MOST_POSTS)?;
        if self.open && source.len() > 0 {
            return self.ask_put(ticket, cookie, offset, source, still);
        }
        let mut bytes = vec![0; source.len()];
        source.area(0, source.len()).copy_out(&mut bytes);
        self.request(ticket, cookie, Request::Put { offset, bytes: &bytes })?;
        Ok(None)
    }

    /// After a transmission: keeps what was lent if the stream has not taken all of it.
    pub(super) fn keep_unsent(&mut self, id: BufferId, lent: Lent<'_>) {
        // What the engine has completed is not asked for again.
        let unsent = self.memory.outgoing.lent.take().is_some();
        if unsent && !(self.gather.is_empty() && self.connection.has_gathered_all()) {
            self.memory.outgoing.keep_lent(id, lent, self.crc);
        }
    }

    /// Feeds the engine one frame.
    pub(super) fn handle_input(&mut self, now: Duration, frame: &[u8], target: &dyn Target) -> usize {
        let State { connection, table, memory, .. } = self;
        let mut host = Hosting { memory, target: Some(target), caller: None };
        let taken = connection.handle_input(now, frame, table, &mut host);
        host.finish_frame();
        taken
    }

    /// All of a write is here that was placed while it came, but for its last word.
    pub(super) fn finish_passage(&mut self, now: Duration, passage: &Passage, word: &[u8], target: &dyn Target) {
        self.memory.finish_passage(passage, word, target);
        self.connection.finish_passage(now, passage);
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
                self.work.posted -= 1;
                self.memory.outgoing.release(completion.work.0 & ID_MASK);
            } else {
                self.work.unhandled.push(completion);
            }
        }
    }

    /// Takes what the engine has to say.
    pub(super) fn collect(&mut self, around: Around<'_>, target: &dyn Target, deliveries: &mut Vec<Delivery>) {
        for completion in std::mem::take(&mut self.work.unhandled) {
            self.complete(completion, target, deliveries);
        }
        loop {
            if let Some(completion) = self.connection.poll_completion() {
                self.complete(completion, target, deliveries);
            } else if let Some(event) = self.connection.poll_event() {
                self.handle_event(event, around.now(), deliveries);
            } else {
                break;
            }
        }
        for notice in std::mem::take(&mut self.memory.notices) {
            self.tell_first(notice);
        }
        if let Some(what) = self.memory.violation.take() {
            self.close(CloseReason::Violation(what), around.now());
        }
    }

    /// Whether a poll has something to do though nothing has come.
    pub(super) fn wants_look(&self) -> bool {
        self.ended.is_some()
            || self.has_timed_out
            || self.stream.wants_writable
            || self.memory.urgent
            || !self.work.unhandled.is_empty()
    }

    /// Whether there is something to do for the stream.
    pub(super) fn has_output(&self) -> bool {
        !self.gather.is_empty() || self.connection.has_output() || self.connection.transport() != Transport::Open
    }

    /// Whether something waits for company, or for an answer that was not asked for.
    pub(super) fn holds_back(&self) -> bool {
        self.ended.is_none() && (self.memory.patient > 0 || self.asks.owes_flush())
    }

    /// Whether something is held back that the link does not know of yet; from now on it does. What the link knows is
    /// settled under the lock, so that nothing is forgotten that is held back while it looks.
    pub(super) fn begins_to_hold(&mut self) -> bool {
        !self.held.is_known && self.still_holds()
    }

    /// Whether the link is to go on looking after what is held back.
    pub(super) fn still_holds(&mut self) -> bool {
        self.held.is_known = self.holds_back();
        self.held.is_known
    }

    pub(super) fn owes_flush(&self) -> bool {
        self.asks.owes_flush()
    }

    fn check_room(&self, posts: usize) -> Result<()> {
        if let Some(reason) = self.ended {
            return Err(Error::Closed(reason));
        }
        let early: usize = if self.open { 0 } else { self.early.iter().map(Early::len).sum() };
        let limit = if posts > 0 { MAX_WAITING } else { MAX_QUEUED };
        let full = self.memory.outgoing.queued + early >= limit
            || self.work.posted + self.early.len() + posts >= QUEUE_LIMIT / 2
            || (posts > 0 && self.asks.is_full());
        if full { Err(Error::Full { what: "the stream to the peer", limit }) } else { Ok(()) }
    }
}

fn config(peer: PeerNumber, options: &LinkOptions) -> iwarp::Config {
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

/// What both sides say of themselves.
const HELLO: Hello = Hello { max_message: MAX_MESSAGE as u16, max_transfer: MAX_TRANSFER as u32 };

/// Names of work: what it is, and the number of its buffer.
const KIND_SHIFT: u32 = 56;
const ID_MASK: u64 = (1 << KIND_SHIFT) - 1;
const SENT: u64 = 1;
const ANSWERED: u64 = 2;
const GET: u64 = 3;
const RECEIVE: WorkId = WorkId(4 << KIND_SHIFT);
