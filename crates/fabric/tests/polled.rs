//! Polled event queues on shared memory: what the writers pay, and how late an event is found.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use sidestep_fabric::{Access, Aperture, Counters, EventQueue, Mode, Node, Region, Rights, Tripwire};
use sidestep_shm::event_ring::EVENT_CAPACITY;
use sidestep_testkit::conformance::{
    fixture,
    nodes::{Pair, soon},
};

const EVENTS: usize = 200;

/// Stores now and then, while a thread of the owner waits for each event. What the writer and the owner counted.
fn exchange(make: fn(&Node) -> EventQueue) -> (Counters, Counters) {
    let pair = Pair::new(fixture::shm);
    let (region, aperture) = pair.target(4096);
    let queue = make(&pair.b);
    let tripwire = Tripwire::new(&region, 64, Access::Write, Mode::Repeating).unwrap();
    queue.attach_tripwire(&tripwire, 1);
    let taken = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..EVENTS {
                queue.wait(soon()).unwrap();
                taken.store(true, Ordering::Release);
            }
        });
        for value in 1..=EVENTS as u32 {
            // Long enough that the waiting thread has gone to sleep.
            std::thread::sleep(Duration::from_micros(200));
            aperture.store32(64, value).unwrap();
            while !taken.swap(false, Ordering::AcqRel) {
                std::thread::yield_now();
            }
        }
    });
    (pair.a.counters(), pair.b.counters())
}

#[test]
fn writers_ring_no_doorbell_for_a_polled_queue() {
    let (writer, _) = exchange(EventQueue::polled);
    assert_eq!(writer.doorbells, 0);
    let (writer, owner) = exchange(EventQueue::new);
    assert!(writer.doorbells > 0 && owner.sleeps > 0, "a queue that is slept on: {writer:?} {owner:?}");
}

#[test]
fn a_nearly_full_ring_rings_once() {
    let pair = Pair::new(fixture::shm);
    let len = EVENT_CAPACITY * 4;
    let region = Region::new(&pair.b, len).unwrap();
    let aperture: Aperture = pair.open(&region.cookie(Rights::ALL)).unwrap();
    let whole = Tripwire::range(&region, 0..len, Access::Write, Mode::Once).unwrap();
    let before = pair.a.counters().doorbells;
    for fill in [EVENT_CAPACITY / 2, EVENT_CAPACITY - 1] {
        whole.arm();
        // One event for each word: the owner, who does not poll, is told when three quarters of its ring are full.
        aperture.write(0, &vec![1; fill * 4]).unwrap();
        let rung = pair.a.counters().doorbells - before;
        assert_eq!(rung, u64::from(fill > EVENT_CAPACITY / 2), "{fill} events");
        pair.until("a firing", || whole.test().then_some(()));
        pair.settle();
    }
}
