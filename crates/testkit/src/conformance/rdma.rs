//! RDMA queues: every operation, in order, with ids that wrap and a scheduler that is fair.

use std::sync::atomic::Ordering;

use sidestep_fabric::{CloseReason, Error, RdmaQueue, Refusal, Region, Rights};
use sidestep_sys::clock;

use super::{
    fixture::Fixture,
    nodes::{PATIENCE_NS, Pair, connect, contents, drive, nodes, pattern, soon, while_serving},
};

/// A write puts the source's bytes where they were asked for, whatever the sizes and offsets.
pub fn a_write_arrives(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(200_000);
    let local = Region::new(&pair.a, 200_000).expect("memory");
    local.write(0, &pattern(200_000, 1)).expect("the whole region");
    let queue = RdmaQueue::new(&pair.a, 16);
    let mut expected = vec![0; 200_000];
    for (from, to, len) in [(0, 0, 1), (1, 7, 63), (100, 300, 4096), (3, 5000, 100_000), (199_999, 199_999, 1)] {
        let id = queue.write(&local.slice(from, len).expect("inside"), &aperture, to).expect("room in the queue");
        pair.wait(&queue, id).expect("a write");
        expected[to..to + len].copy_from_slice(&contents(&local)[from..from + len]);
        assert!(contents(&region) == expected, "{len} bytes from {from} to {to}");
    }
}

/// A read fetches the owner's bytes of that moment.
pub fn a_read_fetches(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(100_000);
    let local = Region::new(&pair.a, 100_000).expect("memory");
    let queue = RdmaQueue::new(&pair.a, 16);
    for (from, to, len) in [(0, 0, 1), (9, 2, 1000), (1, 0, 99_999)] {
        let bytes = pattern(100_000, len as u64);
        region.write(0, &bytes).expect("the whole region");
        let id = queue.read(&aperture, from, &local.slice(to, len).expect("inside")).expect("room in the queue");
        pair.wait(&queue, id).expect("a read");
        assert!(contents(&local)[to..to + len] == bytes[from..from + len], "{len} bytes from {from} to {to}");
    }
}

/// Compare-swap stores only where the word is as expected; fetch-add wraps; both tell what the word held.
pub fn atomics_tell_what_was_there(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(64);
    let local = Region::new(&pair.a, 64).expect("memory");
    let queue = RdmaQueue::new(&pair.a, 16);
    let (word, held) = (region.word64(8).expect("a word"), local.word64(16).expect("a word"));
    let into = local.slice(16, 8).expect("inside");
    word.store(u64::MAX, Ordering::Release);
    let swap = |expected, new| {
        let id = queue.compare_swap(&aperture, 8, expected, new, &into).expect("room in the queue");
        pair.wait(&queue, id).expect("a compare-swap");
        (held.load(Ordering::Acquire), word.load(Ordering::Acquire))
    };
    let add = |value| {
        let id = queue.fetch_add(&aperture, 8, value, &into).expect("room in the queue");
        pair.wait(&queue, id).expect("a fetch-add");
        (held.load(Ordering::Acquire), word.load(Ordering::Acquire))
    };
    assert_eq!(add(3), (u64::MAX, 2));
    assert_eq!(swap(7, 9), (2, 2));
    assert_eq!(swap(2, 9), (2, 9));
    assert_eq!(add(0), (9, 9));
}

/// Requests of a queue take effect in order.
pub fn a_queue_is_in_order(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(100_000);
    let local = Region::new(&pair.a, 200_000).expect("memory");
    let queue = RdmaQueue::new(&pair.a, 64);
    let (old, new) = (pattern(100_000, 1), pattern(100_000, 2));
    local.write(0, &new).expect("inside");
    region.write(0, &old).expect("the whole region");
    let (first, second) = (local.slice(0, 100_000).expect("inside"), local.slice(100_000, 100_000).expect("inside"));
    // Read the old, write the new, read the new back over the source of the write: each must wait for the one before.
    queue.read(&aperture, 0, &second).expect("room in the queue");
    queue.write(&first, &aperture, 0).expect("room in the queue");
    queue.fetch_add(&aperture, 0, 1, &local.slice(0, 8).expect("inside")).expect("room in the queue");
    let last = queue.read(&aperture, 0, &first).expect("room in the queue");
    pair.wait(&queue, last).expect("all of them");
    let bytes = contents(&local);
    assert!(bytes[100_000..] == old);
    let mut expected = new;
    let word = u64::from_le_bytes(expected[..8].try_into().expect("eight bytes")).wrapping_add(1);
    expected[..8].copy_from_slice(&word.to_le_bytes());
    assert!(bytes[..100_000] == expected);
    assert!(contents(&region) == expected);
}

/// An immediate becomes visible after the write before it.
pub fn an_immediate_comes_after_its_write(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(70_000);
    let local = Region::new(&pair.a, 66_000).expect("memory");
    let flag = region.word32(0).expect("a word");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let queue = RdmaQueue::new(&pair.a, 4);
            for round in 1..=50u32 {
                local.write(0, &vec![round as u8; 66_000]).expect("the whole region");
                queue.write(&local.all(), &aperture, 1024).expect("room in the queue");
                let id = queue.immediate(&aperture, 0, round).expect("room in the queue");
                queue.wait(id, soon()).expect("an immediate");
                let deadline = clock::now() + PATIENCE_NS;
                while flag.load(Ordering::Acquire) != 0 {
                    assert!(clock::now() < deadline, "the owner never saw round {round}");
                    std::thread::yield_now();
                }
            }
        });
        let mut bytes = vec![0; 66_000];
        let deadline = clock::now() + 3 * PATIENCE_NS;
        for round in 1..=50u32 {
            while flag.load(Ordering::Acquire) != round {
                pair.b.progress();
                assert!(clock::now() < deadline, "round {round} never came");
            }
            region.read(1024, &mut bytes).expect("inside");
            flag.store(0, Ordering::Release);
            assert!(bytes.iter().all(|byte| *byte == round as u8), "the immediate of round {round} overtook its write");
        }
    });
}

/// Ids wrap around safely.
pub fn ids_wrap(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(4096);
    let queue = RdmaQueue::numbered_from(&pair.a, 16, u32::MAX - 4);
    let ids: Vec<_> = (0..12).map(|value| queue.immediate(&aperture, 4 * value, 1).expect("room")).collect();
    pair.wait(&queue, ids[11]).expect("all of them");
    for id in ids {
        assert_eq!(queue.test(id), Ok(true));
        assert_eq!(queue.wait(id, soon()), Ok(()));
    }
    assert_eq!(contents(&region)[..48].iter().filter(|byte| **byte == 1).count(), 12);
}

/// A queue takes as many requests as it was made for; then it is full until one has ended.
pub fn a_full_queue_says_so(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let region = Region::new(&pair.b, 4096).expect("memory");
    // Fewer rights than all, so that requests wait for the owner on every link.
    let aperture = pair.open(&region.cookie(Rights::WRITE)).expect("a good cookie");
    let queue = RdmaQueue::new(&pair.a, 3);
    for value in 1..=3 {
        queue.immediate(&aperture, 0, value).expect("room in the queue");
    }
    let full = Some(Error::Full { what: "the RDMA queue", limit: 3 });
    // An owner that is served may have answered already: then there is room for a while.
    let tries = if pair.is_served() { 1_000_000 } else { 1 };
    assert!((0..tries).any(|_| queue.immediate(&aperture, 0, 4).err() == full), "a queue that takes everything");
    let soon_over = Some(clock::now() + 1_000_000);
    let early = queue.wait_space(soon_over);
    assert!(pair.is_served() || matches!(early, Err(Error::TimedOut(_))));
    while_serving(&pair.b, || queue.wait_space(soon())).expect("space");
    let id = queue.immediate(&aperture, 0, 5).expect("room in the queue");
    pair.wait(&queue, id).expect("an immediate");
    assert_eq!(region.word32(0).expect("a word").load(Ordering::Acquire), 5);
}

/// A request that fails stops its queue: what follows is flushed, until a reset.
pub fn a_failure_flushes_what_follows(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let mut region = Region::new(&pair.b, 4096).expect("memory");
    let aperture = pair.open(&region.cookie(Rights::WRITE)).expect("a good cookie");
    let queue = RdmaQueue::new(&pair.a, 8);
    let good = queue.immediate(&aperture, 0, 1).expect("room in the queue");
    pair.wait(&queue, good).expect("an immediate");
    region.revoke().expect("a revocation");
    let ids: Vec<_> = (0..3).filter_map(|at| queue.immediate(&aperture, 4 * at, 9).ok()).collect();
    assert!(!ids.is_empty(), "the peer has not heard of the revocation yet");
    assert_eq!(pair.wait(&queue, ids[0]), Err(Refusal::Revoked.into()));
    for id in &ids[1..] {
        assert!(matches!(pair.wait(&queue, *id), Err(Error::Flushed(_))));
    }
    assert_eq!(queue.test(good), Ok(true));
    let fresh = pair.open(&region.cookie(Rights::WRITE)).expect("a good cookie");
    assert!(matches!(queue.immediate(&fresh, 0, 2), Err(Error::Flushed(_))));
    assert!(matches!(queue.wait_space(soon()), Err(Error::Flushed(_))));
    queue.reset();
    let id = queue.immediate(&fresh, 4, 3).expect("room in the queue");
    pair.wait(&queue, id).expect("an immediate");
    assert_eq!(contents(&region)[..12], [1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
}

/// What cannot be is refused when it is posted: outside, without the right, not aligned.
pub fn impossible_requests_are_refused_at_once(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(1000);
    let local = Region::new(&pair.a, 2000).expect("memory");
    let queue = RdmaQueue::new(&pair.a, 8);
    let outside = |offset, len| Some(Error::Cookie(Refusal::Range { offset, len }));
    assert_eq!(queue.write(&local.all(), &aperture, 0).err(), outside(0, 2000));
    assert_eq!(queue.read(&aperture, 999, &local.slice(0, 2).expect("inside")).err(), outside(999, 2));
    assert_eq!(queue.immediate(&aperture, 1000, 1).err(), outside(1000, 4));
    assert_eq!(queue.immediate(&aperture, 2, 1).err(), outside(2, 4));
    let into = local.slice(0, 8).expect("inside");
    assert_eq!(queue.fetch_add(&aperture, 996, 1, &into).err(), outside(996, 8));
    assert_eq!(queue.fetch_add(&aperture, 4, 1, &into).err(), outside(4, 8));
    assert!(queue.fetch_add(&aperture, 8, 1, &local.slice(4, 8).expect("inside")).is_err());
    let held = Rights::READ;
    let reading = pair.open(&region.cookie(held)).expect("a good cookie");
    let lacks = |wanted| Some(Error::Cookie(Refusal::Rights { held, wanted }));
    assert_eq!(queue.immediate(&reading, 0, 1).err(), lacks(Rights::WRITE));
    assert_eq!(queue.fetch_add(&reading, 0, 1, &into).err(), lacks(Rights::ATOMIC));
    let id = queue.immediate(&aperture, 0, 1).expect("a queue that goes on");
    pair.wait(&queue, id).expect("an immediate");
}

/// The result of an atomic operation needs eight bytes to be put into.
pub fn a_result_needs_room(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(64);
    let local = Region::new(&pair.a, 64).expect("memory");
    local.write(0, &[5; 64]).expect("the whole region");
    let queue = RdmaQueue::new(&pair.a, 8);
    for len in [0, 4, 7] {
        assert!(queue.fetch_add(&aperture, 0, 1, &local.slice(0, len).expect("inside")).is_err(), "{len} bytes");
    }
    pair.settle();
    assert_eq!(contents(&region), [0; 64]);
    assert_eq!(contents(&local), [5; 64]);
}

/// Transfers of no bytes end, in their turn.
pub fn a_transfer_of_nothing_ends(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(1000);
    let local = Region::new(&pair.a, 1000).expect("memory");
    let queue = RdmaQueue::new(&pair.a, 8);
    let nothing = local.slice(1000, 0).expect("inside");
    let first = queue.immediate(&aperture, 0, 1).expect("room in the queue");
    let write = queue.write(&nothing, &aperture, 1000).expect("room in the queue");
    let read = queue.read(&aperture, 0, &nothing).expect("room in the queue");
    pair.wait(&queue, read).expect("a read of nothing");
    assert_eq!((queue.test(first), queue.test(write)), (Ok(true), Ok(true)));
    assert_eq!(region.word32(0).expect("a word").load(Ordering::Acquire), 1);
}

/// The scheduler is fair: a small request of one queue ends before a large one of another that was posted first.
pub fn a_small_request_overtakes_a_large_one(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let len = 64 << 20;
    let (region, aperture) = pair.target(len);
    let local = Region::new(&pair.a, len).expect("memory");
    local.write(len - 8, &[7; 8]).expect("inside");
    let (large, small) = (RdmaQueue::new(&pair.a, 8), RdmaQueue::new(&pair.a, 8));
    let first = large.write(&local.all(), &aperture, 0).expect("room in the queue");
    let second = small.write(&local.slice(0, 64).expect("inside"), &aperture, 4096).expect("room in the queue");
    pair.until("the end of the small request", || {
        let ended = small.test(second).expect("a write");
        assert!(ended || !large.test(first).expect("a write"), "the large request ended first");
        ended.then_some(())
    });
    assert_eq!(large.test(first), Ok(false), "the large request was done at one go");
    pair.wait(&large, first).expect("a large write");
    let mut end = [0; 8];
    region.read(len - 8, &mut end).expect("inside");
    assert_eq!(end, [7; 8]);
}

/// Atomic operations of two peers on one word add up.
pub fn atomics_of_two_peers_add_up(fixture: Fixture) {
    let three = nodes(fixture, 3);
    let owner = &three[2];
    let region = Region::new(owner, 64).expect("memory");
    let cookie = region.cookie(Rights::ALL);
    let ends: Vec<_> = three[..2].iter().map(|node| connect(node, owner)).collect();
    let adds = 500;
    while_serving(owner, || {
        std::thread::scope(|scope| {
            for (node, (end, ..)) in three.iter().zip(&ends) {
                scope.spawn(|| {
                    let aperture = sidestep_fabric::Aperture::open(end, &cookie, soon()).expect("a good cookie");
                    let local = Region::new(node, 8).expect("memory");
                    let queue = RdmaQueue::new(node, 64);
                    let mut last = None;
                    for _ in 0..adds {
                        queue.wait_space(soon()).expect("space");
                        last = Some(queue.fetch_add(&aperture, 0, 1, &local.all()).expect("room in the queue"));
                    }
                    queue.wait(last.expect("some"), soon()).expect("all of them");
                });
            }
        });
    });
    assert_eq!(region.word64(0).expect("a word").load(Ordering::Acquire), 2 * adds);
}

/// The death of the peer ends the requests under way, and those to come.
pub fn a_death_ends_requests(fixture: Fixture) {
    // A link that has a thread of its own may have served them all before the death; then nothing was under way.
    let found_some_under_way = (0..100).any(|_| a_death_finds_requests(fixture));
    assert!(found_some_under_way, "every request was served before the owner's death");
}

/// Whether requests were under way at the death.
fn a_death_finds_requests(fixture: Fixture) -> bool {
    let pair = Pair::new(fixture);
    let region = Region::new(&pair.b, 1 << 20).expect("memory");
    // Neither all rights nor the right to read alone, so that requests wait for the owner on every link.
    let aperture = pair.open(&region.cookie(Rights::READ.and(Rights::WRITE))).expect("a good cookie");
    let local = Region::new(&pair.a, 1 << 20).expect("memory");
    let queue = RdmaQueue::new(&pair.a, 8);
    let ids: Vec<_> = (0..3).map(|_| queue.read(&aperture, 0, &local.all()).expect("room in the queue")).collect();
    pair.kill_b();
    let ends: Vec<_> = (ids.iter())
        .map(|id| {
            drive(&[&pair.a], "the end of a request", || match queue.test(*id) {
                Ok(false) => None,
                Ok(true) => Some(Ok(())),
                Err(error) => Some(Err(error)),
            })
        })
        .collect();
    let served = ends.iter().take_while(|end| end.is_ok()).count();
    for (at, end) in ends.iter().enumerate().skip(served) {
        let is_right = match end {
            Err(Error::Closed(CloseReason::Died)) => at == served,
            Err(Error::Flushed(_)) => at > served,
            _ => false,
        };
        assert!(is_right, "{ends:?}");
    }
    queue.reset();
    let later = queue.read(&aperture, 0, &local.all()).and_then(|id| queue.wait(id, soon()));
    assert!(matches!(later, Err(Error::Closed(_) | Error::Cookie(_))), "{later:?}");
    served < ids.len()
}

/// Two threads may post to one queue; each waits for its own.
pub fn a_queue_is_shared_by_threads(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(64);
    let queue = RdmaQueue::new(&pair.a, 4);
    let local = Region::new(&pair.a, 64).expect("memory");
    while_serving(&pair.b, || {
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let (queue, aperture, into) = (&queue, &aperture, local.slice(8 * thread, 8).expect("inside"));
                scope.spawn(move || {
                    for _ in 0..200 {
                        let id = loop {
                            match queue.fetch_add(aperture, 0, 1, &into) {
                                Ok(id) => break id,
                                Err(Error::Full { .. }) => queue.wait_space(soon()).expect("space"),
                                Err(error) => panic!("a fetch-add: {error}"),
                            }
                        };
                        queue.wait(id, soon()).expect("a fetch-add");
                    }
                });
            }
        });
    });
    assert_eq!(region.word64(0).expect("a word").load(Ordering::Acquire), 400);
}
