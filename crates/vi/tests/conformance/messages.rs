//! Send and receive.

use sidestep_testkit::conformance::fixture::Fixture;
use sidestep_vi::{Descriptor, Memory, Status};

use super::pair::{Options, Pair, contents, one, pair, pattern};

const SIZES: &[usize] = &[1, 4, 239, 240, 241, 4096, 8191, 8192, 65_536, 131_072, 300_000, 1 << 20];

pub fn sizes_arrive_whole_and_in_order(fixture: Fixture) {
    let pair = pair(fixture);
    for (index, &size) in SIZES.iter().enumerate() {
        let source = pair.a.filled(size, index as u8);
        let target = pair.b.buffer(size + 64);
        pair.b.vi.post_receive(&one(7, &target, size + 64)).unwrap();
        pair.settle();
        pair.a.vi.post_send(&one(8, &source, size)).unwrap();
        let received = pair.received(&pair.b.vi);
        assert_eq!((received.token, received.len, received.status.is_error()), (7, size as u32, false), "{size}");
        assert_eq!(received.status.operation(), Status::OP_RECEIVE);
        assert!(contents(&target, 0, size) == pattern(size, index as u8), "{size}");
        let sent = pair.sent(&pair.a.vi);
        assert_eq!((sent.token, sent.len, sent.status), (8, size as u32, Status::DONE), "{size}");
    }
}

/// Memory of the caller and memory of the library, small and large, in one stream.
pub fn sizes_alternate_in_order(fixture: Fixture) {
    let pair = pair(fixture);
    let heap = Memory::heap(1 << 20).unwrap();
    let base = heap.base().as_ptr() as u64;
    let attributes = sidestep_vi::MemAttributes::new(pair.b.ptag);
    let handle = pair.b.nic.register(heap.clone(), &attributes).unwrap();
    let own = pair.b.buffer(1 << 20);
    let source = pair.a.filled(200_000, 3);
    let sizes = [5, 100_000, 16, 9000, 200_000, 1, 0, 70_000];
    for (index, size) in sizes.iter().enumerate() {
        let descriptor = match index % 3 {
            0 => {
                let segment = sidestep_vi::Segment { address: base, handle, len: 1 << 20 };
                Descriptor::new(index as u64, &[segment])
            }
            _ => one(index as u64, &own, 1 << 20),
        };
        pair.b.vi.post_receive(&descriptor).unwrap();
        let _ = size;
    }
    pair.settle();
    for (index, size) in sizes.iter().enumerate() {
        pair.a.vi.post_send(&one(index as u64, &source, *size)).unwrap();
    }
    for (index, size) in sizes.iter().enumerate() {
        let received = pair.received(&pair.b.vi);
        assert_eq!((received.token, received.len), (index as u64, *size as u32));
        assert!(!received.status.is_error());
    }
    for index in 0..sizes.len() {
        assert_eq!(pair.sent(&pair.a.vi).token, index as u64);
    }
    assert!(contents(&own, 0, 70_000) == pattern(70_000, 3));
}

pub fn segments_are_joined(fixture: Fixture) {
    let pair = pair(fixture);
    for size in [90usize, 90_000] {
        let source = pair.a.filled(size, 5);
        let target = pair.b.buffer(2 * size + 200);
        let third = size / 3;
        let rest = size - third - 10;
        let into = [target.segment(0, 10), target.segment(50, third), target.segment(100 + third, rest)];
        pair.b.vi.post_receive(&Descriptor::new(1, &into)).unwrap();
        pair.settle();
        let half = size / 2;
        let from = [source.segment(0, half), source.segment(half, 0), source.segment(half, size - half)];
        pair.a.vi.post_send(&Descriptor::new(2, &from)).unwrap();
        let received = pair.received(&pair.b.vi);
        assert_eq!((received.len, received.status.is_error()), (size as u32, false));
        let got =
            [contents(&target, 0, 10), contents(&target, 50, third), contents(&target, 100 + third, rest)].concat();
        assert!(got == pattern(size, 5));
        pair.sent(&pair.a.vi);
    }
}

pub fn immediate_data_travels(fixture: Fixture) {
    let pair = pair(fixture);
    let (source, target) = (pair.a.filled(8, 1), pair.b.buffer(8));
    pair.b.vi.post_receive(&one(1, &target, 8)).unwrap();
    pair.b.vi.post_receive(&one(2, &target, 8)).unwrap();
    pair.settle();
    pair.a.vi.post_send(&one(1, &source, 8).with_immediate(0xdead_beef)).unwrap();
    pair.a.vi.post_send(&one(2, &source, 8)).unwrap();
    let first = pair.received(&pair.b.vi);
    assert_eq!((first.immediate, first.status.has(Status::IMMEDIATE)), (Some(0xdead_beef), true));
    let second = pair.received(&pair.b.vi);
    assert_eq!((second.immediate, second.status.has(Status::IMMEDIATE)), (None, false));
}

pub fn empty_messages_arrive(fixture: Fixture) {
    let pair = pair(fixture);
    pair.b.vi.post_receive(&Descriptor::new(1, &[])).unwrap();
    pair.b.vi.post_receive(&Descriptor::new(2, &[])).unwrap();
    pair.settle();
    pair.a.vi.post_send(&Descriptor::new(3, &[])).unwrap();
    pair.a.vi.post_send(&Descriptor::new(4, &[]).with_immediate(9)).unwrap();
    assert_eq!((pair.received(&pair.b.vi).token, pair.sent(&pair.a.vi).token), (1, 3));
    let second = pair.received(&pair.b.vi);
    assert_eq!((second.token, second.len, second.immediate), (2, 0, Some(9)));
}

pub fn receives_may_come_before_the_connection(fixture: Fixture) {
    let pair = Pair::new(fixture, Options { connect: false, ..Options::default() });
    let (source, target) = (pair.a.filled(20_000, 1), pair.b.buffer(40_000));
    for token in 0..2 {
        let segment = target.segment(token as usize * 20_000, 20_000);
        pair.b.vi.post_receive(&Descriptor::new(token, &[segment])).unwrap();
    }
    pair.join(&pair.a.vi, &pair.b.vi);
    pair.settle();
    for token in 0..2 {
        pair.a.vi.post_send(&one(token, &source, 20_000)).unwrap();
        assert_eq!(pair.received(&pair.b.vi).token, token);
    }
    assert!(contents(&target, 20_000, 20_000) == pattern(20_000, 1));
}

pub fn a_token_may_be_used_again_at_once(fixture: Fixture) {
    let pair = pair(fixture);
    let (source, target) = (pair.a.buffer(8), pair.b.buffer(8));
    pair.b.vi.post_receive(&one(1, &target, 8)).unwrap();
    pair.settle();
    for round in 0..100u64 {
        source.write(0, &round.to_le_bytes()).unwrap();
        pair.a.vi.post_send(&one(1, &source, 8)).unwrap();
        pair.received(&pair.b.vi);
        assert_eq!(contents(&target, 0, 8), round.to_le_bytes());
        pair.b.vi.post_receive(&one(1, &target, 8)).unwrap();
        pair.sent(&pair.a.vi);
        pair.settle_a_little();
    }
}

pub fn both_directions_at_once(fixture: Fixture) {
    let pair = pair(fixture);
    let sides = [&pair.a, &pair.b];
    let sources = sides.map(|side| side.filled(50_000, 9));
    let targets = sides.map(|side| side.buffer(50_000));
    for (side, target) in sides.iter().zip(&targets) {
        for token in 0..20 {
            side.vi.post_receive(&one(token, target, 50_000)).unwrap();
        }
    }
    pair.settle();
    for (side, source) in sides.iter().zip(&sources) {
        for token in 0..20 {
            side.vi.post_send(&one(token, source, 40_000 + token as usize)).unwrap();
        }
    }
    for token in 0..20 {
        for side in sides {
            assert_eq!(pair.received(&side.vi).len, 40_000 + token);
            assert_eq!(pair.sent(&side.vi).token, u64::from(token));
        }
    }
    assert!(contents(&targets[0], 0, 40_000) == pattern(40_000, 9));
}

impl Pair {
    /// Until the peer knows of a receive that was posted; a store on mapped memory, a few polls elsewhere.
    pub fn settle_a_little(&self) {
        for _ in 0..20 {
            for side in [&self.a, &self.b] {
                side.nic.node().progress();
                side.vi.progress();
            }
        }
        self.settle_stream();
    }
}
