//! RDMA writes and reads.

use sidestep_testkit::conformance::fixture::Fixture;
use sidestep_vi::{MemAttributes, Memory, Reliability, Status, ViState};

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
