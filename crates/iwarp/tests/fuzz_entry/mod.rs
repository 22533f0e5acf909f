//! What a fuzzer calls: one connection, driven by bytes.
//!
//! The first byte chooses the role and the configuration. Then come records: an action, a length, and
//! as many bytes for the action. The host's memory checks every access again, a region without rights
//! must stay as it is, and nothing may panic. The stored inputs are replayed by the `replay` test; a
//! libFuzzer target includes this file by path and calls [`connection`].

// Each file that includes this one uses a part of it.
#![allow(dead_code)]

use sidestep_iwarp::*;
use sidestep_wire::mpa::marker::Spacing;
use sidestep_wire::mpa::{crc32c, fpdu};
use sidestep_wire::rdmap::read_request;
use std::time::Duration;

/// The target's name, which is also that of its corpus.
pub const TARGET: &str = "iwarp_connection";

const IDENTITY: StreamIdentity = StreamIdentity { domain: DomainId(1), stream: StreamId(1) };
const REGION_LEN: usize = 64;
const RECEIVE_LEN: u32 = 32;
const OPEN: Stag = Stag(0x0101_0101);
const LOCKED: Stag = Stag(0x0202_0202);

/// Drives a connection with `data`.
pub fn connection(data: &[u8]) {
    let Some((choice, mut data)) = data.split_first() else {
        return;
    };
    let mut driver = Driver::new(*choice);
    while let [action, len, rest @ ..] = data {
        let (body, rest) = rest.split_at(rest.len().min(usize::from(*len)));
        driver.act(action % 8, body);
        data = rest;
    }
    driver.finish();
}

struct Driver {
    connection: Connection,
    table: MemoryTable,
    memory: Memory,
    gather: Gather,
    inbox: Vec<u8>,
    /// A write that is being placed while it comes, and how far it is.
    passing: Option<(Passage, usize)>,
    now: Duration,
    posted: u64,
    completed: u64,
    /// This end reads into the locked region, so that it may change.
    reads: bool,
}

struct Memory {
    open: [u8; REGION_LEN],
    locked: [u8; REGION_LEN],
}

impl Memory {
    fn region(&mut self, stag: Stag) -> &mut [u8; REGION_LEN] {
        match stag {
            OPEN => &mut self.open,
            LOCKED => &mut self.locked,
            other => panic!("no region {other}"),
        }
    }
}

impl Host for Memory {
    fn place(&mut self, target: Target, bytes: &[u8]) {
        match target {
            Target::Region { stag, offset } => {
                let start = usize::try_from(offset).expect("an offset within the region");
                self.region(stag)[start..start + bytes.len()].copy_from_slice(bytes);
            }
            Target::Receive { offset, .. } => {
                assert!(offset as usize + bytes.len() <= RECEIVE_LEN as usize);
            }
        }
    }

    fn atomic(&mut self, stag: Stag, offset: u64, operation: Operation) -> u64 {
        assert_eq!(offset % 8, 0);
        let start = offset as usize;
        let word = &mut self.region(stag)[start..start + 8];
        let original = u64::from_ne_bytes(word.try_into().expect("eight bytes"));
        word.copy_from_slice(&operation.apply(original).to_ne_bytes());
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

impl Memory {
    fn source(&mut self, slice: SourceSlice) -> &[u8] {
        let start = slice.offset as usize;
        let end = start + slice.len as usize;
        match slice.source {
            Source::Region(stag) => &self.region(stag)[start..end],
            Source::Buffer(_) => &ZEROS[start..end],
        }
    }
}

static ZEROS: [u8; 4096] = [0; 4096];

impl Driver {
    fn new(choice: u8) -> Self {
        let flag = |bit: u8| choice & (1 << bit) != 0;
        let config = Config {
            identity: IDENTITY,
            crc: flag(1),
            markers: flag(2).then_some(Interval::STANDARD),
            revision: if flag(4) { Revision::One } else { Revision::Two },
            peer_to_peer: flag(5),
            ird: 2,
            ord: 2,
            segment_size: 256,
            queue_limit: 8,
            nudge: flag(6).then_some(Duration::from_millis(1)),
            ..Config::default()
        };
        let now = Duration::ZERO;
        let connection = if flag(0) {
            Connection::initiate(config, b"hello", now).expect("a short question")
        } else {
            Connection::respond(config, now)
        };
        let mut table = MemoryTable::new();
        let region = Region {
            base: TaggedOffset(0x1000),
            length: REGION_LEN as u64,
            rights: Rights::READ | Rights::WRITE | Rights::ATOMIC | Rights::INVALIDATE,
            domain: IDENTITY.domain,
            stream: Some(IDENTITY.stream),
        };
        let open = table.register(region, || OPEN.0);
        let locked = table.register(Region { rights: Rights::NONE, ..region }, || LOCKED.0);
        assert_eq!((open, locked), (Ok(OPEN), Ok(LOCKED)));
        let mut driver = Self {
            connection,
            table,
            memory: Memory { open: [7; REGION_LEN], locked: [9; REGION_LEN] },
            gather: Gather::new(),
            inbox: Vec::new(),
            passing: None,
            now,
            posted: 0,
            completed: 0,
            reads: false,
        };
        if flag(3) {
            driver.set_up(flag(0));
        }
        driver
    }

    /// Goes through set-up with a plain peer, so that the bytes that follow are FPDUs.
    fn set_up(&mut self, initiator: bool) {
        self.transmit(u64::MAX);
        let kind: &[u8] = if initiator { b"MPA ID Rep Frame" } else { b"MPA ID Req Frame" };
        self.input(kind);
        self.input(&[0x10, 0x02, 0, 4, 0xc0, 2, 0xc0, 2]);
        let _ = self.connection.accept(b"");
    }

    fn act(&mut self, action: u8, body: &[u8]) {
        match action {
            0 => self.input(body),
            1 => self.input_framed(body),
            2 => self.post(body),
            3 => self.transmit(body.first().map_or(u64::MAX, |count| u64::from(*count))),
            4 => {
                self.now += Duration::from_millis(body.first().map_or(1, |ms| u64::from(*ms) * 100));
                self.connection.handle_timeout(self.now);
            }
            5 => self.connection.handle_end(self.now),
            6 => match body.first() {
                Some(0) => self.connection.close(self.now),
                Some(1) => self.connection.abort(self.now),
                Some(2) => self.connection.reset(),
                Some(3) => {
                    self.table.invalidate(OPEN);
                }
                Some(4) => {
                    let _ = self.connection.reject(self.now, body);
                }
                _ => {
                    let _ = self.connection.accept(body);
                }
            },
            _ => {
                let work = self.work();
                if self.connection.post_receive(work, RECEIVE_LEN).is_ok() {
                    self.posted += 1;
                }
            }
        }
        self.collect();
    }

    fn input(&mut self, bytes: &[u8]) {
        self.inbox.extend_from_slice(bytes);
        while self.pass() {}
        if self.passing.is_some() {
            return;
        }
        let Self { connection, table, memory, inbox, now, .. } = self;
        let consumed = connection.handle_input(*now, inbox, table, memory);
        assert!(consumed <= inbox.len());
        inbox.drain(..consumed);
    }

    /// Takes what is here of a write that is placed while it comes, as every second one may be. Whether that was all of one.
    fn pass(&mut self) -> bool {
        let Self { connection, table, memory, inbox, now, passing, .. } = self;
        if passing.is_none() {
            let even = inbox.len() % 2 == 0;
            let Some(passage) = even.then(|| connection.begin_passage(inbox, table)).flatten() else { return false };
            assert!(passage.headers <= inbox.len() && passage.payload <= REGION_LEN);
            inbox.drain(..passage.headers);
            *passing = Some((passage, 0));
        }
        let Some((passage, done)) = passing else { return false };
        let here = inbox.len().min(passage.payload - *done);
        memory.place(Target::Region { stag: passage.stag, offset: passage.offset + *done as u64 }, &inbox[..here]);
        inbox.drain(..here);
        *done += here;
        if *done < passage.payload || inbox.len() < passage.trailer {
            return false;
        }
        inbox.drain(..passage.trailer);
        connection.finish_passage(*now, passage);
        *passing = None;
        true
    }

    /// A whole FPDU around these bytes, as it would be in a stream without markers.
    fn input_framed(&mut self, ulpdu: &[u8]) {
        let repr = fpdu::Repr { ulpdu_len: ulpdu.len() as u16 };
        let mut bytes = vec![0; repr.buffer_len(Spacing::none())];
        repr.emit(ulpdu, Spacing::none(), &mut bytes);
        self.input(&bytes);
    }

    fn post(&mut self, body: &[u8]) {
        let (kind, number) = match body {
            [kind, number, ..] => (kind % 6, u64::from(*number)),
            _ => return,
        };
        let work = self.work();
        let source = SourceSlice { source: Source::Buffer(BufferId(0)), offset: 0, len: (number * 8) as u32 };
        let connection = &mut self.connection;
        let invalidate = (number % 3 == 0).then_some(Stag(number as u32));
        let result = match kind {
            0 => connection.post_send(work, source, SendKind { solicited: false, invalidate }),
            1 => connection.post_write(work, source, Stag(5), TaggedOffset(number)),
            2 => connection.post_immediate(work, number, true),
            3 => {
                let operation = Operation::FetchAdd { add: number, mask: 0 };
                connection.post_atomic(work, Stag(5), TaggedOffset(number), operation)
            }
            4 => {
                let request = read_request::Repr {
                    sink: LOCKED,
                    sink_offset: TaggedOffset(0x1000),
                    size: number as u32,
                    source: Stag(6),
                    source_offset: TaggedOffset(number),
                };
                connection.post_read(work, request, &self.table)
            }
            _ => {
                let len = REGION_LEN as u32;
                let source = SourceSlice { source: Source::Region(OPEN), offset: 0, len };
                connection.post_send(work, source, SendKind::default())
            }
        };
        if result.is_ok() {
            self.posted += 1;
            self.reads |= kind == 4;
        }
    }

    fn transmit(&mut self, count: u64) {
        let Self { connection, table, memory, gather, now, .. } = self;
        connection.poll_transmit(*now, 2048, table, memory, gather);
        for piece in gather.pieces() {
            if let Piece::Source(slice) = piece {
                assert_eq!(memory.source(slice).len(), slice.len as usize);
            }
        }
        let count = count.min(gather.len());
        gather.advance(count);
        connection.handle_transmitted(*now, count);
    }

    fn collect(&mut self) {
        while self.connection.poll_completion().is_some() {
            self.completed += 1;
        }
        while self.connection.poll_event().is_some() {}
        assert!(self.completed <= self.posted, "more completed than posted");
    }

    /// Whatever happened, in the end everything that was posted is completed once.
    fn finish(&mut self) {
        self.connection.reset();
        self.collect();
        assert_eq!(self.completed, self.posted);
        assert!(self.reads || self.memory.locked == [9; REGION_LEN], "the peer wrote to it");
        assert_eq!(self.connection.poll_timeout(), None);
        assert!(!self.connection.holds(OPEN) && !self.connection.holds(LOCKED));
    }

    fn work(&self) -> WorkId {
        WorkId(self.posted)
    }
}
