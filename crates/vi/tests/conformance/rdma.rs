//! RDMA writes and reads.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use sidestep_testkit::{
    conformance::fixture::Fixture,
    process::{PATIENCE_NS, full},
};
use sidestep_vi::{Descriptor, MemAttributes, Memory, Reliability, Segment, Status, ViState, clock};

use super::pair::{Options, Pair, contents, one, pair, pattern};

pub fn writes_land(fixture: Fixture) {
    for reliability in [Reliability::Unreliable, Reliability::Delivery, Reliability::Reception] {
        let pair = Pair::new(fixture, Options { reliability, ..Options::default() });
        let target = pair.b.buffer(300_000);
        for size in [0, 4, 5000, 200_000] {
            let source = pair.a.filled(size, 7);
            let write = one(1, &source, size).write_to(target.address() + 100, target.handle());
            pair.a.vi.post_send(&write).unwrap();
            let sent = pair.sent(&pair.a.vi);
            assert_eq!((sent.len, sent.status), (size as u32, Status::DONE.and(Status::OP_RDMA_WRITE)));
            pair.until("the data", || (contents(&target, 100, size) == pattern(size, 7)).then_some(()));
        }
        assert_eq!(pair.b.vi.poll_receive(), None);
    }
}

/// A program that polls the last aligned word of a buffer finds all bytes before it: in memory of the library and of the
/// program, at every size and alignment, from one segment and from several that cut that word.
pub fn the_last_word_comes_last(fixture: Fixture) {
    const ROOM: usize = 300_000;
    const SIZES: [usize; 17] =
        [4, 8, 12, 20, 44, 100, 236, 1000, 1900, 1904, 4100, 12_000, 12_288, 16_387, 20_004, 70_003, 262_149];
    let pair = pair(fixture);
    pair.b.nic.serve().unwrap();
    let source = pair.a.buffer(ROOM);
    let (own, program) = (pair.b.buffer(ROOM), Memory::heap(ROOM).unwrap());
    let rights = MemAttributes { rdma_write: true, ..MemAttributes::new(pair.b.ptag) };
    let handle = pair.b.nic.register(program.clone(), &rights).unwrap();
    let targets =
        [(program.base().as_ptr() as u64, handle, program.clone()), (own.address(), own.handle(), own.memory())];
    for (target, (address, handle, memory)) in targets.iter().enumerate() {
        for case in 0..SIZES.len() * 8 {
            let (size, alignment, cut) =
                (SIZES[case % SIZES.len()], case / SIZES.len() % 4, case / SIZES.len() / 4 == 1);
            // Where it begins, so that it ends at a multiple of four or eight.
            let end = (64 + size).next_multiple_of(8) + 4 * (alignment % 2);
            let start = end - size;
            let segments: Vec<Segment> = match (cut, size) {
                (true, 8..) => vec![
                    source.segment(alignment, 3),
                    source.segment(alignment + 3, size - 6),
                    source.segment(alignment + size - 3, 3),
                ],
                _ => vec![source.segment(alignment, size)],
            };
            for round in 1..=if full() { 20 } else { 2u8 } {
                source.write(alignment, &vec![round; size]).unwrap();
                let span = memory.span(0, end).unwrap();
                span.copy_in(0, &vec![0; end]).unwrap();
                let word = memory.word32(end - 4).unwrap();
                let write = Descriptor::new(1, &segments).write_to(address + start as u64, *handle);
                let begun = AtomicU64::new(0);
                thread::scope(|scope| {
                    let (begun, mut bytes) = (&begun, vec![0; end]);
                    let poller = scope.spawn(move || {
                        let deadline = clock::now() + PATIENCE_NS;
                        begun.store(1, Ordering::Release);
                        let mut seen = 0;
                        while seen == 0 && clock::now() < deadline {
                            let mut looks = (0..1000).map(|_| word.load(Ordering::Acquire));
                            seen = looks.find(|word| *word != 0).unwrap_or(0);
                        }
                        span.copy_out(0, &mut bytes).unwrap();
                        (seen, bytes)
                    });
                    while begun.load(Ordering::Acquire) == 0 {
                        thread::yield_now();
                    }
                    pair.a.vi.post_send(&write).unwrap();
                    assert!(!pair.a.vi.wait_send(super::pair::soon()).unwrap().status.is_error());
                    let (seen, bytes) = poller.join().unwrap();
                    let what = format!("{size} bytes to {start} of target {target}, cut {cut}, round {round}");
                    assert_eq!(seen, u32::from_ne_bytes([round; 4]), "{what}: the word itself");
                    let stale = bytes[start..].iter().filter(|byte| **byte != round).count();
                    assert_eq!(stale, 0, "{what}: stale bytes behind the word");
                });
            }
        }
    }
}

pub fn writes_with_immediate_take_a_receive(fixture: Fixture) {
    let pair = pair(fixture);
    let (source, target) = (pair.a.filled(1000, 2), pair.b.buffer(1000));
    pair.b.vi.post_receive(&sidestep_vi::Descriptor::new(5, &[])).unwrap();
    pair.settle();
    let write = one(1, &source, 1000).write_to(target.address(), target.handle()).with_immediate(42);
    pair.a.vi.post_send(&write).unwrap();
    let received = pair.received(&pair.b.vi);
    assert_eq!((received.token, received.immediate), (5, Some(42)));
    assert_eq!(received.status, Status::DONE.and(Status::OP_REMOTE_RDMA_WRITE).and(Status::IMMEDIATE));
    assert!(contents(&target, 0, 1000) == pattern(1000, 2));
    assert!(!pair.sent(&pair.a.vi).status.is_error());
}

/// What the initiator is told depends on the level, not on who carries the write out: the target does for memory of the
/// program where the initiator cannot reach it, and for the first use of any.
pub fn immediate_data_without_a_receive_end_it_the_same_way(fixture: Fixture) {
    for reliability in [Reliability::Unreliable, Reliability::Delivery, Reliability::Reception] {
        for (own, bad) in [(true, false), (false, false), (true, true), (false, true)] {
            let pair = Pair::new(fixture, Options { reliability, ..Options::default() });
            let (source, buffer, memory) = (pair.a.filled(64, 2), pair.b.buffer(64), Memory::heap(64).unwrap());
            let rights = MemAttributes { rdma_write: true, ..MemAttributes::new(pair.b.ptag) };
            let handle = pair.b.nic.register(memory.clone(), &rights).unwrap();
            let (address, handle) =
                if own { (buffer.address(), buffer.handle()) } else { (memory.base().as_ptr() as u64, handle) };
            let write = one(1, &source, 64).write_to(address, handle);
            pair.a.vi.post_send(&write).unwrap();
            assert!(!pair.sent(&pair.a.vi).status.is_error());
            if bad {
                let nowhere = Segment { address: 8, handle: sidestep_vi::MemHandle(77), len: 8 };
                pair.b.vi.post_receive(&Descriptor::new(5, &[nowhere])).unwrap();
            }
            pair.settle();
            pair.a.vi.post_send(&write.with_immediate(1)).unwrap();
            let sent = pair.sent(&pair.a.vi).status;
            let expected = if reliability == Reliability::Reception { Status::REMOTE_DESC_ERROR } else { Status(0) };
            let done = Status::DONE.and(Status::OP_RDMA_WRITE).and(Status::IMMEDIATE);
            assert_eq!(sent, done.and(expected), "{reliability:?}, own {own}, bad {bad}");
            if bad {
                let status = pair.received(&pair.b.vi).status;
                let expected = Status::DONE.and(Status::OP_REMOTE_RDMA_WRITE).and(Status::PROTECTION_ERROR);
                assert_eq!(status, expected, "{reliability:?}, own {own}");
            }
            if reliability == Reliability::Unreliable {
                pair.settle();
                assert_eq!((pair.a.vi.state(), pair.b.vi.state()), (ViState::Connected, ViState::Connected));
            } else {
                pair.until("the end", || (pair.b.vi.state() == ViState::Error).then_some(()));
                pair.until("the end", || (pair.a.vi.state() == ViState::Error).then_some(()));
            }
        }
    }
}

pub fn reads_come_back(fixture: Fixture) {
    for reliability in [Reliability::Delivery, Reliability::Reception] {
        let pair = Pair::new(fixture, Options { reliability, ..Options::default() });
        let remote = pair.b.filled(300_000, 3);
        for size in [0, 4, 5000, 250_000] {
            let into = pair.a.buffer(300_000);
            pair.a.vi.post_send(&one(1, &into, size).read_from(remote.address(), remote.handle())).unwrap();
            let sent = pair.sent(&pair.a.vi);
            assert_eq!((sent.len, sent.status), (size as u32, Status::DONE.and(Status::OP_RDMA_READ)));
            assert!(contents(&into, 0, size) == pattern(size, 3));
        }
    }
}

pub fn fences_wait_for_reads(fixture: Fixture) {
    let pair = pair(fixture);
    let (remote, copy) = (pair.b.filled(100_000, 6), pair.b.buffer(100_000));
    let middle = pair.a.buffer(100_000);
    // What is read is written elsewhere: only right if the write waits for the read.
    pair.a.vi.post_send(&one(1, &middle, 100_000).read_from(remote.address(), remote.handle())).unwrap();
    pair.a.vi.post_send(&one(2, &middle, 100_000).write_to(copy.address(), copy.handle()).fenced()).unwrap();
    assert_eq!((pair.sent(&pair.a.vi).token, pair.sent(&pair.a.vi).token), (1, 2));
    assert!(contents(&copy, 0, 100_000) == pattern(100_000, 6));
}

pub fn rights_are_checked(fixture: Fixture) {
    for read in [false, true] {
        for case in 0..5 {
            let pair = Pair::new(fixture, Options { remote: case != 0, ..Options::default() });
            let attributes = MemAttributes { rdma_write: true, rdma_read: true, ..MemAttributes::new(pair.b.ptag) };
            let attributes = match case {
                1 => MemAttributes::new(pair.b.ptag),
                2 => MemAttributes { ptag: pair.b.nic.create_ptag().unwrap(), ..attributes },
                _ => attributes,
            };
            let target = pair.b.nic.allocate(64, &attributes).unwrap();
            if case == 4 {
                pair.b.nic.deregister(target.address(), target.handle()).unwrap();
            }
            let address = if case == 3 { target.address() + 60 } else { target.address() };
            let local = pair.a.filled(8, 1);
            let descriptor = match read {
                true => one(1, &local, 8).read_from(address, target.handle()),
                false => one(1, &local, 8).write_to(address, target.handle()),
            };
            pair.a.vi.post_send(&descriptor).unwrap();
            assert!(pair.sent(&pair.a.vi).status.has(Status::RDMA_PROT_ERROR), "case {case}, read {read}");
            assert_eq!(contents(&target, 0, 64), [0; 64]);
            assert_eq!(pair.a.vi.state(), ViState::Error);
            pair.until("the end", || (pair.b.vi.state() == ViState::Error).then_some(()));
        }
    }
}

/// Registered anywhere: before and after the connection was made, with either right, and no longer.
pub fn memory_of_the_program_is_reached(fixture: Fixture) {
    let pair = pair(fixture);
    let source = pair.a.filled(100_000, 4);
    for (round, (write, read)) in [(true, true), (true, false), (false, true), (true, true)].into_iter().enumerate() {
        let memory = Memory::heap(100_008).unwrap();
        let bytes = memory.span(0, 100_008).unwrap();
        bytes.copy_in(0, &vec![round as u8; 100_008]).unwrap();
        let rights = MemAttributes { rdma_write: write, rdma_read: read, ..MemAttributes::new(pair.b.ptag) };
        let handle = pair.b.nic.register(memory.clone(), &rights).unwrap();
        let address = memory.base().as_ptr() as u64;
        let read_back = |len: usize| {
            let mut back = vec![0; len];
            bytes.copy_out(0, &mut back).unwrap();
            back
        };
        // The first use tells the peer of it, further ones may go another way.
        for size in [8, 1, 3, 5000, 100_000, 0] {
            let vis =
                [pair.a.another(&Options::default(), None, None), pair.b.another(&Options::default(), None, None)];
            pair.join(&vis[0], &vis[1]);
            for _ in 0..2 {
                vis[0].post_send(&one(1, &source, size).write_to(address, handle)).unwrap();
                let sent = pair.sent(&vis[0]);
                assert_eq!(sent.status.has(Status::RDMA_PROT_ERROR), !write, "writing {size}");
                if !write {
                    break;
                }
                assert!(read_back(size) == pattern(size, 4) || size == 0);
            }
        }
        let vis = [pair.a.another(&Options::default(), None, None), pair.b.another(&Options::default(), None, None)];
        pair.join(&vis[0], &vis[1]);
        for _ in 0..2 {
            let into = pair.a.buffer(100_000);
            vis[0].post_send(&one(1, &into, 100_000).read_from(address, handle)).unwrap();
            let sent = pair.sent(&vis[0]);
            assert_eq!(sent.status.has(Status::RDMA_PROT_ERROR), !read, "reading");
            if !read {
                break;
            }
            assert!(contents(&into, 0, 100_000) == read_back(100_000));
        }
        pair.b.nic.deregister(address, handle).unwrap();
        let vis = [pair.a.another(&Options::default(), None, None), pair.b.another(&Options::default(), None, None)];
        pair.join(&vis[0], &vis[1]);
        vis[0].post_send(&one(1, &source, 8).write_to(address, handle)).unwrap();
        assert!(pair.sent(&vis[0]).status.has(Status::RDMA_PROT_ERROR), "deregistered");
    }
}

pub fn changed_rights_count(fixture: Fixture) {
    let pair = pair(fixture);
    let (source, target) = (pair.a.filled(8, 1), pair.b.buffer(8));
    pair.a.vi.post_send(&one(1, &source, 8).write_to(target.address(), target.handle())).unwrap();
    assert!(!pair.sent(&pair.a.vi).status.is_error());
    let attributes = MemAttributes::new(pair.b.ptag);
    pair.b.nic.set_memory(target.address(), target.handle(), &attributes).unwrap();
    assert_eq!(pair.b.nic.query_memory(target.address(), target.handle()), Ok(attributes));
    pair.a.vi.post_send(&one(1, &source, 8).write_to(target.address(), target.handle())).unwrap();
    assert!(pair.sent(&pair.a.vi).status.has(Status::RDMA_PROT_ERROR));
}

pub fn completions_keep_the_order_of_posting(fixture: Fixture) {
    let pair = pair(fixture);
    let (remote, local, target) = (pair.b.filled(50_000, 1), pair.a.buffer(50_000), pair.b.buffer(8));
    pair.b.vi.post_receive(&one(9, &target, 8)).unwrap();
    pair.settle();
    pair.a.vi.post_send(&one(1, &local, 50_000).read_from(remote.address(), remote.handle())).unwrap();
    pair.a.vi.post_send(&one(2, &local, 8)).unwrap();
    pair.a.vi.post_send(&one(3, &local, 8).write_to(remote.address(), remote.handle())).unwrap();
    let tokens = [(); 3].map(|()| pair.sent(&pair.a.vi).token);
    assert_eq!(tokens, [1, 2, 3]);
}
