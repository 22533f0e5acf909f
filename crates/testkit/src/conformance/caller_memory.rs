//! Memory of the program as a target of RDMA queues: where the kernel lets peers copy into it by themselves, and where it does
//! not, the same bytes arrive, the same tripwires fire, and nothing arrives after it was taken back.

use std::sync::atomic::{AtomicBool, Ordering};

use sidestep_fabric::{Access, Aperture, Error, Group, Mode, RdmaQueue, Region, Rights, Tripwire};
use sidestep_shm::Memory;

use super::{
    fixture::Fixture,
    nodes::{Pair, contents, pattern, soon, while_serving},
};
use crate::process::full;

const LEN: usize = 100_000;

/// Writes, reads, immediates and lists reach memory of the program; where the kernel lets them, while the owner does nothing.
pub fn transfers_reach_memory_of_the_program(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = opened(&pair);
    let local = Region::new(&pair.a, LEN).expect("memory");
    let queue = RdmaQueue::new(&pair.a, 16);
    for (round, (at, len)) in [(0, 1), (3, 4), (8, 8), (17, 4000), (5, LEN - 5), (LEN, 0)].into_iter().enumerate() {
        let bytes = pattern(len, round as u64);
        local.write(0, &bytes).expect("inside");
        let parts = [local.slice(0, len / 2).expect("inside"), local.slice(len / 2, len - len / 2).expect("inside")];
        let mut group = Group::new();
        group.gather(&parts, &aperture, at).expect("inside");
        group.immediate(&aperture, 0, 7).expect("inside");
        let into = local.slice(0, len).expect("inside");
        group.read(&aperture, at, &into).expect("inside");
        let last = queue.post(group).expect("room in the queue");
        if aperture.reads_directly() {
            queue.wait(last, soon()).expect("transfers that need nothing of the owner");
        } else {
            pair.wait(&queue, last).expect("transfers");
        }
        let mut expected = bytes;
        expected.iter_mut().zip([7, 0, 0, 0].iter().skip(at)).for_each(|(byte, value)| *byte = *value);
        assert!(contents(&region)[at..at + len] == expected, "{len} bytes at {at} were written");
        assert!(contents(&local)[..len] == expected, "{len} bytes at {at} were read");
    }
}

/// An atomic operation and transfers around it are in order.
pub fn atomics_are_in_order_with_transfers(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = opened(&pair);
    let local = Region::new(&pair.a, 64).expect("memory");
    let queue = RdmaQueue::new(&pair.a, 16);
    for round in 1..=20_u64 {
        local.word64(0).expect("a word").store(100 * round, Ordering::Release);
        let word = |at| local.slice(at, 8).expect("inside");
        queue.write(&word(0), &aperture, 8).expect("room in the queue");
        queue.fetch_add(&aperture, 8, 1, &word(8)).expect("room in the queue");
        let last = queue.read(&aperture, 8, &word(16)).expect("room in the queue");
        pair.wait(&queue, last).expect("all of them");
        let found = [8, 16].map(|at| local.word64(at).expect("a word").load(Ordering::Acquire));
        assert_eq!(found, [100 * round, 100 * round + 1]);
        assert_eq!(region.word64(8).expect("a word").load(Ordering::Acquire), 100 * round + 1);
    }
}

/// What watches memory of the program fires, also when peers reached it by themselves before it was watched.
pub fn watched_memory_of_the_program_fires(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = opened(&pair);
    let local = Region::new(&pair.a, 64).expect("memory");
    let queue = RdmaQueue::new(&pair.a, 16);
    let id = queue.write(&local.all(), &aperture, 64).expect("room in the queue");
    pair.wait(&queue, id).expect("a write");
    let write = Tripwire::new(&region, 64, Access::Write, Mode::Once).expect("inside");
    let read = Tripwire::new(&region, 64, Access::Read, Mode::Once).expect("inside");
    for round in 1..=10 {
        write.arm();
        read.arm();
        let id = queue.write(&local.all(), &aperture, 64).expect("room in the queue");
        pair.wait(&queue, id).expect("a write");
        pair.until("a firing", || write.test().then_some(()));
        assert_eq!(read.firings(), round - 1, "a write is no read");
        let id = queue.read(&aperture, 0, &local.all()).expect("room in the queue");
        pair.wait(&queue, id).expect("a read of other words");
        let id = queue.read(&aperture, 64, &local.all()).expect("room in the queue");
        pair.wait(&queue, id).expect("a read");
        pair.until("a firing", || read.test().then_some(()));
        assert_eq!((write.firings(), read.firings()), (round, round));
    }
}

/// When a revocation has returned, nothing of a peer that writes without pause arrives any more.
pub fn nothing_lands_after_a_revocation(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let mut region = Region::over(&pair.b, Memory::heap(LEN).expect("memory")).expect("a region");
    let rounds = if full() { 300 } else { 12 };
    while_serving(&pair.b, || {
        for _ in 0..rounds {
            let aperture = Aperture::open(&pair.to_b, &region.cookie(Rights::ALL), soon()).expect("a good cookie");
            against(&pair, &aperture, || {
                region.revoke().expect("a revocation");
                region.write(0, &vec![OURS; LEN]).expect("the whole region");
            });
            assert!(contents(&region).iter().all(|byte| *byte == OURS), "bytes arrived after the revocation");
        }
    });
}

/// When a region has been dropped, its memory is the program's alone.
pub fn nothing_lands_after_the_end_of_a_region(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let memory = Memory::heap(LEN).expect("memory");
    let bytes = memory.span(0, LEN).expect("all of it");
    let rounds = if full() { 300 } else { 12 };
    while_serving(&pair.b, || {
        for _ in 0..rounds {
            let region = Region::over(&pair.b, memory.clone()).expect("a region");
            let aperture = Aperture::open(&pair.to_b, &region.cookie(Rights::ALL), soon()).expect("a good cookie");
            against(&pair, &aperture, || {
                drop(region);
                bytes.copy_in(0, &vec![OURS; LEN]).expect("all of it");
            });
            let mut found = vec![0; LEN];
            bytes.copy_out(0, &mut found).expect("all of it");
            assert!(found.iter().all(|byte| *byte == OURS), "bytes arrived after the end of the region");
        }
    });
}

/// What is taken back of one region does not end transfers to another one of the same owner.
pub fn other_memory_stays_reachable(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = opened(&pair);
    let local = Region::new(&pair.a, LEN).expect("memory");
    let queue = RdmaQueue::new(&pair.a, 16);
    let directly = aperture.reads_directly();
    for round in 0..10_u8 {
        let (mut other, theirs) = opened(&pair);
        local.write(0, &vec![round; LEN]).expect("the whole region");
        other.revoke().expect("a revocation");
        let id = queue.write(&local.all(), &aperture, 0).expect("room in the queue");
        pair.wait(&queue, id).expect("a write");
        assert!(contents(&region).iter().all(|byte| *byte == round), "round {round}");
        let refused = queue.write(&local.all(), &theirs, 0).and_then(|id| pair.wait(&queue, id));
        assert!(matches!(refused, Err(Error::Cookie(_))), "{refused:?}");
        queue.reset();
        // Where it was reached without the owner, it is again.
        pair.settle();
        assert_eq!(aperture.reads_directly(), directly);
    }
}

const THEIRS: u8 = 0x55;
const OURS: u8 = 0xaa;

/// Writes through an aperture without pause while `take_back` runs, and until a write is refused.
fn against(pair: &Pair, aperture: &Aperture, take_back: impl FnOnce()) {
    let local = Region::new(&pair.a, LEN).expect("memory");
    local.write(0, &vec![THEIRS; LEN]).expect("the whole region");
    let begun = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let queue = RdmaQueue::new(&pair.a, 4);
            loop {
                let written = queue.write(&local.all(), aperture, 0).and_then(|id| queue.wait(id, soon()));
                begun.store(true, Ordering::Release);
                match written {
                    Ok(()) => {}
                    Err(Error::Cookie(_)) => break,
                    Err(error) => panic!("{error}"),
                }
            }
        });
        while !begun.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        take_back();
    });
}

/// A region of `b` over memory of the program, and `a`'s aperture to it, when all has been told that is to be.
fn opened(pair: &Pair) -> (Region, Aperture) {
    let region = Region::over(&pair.b, Memory::heap(LEN).expect("memory")).expect("a region");
    let aperture = pair.open(&region.cookie(Rights::ALL)).expect("a good cookie");
    assert!(!aperture.is_mapped());
    pair.settle();
    (region, aperture)
}
