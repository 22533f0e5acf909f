//! Every check of what a peer sends: its fault, its terminate message, and that no memory is touched.

mod pair;

use pair::*;
use sidestep_iwarp::*;
use sidestep_wire::mpa::fpdu;
use sidestep_wire::mpa::marker::Spacing;
use sidestep_wire::rdmap::segment::{self, Repr};
use sidestep_wire::rdmap::{atomic_request, atomic_response, immediate, read_request, terminate};
use sidestep_wire::{MessageOffset, Msn};

/// A pair whose responder has one region of each kind, and whose initiator waits for an answer.
struct Bench {
    pair: Pair,
    writable: Stag,
    readable: Stag,
    atomic: Stag,
    foreign: Stag,
    shared: Stag,
    sink: Stag,
}

const BASE: u64 = 1000;

impl Bench {
    fn new() -> Self {
        let responder = Config { ird: 2, ..config() };
        let mut pair = Pair::opened(config(), responder);
        let other = Some(StreamId(IDENTITY.stream.0 + 1));
        let all = Rights::READ | Rights::WRITE | Rights::ATOMIC | Rights::INVALIDATE;
        let end = &mut pair.responder;
        let writable = end.region(vec![0; 100], BASE, Rights::WRITE);
        let readable = end.region(vec![0; 100], BASE, Rights::READ);
        let atomic = end.region(vec![0; 100], BASE, Rights::ATOMIC);
        let foreign = end.region_of(vec![0; 100], BASE, all, other);
        let shared = end.region_of(vec![0; 100], BASE, all, None);
        let sink = pair.initiator.region(vec![0; 100], BASE, Rights::NONE);
        Self { pair, writable, readable, atomic, foreign, shared, sink }
    }

    fn read(&self, source: Stag, offset: u64, size: u32) -> Vec<u8> {
        bytes(Repr::ReadRequest {
            msn: Msn(1),
            request: read_request::Repr {
                sink: self.sink,
                sink_offset: TaggedOffset(BASE),
                size,
                source,
                source_offset: TaggedOffset(offset),
            },
        })
    }

    fn atomic_at(&self, stag: Stag, offset: u64) -> Vec<u8> {
        let operation = Operation::FetchAdd { add: 1, mask: 0 };
        let request = atomic_request::Repr { id: 1, stag, offset: TaggedOffset(offset), operation };
        bytes(Repr::AtomicRequest { msn: Msn(1), request })
    }
}

fn bytes(repr: Repr) -> Vec<u8> {
    let mut bytes = vec![0; repr.buffer_len()];
    repr.emit(&mut bytes);
    bytes
}

fn with_payload(repr: Repr, len: usize) -> Vec<u8> {
    let mut bytes = bytes(repr);
    bytes.extend(std::iter::repeat_n(0xff, len));
    bytes
}

fn write(sink: Stag, offset: u64, len: usize) -> Vec<u8> {
    with_payload(Repr::Write { last: true, sink, offset: TaggedOffset(offset) }, len)
}

fn send(msn: u32, offset: u32, last: bool, invalidate: Option<Stag>, len: usize) -> Vec<u8> {
    let kind = SendKind { solicited: false, invalidate };
    let offset = MessageOffset(offset);
    with_payload(Repr::Send { last, msn: Msn(msn), offset, kind }, len)
}

fn read_response(sink: Stag, offset: u64, last: bool, len: usize) -> Vec<u8> {
    with_payload(Repr::ReadResponse { last, sink, offset: TaggedOffset(offset) }, len)
}

fn changed(mut bytes: Vec<u8>, at: usize, byte: u8) -> Vec<u8> {
    bytes[at] = byte;
    bytes
}

fn cut(mut bytes: Vec<u8>, len: usize) -> Vec<u8> {
    bytes.truncate(len);
    bytes
}

/// Checks that one segment, after others that are fine, is refused by the responder.
fn refused(check: Check, segments: impl Fn(&mut Bench) -> Vec<Vec<u8>>) {
    let mut bench = Bench::new();
    let segments = segments(&mut bench);
    let out = inject(&mut bench.pair.responder, bench.pair.now, check, &segments);
    bench.pair.initiator.input(bench.pair.now, &out);
    assert_eq!(bench.pair.initiator.peer_reason(), Some(check.reason()), "{check:?}");
}

/// The same for the initiator, which has a read of 40 bytes and then an atomic under way.
fn refused_answer(check: Check, segments: impl Fn(&mut Bench) -> Vec<Vec<u8>>) {
    let mut bench = Bench::new();
    let (sink, readable, atomic) = (bench.sink, bench.readable, bench.atomic);
    bench.pair.initiator.read((sink, BASE), (readable, BASE), 40);
    let add = Operation::FetchAdd { add: 1, mask: 0 };
    bench.pair.initiator.atomic(atomic, BASE, add);
    bench.pair.initiator.output(bench.pair.now);
    let segments = segments(&mut bench);
    inject(&mut bench.pair.initiator, bench.pair.now, check, &segments);
}

/// Feeds the segments, checks that the last one is refused, and returns what the peer is sent.
fn inject(end: &mut End, now: std::time::Duration, check: Check, segments: &[Vec<u8>]) -> Vec<u8> {
    let (last, before) = segments.split_last().expect("a segment");
    for segment in before {
        end.input(now, &framed(segment));
        assert_eq!(end.fault(), None, "{check:?}: refused too early");
    }
    let touched = end.memory.touched;
    end.input(now, &framed(last));
    let fault = end.fault().unwrap_or_else(|| panic!("{check:?} passes"));
    assert_eq!(fault.check(), check, "{fault}");
    assert!(!fault.to_string().is_empty());
    assert_eq!(end.memory.touched, touched, "{check:?} touched memory");

    let out = end.output(now);
    let packet = fpdu::Packet::new_checked(&out[..], Spacing::none()).unwrap();
    packet.check_crc().unwrap();
    let mut ulpdu = vec![0; packet.ulpdu_len()];
    packet.copy_ulpdu(&mut ulpdu);
    let header = segment::Header::new_checked(&ulpdu, ulpdu.len()).unwrap();
    let Ok(Repr::Terminate { msn, terminate }) = Repr::parse(&header) else {
        panic!("{check:?}: no terminate message")
    };
    assert_eq!((msn, terminate.reason), (Msn::FIRST, check.reason()));
    check_headers(check, &terminate, last);
    out
}

/// RFC 5040 §4.8 and figure 10: length and DDP header, and for read requests the request.
fn check_headers(check: Check, terminate: &terminate::Repr, segment: &[u8]) {
    let header_len = if segment.first().is_some_and(|byte| byte & 0x80 != 0) { 14 } else { 18 };
    assert_eq!(terminate.segment_len, Some(segment.len() as u16), "{check:?}");
    assert_eq!(terminate.ddp.as_ref().map(|header| header.as_bytes()), segment.get(..header_len), "{check:?}");
    let is_read = segment.get(1) == Some(&0x41);
    let protection = terminate.reason.layer == 0 && terminate.reason.etype == 1;
    assert_eq!(terminate.request.is_some(), is_read && protection, "{check:?}");
}

fn framed(ulpdu: &[u8]) -> Vec<u8> {
    let repr = fpdu::Repr { ulpdu_len: ulpdu.len() as u16 };
    let mut bytes = vec![0; repr.buffer_len(Spacing::none())];
    repr.emit(ulpdu, Spacing::none(), &mut bytes);
    bytes
}

#[test]
fn headers_of_segments() {
    refused(Check::SegmentShort, |_| vec![vec![]]);
    refused(Check::SegmentShort, |_| vec![vec![0x41]]);
    refused(Check::SegmentShort, |bench| vec![cut(write(bench.writable, BASE, 0), 13)]);
    refused(Check::SegmentShort, |_| vec![cut(send(1, 0, true, None, 0), 17)]);
    refused(Check::TaggedVersion, |bench| vec![changed(write(bench.writable, BASE, 4), 0, 0xc2)]);
    refused(Check::UntaggedVersion, |_| vec![changed(send(1, 0, true, None, 4), 0, 0x40)]);
    refused(Check::RdmapVersion, |_| vec![changed(send(1, 0, true, None, 4), 1, 0x03)]);
    refused(Check::Opcode, |_| vec![changed(send(1, 0, true, None, 4), 1, 0x4c)]);
    refused(Check::Model, |bench| vec![changed(write(bench.writable, BASE, 8), 0, 0x41)]);
    refused(Check::Model, |_| vec![changed(send(1, 0, true, None, 4), 0, 0xc1)]);
    refused(Check::Queue, |_| vec![changed(send(1, 0, true, None, 4), 9, 1)]);
    refused(Check::Queue, |_| vec![changed(send(1, 0, true, None, 4), 6, 1)]);
    refused(Check::MessageOffset, |bench| vec![changed(bench.read(bench.readable, BASE, 4), 17, 1)]);
}

#[test]
fn messages_of_one_segment() {
    refused(Check::MessageShape, |bench| {
        let mut long = bench.read(bench.readable, BASE, 4);
        long.push(0);
        vec![long]
    });
    refused(Check::MessageShape, |bench| vec![cut(bench.read(bench.readable, BASE, 4), 45)]);
    refused(Check::MessageShape, |bench| vec![changed(bench.read(bench.readable, BASE, 4), 0, 0x01)]);
    refused(Check::MessageShape, |bench| {
        bench.pair.responder.post_receive(100);
        let immediate = immediate::Repr { data: 1 };
        let mut long = bytes(Repr::Immediate { msn: Msn(1), solicited: false, immediate });
        long.push(0);
        vec![long]
    });
    refused(Check::AtomicOperation, |bench| vec![changed(bench.atomic_at(bench.atomic, BASE), 21, 1)]);
}

#[test]
fn sends() {
    refused(Check::NoReceive, |_| vec![send(1, 0, true, None, 4)]);
    refused(Check::NoReceive, |_| {
        let immediate = immediate::Repr { data: 1 };
        vec![bytes(Repr::Immediate { msn: Msn(1), solicited: false, immediate })]
    });
    refused(Check::MessageNumber, |bench| {
        bench.pair.responder.post_receive(10);
        vec![send(2, 0, true, None, 4)]
    });
    refused(Check::MessageNumber, |bench| {
        bench.pair.responder.post_receive(10);
        bench.pair.responder.post_receive(10);
        vec![send(1, 0, true, None, 4), send(1, 0, true, None, 4)]
    });
    refused(Check::MessageOffset, |bench| {
        bench.pair.responder.post_receive(10);
        vec![send(1, 4, true, None, 4)]
    });
    refused(Check::MessageOffset, |bench| {
        bench.pair.responder.post_receive(10);
        vec![send(1, 0, false, None, 4), send(1, 5, true, None, 4)]
    });
    refused(Check::MessageTooLong, |bench| {
        bench.pair.responder.post_receive(10);
        vec![send(1, 0, true, None, 11)]
    });
    refused(Check::MessageTooLong, |bench| {
        bench.pair.responder.post_receive(10);
        vec![send(1, 0, false, None, 6), send(1, 6, true, None, 6)]
    });
    refused(Check::OpcodeChanged, |bench| {
        bench.pair.responder.post_receive(10);
        vec![send(1, 0, false, None, 4), send(1, 4, true, Some(Stag(1)), 4)]
    });
    refused(Check::OpcodeChanged, |bench| {
        bench.pair.responder.post_receive(10);
        let immediate = immediate::Repr { data: 1 };
        let immediate = bytes(Repr::Immediate { msn: Msn(1), solicited: false, immediate });
        vec![send(1, 0, false, None, 4), immediate]
    });
}

#[test]
fn invalidation() {
    refused(Check::InvalidateAssociation, |bench| {
        bench.pair.responder.post_receive(10);
        vec![send(1, 0, true, Some(bench.foreign), 4)]
    });
    for shared in [true, false] {
        refused(Check::InvalidateForbidden, |bench| {
            bench.pair.responder.post_receive(10);
            let stag = if shared { bench.shared } else { bench.writable };
            vec![send(1, 0, true, Some(stag), 4)]
        });
    }
    refused(Check::InvalidateForbidden, |bench| {
        bench.pair.responder.post_receive(10);
        vec![send(1, 0, true, Some(Stag(1)), 4)]
    });
}

#[test]
fn writes() {
    refused(Check::WriteStag, |_| vec![write(Stag(1), BASE, 4)]);
    refused(Check::WriteStag, |bench| {
        bench.pair.responder.table.invalidate(bench.writable);
        vec![write(bench.writable, BASE, 4)]
    });
    refused(Check::WriteRights, |bench| vec![write(bench.readable, BASE, 4)]);
    refused(Check::WriteAssociation, |bench| vec![write(bench.foreign, BASE, 4)]);
    refused(Check::WriteBounds, |bench| vec![write(bench.writable, BASE - 1, 4)]);
    refused(Check::WriteBounds, |bench| vec![write(bench.writable, BASE + 97, 4)]);
    refused(Check::WriteBounds, |bench| vec![write(bench.writable, 0, 4)]);
    refused(Check::WriteWrap, |bench| vec![write(bench.writable, u64::MAX - 2, 4)]);
}

#[test]
fn reads_and_atomics() {
    refused(Check::ReadStag, |bench| vec![bench.read(Stag(1), BASE, 4)]);
    refused(Check::ReadStag, |bench| vec![bench.atomic_at(Stag(1), BASE)]);
    refused(Check::ReadBounds, |bench| vec![bench.read(bench.readable, BASE, 101)]);
    refused(Check::ReadBounds, |bench| vec![bench.read(bench.readable, BASE - 1, 1)]);
    refused(Check::ReadBounds, |bench| vec![bench.atomic_at(bench.atomic, BASE + 96)]);
    refused(Check::ReadRights, |bench| vec![bench.read(bench.writable, BASE, 4)]);
    refused(Check::ReadRights, |bench| vec![bench.atomic_at(bench.readable, BASE)]);
    refused(Check::ReadAssociation, |bench| vec![bench.read(bench.foreign, BASE, 4)]);
    refused(Check::ReadAssociation, |bench| vec![bench.atomic_at(bench.foreign, BASE)]);
    refused(Check::ReadWrap, |bench| vec![bench.read(bench.readable, u64::MAX, 4)]);
    refused(Check::AtomicAlignment, |bench| vec![bench.atomic_at(bench.atomic, BASE + 4)]);
    refused(Check::ReadQueueFull, |bench| {
        let mut requests: Vec<Vec<u8>> = (0..3).map(|_| bench.read(bench.readable, BASE, 4)).collect();
        for (at, request) in requests.iter_mut().enumerate() {
            request[13] = 1 + at as u8;
        }
        requests
    });
    refused(Check::MessageNumber, |bench| vec![changed(bench.read(bench.readable, BASE, 4), 13, 9)]);
}

#[test]
fn answers() {
    refused(Check::UnexpectedResponse, |bench| vec![read_response(bench.writable, BASE, true, 4)]);
    let response = |id| {
        let response = atomic_response::Repr { id, original: 0 };
        bytes(Repr::AtomicResponse { msn: Msn(1), response })
    };
    refused(Check::UnexpectedResponse, |_| vec![response(1)]);
    // The atomic was asked for, but the read before it is not answered.
    refused_answer(Check::UnexpectedResponse, |_| vec![response(1)]);
    refused_answer(Check::ResponseStag, |_| vec![read_response(Stag(1), BASE, true, 40)]);
    refused_answer(Check::ResponseRange, |bench| vec![read_response(bench.sink, BASE + 1, true, 40)]);
    refused_answer(Check::ResponseRange, |bench| vec![read_response(bench.sink, BASE, true, 41)]);
    refused_answer(Check::ResponseRange, |bench| vec![read_response(bench.sink, BASE, true, 39)]);
    refused_answer(Check::ResponseRange, |bench| vec![read_response(bench.sink, BASE, false, 40)]);
    refused_answer(Check::ResponseRange, |bench| {
        vec![read_response(bench.sink, BASE, false, 20), read_response(bench.sink, BASE + 21, true, 20)]
    });
    refused_answer(Check::ResponseId, |bench| vec![read_response(bench.sink, BASE, true, 40), response(2)]);
    // The owner has withdrawn the buffer in the meantime.
    refused_answer(Check::WriteStag, |bench| {
        bench.pair.initiator.table.invalidate(bench.sink);
        vec![read_response(bench.sink, BASE, true, 40)]
    });
}

/// A tag that is withdrawn while its bytes go out ends the connection; the peer learns how far it got.
#[test]
fn a_read_whose_source_is_withdrawn_is_cut_short() {
    let mut bench = Bench::new();
    let source = bench.pair.responder.region(pattern(10_000, 1), 0, Rights::READ);
    let sink = bench.pair.initiator.region(vec![0; 10_000], 0, Rights::NONE);
    bench.pair.initiator.read((sink, 0), (source, 0), 10_000);
    let request = bench.pair.initiator.output(bench.pair.now);
    bench.pair.responder.input(bench.pair.now, &request);
    let now = bench.pair.now;
    let End { connection, table, memory, .. } = &mut bench.pair.responder;
    let mut gather = Gather::new();
    connection.poll_transmit(now, 1, table, memory, &mut gather);
    assert!(connection.holds(source));
    table.invalidate(source);
    connection.poll_transmit(now, u64::MAX, table, memory, &mut gather);
    let mut out = Vec::new();
    for piece in gather.pieces() {
        match piece {
            Piece::Bytes(bytes) => out.extend_from_slice(bytes),
            Piece::Source(slice) => out.extend_from_slice(memory.source(slice)),
        }
    }
    bench.pair.initiator.input(now, &out);
    let Some(Event::PeerTerminated(terminate)) =
        bench.pair.initiator.events.iter().find(|event| matches!(event, Event::PeerTerminated(_)))
    else {
        panic!("{:?}", bench.pair.initiator.events)
    };
    assert_eq!(terminate.reason, Check::ReadStag.reason());
    // One segment of 1440 bytes was out.
    let request = terminate.request.unwrap();
    assert_eq!((request.size, request.source_offset.0, request.sink_offset.0), (8560, 1440, 1440));
    assert_eq!(bench.pair.initiator.memory.touched, 1440);
}

/// RFC 5041 §5.2 and RFC 5040 §5.2.1: with length zero, tags and offsets are not looked at.
#[test]
fn zero_length_is_never_refused() {
    let mut bench = Bench::new();
    let end = &mut bench.pair.responder;
    end.input(bench.pair.now, &framed(&write(Stag(99), u64::MAX, 0)));
    let read = bench.read(Stag(99), u64::MAX, 0);
    let end = &mut bench.pair.responder;
    end.input(bench.pair.now, &framed(&read));
    assert_eq!(end.fault(), None);
    let out = end.output(bench.pair.now);
    assert_eq!(out[..4], [0, 14, 0xc1, 0x42], "a read response of length zero");
}

/// Every check of the table is shown above, or in the tests of set-up, close and corruption.
#[test]
fn every_check_is_shown() {
    let here = include_str!("terminate.rs");
    let elsewhere = concat!(include_str!("setup.rs"), include_str!("close.rs"), include_str!("corruption.rs"));
    for check in Check::ALL {
        let shown = format!("Check::{check:?},");
        let name = format!("{check:?}");
        let there = elsewhere.contains(&name) || (*check == Check::Aborted && elsewhere.contains(".abort("));
        assert!(here.contains(&shown) || there, "{check:?} is not shown");
    }
}
