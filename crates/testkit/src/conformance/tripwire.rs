//! Tripwires: one word, once or repeating, for writes or reads, and no lost wake-up.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sidestep_fabric::{Access, Aperture, CloseReason, Error, Mode, RdmaQueue, Region, Rights, Tripwire};
use sidestep_shm::Memory;
use sidestep_sys::clock;

use super::{
    fixture::Fixture,
    nodes::{PATIENCE_NS, Pair, soon},
};
use crate::process::full;

/// A word that is not armed does not fire.
pub fn an_unarmed_word_does_not_fire(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(4096);
    let tripwire = tripwire(&region, 64, Access::Write, Mode::Once);
    store(&pair, &aperture, 64);
    assert_eq!((tripwire.test(), tripwire.firings()), (false, 0));
    tripwire.arm();
    tripwire.disarm();
    store(&pair, &aperture, 64);
    assert_eq!((tripwire.test(), tripwire.firings()), (false, 0));
}

/// A tripwire that fires once fires once for each time it is armed.
pub fn once_means_once(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(4096);
    let tripwire = tripwire(&region, 64, Access::Write, Mode::Once);
    for round in 1..=3 {
        tripwire.arm();
        store(&pair, &aperture, 64);
        store(&pair, &aperture, 64);
        fires(&pair, &tripwire);
        store(&pair, &aperture, 64);
        assert_eq!((tripwire.test(), tripwire.firings()), (false, round));
    }
}

/// A repeating one fires again after each firing that was taken notice of, and not before.
pub fn repeating_fires_again_when_noticed(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(4096);
    let tripwire = tripwire(&region, 64, Access::Write, Mode::Repeating);
    tripwire.arm();
    for round in 1..=5 {
        store(&pair, &aperture, 64);
        store(&pair, &aperture, 64);
        store(&pair, &aperture, 64);
        assert_eq!(tripwire.firings(), round, "one firing outstanding, however often the peer writes");
        fires(&pair, &tripwire);
    }
}

/// A write tripwire fires for every way to write, and not for reads.
pub fn every_write_fires(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(4096);
    let local = Region::new(&pair.a, 4096).expect("memory");
    let queue = RdmaQueue::new(&pair.a, 8);
    let tripwire = tripwire(&region, 64, Access::Write, Mode::Repeating);
    tripwire.arm();
    let into = local.slice(0, 8).expect("inside");
    let wait = |id: sidestep_fabric::Result<_>| pair.wait(&queue, id.expect("room in the queue")).expect("a transfer");
    wait(queue.read(&aperture, 64, &into));
    pair.settle();
    assert_eq!(tripwire.firings(), 0, "a read is no write");
    let writes: [&dyn Fn(); 7] = [
        &|| aperture.write(64, &[1]).expect("a store"),
        &|| aperture.store32(64, 2).expect("a store"),
        &|| aperture.store64(64, 3).expect("a store"),
        &|| wait(queue.write(&local.slice(0, 200).expect("inside"), &aperture, 0)),
        &|| wait(queue.immediate(&aperture, 64, 5)),
        &|| wait(queue.fetch_add(&aperture, 64, 1, &into)),
        &|| wait(queue.compare_swap(&aperture, 64, 6, 7, &into)),
    ];
    for (index, write) in writes.iter().enumerate() {
        write();
        fires(&pair, &tripwire);
        assert_eq!(tripwire.firings(), index as u64 + 1);
    }
}

/// A read tripwire fires for reads through the fabric, and not for writes.
pub fn a_read_fires_a_read_tripwire(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(4096);
    let local = Region::new(&pair.a, 4096).expect("memory");
    let queue = RdmaQueue::new(&pair.a, 8);
    let tripwire = tripwire(&region, 64, Access::Read, Mode::Once);
    tripwire.arm();
    store(&pair, &aperture, 64);
    assert_eq!(tripwire.firings(), 0, "a write is no read");
    let id = queue.read(&aperture, 0, &local.slice(0, 64).expect("inside")).expect("room in the queue");
    pair.wait(&queue, id).expect("a read");
    pair.settle();
    assert_eq!(tripwire.firings(), 0, "a read of other words");
    let id = queue.read(&aperture, 0, &local.slice(0, 65).expect("inside")).expect("room in the queue");
    pair.wait(&queue, id).expect("a read");
    fires(&pair, &tripwire);
}

/// Words are watched one by one: neighbours do not fire, and a range fires every word it touches.
pub fn words_are_watched_one_by_one(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(4096);
    // Across the boundary of 64 words that share one armed line.
    let wires: Vec<_> = (240..272).step_by(4).map(|at| tripwire(&region, at, Access::Write, Mode::Once)).collect();
    let firings = || wires.iter().map(Tripwire::firings).collect::<Vec<_>>();
    wires.iter().for_each(Tripwire::arm);
    aperture.write(236, &[1; 4]).expect("a store");
    aperture.write(272, &[1; 4]).expect("a store");
    aperture.write(3000, &[1; 500]).expect("a store");
    arrive(&pair, &aperture);
    assert_eq!(firings(), [0; 8]);
    aperture.write(251, &[1; 6]).expect("a store");
    arrive(&pair, &aperture);
    assert_eq!(firings(), [0, 0, 1, 1, 1, 0, 0, 0]);
    aperture.write(0, &[1; 4096]).expect("a store");
    arrive(&pair, &aperture);
    assert_eq!(firings(), [1; 8]);
}

/// A write of no bytes fires nothing.
pub fn a_write_of_nothing_fires_nothing(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(4096);
    let tripwire = tripwire(&region, 64, Access::Write, Mode::Once);
    tripwire.arm();
    aperture.write(64, &[]).expect("a store");
    arrive(&pair, &aperture);
    assert_eq!(tripwire.firings(), 0);
}

/// Two tripwires on one word are two: each fires if it is armed, and the end of one does not end the other.
pub fn two_tripwires_on_one_word(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(4096);
    let once = tripwire(&region, 64, Access::Write, Mode::Once);
    let repeating = tripwire(&region, 64, Access::Write, Mode::Repeating);
    let firings = || (once.firings(), repeating.firings());
    once.arm();
    store(&pair, &aperture, 64);
    assert_eq!(firings(), (1, 0));
    repeating.arm();
    once.arm();
    store(&pair, &aperture, 64);
    assert_eq!(firings(), (2, 1));
    assert!(repeating.test());
    store(&pair, &aperture, 64);
    assert_eq!(firings(), (2, 2));
    assert!(repeating.test() && once.test());
    once.arm();
    once.disarm();
    store(&pair, &aperture, 64);
    assert_eq!(firings(), (2, 3));
    assert!(repeating.test());
    drop(once);
    store(&pair, &aperture, 64);
    assert_eq!(repeating.firings(), 4);
}

/// A tripwire that is dropped ends its watch.
pub fn a_dropped_tripwire_watches_no_more(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(4096);
    let first = tripwire(&region, 64, Access::Write, Mode::Once);
    first.arm();
    drop(first);
    let second = tripwire(&region, 64, Access::Write, Mode::Once);
    store(&pair, &aperture, 64);
    assert_eq!((second.test(), second.firings()), (false, 0));
}

/// A range fires when any of its words is written, once for each arming, and no word beside it.
pub fn a_range_fires_for_any_of_its_words(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(4096);
    // From the middle of a word to the middle of one, across lines of armed bits.
    let tripwire = Tripwire::range(&region, 250..1030, Access::Write, Mode::Repeating).expect("inside");
    tripwire.arm();
    for (offset, firings) in [(244, 0), (1032, 0), (248, 1), (1028, 2), (512, 3), (240, 3), (600, 4)] {
        store(&pair, &aperture, offset);
        assert_eq!(tripwire.firings(), firings, "a store at {offset}");
        assert_eq!(tripwire.test(), firings > 0 && (248..1032).contains(&offset));
    }
    aperture.write(0, &[1; 4096]).expect("a store");
    arrive(&pair, &aperture);
    store(&pair, &aperture, 512);
    assert_eq!((tripwire.firings(), tripwire.test()), (5, true), "a range has one firing outstanding");
    tripwire.disarm();
    store(&pair, &aperture, 512);
    assert_eq!((tripwire.firings(), tripwire.test()), (5, false));
    assert!(Tripwire::over(&region, &[], Access::Write, Mode::Once).is_err());
    assert!(Tripwire::range(&region, 4000..4097, Access::Write, Mode::Once).is_err());
}

/// Several ranges are one tripwire; words of a range have tripwires of their own beside it.
pub fn a_group_of_ranges_is_one_tripwire(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(4096);
    let ranges: Vec<_> = (0..8).map(|index| index * 512..index * 512 + 8).collect();
    let group = Tripwire::over(&region, &ranges, Access::Write, Mode::Once).expect("inside");
    let word = tripwire(&region, 516, Access::Write, Mode::Once);
    let firings = || (group.firings(), word.firings());
    group.arm();
    word.arm();
    store(&pair, &aperture, 64);
    assert_eq!(firings(), (0, 0));
    store(&pair, &aperture, 1024);
    assert_eq!(firings(), (1, 0));
    store(&pair, &aperture, 516);
    assert_eq!(firings(), (1, 1), "the word is watched when the group has fired");
    group.arm();
    word.arm();
    store(&pair, &aperture, 516);
    assert_eq!(firings(), (2, 2));
    word.arm();
    drop(group);
    store(&pair, &aperture, 516);
    assert_eq!(word.firings(), 3, "the end of the group does not end the word");
}

/// A wait of a tripwire that is bound to an endpoint ends when its peer dies; what the peer wrote before is told first.
pub fn a_bound_wait_ends_with_its_peer(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let region = Region::new(&pair.a, 64).expect("memory");
    let mut tripwire = tripwire(&region, 0, Access::Write, Mode::Once);
    tripwire.bind(&pair.to_b);
    assert!(matches!(tripwire.wait(Some(clock::now() + 1_000_000), || false), Err(Error::TimedOut(_))));
    pair.kill_b();
    assert_eq!(tripwire.wait(soon(), || false), Err(Error::Closed(CloseReason::Died)));
    assert_eq!(tripwire.wait(soon(), || true), Ok(()));
}

/// Memory of the caller is watched as well.
pub fn caller_memory_is_watched(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let region = Region::over(&pair.b, Memory::heap(4096).expect("memory")).expect("a region");
    let aperture = pair.open(&region.cookie(Rights::ALL)).expect("a good cookie");
    let tripwire = tripwire(&region, 64, Access::Write, Mode::Once);
    tripwire.arm();
    store(&pair, &aperture, 68);
    assert_eq!(tripwire.firings(), 0);
    store(&pair, &aperture, 64);
    fires(&pair, &tripwire);
}

/// What the owner itself writes fires nothing.
pub fn the_owners_writes_fire_nothing(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, _aperture) = pair.target(4096);
    let tripwire = tripwire(&region, 64, Access::Write, Mode::Once);
    tripwire.arm();
    region.write(0, &[1; 4096]).expect("the whole region");
    pair.settle();
    assert_eq!((tripwire.test(), tripwire.firings()), (false, 0));
}

/// A tripwire watches words of its region only.
pub fn a_tripwire_is_inside_its_region(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let region = Region::new(&pair.b, 100).expect("memory");
    assert!(Tripwire::new(&region, 96, Access::Write, Mode::Once).is_ok());
    assert!(Tripwire::new(&region, 100, Access::Write, Mode::Once).is_err());
    assert!(Tripwire::new(&region, usize::MAX, Access::Write, Mode::Once).is_err());
}

/// A wait ends at its deadline, and at once when what it waits for is there already.
pub fn a_wait_ends_at_its_deadline(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, _aperture) = pair.target(4096);
    let tripwire = tripwire(&region, 64, Access::Write, Mode::Once);
    let deadline = clock::now() + 20_000_000;
    assert!(matches!(tripwire.wait(Some(deadline), || false), Err(Error::TimedOut(_))));
    assert!(clock::now() >= deadline);
    assert_eq!(tripwire.wait(soon(), || true), Ok(()));
}

/// Arm, recheck and block are one step: a writer at any moment wakes the waiter, 10,000 times.
pub fn no_wake_up_is_lost(fixture: Fixture) {
    exchange(fixture, if full() { 10_000 } else { 1_500 }, 1);
}

/// The same with two threads that wait at one node: whichever of them sleeps, each is woken.
pub fn no_wake_up_is_lost_between_threads(fixture: Fixture) {
    exchange(fixture, if full() { 2_000 } else { 300 }, 2);
}

/// Each waiter has a word that its writer counts up when the waiter has answered in a word of its own.
fn exchange(fixture: Fixture, rounds: u64, waiters: usize) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(4096);
    let answers: Vec<_> = (0..waiters).map(|_| AtomicU64::new(0)).collect();
    let failed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (index, answer) in answers.iter().enumerate() {
            let offset = index * 64;
            let (region, aperture, pair, failed) = (&region, &aperture, &pair, &failed);
            scope.spawn(move || {
                let word = region.word64(offset).expect("a word");
                let tripwire = tripwire(region, offset, Access::Write, Mode::Once);
                for round in 1..=rounds {
                    while word.load(Ordering::Acquire) < round {
                        let deadline = Some(clock::now() + PATIENCE_NS);
                        let woken = tripwire.wait(deadline, || word.load(Ordering::Acquire) >= round);
                        if woken.is_err() || failed.load(Ordering::Relaxed) {
                            failed.store(true, Ordering::Relaxed);
                            let held = word.load(Ordering::Acquire);
                            panic!("round {round} of waiter {index}: {woken:?}, and the word holds {held}");
                        }
                    }
                    answer.store(round, Ordering::Release);
                }
            });
            scope.spawn(move || {
                let mut random = crate::seeded::Seeded::new(index as u64);
                for round in 1..=rounds {
                    aperture.store64(offset, round).expect("a store");
                    // Now and then long enough for the waiter to sleep.
                    let pause = [0, 0, 0, 200, 2_000, 80_000][random.below(6) as usize];
                    let until = clock::now() + pause;
                    while answer.load(Ordering::Acquire) < round || clock::now() < until {
                        pair.a.progress();
                        if failed.load(Ordering::Relaxed) {
                            return;
                        }
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
}

fn tripwire(region: &Region, offset: usize, access: Access, mode: Mode) -> Tripwire {
    Tripwire::new(region, offset, access, mode).expect("inside")
}

/// Stores a word and lets it arrive, with what it fires.
fn store(pair: &Pair, aperture: &Aperture, offset: usize) {
    aperture.write(offset, &[1, 2, 3, 4]).expect("a store");
    arrive(pair, aperture);
}

fn arrive(pair: &Pair, aperture: &Aperture) {
    pair.flush(aperture).expect("stores that arrive");
    pair.settle();
}

fn fires(pair: &Pair, tripwire: &Tripwire) {
    pair.until("a firing", || tripwire.test().then_some(()));
}
