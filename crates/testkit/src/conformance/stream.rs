//! Message queues that carry a stream of bytes.

use crate::seeded::Seeded;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sidestep_fabric::{
    Aperture, Channel, ChannelOptions, CloseReason, Error, Node, Region, Rights,
    queue::{BLOCK_HEADER, Frozen, Kind, QueueBlock, QueueSpec},
};
use sidestep_shm::wait::Patience;
use sidestep_sys::clock;

use super::{
    fixture::{Fixture, Kill},
    nodes::{PATIENCE_NS, drive, name_on, pattern, soon},
};

/// Two nodes with a channel between them.
pub struct Channels {
    /// The end of the node that asked.
    pub a: Channel,
    /// The end of the node that accepted.
    pub b: Channel,
    /// The nodes, in this order.
    pub nodes: [Node; 2],
    kill: Option<Kill>,
}

/// Bytes arrive in order, in both directions at once, through rings much smaller than they are.
pub fn bytes_arrive_in_order(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(4096), small(1024));
    let (ours, theirs) = (pattern(200_000, 1), pattern(200_000, 2));
    let Channels { a, b, .. } = &mut channels;
    std::thread::scope(|scope| {
        for (end, out, expected) in [(a, &ours, &theirs), (b, &theirs, &ours)] {
            let Channel { sender, receiver, .. } = end;
            scope.spawn(move || {
                let mut random = Seeded::new(out[0].into());
                let mut rest = &out[..];
                while !rest.is_empty() {
                    let (piece, more) = rest.split_at(rest.len().min(1 + random.below(3000) as usize));
                    sender.send(piece, soon()).expect("an open connection");
                    rest = more;
                }
            });
            scope.spawn(move || {
                let mut random = Seeded::new(expected[0].into());
                let mut got = vec![0; expected.len()];
                let mut at = 0;
                while at < got.len() {
                    let end = got.len().min(at + 1 + random.below(5000) as usize);
                    at += receiver.receive(&mut got[at..end], soon()).expect("an open connection");
                }
                assert!(got == *expected, "bytes were lost, added or changed");
            });
        }
    });
    assert_eq!(channels.a.sender.position(), 200_000);
    assert_eq!(channels.b.receiver.position(), 200_000);
}

/// A full ring takes no more; when bytes are taken out there is space again.
pub fn a_full_ring_takes_no_more(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(1024), small(1024));
    assert_eq!(channels.a.sender.capacity(), 1024);
    let bytes = pattern(3000, 3);
    let mut sent = 0;
    // The rounds in between let the other side see what there is.
    for _ in 0..100 {
        sent += channels.a.sender.try_send(&bytes[sent..]).expect("an open connection");
        channels.progress();
    }
    assert_eq!((sent, channels.a.sender.try_send(b"x")), (1024, Ok(0)));
    assert!(matches!(channels.a.sender.wait_space(1, Some(0)), Err(Error::TimedOut(_))));
    assert_eq!(channels.a.sender.space(), Ok(0));
    let mut got = vec![0; 1024];
    channels.receive(&mut got);
    assert!(got == bytes[..1024]);
    channels.until("space", |channels| (channels.a.sender.space().expect("a ring") >= 768).then_some(()));
    assert!(channels.a.sender.try_send(&bytes[sent..]).expect("an open connection") >= 768);
}

/// What is pushed is not seen before it is published; one publish covers all of it.
pub fn one_publish_covers_many(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(4096), small(4096));
    for byte in 0..100u8 {
        assert_eq!(channels.a.sender.push(&[byte]), Ok(1));
    }
    for _ in 0..50 {
        channels.progress();
        assert_eq!(channels.b.receiver.available(), Ok(0));
    }
    channels.a.sender.publish().expect("an open connection");
    let all = channels.until("bytes", |channels| Some(channels.b.receiver.available()).filter(|all| *all != Ok(0)));
    assert_eq!(all, Ok(100));
    let mut got = [0; 100];
    assert_eq!(channels.b.receiver.try_receive(&mut got), Ok(100));
    assert!(got.into_iter().eq(0..100));
}

/// Peeking takes nothing; consuming steps over what was peeked at.
pub fn peeking_takes_nothing(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(4096), small(4096));
    channels.a.sender.send(b"0123456789", soon()).expect("an open connection");
    channels.until("bytes", |channels| (channels.b.receiver.available() == Ok(10)).then_some(()));
    let receiver = &mut channels.b.receiver;
    let mut some = [0; 4];
    for _ in 0..2 {
        assert_eq!((receiver.peek(0, &mut some), &some), (Ok(4), b"0123"));
        assert_eq!((receiver.peek(8, &mut some), &some[..2]), (Ok(2), &b"89"[..]));
        assert_eq!(receiver.peek(10, &mut some), Ok(0));
        assert_eq!(receiver.peek(usize::MAX, &mut some), Ok(0));
        assert_eq!(receiver.position(), 0);
    }
    receiver.consume(3).expect("an open connection");
    assert_eq!(receiver.position(), 3);
    assert_eq!((receiver.try_receive(&mut some), &some), (Ok(4), b"3456"));
    receiver.consume(usize::MAX).expect("an open connection");
    assert_eq!((receiver.position(), receiver.available()), (10, Ok(0)));
}

/// A receiver that sleeps is woken by each byte; a sender that sleeps, by space. 2,000 times, with no spinning at all.
pub fn no_byte_is_slept_over(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(256), small(256));
    let rounds = 2_000u32;
    let Channels { a, b, .. } = &mut channels;
    std::thread::scope(|scope| {
        for (end, first) in [(a, true), (b, false)] {
            end.sender.set_patience(Patience::NONE);
            end.receiver.set_patience(Patience::NONE);
            scope.spawn(move || {
                let mut got = [0; 200];
                for round in 0..rounds {
                    let message = [round as u8; 200];
                    if first {
                        end.sender.send(&message, soon()).expect("space in time");
                    }
                    end.receiver.receive_exact(&mut got, soon()).expect("bytes in time");
                    assert_eq!(got, message, "round {round}");
                    if !first {
                        end.sender.send(&message, soon()).expect("space in time");
                    }
                }
            });
        }
    });
}

/// A wait ends at its deadline.
pub fn waits_end_at_their_deadline(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(256), small(256));
    let deadline = clock::now() + 3_000_000;
    let mut byte = [0];
    assert!(matches!(channels.b.receiver.receive(&mut byte, Some(deadline)), Err(Error::TimedOut(_))));
    assert!(clock::now() >= deadline);
    let deadline = clock::now() + 3_000_000;
    assert!(matches!(channels.a.sender.send(&[0; 300], Some(deadline)), Err(Error::TimedOut(_))));
    assert!(clock::now() >= deadline);
}

/// What was sent before the end is received before the end is reported.
pub fn bytes_before_the_end_are_received(fixture: Fixture) {
    let Channels { mut a, mut b, nodes, .. } = Channels::new(fixture, small(4096), small(4096));
    let bytes = pattern(3000, 4);
    a.sender.send(&bytes, soon()).expect("an open connection");
    drop(a);
    drive(&[&nodes[0], &nodes[1]], "the end of a connection", || b.endpoint.closed());
    let mut got = vec![0; 3000];
    b.receiver.receive_exact(&mut got, soon()).expect("bytes that were sent");
    assert!(got == bytes);
    let end = b.receiver.receive(&mut got, soon());
    assert_eq!(end, Err(Error::Closed(CloseReason::Peer)));
}

/// The death of the peer ends every wait.
pub fn a_death_ends_waits(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(256), small(256));
    channels.a.sender.send(&[1; 256], soon()).expect("an empty ring");
    let Channels { a, b, nodes, kill } = channels;
    let Channel { mut sender, mut receiver, endpoint } = a;
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| receiver.receive(&mut [0], soon()));
        let sending = scope.spawn(|| sender.send(&[2; 300], soon()));
        match &kill {
            Some(kill) => kill(1),
            None => {
                nodes[1].peer(b.endpoint.peer()).close(CloseReason::Here);
                nodes[1].progress();
            }
        }
        assert_eq!(receiving.join().expect("a thread"), Err(Error::Closed(CloseReason::Died)));
        assert_eq!(sending.join().expect("a thread"), Err(Error::Closed(CloseReason::Died)));
    });
    assert!(endpoint.closed().is_some());
}

/// A larger ring that the receiver offers is taken up in the middle of the stream, and not a byte goes astray.
pub fn a_ring_grows(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(1024), small(1024));
    let (mut written, mut read) = (0usize, 0usize);
    let bytes = pattern(60_000, 5);
    let mut rings = Vec::new();
    for capacity in [4096usize, 16_384] {
        for _ in 0..3 {
            written += channels.a.sender.try_send(&bytes[written..written + 700]).expect("an open connection");
        }
        let region = Region::new(&channels.nodes[1], BLOCK_HEADER + capacity).expect("memory");
        let block = QueueBlock::new(&region, 0, capacity, Kind::Stream).expect("a block");
        channels.b.receiver.offer_ring(&block).expect("a larger ring");
        let aperture = Aperture::begin(&channels.a.endpoint, &block.spec().cookie).expect("an open connection");
        channels.until("an aperture", |_| aperture.is_open().expect("a good cookie").then_some(()));
        channels.a.sender.adopt_ring(&aperture, &block.spec()).expect("a larger ring");
        assert_eq!(channels.a.sender.capacity(), capacity);
        let more = channels.a.sender.try_send(&bytes[written..written + capacity]).expect("an open connection");
        assert!(more > capacity / 2, "the new ring is not used: {more}");
        written += more;
        let mut got = vec![0; written - read];
        channels.receive(&mut got);
        let astray = got.iter().zip(&bytes[read..]).position(|(got, sent)| got != sent);
        assert_eq!(astray, None, "a byte went astray when the ring grew to {capacity} ({read}..{written})");
        read = written;
        assert_eq!(channels.b.receiver.capacity(), capacity);
        rings.push(region);
    }
}

/// A queue that is frozen has a last byte: what was published before is received, and nothing is sent after it. What the
/// receiver wants to get otherwise is the sender's again, once.
pub fn a_freeze_is_the_end_for_both(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(1024), small(1024));
    let bytes = pattern(1000, 6);
    channels.a.sender.send(&bytes, soon()).expect("an empty ring");
    let mut got = vec![0; 300];
    channels.receive(&mut got);
    channels.until("bytes", |channels| (channels.b.receiver.available() == Ok(700)).then_some(()));
    assert_eq!(channels.a.sender.frozen(), Ok(None));
    assert_eq!(channels.a.sender.can_freeze(), channels.b.receiver.can_freeze());
    if !channels.b.receiver.can_freeze() {
        assert!(matches!(channels.b.receiver.freeze(), Err(Error::Unsupported(_))));
        assert!(matches!(channels.b.receiver.want(), Err(Error::Unsupported(_))));
        assert!(matches!(channels.a.sender.freeze(), Err(Error::Unsupported(_))));
        return;
    }
    assert_eq!(channels.b.receiver.freeze(), Ok(1000));
    assert_eq!(channels.a.sender.try_send(b"more"), Err(Error::Frozen));
    assert_eq!(channels.a.sender.send(b"more", soon()), Err(Error::Frozen));
    assert_eq!(channels.a.sender.frozen(), Ok(Some(Frozen { position: 1000, wanted: false })));
    assert_eq!(channels.a.sender.take(), Ok(None));
    channels.a.sender.set_note(0, 7).expect("notes go on");
    channels.receive(&mut got);
    assert!(got == bytes[300..600]);
    assert_eq!(channels.b.receiver.want(), Ok(true));
    assert_eq!(channels.b.receiver.available(), Ok(0));
    assert_eq!(channels.b.receiver.withdraw(), Ok(true));
    assert_eq!(channels.a.sender.take(), Ok(None));
    channels.receive(&mut got);
    assert!(got == bytes[600..900]);
    assert_eq!(channels.b.receiver.want(), Ok(true));
    assert_eq!(channels.a.sender.take().expect("an open connection").as_deref(), Some(&bytes[900..]));
    assert_eq!(channels.b.receiver.is_taken(), Ok(true));
    assert_eq!(channels.b.receiver.withdraw(), Ok(false));
    assert_eq!(channels.b.receiver.available(), Ok(0));
    assert_eq!((channels.a.sender.position(), channels.b.receiver.position()), (900, 900));
}

/// A sender that sleeps because the ring is full is told of the end of the queue, whether the receiver wants the rest or not.
pub fn an_end_wakes_a_sender_without_space(fixture: Fixture) {
    for wants in [false, true] {
        let mut channels = Channels::new(fixture, small(256), small(256));
        if !channels.a.sender.can_freeze() {
            return;
        }
        let Channels { a, b, nodes, .. } = &mut channels;
        a.sender.send(&[7; 256], soon()).expect("an empty ring");
        let slept = nodes[0].counters().sleeps;
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| a.sender.send(b"more", soon()));
            drive(&[], "a sleep", || (nodes[0].counters().sleeps > slept).then_some(()));
            if wants {
                assert_eq!(b.receiver.want(), Ok(true));
            } else {
                assert_eq!(b.receiver.freeze(), Ok(256));
            }
            assert_eq!(sleeper.join().expect("a thread that ends"), Err(Error::Frozen));
        });
    }
}

/// The sender can end a queue as well.
pub fn a_sender_freezes(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(1024), small(1024));
    if !channels.a.sender.can_freeze() {
        return;
    }
    channels.a.sender.send(b"all of it", soon()).expect("an empty ring");
    assert_eq!(channels.a.sender.freeze(), Ok(Frozen { position: 9, wanted: false }));
    assert_eq!(channels.a.sender.try_send(b"more"), Err(Error::Frozen));
    let mut got = vec![0; 9];
    channels.receive(&mut got);
    assert_eq!((channels.b.receiver.freeze(), channels.b.receiver.want()), (Ok(9), Ok(false)));
    assert!(!channels.b.receiver.has_news());
}

/// A caller that sleeps by itself on the descriptor is woken by bytes, by space, and by the end.
pub fn the_descriptor_wakes_a_sleeper(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(256), small(256));
    for round in 0..50u8 {
        assert!(sleeps_until(&mut channels, round, |channels| {
            channels.a.sender.send(&[round], soon()).expect("an empty ring");
        }));
        let mut got = [0];
        channels.receive(&mut got);
        assert_eq!(got, [round]);
    }
    assert!(sleeps_until(&mut channels, 50, |channels| channels.a.endpoint.close()));
}

/// Bytes that are on the way when a caller prepares to sleep are not slept over either.
pub fn bytes_on_the_way_are_not_slept_over(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(256), small(256));
    for round in 0..50u8 {
        channels.a.sender.send(&[round], soon()).expect("an empty ring");
        if channels.b.receiver.prepare_wait().expect("a descriptor") {
            assert!(is_readable(&mut channels, PATIENCE_NS), "round {round}: slept over a byte");
        }
        channels.b.receiver.finish_wait();
        let mut got = [0];
        channels.receive(&mut got);
        assert_eq!(got, [round]);
        channels.b.receiver.tell().expect("an open connection");
        channels.until("all the space", |channels| (channels.a.sender.space() == Ok(256)).then_some(()));
    }
}

/// Prepares to sleep at `b`, lets something happen, and sees whether the descriptor tells of it.
fn sleeps_until(channels: &mut Channels, round: u8, happens: impl FnOnce(&mut Channels)) -> bool {
    let deadline = clock::now() + PATIENCE_NS;
    while !channels.b.receiver.prepare_wait().expect("a descriptor") || is_readable(channels, 0) {
        channels.b.receiver.finish_wait();
        channels.progress();
        assert!(clock::now() < deadline, "round {round}: there is never time to sleep");
    }
    happens(channels);
    let woken = is_readable(channels, PATIENCE_NS);
    channels.b.receiver.finish_wait();
    woken
}

fn is_readable(channels: &mut Channels, patience_ns: u64) -> bool {
    let descriptor = channels.b.receiver.wait_descriptor().expect("a descriptor");
    let mut descriptors = [PollFd::new(&descriptor, PollFlags::IN)];
    let patience = Timespec { tv_sec: (patience_ns / 1_000_000_000) as i64, tv_nsec: 0 };
    poll(&mut descriptors, Some(&patience)).expect("a poll") == 1
}

/// A stream with a ring of this size.
pub fn small(capacity: usize) -> ChannelOptions {
    ChannelOptions { capacity, kind: Kind::Stream }
}

impl Channels {
    /// A channel whose queue towards `a` is as `at_a` says, and the one towards `b` as `at_b`.
    pub fn new(fixture: Fixture, at_a: ChannelOptions, at_b: ChannelOptions) -> Channels {
        let (mut made, kill) = fixture(2).into_nodes();
        let (b, a) = (made.remove(1), made.remove(0));
        let name = name_on(&b);
        let listener = b.listen(&name).expect("a name that is free");
        let (to_b, to_a) = std::thread::scope(|scope| {
            let connecting = scope.spawn(|| Channel::connect(&a, &name, at_a, b"to b", soon()));
            let request = listener.wait(soon()).expect("a request");
            let to_a = Channel::accept(request, at_b, b"to a", soon()).expect("a request for a channel");
            // The other side may still ask for the pages of this one.
            drive(&[&b], "the other end", || connecting.is_finished().then_some(()));
            (connecting.join().expect("a thread that ends").expect("someone who accepts"), to_a)
        });
        Channels { a: to_b, b: to_a, nodes: [a, b], kill }
    }

    /// Drives both nodes once.
    pub fn progress(&self) {
        for node in &self.nodes {
            node.progress();
        }
    }

    /// Drives both nodes until `found` has an answer.
    pub fn until<T>(&mut self, what: &str, mut found: impl FnMut(&mut Channels) -> Option<T>) -> T {
        let deadline = clock::now() + PATIENCE_NS;
        loop {
            self.progress();
            if let Some(found) = found(self) {
                return found;
            }
            assert!(clock::now() < deadline, "this never happened: {what}");
        }
    }

    /// Fills `bytes` at `b`.
    pub fn receive(&mut self, bytes: &mut [u8]) {
        let mut at = 0;
        self.until("bytes", |channels| {
            at += channels.b.receiver.try_receive(&mut bytes[at..]).expect("an open connection");
            (at == bytes.len()).then_some(())
        });
    }
}

/// A spec that does not fit its region is refused before anything is asked of the owner.
pub fn a_queue_fits_its_region(fixture: Fixture) {
    let node = super::nodes::nodes(fixture, 1).remove(0);
    let region = Region::new(&node, BLOCK_HEADER + 4096).expect("memory");
    let good = QueueBlock::new(&region, 0, 4096, Kind::Stream).expect("a block").spec();
    assert_eq!(QueueSpec::from_bytes(&good.to_bytes()), Ok(good));
    let bad = [
        QueueSpec { offset: 64, ..good },
        QueueSpec { offset: 1, ..good },
        QueueSpec { offset: u64::MAX - 63, ..good },
        QueueSpec { capacity: 8192, ..good },
        QueueSpec { capacity: 3000, ..good },
        QueueSpec { capacity: 128, ..good },
        QueueSpec { kind: Kind::Slots(3), ..good },
        QueueSpec { kind: Kind::Slots(8192), ..good },
    ];
    for spec in bad {
        assert!(QueueSpec::from_bytes(&spec.to_bytes()).is_err(), "{spec:?}");
    }
    assert!(QueueBlock::new(&region, 64, 4096, Kind::Stream).is_err());
    assert!(QueueBlock::new(&region, 0, 1000, Kind::Stream).is_err());
    assert_eq!(region.cookie(Rights::ALL), good.cookie);
}
