//! Every kind of transfer, in both directions, with and without CRC and markers.

mod pair;

use pair::*;
use sidestep_iwarp::*;

const PLAIN: SendKind = SendKind { solicited: false, invalidate: None };

/// Every combination of CRC, markers and segment size that matters.
fn configurations() -> Vec<(Config, Config)> {
    let mut all = Vec::new();
    for crc in [true, false] {
        for markers in [None, Some(512), Some(64), Some(4096)] {
            for segment_size in [128, 536, 1460, 9000, 65535] {
                let side = Config {
                    crc,
                    markers: markers.map(|bytes| Interval::new(bytes).unwrap()),
                    segment_size,
                    ..config()
                };
                all.push((side.clone(), side));
            }
        }
    }
    // Only one direction has markers.
    let plain = config();
    let marked = Config { markers: Some(Interval::STANDARD), ..config() };
    all.push((plain.clone(), marked.clone()));
    all.push((marked, plain));
    all
}

#[test]
fn everything_at_every_configuration() {
    for (initiator, responder) in configurations() {
        let mut pair = Pair::opened(initiator, responder);
        exchange(&mut pair);
        let Pair { initiator, responder, .. } = &mut pair;
        std::mem::swap(initiator, responder);
        exchange(&mut pair);
    }
}

/// The same where writes are placed while they come, cut into pieces of all kinds.
#[test]
fn everything_while_writes_pass() {
    for (initiator, responder) in configurations() {
        for chunk in [1000, 61, usize::MAX] {
            let mut pair = Pair::opened(initiator.clone(), responder.clone());
            (pair.initiator.passes, pair.responder.passes, pair.chunk) = (true, true, chunk);
            exchange(&mut pair);
            let Pair { initiator, responder, .. } = &mut pair;
            std::mem::swap(initiator, responder);
            exchange(&mut pair);
        }
    }
}

/// Only a write passes that nothing behind its headers can make invalid, and that is allowed.
#[test]
fn what_passes_and_what_does_not() {
    let plain = Config { crc: false, ..config() };
    let marked = Config { markers: Some(Interval::STANDARD), ..plain.clone() };
    let begin = |config: &Config, rights, offset, cut: usize| {
        let mut pair = Pair::opened(config.clone(), config.clone());
        let sink = pair.responder.region(vec![0; 1000], 0, rights);
        pair.initiator.write(&pattern(500, 1), sink, offset);
        let bytes = pair.initiator.output(pair.now);
        let End { connection, table, .. } = &mut pair.responder;
        let passage = connection.begin_passage(&bytes[..cut], table);
        (passage.map(|passage| (passage.offset, passage.headers, passage.payload, passage.len())), pair, bytes)
    };
    let (passage, mut pair, bytes) = begin(&plain, Rights::WRITE, 100, 72);
    assert_eq!(passage, Some((100, 16, 500, 520)));
    assert_eq!(bytes.len(), 520);
    // The stream ends within it.
    pair.responder.connection.handle_end(pair.now);
    pair.responder.collect();
    assert!(pair.responder.events.iter().any(|event| matches!(event, Event::Lost { unfinished_bytes: 520, .. })));
    assert_eq!(begin(&plain, Rights::WRITE, 100, 71).0, None, "too little is known");
    assert_eq!(begin(&config(), Rights::WRITE, 100, 72).0, None, "its checksum may be wrong");
    assert_eq!(begin(&marked, Rights::WRITE, 100, 80).0, None, "its markers may be wrong");
    for (rights, offset) in [(Rights::READ, 100), (Rights::WRITE, 501), (Rights::WRITE, u64::MAX)] {
        let (passage, mut pair, bytes) = begin(&plain, rights, offset, 72);
        assert_eq!(passage, None, "it is not allowed");
        pair.responder.input(pair.now, &bytes);
        assert!(pair.responder.fault().is_some() && pair.responder.memory.touched == 0);
    }
}

/// Sends, writes, reads and atomics from the initiator's place; checks memory and completions.
fn exchange(pair: &mut Pair) {
    let data = pattern(20_000, 3);
    let sink = pair.responder.region(vec![0; 20_100], 1 << 40, Rights::WRITE | Rights::READ);
    let words = pair.responder.region(vec![0; 64], 0, Rights::ATOMIC);
    let own = pair.initiator.region(vec![0; 20_000], 500, Rights::NONE);
    let receives: Vec<WorkId> = (0..3).map(|_| pair.responder.post_receive(20_000)).collect();

    let write = pair.initiator.write(&data, sink, (1 << 40) + 50);
    let immediate = pair.initiator.immediate(77);
    let send = pair.initiator.send(&data[..7001], PLAIN);
    let empty = pair.initiator.send(b"", SendKind { solicited: true, invalidate: None });
    let add = Operation::FetchAdd { add: 5, mask: 0 };
    let first = pair.initiator.atomic(words, 8, add);
    let second = pair.initiator.atomic(words, 8, add);
    let read = pair.initiator.read((own, 500), (sink, (1 << 40) + 50), 20_000);
    pair.drive();

    assert_eq!(pair.responder.memory.regions[&sink][50..20_050], data);
    assert_eq!(pair.responder.memory.regions[&sink][..50], [0; 50]);
    assert_eq!(pair.responder.memory.receives[&receives[1]][..7001], data[..7001]);
    assert_eq!(pair.initiator.memory.regions[&own], data);
    let word = &pair.responder.memory.regions[&words][8..16];
    assert_eq!(u64::from_ne_bytes(word.try_into().unwrap()), 10);

    for work in [write, immediate, send, empty] {
        assert_eq!(pair.initiator.outcome(work), Some(Outcome::Sent));
    }
    assert_eq!(pair.initiator.outcome(read), Some(Outcome::Read));
    assert_eq!(pair.initiator.outcome(first), Some(Outcome::Atomic { original: 0 }));
    assert_eq!(pair.initiator.outcome(second), Some(Outcome::Atomic { original: 5 }));
    let received = |work| pair.responder.outcome(work);
    assert_eq!(received(receives[0]), Some(Outcome::ReceivedImmediate { data: 77, solicited: false }));
    let message = |len, solicited| Outcome::Received { len, solicited, invalidated: None };
    assert_eq!(received(receives[1]), Some(message(7001, false)));
    assert_eq!(received(receives[2]), Some(message(0, true)));

    let order: Vec<WorkId> = pair.initiator.completions.iter().map(|done| done.work).collect();
    assert_eq!(order, [write, immediate, send, empty, first, second, read]);
    pair.initiator.completions.clear();
    pair.responder.completions.clear();
}

#[test]
fn segments_fit_in_the_segment_size() {
    for markers in [None, Some(Interval::STANDARD)] {
        let receiver = Config { markers, crc: true, ..config() };
        let mut pair = Pair::opened(Config { segment_size: 1000, ..config() }, receiver);
        let start = pair.responder.record.len();
        pair.responder.post_receive(5000);
        pair.initiator.send(&pattern(5000, 1), PLAIN);
        pair.drive();
        let mut rest = &pair.responder.record[start..];
        // The zero-length write that opened the stream: 2 + 14 + 4 bytes, and a marker before it.
        let mut position = if markers.is_some() { 24 } else { 20 };
        let mut lengths = Vec::new();
        while !rest.is_empty() {
            let spacing = sidestep_wire::mpa::marker::Spacing::new(markers, position);
            let packet = sidestep_wire::mpa::fpdu::Packet::new_checked(rest, spacing).unwrap();
            assert!(packet.wire_len() <= 1000);
            lengths.push(packet.ulpdu_len());
            position += packet.wire_len() as u64;
            rest = &rest[packet.wire_len()..];
        }
        let max = 1000 - 6 - if markers.is_some() { 8 } else { 0 };
        let full = 5000 / (max - 18);
        assert_eq!(lengths.len(), full + 1);
        assert!(lengths[..full].iter().all(|len| *len == max));
    }
}

/// The segment size may change while the connection is open.
#[test]
fn the_segment_size_can_change() {
    let mut pair = Pair::opened(config(), config());
    pair.initiator.connection.set_segment_size(200);
    let sink = pair.responder.region(vec![0; 1000], 0, Rights::WRITE);
    let before = pair.responder.record.len();
    pair.initiator.write(&pattern(1000, 9), sink, 0);
    pair.drive();
    assert_eq!(pair.responder.memory.regions[&sink], pattern(1000, 9));
    // 194 bytes of ULPDU carry 180 of payload.
    assert_eq!(pair.responder.record.len() - before, 5 * 200 + 2 + 14 + 100 + 4);
}

#[test]
fn the_stream_cut_at_every_byte() {
    // One byte at a time visits every cut of every FPDU.
    for markers in [None, Some(Interval::new(64).unwrap())] {
        let side = Config { markers, segment_size: 300, ..config() };
        let mut pair = Pair::new(side.clone(), side);
        pair.chunk = 1;
        pair.drive();
        pair.initiator.write(b"", Stag(0), 0);
        pair.drive();
        pair.initiator.completions.clear();
        exchange_small(&mut pair);
    }
}

#[test]
fn the_stream_in_chunks_of_every_size() {
    for chunk in 1..=400 {
        let side = Config { markers: Some(Interval::STANDARD), segment_size: 256, ..config() };
        let mut pair = Pair::new(side.clone(), side);
        pair.chunk = chunk;
        pair.drive();
        pair.initiator.write(b"", Stag(0), 0);
        exchange_small(&mut pair);
    }
}

fn exchange_small(pair: &mut Pair) {
    let data = pattern(700, 5);
    let sink = pair.responder.region(vec![0; 700], 0, Rights::WRITE | Rights::READ);
    let own = pair.initiator.region(vec![0; 700], 0, Rights::NONE);
    let receive = pair.responder.post_receive(700);
    pair.initiator.write(&data, sink, 0);
    pair.initiator.send(&data[..333], PLAIN);
    let read = pair.initiator.read((own, 0), (sink, 0), 700);
    pair.drive();
    assert_eq!(pair.responder.memory.regions[&sink], data);
    assert_eq!(pair.initiator.memory.regions[&own], data);
    assert_eq!(pair.responder.memory.receives[&receive][..333], data[..333]);
    assert_eq!(pair.initiator.outcome(read), Some(Outcome::Read));
}

#[test]
fn no_more_reads_are_under_way_than_agreed() {
    for ord in [1, 2, 5] {
        let mut pair = Pair::opened(Config { ord, ..config() }, config());
        assert_eq!(pair.initiator.agreement().unwrap().ord, ord);
        let source = pair.responder.region(pattern(100, 1), 0, Rights::READ | Rights::ATOMIC);
        let sink = pair.initiator.region(vec![0; 100], 0, Rights::NONE);
        for at in 0..8 {
            if at % 3 == 2 {
                pair.initiator.atomic(source, 96 - 8, Operation::FetchAdd { add: 1, mask: 0 });
            } else {
                pair.initiator.read((sink, at), (source, at), 1);
            }
        }
        // Nothing is answered yet, so exactly as many requests as agreed are in the output.
        let bytes = pair.initiator.output(pair.now);
        assert_eq!(count_requests(&bytes), usize::from(ord));
        pair.responder.input(pair.now, &bytes);
        pair.drive();
        assert_eq!(pair.initiator.completions.len(), 8);
        assert_eq!(pair.responder.fault(), None);
    }
}

/// How many FPDUs there are; in these tests every one is a request.
fn count_requests(mut bytes: &[u8]) -> usize {
    let mut count = 0;
    while bytes.len() > 2 {
        let len = usize::from(u16::from_be_bytes([bytes[0], bytes[1]]));
        bytes = &bytes[sidestep_wire::mpa::fpdu::bare_len(len)..];
        count += 1;
    }
    count
}

/// A read of a large region does not hold up what the other side posted, beyond one message.
#[test]
fn answers_and_requests_take_turns() {
    let mut pair = Pair::opened(config(), config());
    let source = pair.responder.region(pattern(3000, 1), 0, Rights::READ);
    let sink = pair.initiator.region(vec![0; 9000], 0, Rights::NONE);
    for at in 0..3 {
        pair.initiator.read((sink, at * 3000), (source, 0), 3000);
    }
    let bytes = pair.initiator.output(pair.now);
    pair.responder.input(pair.now, &bytes);
    let receives: Vec<WorkId> = (0..3).map(|_| pair.initiator.post_receive(10)).collect();
    for _ in 0..3 {
        pair.responder.send(b"0123456789", PLAIN);
    }
    let bytes = pair.responder.output(pair.now);
    // Two reads' answers in, all but the last send must have been among them.
    let half = bytes.len() * 2 / 3 + 100;
    pair.initiator.input(pair.now, &bytes[..half]);
    let received = receives.iter().filter(|work| pair.initiator.outcome(**work).is_some()).count();
    assert!(received >= 1, "sends wait for all reads");
    pair.initiator.input(pair.now, &bytes[half..]);
    assert_eq!(pair.initiator.completions.len(), 6);
}

#[test]
fn invalidation_comes_with_the_message() {
    for solicited in [false, true] {
        let mut pair = Pair::opened(config(), config());
        let rights = Rights::WRITE | Rights::INVALIDATE;
        let region = pair.responder.region(vec![0; 10], 0, rights);
        let receive = pair.responder.post_receive(10);
        pair.initiator.write(b"before", region, 0);
        pair.initiator.send(b"gone", SendKind { solicited, invalidate: Some(region) });
        pair.drive();
        assert_eq!(
            pair.responder.outcome(receive),
            Some(Outcome::Received { len: 4, solicited, invalidated: Some(region) })
        );
        assert!(pair.responder.table.region(region).is_none());
        pair.initiator.write(b"after", region, 0);
        pair.drive();
        assert_eq!(pair.responder.fault().unwrap().check(), Check::WriteStag);
        assert_eq!(&pair.responder.memory.regions[&region][..6], b"before");
    }
}

/// Sources are named where the host does not copy them, and a region is held until its bytes are out.
#[test]
fn payload_is_gathered_by_name() {
    let mut pair = Pair::opened(config(), config());
    let sink = pair.responder.region(vec![0; 3000], 0, Rights::WRITE);
    let region = pair.initiator.region(pattern(3000, 1), 0, Rights::NONE);
    let source = SourceSlice { source: Source::Region(region), offset: 10, len: 2901 };
    pair.initiator.connection.post_write(WorkId(99), source, sink, TaggedOffset(0)).unwrap();
    assert!(pair.initiator.connection.holds(region));

    let End { connection, table, memory, .. } = &mut pair.initiator;
    let mut gather = Gather::new();
    connection.poll_transmit(pair.now, 1 << 20, table, memory, &mut gather);
    let sources: Vec<SourceSlice> = gather
        .pieces()
        .filter_map(|piece| match piece {
            Piece::Source(slice) => Some(slice),
            Piece::Bytes(_) => None,
        })
        .collect();
    // 1460 bytes of segment carry 1454 of ULPDU, of which 1440 are payload.
    let slice = |offset, len| SourceSlice { source: Source::Region(region), offset, len };
    assert_eq!(sources, [slice(10, 1440), slice(1450, 1440), slice(2890, 21)]);
    // Headers and trailers of neighbouring FPDUs share a piece.
    assert_eq!(gather.piece_count(), 7);

    let total = gather.len();
    connection.handle_transmitted(pair.now, total - 1);
    assert!(connection.holds(region));
    assert_eq!(connection.poll_completion(), None);
    connection.handle_transmitted(pair.now, 1);
    assert!(!connection.holds(region));
    let done = Completion { work: WorkId(99), outcome: Outcome::Sent };
    assert_eq!(connection.poll_completion(), Some(done));
}

#[test]
fn what_the_caller_may_not_ask_for() {
    let mut pair = Pair::new(config(), config());
    let source = pair.initiator.source(b"x");
    let early = pair.initiator.connection.post_send(WorkId(1), source, PLAIN);
    assert_eq!(early, Err(Error::NotOpen));
    assert_eq!(pair.initiator.connection.accept(b""), Err(Error::NothingToAnswer));

    let mut pair = Pair::opened(Config { ord: 0, queue_limit: 2, ..config() }, config());
    let word = pair.initiator.connection.post_atomic(
        WorkId(1),
        Stag(1),
        TaggedOffset(0),
        Operation::FetchAdd { add: 1, mask: 0 },
    );
    assert_eq!(word, Err(Error::NoReadDepth));
    for _ in 0..2 {
        pair.initiator.connection.post_send(WorkId(1), source, PLAIN).unwrap();
        pair.initiator.connection.post_receive(WorkId(2), 1).unwrap();
    }
    let full = Err(Error::QueueFull { limit: 2 });
    assert_eq!(pair.initiator.connection.post_send(WorkId(1), source, PLAIN), full);
    assert_eq!(pair.initiator.connection.post_receive(WorkId(2), 1), full);

    let mut pair = Pair::opened(config(), config());
    let request = sidestep_wire::rdmap::read_request::Repr {
        sink: Stag(4),
        sink_offset: TaggedOffset(0),
        size: 1,
        source: Stag(1),
        source_offset: TaggedOffset(0),
    };
    let End { connection, table, .. } = &mut pair.initiator;
    assert!(matches!(
        connection.post_read(WorkId(1), request, table),
        Err(Error::Memory { fault: MemoryFault::InvalidStag, stag: Stag(4), .. })
    ));
}
