//! Event queues: one pending entry per source, first come first served, also as a descriptor.

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sidestep_fabric::{Access, Error, Event, EventQueue, Mode, RdmaQueue, Region, Tripwire, event::SourceId};
use sidestep_sys::clock;

use super::{
    fixture::Fixture,
    nodes::{PATIENCE_NS, Pair, nodes, soon},
};

/// A source has at most one entry in the queue; when it was taken, the source may report again.
pub fn one_entry_per_source(fixture: Fixture) {
    let node = nodes(fixture, 1).remove(0);
    let queue = EventQueue::new(&node);
    let source = queue.attach(7);
    assert_eq!(queue.poll(), None);
    for _ in 0..3 {
        assert!(queue.deliver(source));
        assert!(!queue.deliver(source), "one is queued already");
        assert_eq!(queue.poll(), Some(Event { token: 7, source }));
        assert_eq!(queue.poll(), None);
    }
}

/// Events come in the order their sources reported, each with the token of its source.
pub fn first_come_first_served(fixture: Fixture) {
    let node = nodes(fixture, 1).remove(0);
    let queue = EventQueue::new(&node);
    let sources: Vec<SourceId> = (0..10).map(|token| queue.attach(token)).collect();
    for index in [3, 1, 4, 1, 5, 9, 2, 6] {
        queue.deliver(sources[index]);
    }
    let order: Vec<_> = std::iter::from_fn(|| queue.poll()).map(|event| event.token).collect();
    assert_eq!(order, [3, 1, 4, 5, 9, 2, 6]);
}

/// Detaching drops the source's event and ends its reports.
pub fn detaching_drops_the_event(fixture: Fixture) {
    let node = nodes(fixture, 1).remove(0);
    let queue = EventQueue::new(&node);
    let (first, second) = (queue.attach(1), queue.attach(2));
    assert!(queue.deliver(first) && queue.deliver(second));
    queue.detach(first);
    assert_eq!(queue.poll().map(|event| event.token), Some(2));
    assert_eq!(queue.poll(), None);
    assert!(!queue.deliver(first));
    queue.detach(first);
    assert_eq!(queue.poll(), None);
}

/// The number of a detached source names nothing, also when its place is used again.
pub fn a_detached_number_names_nothing(fixture: Fixture) {
    let node = nodes(fixture, 1).remove(0);
    let queue = EventQueue::new(&node);
    let first = queue.attach(1);
    queue.detach(first);
    let second = queue.attach(2);
    assert_ne!(first, second);
    assert!(!queue.deliver(first));
    queue.detach(first);
    assert!(queue.deliver(second), "detached twice, the second time under an old number");
    assert_eq!(queue.poll(), Some(Event { token: 2, source: second }));
}

/// A repeating tripwire reports each firing, and is armed again when its event is taken.
pub fn a_repeating_tripwire_reports(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(4096);
    let queue = EventQueue::new(&pair.b);
    let tripwire = Tripwire::new(&region, 64, Access::Write, Mode::Repeating).expect("inside");
    queue.attach_tripwire(&tripwire, 5);
    for _ in 0..5 {
        aperture.store32(64, 1).expect("a store");
        aperture.store32(64, 2).expect("a store");
        pair.flush(&aperture).expect("stores that arrive");
        assert_eq!(pair.until("an event", || queue.poll()).token, 5);
        pair.settle();
        assert_eq!(queue.poll(), None);
    }
}

/// A detached tripwire reports nothing more.
pub fn a_detached_tripwire_is_silent(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(4096);
    let queue = EventQueue::new(&pair.b);
    let tripwire = Tripwire::new(&region, 64, Access::Write, Mode::Repeating).expect("inside");
    let source = queue.attach_tripwire(&tripwire, 5);
    queue.detach(source);
    aperture.store32(64, 1).expect("a store");
    pair.flush(&aperture).expect("stores that arrive");
    pair.settle();
    assert_eq!(queue.poll(), None);
}

/// An RDMA queue reports that requests have ended.
pub fn an_rdma_queue_reports(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (_region, aperture) = pair.target(4096);
    let local = Region::new(&pair.a, 4096).expect("memory");
    let (queue, rdma) = (EventQueue::new(&pair.a), RdmaQueue::new(&pair.a, 8));
    queue.attach_rdma(&rdma, 6);
    for _ in 0..3 {
        let id = rdma.write(&local.all(), &aperture, 0).expect("room in the queue");
        assert_eq!(pair.until("an event", || queue.poll()).token, 6);
        assert_eq!(rdma.test(id), Ok(true));
        pair.settle();
        while queue.poll().is_some() {}
    }
}

/// An endpoint reports messages and its end.
pub fn an_endpoint_reports(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let queue = EventQueue::new(&pair.b);
    queue.attach_endpoint(&pair.to_a, 7);
    pair.to_b.post(b"one").expect("an open connection");
    pair.to_b.post(b"two").expect("an open connection");
    assert_eq!(pair.until("an event", || queue.poll()).token, 7);
    for message in [b"one", b"two"] {
        let next = pair.until("a message", || pair.to_a.poll_message().expect("an open connection"));
        assert_eq!(next, message);
    }
    while queue.poll().is_some() {}
    pair.to_b.close();
    assert_eq!(pair.until("an event", || queue.poll()).token, 7);
    assert!(pair.to_a.closed().is_some());
}

/// What an endpoint has received before it is attached is reported too.
pub fn an_endpoint_reports_what_is_there_already(fixture: Fixture) {
    let pair = Pair::new(fixture);
    pair.to_b.post(b"early").expect("an open connection");
    pair.settle();
    let queue = EventQueue::new(&pair.b);
    queue.attach_endpoint(&pair.to_a, 7);
    assert_eq!(queue.poll().map(|event| event.token), Some(7));
}

/// A listener reports requests.
pub fn a_listener_reports(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let queue = EventQueue::new(&pair.b);
    pair.listener.attach(&queue, 8);
    let _asking = pair.a.begin_connect(&pair.name, b"").expect("someone who listens");
    assert_eq!(pair.until("an event", || queue.poll()).token, 8);
    assert!(pair.listener.poll().is_some());
}

/// A wait ends with an event of another thread, of a peer, or at its deadline.
pub fn a_wait_ends_with_an_event_or_its_deadline(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let queue = EventQueue::new(&pair.b);
    let deadline = clock::now() + 5_000_000;
    assert!(matches!(queue.wait(Some(deadline)), Err(Error::TimedOut(_))));
    let own = queue.attach(1);
    queue.attach_endpoint(&pair.to_a, 2);
    for round in 0..200 {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Sometimes at once, sometimes when the other side sleeps.
                let until = clock::now() + [0, 100_000, 300_000][round % 3];
                while clock::now() < until {
                    std::thread::yield_now();
                }
                if round % 2 == 0 {
                    queue.deliver(own);
                } else {
                    pair.to_b.post(b"x").expect("an open connection");
                }
            });
            let event = queue.wait(soon()).expect("an event");
            assert_eq!(event.token, 1 + round as u64 % 2, "round {round}");
        });
        while pair.to_a.poll_message().expect("an open connection").is_some() {}
        while queue.poll().is_some() {}
    }
}

/// The descriptor is readable when the queue has an event, and not when it has been drained.
pub fn the_descriptor_tells_of_events(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(4096);
    let queue = EventQueue::new(&pair.b);
    let tripwire = Tripwire::new(&region, 64, Access::Write, Mode::Repeating).expect("inside");
    let own = queue.attach(1);
    queue.attach_tripwire(&tripwire, 2);
    queue.attach_endpoint(&pair.to_a, 3);
    let descriptor = queue.descriptor().expect("a descriptor");
    for round in 0..100 {
        drain(&queue, descriptor, &pair);
        match round % 3 {
            0 => assert!(queue.deliver(own)),
            1 => aperture.store32(64, round).expect("a store"),
            _ => pair.to_b.post(b"x").expect("an open connection"),
        }
        assert!(is_readable(descriptor, PATIENCE_NS), "round {round}: there is an event");
        let event = until_polled(&queue, descriptor);
        assert_eq!(event.token, u64::from(1 + round % 3), "round {round}");
        while pair.to_a.poll_message().expect("an open connection").is_some() {}
    }
}

/// An event that is there when the descriptor is asked for makes it readable.
pub fn a_new_descriptor_tells_of_old_events(fixture: Fixture) {
    let node = nodes(fixture, 1).remove(0);
    let queue = EventQueue::new(&node);
    let source = queue.attach(1);
    queue.deliver(source);
    assert!(is_readable(queue.descriptor().expect("a descriptor"), PATIENCE_NS));
    assert_eq!(queue.poll().map(|event| event.token), Some(1));
}

/// Two queues of one node are two: each descriptor tells of its own events, whoever makes progress.
pub fn two_queues_have_their_own_descriptors(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (first, second) = (EventQueue::new(&pair.b), EventQueue::new(&pair.b));
    let (to_b, to_a) = pair.another();
    first.attach_endpoint(&pair.to_a, 1);
    second.attach_endpoint(&to_a, 2);
    let descriptors = [first.descriptor().expect("a descriptor"), second.descriptor().expect("a descriptor")];
    for _ in 0..20 {
        drain(&first, descriptors[0], &pair);
        drain(&second, descriptors[1], &pair);
        to_b.post(b"x").expect("an open connection");
        // The first queue makes progress and finds nothing of its own.
        for _ in 0..20 {
            assert_eq!(first.poll(), None);
        }
        assert!(is_readable(descriptors[1], PATIENCE_NS), "the event of the second queue is not told of");
        assert_eq!(until_polled(&second, descriptors[1]).token, 2);
        to_a.poll_message().expect("an open connection").expect("a message");
    }
}

/// A sender whose backlog has been taken off has a quiet descriptor again.
pub fn the_descriptor_is_quiet_after_a_backlog(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let queue = EventQueue::new(&pair.a);
    queue.attach_endpoint(&pair.to_b, 1);
    let descriptor = queue.descriptor().expect("a descriptor");
    let message = [1; 4096];
    for _ in 0..3 {
        // More than a kernel's buffer holds, or as much as the link takes.
        let posted = (0..600).take_while(|_| pair.to_b.post(&message).is_ok()).count();
        assert!(posted > 100);
        pair.b.progress();
        pair.to_b.post(b"one more").expect("room that was made");
        drain(&queue, descriptor, &pair);
        while pair.to_a.poll_message().expect("an open connection").is_some() {}
    }
}

/// The polled variant finds events by looking, waits by looking, and has no descriptor.
pub fn a_polled_queue_only_looks(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(4096);
    let queue = EventQueue::polled(&pair.b);
    assert!(matches!(queue.descriptor(), Err(Error::Unsupported(_))));
    let tripwire = Tripwire::new(&region, 64, Access::Write, Mode::Repeating).expect("inside");
    queue.attach_tripwire(&tripwire, 9);
    assert!(matches!(queue.wait(Some(clock::now() + 1_000_000)), Err(Error::TimedOut(_))));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            aperture.store32(64, 1).expect("a store");
            aperture.flush(soon()).expect("stores that arrive");
        });
        assert_eq!(queue.wait(soon()).expect("an event").token, 9);
        pair.until("stores to arrive", || aperture.flush(Some(0)).ok());
    });
}

/// Many events are taken in one call: as many as are there, in the order they came, and no more than asked for.
pub fn many_events_a_call(fixture: Fixture) {
    let pair = Pair::new(fixture);
    for queue in [EventQueue::new(&pair.b), EventQueue::polled(&pair.b)] {
        let sources: Vec<_> = (0..10).map(|token| queue.attach(token)).collect();
        let mut events = Vec::new();
        assert_eq!(queue.poll_many(&mut events, 8), 0);
        let over = queue.wait_many(&mut events, 8, Some(clock::now() + 1_000_000));
        assert!(matches!(over, Err(Error::TimedOut(_))));
        sources.iter().for_each(|source| assert!(queue.deliver(*source)));
        queue.detach(sources[3]);
        assert_eq!(queue.poll_many(&mut events, 0), 0);
        assert_eq!(queue.poll_many(&mut events, 2), 2);
        assert_eq!(queue.wait_many(&mut events, 3, soon()), Ok(3));
        assert!(queue.deliver(sources[0]), "a source may report again when its event was taken");
        assert_eq!(queue.poll_many(&mut events, 100), 5);
        let tokens: Vec<_> = events.iter().map(|event| event.token).collect();
        assert_eq!(tokens, [0, 1, 2, 4, 5, 6, 7, 8, 9, 0]);
    }
}

/// One who finds its own queue empty takes in the events for all queues.
pub fn whoever_polls_takes_in_for_all(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(4096);
    let (own, other) = (EventQueue::polled(&pair.b), EventQueue::polled(&pair.b));
    let tripwire = Tripwire::new(&region, 64, Access::Write, Mode::Once).expect("inside");
    other.attach_tripwire(&tripwire, 5);
    aperture.store32(64, 1).expect("a store");
    pair.until("stores to arrive", || aperture.flush(Some(0)).ok());
    pair.until("a firing", || {
        assert_eq!(own.poll(), None);
        (tripwire.firings() > 0).then_some(())
    });
    assert_eq!(other.poll().map(|event| event.token), Some(5));
}

/// A thousand sources report each once, and none is lost.
pub fn a_thousand_sources(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(64 * 1000);
    let queue = EventQueue::new(&pair.b);
    let make = |index: usize| Tripwire::new(&region, 64 * index, Access::Write, Mode::Repeating).expect("inside");
    let wires: Vec<Tripwire> = (0..1000).map(make).collect();
    for (index, tripwire) in wires.iter().enumerate() {
        queue.attach_tripwire(tripwire, index as u64);
    }
    for _ in 0..2 {
        for index in 0..1000 {
            // In another order than they were attached in.
            let at = index * 7 % 1000 * 64;
            pair.until("room for a store", || aperture.store32(at, 1).ok());
        }
        let mut seen = vec![0; 1000];
        for _ in 0..1000 {
            seen[pair.until("an event", || queue.poll()).token as usize] += 1;
        }
        assert!(seen.iter().all(|count| *count == 1));
        pair.flush(&aperture).expect("stores that arrive");
        pair.settle();
        assert_eq!(queue.poll(), None);
    }
}

fn is_readable(descriptor: BorrowedFd<'_>, patience_ns: u64) -> bool {
    let mut descriptors = [PollFd::new(&descriptor, PollFlags::IN)];
    let patience = Timespec { tv_sec: (patience_ns / 1_000_000_000) as i64, tv_nsec: 0 };
    poll(&mut descriptors, Some(&patience)).expect("a poll") == 1
}

/// Takes what is there until the descriptor is quiet. The other node makes progress too: its answers may be awaited.
fn drain(queue: &EventQueue, descriptor: BorrowedFd<'_>, pair: &Pair) {
    pair.settle();
    let deadline = clock::now() + PATIENCE_NS;
    loop {
        pair.a.progress();
        while queue.poll().is_some() {}
        if !is_readable(descriptor, 0) {
            return;
        }
        assert!(clock::now() < deadline, "the descriptor of an empty queue stays readable");
    }
}

/// Polls as long as the descriptor is readable, as a program would.
fn until_polled(queue: &EventQueue, descriptor: BorrowedFd<'_>) -> Event {
    let deadline = clock::now() + PATIENCE_NS;
    loop {
        if let Some(event) = queue.poll() {
            return event;
        }
        assert!(is_readable(descriptor, PATIENCE_NS), "an event is on the way and the descriptor is quiet");
        assert!(clock::now() < deadline, "an event never arrived");
    }
}
