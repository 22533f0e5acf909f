//! Streams that are written and read where their bytes lie.

use crate::seeded::Seeded;
use sidestep_fabric::{
    Aperture, ChannelOptions, CloseReason, Error, Region,
    queue::{BLOCK_HEADER, Kind, QueueBlock},
};
use sidestep_shm::wait::Patience;

use super::{
    fixture::Fixture,
    nodes::{drive, pattern, soon},
    stream::{Channels, small},
};

/// A view shows the bytes that have arrived, also around the end of the ring, and takes nothing; consuming does.
pub fn a_view_shows_what_has_arrived(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(256), small(256));
    let bytes = pattern(9_000, 21);
    for (round, expected) in bytes.chunks(180).enumerate() {
        channels.a.sender.send(expected, soon()).expect("an empty ring");
        let len = expected.len();
        channels.until("bytes", |channels| channels.b.receiver.view(len).expect("a stream").map(drop));
        let view = channels.b.receiver.view(1).expect("a stream").expect("bytes");
        assert_eq!(view.len(), len, "round {round}");
        let mut got = vec![0; len];
        view.copy_out(0, &mut got).expect("inside");
        assert!(got == expected, "round {round}: bytes differ");
        for at in 0..len - 4 {
            assert_eq!(view.array::<4>(at).expect("inside"), expected[at..at + 4], "round {round}");
        }
        let part = view.part(7, len - 9).expect("inside");
        let folded = part.fold(Vec::new(), |all, piece| [&all[..], piece].concat()).expect("inside");
        assert!(folded == expected[7..len - 2], "round {round}: bytes differ");
        assert!(view.array::<4>(len - 3).is_err() && view.part(1, len).is_err());
        assert_eq!(channels.b.receiver.available(), Ok(len));
        channels.b.receiver.consume(100).expect("an open connection");
        let rest = channels.b.receiver.view(len - 100).expect("a stream").expect("the rest");
        assert_eq!((rest.len(), rest.array::<2>(0)), (len - 100, Ok([expected[100], expected[101]])));
        channels.b.receiver.consume(len - 100).expect("an open connection");
        channels.b.receiver.tell().expect("an open connection");
        channels.until("all the space", |channels| (channels.a.sender.space() == Ok(256)).then_some(()));
    }
}

/// What is written into a reservation is sent when it is committed, and not before; the rest of it is free again.
pub fn a_reservation_is_sent_when_committed(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(1024), small(1024));
    let mut got = [0; 700];
    // From the second round on it lies around the end of the ring.
    for round in 0..10u8 {
        channels.until("space", |channels| channels.a.sender.reserve(768).expect("a stream").map(drop));
        let mut space = channels.a.sender.reserve(700).expect("a stream").expect("space");
        assert!(space.len() >= 700);
        space.copy_in(0, &[99; 700]).expect("inside");
        assert!(space.copy_in(1024, &[1]).is_err() && space.copy_in(usize::MAX, &[1]).is_err());
        channels.a.sender.publish().expect("an open connection");
        let position = channels.a.sender.position();
        let mut space = channels.a.sender.reserve(700).expect("a stream").expect("space");
        space.copy_in(400, &[round + 1; 300]).expect("inside");
        space.copy_in(0, &[round; 400]).expect("inside");
        space.push(500).expect("inside");
        let mut space = channels.a.sender.reserve(200).expect("a stream").expect("space");
        space.copy_in(0, &[round + 2; 200]).expect("inside");
        space.commit(200).expect("an open connection");
        assert_eq!(channels.a.sender.position(), position + 700);
        channels.receive(&mut got);
        let expected = [vec![round; 400], vec![round + 1; 100], vec![round + 2; 200]].concat();
        assert!(got[..] == expected[..], "round {round}: bytes differ");
        assert_eq!(channels.b.receiver.available(), Ok(0), "more was sent than committed");
        channels.b.receiver.tell().expect("an open connection");
    }
    let space = channels.a.sender.reserve(1).expect("a stream").expect("space");
    let all = space.len();
    assert!(space.commit(all + 1).is_err(), "more than there is space for");
}

/// What no ring can hold is refused, and a queue of slots has no stream.
pub fn impossible_views_and_reservations_are_refused(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(1024), small(1024));
    assert!(matches!(channels.b.receiver.view(1025).err(), Some(Error::Size { value: 1025, .. })));
    assert!(matches!(channels.b.receiver.view(usize::MAX).err(), Some(Error::Size { .. })));
    assert!(matches!(channels.b.receiver.wait_bytes(1025, soon()), Err(Error::Size { .. })));
    assert!(channels.b.receiver.view(1024).expect("a stream").is_none());
    assert_eq!(channels.b.receiver.view(0).expect("a stream").map(|view| view.len()), Some(0));
    assert!(matches!(channels.a.sender.reserve(769).err(), Some(Error::Size { value: 769, .. })));
    assert!(channels.a.sender.reserve(768).expect("a stream").is_some());
    let slots = ChannelOptions { kind: Kind::Slots(64), ..small(1024) };
    let mut channels = Channels::new(fixture, slots, slots);
    assert!(matches!(channels.a.sender.reserve(1).err(), Some(Error::Unsupported(_))));
    assert!(matches!(channels.b.receiver.view(1).err(), Some(Error::Unsupported(_))));
}

/// Whoever waits for many bytes is woken when they are there, with no spinning at all; the sender waits for what the
/// ring holds beside them.
pub fn a_wait_for_many_bytes_ends_when_they_are_there(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(256), small(256));
    let Channels { a, b, .. } = &mut channels;
    let bytes = pattern(40_000, 22);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            a.sender.set_patience(Patience::NONE);
            let mut random = Seeded::new(5);
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let wanted = rest.len().min(1 + random.below(64) as usize);
                a.sender.wait_space(wanted, soon()).expect("space in time");
                let mut space = a.sender.reserve(wanted).expect("a stream").expect("space");
                space.copy_in(0, &rest[..wanted]).expect("inside");
                space.commit(wanted).expect("an open connection");
                a.sender.flush(soon()).expect("a link that takes it");
                rest = &rest[wanted..];
            }
        });
        b.receiver.set_patience(Patience::NONE);
        let mut random = Seeded::new(6);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let min = rest.len().min(1 + random.below(192) as usize);
            b.receiver.wait_bytes(min, soon()).expect("bytes in time");
            let view = b.receiver.view(min).expect("a stream").expect("bytes");
            let mut got = vec![0; view.len()];
            view.copy_out(0, &mut got).expect("inside");
            assert!(got == rest[..got.len()], "bytes were lost, added or changed");
            let used = 1 + random.below(got.len() as u64) as usize;
            b.receiver.consume(used).expect("an open connection");
            rest = &rest[used..];
        }
    });
}

/// A wait for more bytes than will come ends with the connection, and those that came are still there.
pub fn a_wait_for_bytes_ends_with_the_connection(fixture: Fixture) {
    let Channels { mut a, mut b, nodes, .. } = Channels::new(fixture, small(256), small(256));
    a.sender.send(b"short", soon()).expect("an open connection");
    drop(a);
    drive(&[&nodes[0], &nodes[1]], "the end of a connection", || b.endpoint.closed());
    assert_eq!(b.receiver.wait_bytes(6, soon()), Err(Error::Closed(CloseReason::Peer)));
    assert_eq!(b.receiver.view(5).expect("a stream").map(|view| view.len()), Some(5));
}

/// A view reaches from a ring into the larger one that the sender goes on in.
pub fn a_view_reaches_into_a_larger_ring(fixture: Fixture) {
    let mut channels = Channels::new(fixture, small(1024), small(1024));
    let bytes = pattern(4000, 23);
    channels.a.sender.send(&bytes[..900], soon()).expect("an empty ring");
    channels.receive(&mut [0; 500]);
    let region = Region::new(&channels.nodes[1], BLOCK_HEADER + 4096).expect("memory");
    let block = QueueBlock::new(&region, 0, 4096, Kind::Stream).expect("a block");
    channels.b.receiver.offer_ring(&block).expect("a larger ring");
    let aperture = Aperture::begin(&channels.a.endpoint, &block.spec().cookie).expect("an open connection");
    channels.until("an aperture", |_| aperture.is_open().expect("a good cookie").then_some(()));
    channels.a.sender.adopt_ring(&aperture, &block.spec()).expect("a larger ring");
    channels.a.sender.send(&bytes[900..], soon()).expect("space in the larger ring");
    channels.until("all bytes", |channels| channels.b.receiver.view(3500).expect("a stream").map(drop));
    let view = channels.b.receiver.view(3500).expect("a stream").expect("bytes");
    let mut got = vec![0; 3500];
    view.copy_out(0, &mut got).expect("inside");
    assert!(got == bytes[500..], "bytes differ");
    assert_eq!(view.array::<4>(398).expect("inside"), bytes[898..902]);
    channels.b.receiver.consume(450).expect("an open connection");
    assert_eq!(channels.b.receiver.position(), 950);
    let view = channels.b.receiver.view(3050).expect("a stream").expect("the rest");
    assert_eq!(view.array::<2>(0).expect("inside"), bytes[950..952]);
}
