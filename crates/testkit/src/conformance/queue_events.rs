//! Message queues as sources of events.

use sidestep_fabric::{EventQueue, Node};
use sidestep_sys::clock;

use super::{
    fixture::Fixture,
    nodes::soon,
    stream::{Channels, small},
};

/// A receiver reports that something has arrived: once, however much it is, and again when the event was taken.
pub fn a_receiver_reports_arrivals(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(1024), small(1024));
    let queue = EventQueue::new(&channels.nodes[1]);
    queue.attach_receiver(&mut channels.b.receiver, 5).expect("a queue of this process");
    settle(&mut channels);
    assert_eq!(queue.poll(), None);
    for round in 0..20u8 {
        for _ in 0..3 {
            channels.a.sender.send(&[round; 10], soon()).expect("an open connection");
        }
        assert_eq!(channels.until("an event", |_| queue.poll()).token, 5, "round {round}");
        let mut got = [0; 30];
        channels.receive(&mut got);
        assert_eq!(got, [round; 30]);
        // A publish that fell between the event and the look may have made another.
        settle(&mut channels);
        while queue.poll().is_some() {}
        assert_eq!(channels.b.receiver.available(), Ok(0));
    }
}

/// What has arrived before a receiver is attached is reported too.
pub fn a_receiver_reports_what_is_there_already(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(1024), small(1024));
    channels.a.sender.send(b"early", soon()).expect("an open connection");
    channels.until("bytes", |channels| channels.b.receiver.has_news().then_some(()));
    let queue = EventQueue::new(&channels.nodes[1]);
    queue.attach_receiver(&mut channels.b.receiver, 5).expect("a queue of this process");
    assert_eq!(queue.poll().map(|event| event.token), Some(5));
}

/// A sender reports space after a try that found none, and nothing as long as there is space.
pub fn a_sender_reports_space(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(1024), small(1024));
    let queue = EventQueue::new(&channels.nodes[0]);
    queue.attach_sender(&mut channels.a.sender, 6).expect("a queue of this process");
    let mut got = [0; 1024];
    for round in 0..20u8 {
        for _ in 0..2 {
            channels.a.sender.send(&[round; 512], soon()).expect("space");
        }
        settle(&mut channels);
        assert_eq!(queue.poll(), None, "round {round}: there was space");
        match round % 2 {
            0 => assert_eq!(channels.a.sender.try_send(b"more"), Ok(0)),
            _ => assert!(channels.a.sender.reserve(512).expect("a stream").is_none()),
        }
        settle(&mut channels);
        assert_eq!(queue.poll(), None, "round {round}: there is no space yet");
        channels.receive(&mut got);
        channels.b.receiver.tell().expect("an open connection");
        assert_eq!(channels.until("an event", |_| queue.poll()).token, 6, "round {round}");
        channels.until("space", |channels| (channels.a.sender.space() == Ok(1024)).then_some(()));
        assert_eq!(queue.poll(), None, "round {round}: one event for one try");
    }
}

/// Both sides of a queue report the end of the connection, also if it has ended before.
pub fn queues_report_the_end(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(1024), small(1024));
    let (queue, late) = (EventQueue::new(&channels.nodes[1]), EventQueue::new(&channels.nodes[1]));
    queue.attach_receiver(&mut channels.b.receiver, 1).expect("a queue of this process");
    queue.attach_sender(&mut channels.b.sender, 2).expect("a queue of this process");
    channels.a.endpoint.close();
    let mut tokens = [0, 0].map(|_| channels.until("an event", |_| queue.poll()).token);
    tokens.sort();
    assert_eq!(tokens, [1, 2]);
    assert!(channels.b.receiver.is_over());
    late.attach_receiver(&mut channels.b.receiver, 3).expect("a queue of this process");
    late.attach_sender(&mut channels.b.sender, 4).expect("a queue of this process");
    assert_eq!([late.poll(), late.poll()].map(|event| event.map(|event| event.token)), [Some(3), Some(4)]);
}

/// A side that was detached, or attached to another event queue, reports no more.
pub fn a_detached_queue_is_silent(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(1024), small(1024));
    let (first, second) = (EventQueue::new(&channels.nodes[1]), EventQueue::new(&channels.nodes[1]));
    let source = first.attach_receiver(&mut channels.b.receiver, 1).expect("a queue of this process");
    first.detach(source);
    channels.a.sender.send(b"unheard", soon()).expect("an open connection");
    channels.receive(&mut [0; 7]);
    settle(&mut channels);
    assert_eq!(first.poll(), None);
    first.attach_receiver(&mut channels.b.receiver, 2).expect("a queue of this process");
    second.attach_receiver(&mut channels.b.receiver, 3).expect("a queue of this process");
    channels.a.sender.send(b"heard", soon()).expect("an open connection");
    assert_eq!(channels.until("an event", |_| second.poll()).token, 3);
    assert_eq!(first.poll(), None);
    channels.a.endpoint.close();
    assert_eq!(channels.until("the end", |_| second.poll()).token, 3);
}

/// A program that only waits for events misses neither bytes nor space.
pub fn no_arrival_and_no_space_is_slept_over(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(256), small(256));
    let nodes = channels.nodes.clone();
    let total = 60_000;
    let Channels { a, b, .. } = &mut channels;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let queue = EventQueue::new(&nodes[0]);
            queue.attach_sender(&mut a.sender, 1).expect("a queue of this process");
            let mut sent = 0;
            while sent < total {
                let bytes = [sent as u8; 100];
                let count = a.sender.try_send(&bytes[..100.min(total - sent)]).expect("an open connection");
                if count == 0 {
                    assert_eq!(queue.wait(soon()).expect("space in time").token, 1);
                }
                sent += count;
            }
            a.sender.flush(soon()).expect("a link that takes it");
        });
        let queue = EventQueue::new(&nodes[1]);
        queue.attach_receiver(&mut b.receiver, 2).expect("a queue of this process");
        let mut received = 0;
        let mut buffer = [0; 70];
        while received < total {
            match b.receiver.try_receive(&mut buffer).expect("an open connection") {
                0 => assert_eq!(queue.wait(soon()).expect("bytes in time").token, 2),
                count => received += count,
            }
        }
    });
}

/// Lets everything arrive that is on the way.
fn settle(channels: &mut Channels) {
    let marks = [channels.a.sender.mark(), channels.b.sender.mark()];
    channels.until("all stores to arrive", |channels| {
        let [a, b] = [&channels.a.sender, &channels.b.sender];
        (a.has_landed(marks[0]) && b.has_landed(marks[1])).then_some(())
    });
    drain_links(&channels.nodes);
}

/// Polls until neither node has had news for some rounds.
fn drain_links(nodes: &[Node]) {
    let deadline = clock::now() + super::nodes::PATIENCE_NS;
    let mut quiet = 0;
    while quiet < 50 {
        let any = nodes.iter().fold(false, |any, node| node.progress_kernel() | any);
        quiet = if any { 0 } else { quiet + 1 };
        assert!(clock::now() < deadline, "two nodes never come to rest");
    }
}
