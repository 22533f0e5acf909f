//! Threads that sleep at one node in different ways: in a call, on a descriptor of their own, on the descriptor of an event
//! queue. Whoever gets up leaves the others where they can be woken.

use std::{os::fd::BorrowedFd, time::Duration};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sidestep_fabric::{Channel, EventQueue, queue::Receiver};
use sidestep_sys::clock;

use super::{
    channel::Place,
    fixture::Fixture,
    nodes::{PATIENCE_NS, drive, soon},
};
use crate::{process::full, seeded::Seeded};

/// Longer than any wake-up on its way takes, and what a sleep in a call lasts at most.
const LONGEST: Duration = Duration::from_secs(10);

/// Threads that sleep in calls, on descriptors of queues and on that of an event queue are all woken, and none by a look at the
/// clock.
pub fn sleepers_of_all_kinds_are_woken(fixture: Fixture) {
    let (place, rounds) = (Place::new(fixture), if full() { 3_000 } else { 200 });
    let waits: [fn(&mut Channel, u32); 4] = [in_a_call, in_a_call, on_a_descriptor, on_an_event_queue];
    let channels = waits.map(|wait| (wait, place.make()));
    std::thread::scope(|scope| {
        for (seed, (wait, (asks, mut answers))) in channels.into_iter().enumerate() {
            scope.spawn(move || wait(&mut answers, rounds));
            scope.spawn(move || {
                let (mut asks, mut random) = (asks, Seeded::new(seed as u64));
                for _ in 0..rounds {
                    asks.sender.send(&[7], soon()).expect("an open connection");
                    asks.receiver.receive(&mut [0], soon()).expect("an answer");
                    // Now and then long enough for the other side to sleep.
                    let pause = [0, 2_000, 80_000, 200_000][random.below(4) as usize];
                    std::thread::sleep(Duration::from_nanos(pause));
                }
            });
        }
    });
    for node in [&place.a, &place.b] {
        assert_eq!(node.counters().unrung, 0, "something was there, and nobody was woken");
    }
}

/// A thread that has slept on a descriptor of its own leaves one that sleeps in a call where it can be woken, and the other
/// way round. Nothing else happens at the node that would wake either.
pub fn who_gets_up_leaves_the_others_asleep(fixture: Fixture) {
    let place = Place::new(fixture);
    let ((mut to_call, mut called), (mut to_other, mut other)) = (place.make(), place.make());
    for round in 0..5 {
        let asleep = place.b.counters().sleeps;
        std::thread::scope(|scope| {
            let called = &mut called;
            let call = scope.spawn(move || called.receiver.receive(&mut [0], soon()).expect("a byte"));
            drive(&[&place.a], "a thread that sleeps", || (place.b.counters().sleeps > asleep).then_some(()));
            while !other.receiver.prepare_wait().expect("a descriptor") {}
            other.receiver.finish_wait();
            to_call.sender.send(&[1], soon()).expect("an open connection");
            drive(&[&place.a], "a thread that is woken", || call.is_finished().then_some(()));
            assert_eq!(place.b.counters().unrung, 0, "round {round}: a thread was left asleep");
        });

        let asleep = place.b.counters().sleeps;
        std::thread::scope(|scope| {
            let called = &mut called;
            let call = scope.spawn(move || called.receiver.receive(&mut [0], soon()).expect("a byte"));
            drive(&[&place.a], "a thread that sleeps", || (place.b.counters().sleeps > asleep).then_some(()));
            while !other.receiver.prepare_wait().expect("a descriptor") {}
            to_call.sender.send(&[1], soon()).expect("an open connection");
            drive(&[&place.a], "a thread that is woken", || call.is_finished().then_some(()));
        });
        // What woke that thread may have rung here, too.
        while is_readable(other.receiver.wait_descriptor().expect("a descriptor"), Some(0)) {
            other.receiver.finish_wait();
            while !other.receiver.prepare_wait().expect("a descriptor") {}
        }
        to_other.sender.send(&[1], soon()).expect("an open connection");
        let deadline = clock::now() + PATIENCE_NS;
        while !is_readable(other.receiver.wait_descriptor().expect("a descriptor"), Some(clock::now() + 1_000_000)) {
            place.a.progress();
            assert!(clock::now() < deadline, "round {round}: the descriptor tells of nothing");
        }
        other.receiver.finish_wait();
        drive(&[&place.a, &place.b], "a byte", || take(&mut other.receiver).then_some(()));
    }
}

fn in_a_call(channel: &mut Channel, rounds: u32) {
    for _ in 0..rounds {
        channel.receiver.receive(&mut [0], soon()).expect("a question");
        channel.sender.send(&[8], soon()).expect("an open connection");
    }
}

fn on_a_descriptor(channel: &mut Channel, rounds: u32) {
    for round in 0..rounds {
        let deadline = clock::now() + PATIENCE_NS;
        while !take(&mut channel.receiver) {
            assert!(clock::now() < deadline, "round {round}: there is no question");
            if channel.receiver.prepare_wait().expect("a descriptor") {
                let latest = channel.receiver.wait_deadline();
                let is_woken = is_readable(channel.receiver.wait_descriptor().expect("a descriptor"), latest);
                assert!(
                    is_woken || latest.is_some() || !channel.receiver.has_news(),
                    "round {round}: slept over a byte"
                );
            }
            channel.receiver.finish_wait();
        }
        channel.sender.send(&[8], soon()).expect("an open connection");
    }
}

fn on_an_event_queue(channel: &mut Channel, rounds: u32) {
    let node = channel.endpoint.node().clone();
    let events = EventQueue::new(&node);
    events.attach_receiver(&mut channel.receiver, 1).expect("a queue of the same node");
    let descriptor = events.descriptor().expect("a descriptor");
    for round in 0..rounds {
        let deadline = clock::now() + PATIENCE_NS;
        while !take(&mut channel.receiver) {
            assert!(clock::now() < deadline, "round {round}: there is no question");
            if events.poll().is_none() {
                let latest = node.wait_deadline();
                let is_woken = is_readable(descriptor, latest);
                assert!(is_woken || latest.is_some() || events.poll().is_none(), "round {round}: slept over an event");
            }
        }
        channel.sender.send(&[8], soon()).expect("an open connection");
    }
}

fn take(receiver: &mut Receiver) -> bool {
    let count = if receiver.has_news() { receiver.try_receive(&mut [0]).expect("an open connection") } else { 0 };
    assert!(count == 1 || !receiver.is_over(), "the other end has gone");
    count == 1
}

/// Sleeps until a descriptor is readable: whether it became so.
fn is_readable(descriptor: BorrowedFd<'_>, latest: Option<u64>) -> bool {
    let left = latest.map_or(LONGEST, |latest| Duration::from_nanos(latest.saturating_sub(clock::now())));
    let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
    poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&left)).expect("a poll") == 1
}
