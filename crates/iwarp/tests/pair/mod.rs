//! Two ends of a connection in memory, under a clock that only the test moves.

// Each test file uses a part of it.
#![allow(dead_code)]

use sidestep_iwarp::*;
use sidestep_wire::mpa::crc32c;
use sidestep_wire::rdmap::read_request;
use std::collections::HashMap;
use std::time::Duration;

/// The domain of both ends; each has its own table, so they do not meet.
pub const DOMAIN: DomainId = DomainId(1);
pub const IDENTITY: StreamIdentity = StreamIdentity { domain: DOMAIN, stream: StreamId(7) };

/// The configuration that tests start from.
pub fn config() -> Config {
    Config { identity: IDENTITY, ..Config::default() }
}

/// The memory of one end: every region, source buffer and receive buffer is a vector.
#[derive(Default)]
pub struct Memory {
    pub regions: HashMap<Stag, Vec<u8>>,
    pub buffers: HashMap<BufferId, Vec<u8>>,
    pub receives: HashMap<WorkId, Vec<u8>>,
    /// How many bytes were placed, and how many atomics were done.
    pub touched: usize,
}

impl Memory {
    pub fn source(&self, slice: SourceSlice) -> &[u8] {
        let memory = match slice.source {
            Source::Region(stag) => &self.regions[&stag],
            Source::Buffer(id) => &self.buffers[&id],
        };
        let start = slice.offset as usize;
        &memory[start..start + slice.len as usize]
    }
}

impl Host for Memory {
    fn place(&mut self, target: Target, bytes: &[u8]) {
        let (memory, offset) = match target {
            Target::Region { stag, offset } => (self.regions.get_mut(&stag).expect("a region"), offset as usize),
            Target::Receive { work, offset } => {
                (self.receives.get_mut(&work).expect("a receive buffer"), offset as usize)
            }
        };
        memory[offset..offset + bytes.len()].copy_from_slice(bytes);
        self.touched += bytes.len();
    }

    fn atomic(&mut self, stag: Stag, offset: u64, operation: Operation) -> u64 {
        let region = self.regions.get_mut(&stag).expect("a region");
        let word = &mut region[offset as usize..offset as usize + 8];
        let original = u64::from_ne_bytes(word.try_into().expect("eight bytes"));
        word.copy_from_slice(&operation.apply(original).to_ne_bytes());
        self.touched += 1;
        original
    }

    /// Some slices are copied and some are not: both ways lead to the same bytes.
    fn copy(&mut self, slice: SourceSlice, into: &mut Vec<u8>) -> bool {
        let copies = slice.len % 2 == 0;
        if copies {
            into.extend_from_slice(self.source(slice));
        }
        copies
    }

    fn checksum(&mut self, crc: u32, slice: SourceSlice) -> u32 {
        crc32c(crc, self.source(slice))
    }
}

/// One end with its memory and the driver's part.
pub struct End {
    pub connection: Connection,
    pub table: MemoryTable,
    pub memory: Memory,
    pub events: Vec<Event>,
    pub completions: Vec<Completion>,
    /// Bytes that came and were not consumed.
    inbox: Vec<u8>,
    gather: Gather,
    /// Bytes on their way to this end.
    pub pipe: Vec<u8>,
    /// Everything that was ever sent to this end.
    pub record: Vec<u8>,
    /// The other end has finished; this end is told when the pipe is empty.
    ending: bool,
    told: bool,
    next: u64,
    /// How much is gathered at a time.
    pub budget: u64,
    /// How much the stream takes at a time.
    pub window: u64,
    /// Writes are placed while they come, where that is allowed.
    pub passes: bool,
    /// The one that is being placed, and how far it is.
    passing: Option<(Passage, usize)>,
}

impl End {
    pub fn new(connection: Connection) -> Self {
        Self {
            connection,
            table: MemoryTable::new(),
            memory: Memory::default(),
            events: Vec::new(),
            completions: Vec::new(),
            inbox: Vec::new(),
            gather: Gather::new(),
            pipe: Vec::new(),
            record: Vec::new(),
            ending: false,
            told: false,
            next: 1,
            budget: 64 * 1024,
            window: u64::MAX,
            passes: false,
            passing: None,
        }
    }

    /// A fresh number for works, buffers and tags.
    pub fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Registers memory with these bytes at tagged offset `base`.
    pub fn region(&mut self, bytes: Vec<u8>, base: u64, rights: Rights) -> Stag {
        self.region_of(bytes, base, rights, Some(IDENTITY.stream))
    }

    pub fn region_of(&mut self, bytes: Vec<u8>, base: u64, rights: Rights, stream: Option<StreamId>) -> Stag {
        let region = Region { base: TaggedOffset(base), length: bytes.len() as u64, rights, domain: DOMAIN, stream };
        let number = self.number() as u32;
        let stag = self.table.register(region, || number.wrapping_mul(0x9e37_79b1)).unwrap();
        self.memory.regions.insert(stag, bytes);
        stag
    }

    /// A source buffer with these bytes.
    pub fn source(&mut self, bytes: &[u8]) -> SourceSlice {
        let id = BufferId(self.number());
        self.memory.buffers.insert(id, bytes.to_vec());
        SourceSlice { source: Source::Buffer(id), offset: 0, len: bytes.len() as u32 }
    }

    pub fn post_receive(&mut self, capacity: u32) -> WorkId {
        let work = WorkId(self.number());
        self.memory.receives.insert(work, vec![0; capacity as usize]);
        self.connection.post_receive(work, capacity).unwrap();
        work
    }

    pub fn send(&mut self, bytes: &[u8], kind: SendKind) -> WorkId {
        let work = WorkId(self.number());
        let source = self.source(bytes);
        self.connection.post_send(work, source, kind).unwrap();
        work
    }

    pub fn write(&mut self, bytes: &[u8], sink: Stag, offset: u64) -> WorkId {
        let work = WorkId(self.number());
        let source = self.source(bytes);
        self.connection.post_write(work, source, sink, TaggedOffset(offset)).unwrap();
        work
    }

    pub fn immediate(&mut self, data: u64) -> WorkId {
        let work = WorkId(self.number());
        self.connection.post_immediate(work, data, false).unwrap();
        work
    }

    pub fn read(&mut self, sink: (Stag, u64), source: (Stag, u64), size: u32) -> WorkId {
        let work = WorkId(self.number());
        let request = read_request::Repr {
            sink: sink.0,
            sink_offset: TaggedOffset(sink.1),
            size,
            source: source.0,
            source_offset: TaggedOffset(source.1),
        };
        self.connection.post_read(work, request, &self.table).unwrap();
        work
    }

    pub fn atomic(&mut self, stag: Stag, offset: u64, operation: Operation) -> WorkId {
        let work = WorkId(self.number());
        self.connection.post_atomic(work, stag, TaggedOffset(offset), operation).unwrap();
        work
    }

    /// The outcome of a work that is done.
    pub fn outcome(&self, work: WorkId) -> Option<Outcome> {
        self.completions.iter().find(|completion| completion.work == work).map(|done| done.outcome)
    }

    /// The fault that ended the connection.
    pub fn fault(&self) -> Option<Fault> {
        self.events.iter().find_map(|event| match event {
            Event::Failed(fault) => Some(*fault),
            _ => None,
        })
    }

    /// The reason that the peer gave for ending the connection.
    pub fn peer_reason(&self) -> Option<Reason> {
        self.events.iter().find_map(|event| match event {
            Event::PeerTerminated(terminate) => Some(terminate.reason),
            _ => None,
        })
    }

    pub fn agreement(&self) -> Option<Agreement> {
        self.events.iter().find_map(|event| match event {
            Event::Established { agreement, .. } => Some(*agreement),
            _ => None,
        })
    }

    /// What the connection wants to send now, as bytes. The stream takes `window` bytes at a time, and
    /// is asked until there is nothing left, or only once if the window is limited.
    pub fn output(&mut self, now: Duration) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            let Self { connection, table, memory, gather, budget, window, .. } = self;
            connection.poll_transmit(now, *budget, table, memory, gather);
            let taken = gather.len().min(*window);
            let end = bytes.len() + taken as usize;
            for piece in gather.pieces() {
                match piece {
                    Piece::Bytes(part) => bytes.extend_from_slice(part),
                    Piece::Source(slice) => bytes.extend_from_slice(memory.source(slice)),
                }
            }
            bytes.truncate(end);
            gather.advance(taken);
            connection.handle_transmitted(now, taken);
            if taken == 0 || *window != u64::MAX {
                break;
            }
        }
        self.collect();
        bytes
    }

    /// Gives the connection the next bytes of its stream.
    pub fn input(&mut self, now: Duration, bytes: &[u8]) {
        self.inbox.extend_from_slice(bytes);
        while self.passes && self.pass(now) {}
        if self.passing.is_some() {
            return;
        }
        let Self { connection, table, memory, inbox, .. } = self;
        let needed = connection.needed(inbox);
        let ready = inbox.len() >= needed;
        let consumed = connection.handle_input(now, inbox, table, memory);
        assert!(ready || consumed == 0 || consumed == inbox.len(), "needed less than it said");
        inbox.drain(..consumed);
        self.collect();
    }

    /// Takes what is here of a write that is placed while it comes. Whether that was all of one.
    fn pass(&mut self, now: Duration) -> bool {
        let Self { connection, table, memory, inbox, passing, .. } = self;
        if passing.is_none() {
            let Some(passage) = connection.begin_passage(inbox, table) else { return false };
            inbox.drain(..passage.headers);
            *passing = Some((passage, 0));
        }
        let Some((passage, done)) = passing else { return false };
        let here = inbox.len().min(passage.payload - *done);
        let target = Target::Region { stag: passage.stag, offset: passage.offset + *done as u64 };
        memory.place(target, &inbox[..here]);
        inbox.drain(..here);
        *done += here;
        if *done < passage.payload || inbox.len() < passage.trailer {
            return false;
        }
        inbox.drain(..passage.trailer);
        connection.finish_passage(now, passage);
        *passing = None;
        self.collect();
        true
    }

    pub fn collect(&mut self) {
        while let Some(completion) = self.connection.poll_completion() {
            self.completions.push(completion);
        }
        while let Some(event) = self.connection.poll_event() {
            self.events.push(event);
        }
    }
}

/// Two ends, joined.
pub struct Pair {
    pub now: Duration,
    pub initiator: End,
    pub responder: End,
    /// The responder answers requests by itself, with this private data.
    pub accept_with: Option<Vec<u8>>,
    /// How many bytes are delivered at a time.
    pub chunk: usize,
}

impl Pair {
    pub fn new(initiator: Config, responder: Config) -> Self {
        let now = Duration::from_secs(1);
        let connection = Connection::initiate(initiator, b"question", now).unwrap();
        Self {
            now,
            initiator: End::new(connection),
            responder: End::new(Connection::respond(responder, now)),
            accept_with: Some(b"answer".to_vec()),
            chunk: usize::MAX,
        }
    }

    /// A pair that has gone through set-up.
    pub fn established(initiator: Config, responder: Config) -> Self {
        let mut pair = Self::new(initiator, responder);
        pair.drive();
        assert!(pair.initiator.agreement().is_some(), "{:?}", pair.initiator.events);
        assert!(pair.responder.agreement().is_some(), "{:?}", pair.responder.events);
        pair
    }

    /// A pair of which the responder may send as well, since it has received something.
    pub fn opened(initiator: Config, responder: Config) -> Self {
        let mut pair = Self::established(initiator, responder);
        pair.initiator.write(b"", Stag(0), 0);
        pair.drive();
        pair.initiator.completions.clear();
        pair
    }

    /// Moves bytes to and fro until nothing moves any more.
    pub fn drive(&mut self) {
        while self.step() {}
    }

    /// Moves what each end has to say; returns whether anything moved.
    pub fn step(&mut self) -> bool {
        let Self { now, initiator, responder, chunk, .. } = self;
        let moved = transfer(*now, initiator, responder) | transfer(*now, responder, initiator);
        let delivered = deliver(*now, initiator, *chunk) | deliver(*now, responder, *chunk);
        let asked = responder.events.iter().any(|event| matches!(event, Event::Requested { .. }));
        if asked && let Some(private_data) = self.accept_with.take() {
            self.responder.connection.accept(&private_data).unwrap();
            self.responder.collect();
            return true;
        }
        moved || delivered
    }

    /// Lets time pass, and tells both ends.
    pub fn wait(&mut self, time: Duration) {
        self.now += time;
        for end in [&mut self.initiator, &mut self.responder] {
            end.connection.handle_timeout(self.now);
            end.collect();
        }
    }
}

/// Puts the output of one end into the pipe to the other.
fn transfer(now: Duration, from: &mut End, to: &mut End) -> bool {
    let bytes = from.output(now);
    to.pipe.extend_from_slice(&bytes);
    to.record.extend_from_slice(&bytes);
    let ends = from.connection.transport() != Transport::Open && !to.ending;
    to.ending |= ends;
    !bytes.is_empty() || ends
}

/// Delivers at most `chunk` bytes of the pipe, and the end of the stream behind the last one.
fn deliver(now: Duration, end: &mut End, chunk: usize) -> bool {
    if end.pipe.is_empty() {
        if end.ending && !end.told {
            end.told = true;
            end.connection.handle_end(now);
            end.collect();
            return true;
        }
        return false;
    }
    let bytes: Vec<u8> = end.pipe.drain(..chunk.min(end.pipe.len())).collect();
    end.input(now, &bytes);
    true
}

/// Bytes that differ from place to place.
pub fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed) ^ (at >> 8) as u8).collect()
}
