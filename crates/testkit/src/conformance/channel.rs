//! Channels: made without waiting, growing, with notes, and many of them on one event queue.

use sidestep_fabric::{
    Channel, ChannelOptions, Error, EventQueue, Listener, Node,
    channel::{Accepting, Connecting, private_of},
    queue::Kind,
};
use sidestep_sys::clock;

use super::{
    fixture::Fixture,
    nodes::{PATIENCE_NS, drive, name_on, nodes, pattern, soon},
    stream::{Channels, small},
};

/// Where channels are made.
pub struct Place {
    /// The node that asks.
    pub a: Node,
    /// The node that accepts.
    pub b: Node,
    listener: Listener,
    name: String,
}

impl Place {
    /// Two nodes, one of which listens.
    pub fn new(fixture: Fixture) -> Place {
        let mut made = nodes(fixture, 2);
        let (b, a) = (made.remove(1), made.remove(0));
        let name = name_on(&b);
        let listener = b.listen(&name).expect("a name that is free");
        Place { a, b, listener, name }
    }

    fn begin(&self, private: &[u8]) -> (Connecting, Accepting) {
        let asked = Channel::begin_connect(&self.a, &self.name, small(1024), private).expect("someone who listens");
        let request = drive(&[&self.a, &self.b], "a request", || self.listener.poll());
        assert_eq!(private_of(&request), private);
        (asked, Channel::begin_accept(request, small(512), b"welcome").expect("a request for a channel"))
    }

    /// Makes a channel: the end of `a`, the end of `b`.
    pub fn make(&self) -> (Channel, Channel) {
        let (mut asked, mut accepted) = self.begin(b"please");
        let b = drive(&[&self.a, &self.b], "a channel", || accepted.poll().expect("a peer that waits"));
        let a = drive(&[&self.a, &self.b], "a channel", || asked.poll().expect("a peer that has accepted"));
        assert!(asked.poll().expect("nothing more").is_none() && accepted.poll().expect("nothing more").is_none());
        (a, b)
    }
}

/// One thread makes both ends of a channel, since no call waits.
pub fn channels_are_made_without_waiting(fixture: Fixture) {
    let place = Place::new(fixture);
    for round in 0..3u8 {
        let (mut a, mut b) = place.make();
        assert_eq!((a.private(), b.private()), (b"welcome".to_vec(), b"please".to_vec()));
        a.sender.try_send(&[round; 10]).expect("an open connection");
        b.sender.try_send(&[round; 20]).expect("an open connection");
        for (receiver, len) in [(&mut a.receiver, 20), (&mut b.receiver, 10)] {
            drive(&[&place.a, &place.b], "bytes", || (receiver.available() == Ok(len)).then_some(()));
        }
        assert_eq!((a.sender.capacity(), b.sender.capacity()), (512, 1024));
    }
}

/// Both ends of a channel that is being made report to an event queue when there is something to do.
pub fn a_channel_being_made_reports(fixture: Fixture) {
    let place = Place::new(fixture);
    let (mut asked, mut accepted) = place.begin(b"");
    let (at_a, at_b) = (EventQueue::new(&place.a), EventQueue::new(&place.b));
    asked.attach(&at_a, 1);
    accepted.attach(&at_b, 2);
    let (mut a, mut b) = (None, None);
    drive(&[&place.a, &place.b], "a channel at both ends", || {
        // Each is looked at only if its event queue says so.
        if at_a.poll().is_some() {
            a = a.take().or(asked.poll().expect("a peer that accepts"));
        }
        if at_b.poll().is_some() {
            b = b.take().or(accepted.poll().expect("a peer that waits"));
        }
        (a.is_some() && b.is_some()).then_some(())
    });
}

/// A refusal, and an end before the channel is ready, are reported by the poll and by an event.
pub fn a_channel_that_is_not_made_says_why(fixture: Fixture) {
    let place = Place::new(fixture);
    let events = EventQueue::new(&place.a);
    let mut asked = Channel::begin_connect(&place.a, &place.name, small(256), b"").expect("someone who listens");
    let source = asked.attach(&events, 1);
    let request = drive(&[&place.a, &place.b], "a request", || place.listener.poll());
    request.refuse(b"not today").expect("a peer that waits");
    drive(&[&place.a, &place.b], "an event", || events.poll());
    assert_eq!(asked.poll().err(), Some(Error::Refused { private: b"not today".to_vec() }));
    events.detach(source);
    let (asked, mut accepted) = place.begin(b"");
    drop(asked);
    let end = drive(&[&place.a, &place.b], "the end", || match accepted.poll() {
        Ok(None) => None,
        Ok(Some(channel)) => Some(drive(&[&place.a, &place.b], "the end", || channel.endpoint.closed()).0),
        Err(error) => Some(error),
    });
    assert!(matches!(end, Error::Closed(_)), "{end}");
}

/// A channel gets a larger ring in the midst of the stream, by itself, and not a byte goes astray.
pub fn a_channel_grows(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(1024), small(1024));
    let byte = |position: usize| ((position * 31) >> 3) as u8;
    let Channels { a, b, .. } = &mut channels;
    assert!(matches!(b.grow(1024), Err(Error::Size { .. })));
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let mut sent = 0;
            while a.sender.capacity() < 16_384 || sent < 100_000 {
                let piece: Vec<u8> = (sent..sent + 777).map(byte).collect();
                a.sender.send(&piece, soon()).expect("an open connection");
                sent += piece.len();
            }
            a.endpoint.close();
            sent
        });
        let mut got = [0; 500];
        let mut at = 0;
        let mut larger = 4096;
        let end = loop {
            match b.receiver.receive(&mut got, soon()) {
                Ok(count) => {
                    assert!(got[..count].iter().copied().eq((at..at + count).map(byte)), "bytes differ behind {at}");
                    at += count;
                }
                Err(error) => break error,
            }
            if larger <= 16_384 {
                match b.grow(larger) {
                    Ok(()) => larger *= 4,
                    // One at a time.
                    Err(Error::Full { .. } | Error::Closed(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        };
        assert!(matches!(end, Error::Closed(_)), "{end}");
        assert_eq!(sending.join().expect("a thread that ends"), at);
    });
    assert_eq!(channels.b.receiver.capacity(), 16_384);
}

/// A sender that found the ring full goes on in the larger one at its next try, without waiting.
pub fn a_try_finds_the_larger_ring(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(1024), small(1024));
    let bytes = pattern(5000, 32);
    let mut sent = channels.a.sender.try_send(&bytes).expect("an open connection");
    assert_eq!((sent, channels.a.sender.try_send(&bytes[sent..])), (1024, Ok(0)));
    channels.b.grow(8192).expect("memory for a larger ring");
    assert!(matches!(channels.b.grow(16_384), Err(Error::Full { .. })), "one at a time");
    channels.until("the larger ring", |channels| {
        sent += channels.a.sender.try_send(&bytes[sent..]).expect("an open connection");
        (sent == bytes.len()).then_some(())
    });
    let mut got = vec![0; bytes.len()];
    channels.receive(&mut got);
    assert!(got == bytes, "bytes were lost, added or changed");
}

/// Each side leaves words for the other, which finds them beside the stream.
pub fn notes_are_found_at_the_other_side(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(1024), small(1024));
    let events = EventQueue::new(&channels.nodes[1]);
    events.attach_receiver(&mut channels.b.receiver, 1).expect("a queue of this process");
    assert_eq!((channels.b.receiver.note(0), channels.a.sender.note()), (0, 0));
    channels.a.sender.push(b"before").expect("an open connection");
    channels.a.sender.set_note(0, 7).expect("an open connection");
    channels.until("an event", |_| events.poll());
    channels.until("a note", |channels| (channels.b.receiver.note(0) == 7).then_some(()));
    assert_eq!(channels.b.receiver.available(), Ok(6), "a note comes after what was pushed before");
    channels.a.sender.set_note(1, u64::MAX).expect("an open connection");
    channels.b.receiver.set_note(9).expect("an open connection");
    channels.until("a note", |channels| (channels.b.receiver.note(1) == u64::MAX).then_some(()));
    channels.until("a note", |channels| (channels.a.sender.note() == 9).then_some(()));
    assert_eq!(channels.b.receiver.note(0), 7);
}

/// One event queue serves many channels, and each event names the one that has something.
pub fn many_channels_report_to_one_queue(fixture: Fixture) {
    let place = Place::new(fixture);
    let events = EventQueue::new(&place.b);
    let mut ends: Vec<(Channel, Channel)> = (0..20).map(|_| place.make()).collect();
    for (token, (_, b)) in ends.iter_mut().enumerate() {
        events.attach_receiver(&mut b.receiver, token as u64).expect("a queue of this process");
    }
    let deadline = clock::now() + PATIENCE_NS;
    for round in 0..5usize {
        let chosen: Vec<usize> = (0..20).filter(|index| (index * 7 + round) % 3 == 0).collect();
        for index in &chosen {
            ends[*index].0.sender.try_send(&[*index as u8]).expect("an open connection");
        }
        let mut heard = [0; 20];
        while heard.iter().sum::<usize>() < chosen.len() {
            place.a.progress();
            assert!(clock::now() < deadline, "an event is lost");
            let Some(event) = events.poll() else { continue };
            let mut byte = [0; 4];
            let receiver = &mut ends[event.token as usize].1.receiver;
            let count = receiver.try_receive(&mut byte).expect("an open connection");
            heard[event.token as usize] += count;
            assert!(count == 0 || byte[0] == event.token as u8);
        }
        assert!(heard.iter().enumerate().all(|(index, count)| *count == usize::from(chosen.contains(&index))));
    }
}

/// A queue of slots does not grow.
pub fn slots_do_not_grow(fixture: Fixture) {
    let slots = ChannelOptions { kind: Kind::Slots(64), ..small(1024) };
    let mut channels = Channels::new(fixture, slots, slots);
    assert!(matches!(channels.b.grow(4096), Err(Error::Unsupported(_))));
}

/// Whoever sleeps by itself is told to look again soon as long as the link is full, and only then.
pub fn a_full_link_sets_a_deadline(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(4096), small(4096));
    assert_eq!((channels.a.sender.wait_deadline(), channels.b.receiver.wait_deadline()), (None, None));
    for _ in 0..1000 {
        // What a full link does not take is kept.
        let _ = channels.a.sender.try_send(&[7]);
    }
    let before = clock::now();
    match channels.a.sender.wait_deadline() {
        Some(deadline) => assert!(deadline > before, "a deadline that has passed"),
        None => assert_eq!(channels.a.receiver.wait_deadline(), None),
    }
    channels.until("a link with room", |channels| channels.a.sender.wait_deadline().is_none().then_some(()));
    // Once: each publish is a store of its own, which may fill the link again.
    channels.until("a publish", |channels| channels.a.sender.publish().ok());
    channels.receive(&mut [0; 1000]);
}
