//! Set-up as the two ends live it: frames, answers, fall-back, time-outs, readiness.

mod pair;

use pair::*;
use sidestep_iwarp::*;
use sidestep_wire::mpa::enhanced::{self, Depth};
use sidestep_wire::mpa::frame;
use std::time::Duration;

const PLAIN: SendKind = SendKind { solicited: false, invalidate: None };
const NO_MODES: RtrModes = RtrModes { send: false, write: false, read: false };

fn reply(repr: frame::Repr<'_>) -> Vec<u8> {
    let mut bytes = vec![0; repr.buffer_len()];
    repr.emit(&mut bytes);
    bytes
}

fn plain_reply(revision: Revision, rejected: bool) -> Vec<u8> {
    reply(frame::Repr {
        kind: frame::Kind::Reply { rejected },
        revision,
        markers: false,
        crc: true,
        enhanced: None,
        private_data: b"why",
    })
}

#[test]
fn private_data_goes_both_ways() {
    let mut pair = Pair::new(config(), config());
    pair.drive();
    let Event::Requested { private_data, revision, depths, peer_to_peer } = &pair.responder.events[0] else {
        panic!("{:?}", pair.responder.events)
    };
    assert_eq!((private_data.as_slice(), *revision), (&b"question"[..], Revision::Two));
    assert_eq!(*depths, Some(PeerDepths { ird: Some(16), ord: Some(16) }));
    assert!(!peer_to_peer);
    let Event::Established { private_data, agreement } = &pair.initiator.events[0] else {
        panic!("{:?}", pair.initiator.events)
    };
    assert_eq!(private_data, b"answer");
    assert!(agreement.crc);
}

#[test]
fn frames_cut_at_every_byte() {
    for chunk in 1..30 {
        let side = Config { markers: Interval::new(1024).ok(), ..config() };
        let mut pair = Pair::new(side.clone(), side);
        pair.chunk = chunk;
        pair.drive();
        assert_eq!(pair.initiator.agreement().unwrap().markers_sent, Interval::new(1024).ok());
        assert_eq!(pair.responder.agreement().unwrap().markers_sent, Interval::new(1024).ok());
    }
}

#[test]
fn a_reject_is_passed_on() {
    let mut pair = Pair::new(config(), config());
    pair.accept_with = None;
    pair.drive();
    let receive = pair.responder.post_receive(10);
    let now = pair.now;
    pair.responder.connection.reject(now, b"not you").unwrap();
    pair.drive();
    assert_eq!(
        pair.initiator.events[0],
        Event::Rejected {
            private_data: b"not you".to_vec(),
            depths: Some(PeerDepths { ird: Some(16), ord: Some(16) }),
        }
    );
    assert_eq!(pair.initiator.connection.transport(), Transport::Close);
    assert_eq!(pair.responder.connection.transport(), Transport::Close);
    assert_eq!(pair.responder.outcome(receive), Some(Outcome::Flushed));
}

/// RFC 5044 §7.1.2 rule 4: not an FPDU, not a marker from the responder before it has received one.
#[test]
fn the_responder_is_silent_until_the_first_fpdu() {
    let marked = Config { markers: Some(Interval::STANDARD), ..config() };
    let mut pair = Pair::established(marked, config());
    let receive = pair.initiator.post_receive(10);
    pair.responder.send(b"too early", PLAIN);
    let before = pair.initiator.record.len();
    pair.drive();
    assert_eq!(pair.initiator.record.len(), before);
    assert_eq!(pair.responder.outcome(WorkId(3)), None);
    pair.initiator.write(b"", Stag(0), 0);
    pair.drive();
    assert!(pair.initiator.record.len() > before);
    assert!(matches!(pair.initiator.outcome(receive), Some(Outcome::Received { len: 9, .. })));
}

#[test]
fn peer_to_peer_lets_the_responder_send_first() {
    for rtr in
        [RtrModes { write: true, ..NO_MODES }, RtrModes { read: true, ..NO_MODES }, RtrModes { send: true, ..NO_MODES }]
    {
        for ord in [0, 4] {
            let initiator = Config { peer_to_peer: true, rtr, ord, ..config() };
            let mut pair = Pair::established(initiator, config());
            assert!(pair.initiator.agreement().unwrap().peer_to_peer);
            let receive = pair.initiator.post_receive(10);
            pair.responder.send(b"first", PLAIN);
            pair.drive();
            assert!(matches!(pair.initiator.outcome(receive), Some(Outcome::Received { len: 5, .. })));
            // The signal consumed no receive and completed nothing.
            assert_eq!(pair.initiator.completions.len(), 1);
            assert_eq!(pair.responder.completions.len(), 1);
            let receive = pair.responder.post_receive(10);
            pair.initiator.send(b"", PLAIN);
            pair.initiator.send(b"x", PLAIN);
            pair.responder.post_receive(10);
            pair.drive();
            assert!(matches!(pair.responder.outcome(receive), Some(Outcome::Received { len: 0, .. })));
            assert_eq!(pair.responder.fault(), None);
            assert_eq!(pair.initiator.fault(), None);
        }
    }
}

/// An FPDU without a segment is taken for the signal by send, once, and only where it was agreed.
#[test]
fn an_empty_fpdu_may_be_the_signal() {
    let empty = [0, 0, 0, 0];
    let mut bytes = empty.to_vec();
    bytes.extend(sidestep_wire::mpa::crc32c(0, &empty).to_le_bytes());
    for (peer_to_peer, count, taken) in [(true, 1, true), (true, 2, false), (false, 1, false)] {
        let initiator = Config { peer_to_peer, ..config() };
        let mut pair = Pair::new(initiator, config());
        // The initiator's own signal is held back.
        while pair.responder.agreement().is_none() {
            pair.step();
        }
        for _ in 0..count {
            pair.responder.input(pair.now, &bytes);
        }
        let refused = pair.responder.fault().map(|fault| fault.check());
        assert_eq!(refused, (!taken).then_some(Check::SegmentShort));
        let receive = pair.initiator.post_receive(1);
        if taken {
            pair.responder.send(b"x", PLAIN);
            pair.drive();
            assert!(pair.initiator.outcome(receive).is_some());
        }
    }
}

#[test]
fn no_common_mode_ends_with_a_terminate() {
    let initiator = Config { peer_to_peer: true, rtr: RtrModes { write: true, ..NO_MODES }, ..config() };
    let responder = Config { rtr: RtrModes { read: true, ..NO_MODES }, ..config() };
    let mut pair = Pair::new(initiator, responder);
    pair.drive();
    assert_eq!(pair.initiator.fault().unwrap().check(), Check::NoReadyMode);
    assert_eq!(pair.responder.peer_reason(), Some(Reason::new(2, 0, 7)));
    assert_eq!(pair.initiator.connection.transport(), Transport::Close);
}

#[test]
fn a_reply_that_reads_too_much_ends_with_a_terminate() {
    let mut end = End::new(Connection::initiate(Config { ird: 2, ..config() }, b"", Duration::ZERO).unwrap());
    end.output(Duration::ZERO);
    let bytes = reply(frame::Repr {
        kind: frame::Kind::Reply { rejected: false },
        revision: Revision::Two,
        markers: false,
        crc: true,
        enhanced: Some(enhanced::Repr { ird: Depth::limit(1), ord: Depth::limit(3), peer_to_peer: None }),
        private_data: b"",
    });
    end.input(Duration::ZERO, &bytes);
    assert_eq!(end.fault(), Some(Fault::ReadDepthShort { needed: 3, have: 2 }));
    let out = end.output(Duration::ZERO);
    // Length 22, last untagged segment, terminate, queue 2, number 1, then layer 2 type 0 code 6.
    assert_eq!(out[..4], [0, 22, 0x41, 0x47]);
    assert_eq!(out[20..24], [0x20, 0x06, 0, 0]);
}

/// The three ways in which a peer of revision one shows itself.
#[test]
fn revision_two_falls_back_to_one() {
    let initiate = |revision| {
        let config = Config { revision, ..config() };
        let mut end = End::new(Connection::initiate(config, b"", Duration::ZERO).unwrap());
        end.output(Duration::ZERO);
        end
    };
    let fall_back = Event::FallBack { revision: Revision::One };
    for rejected in [false, true] {
        let mut end = initiate(Revision::Two);
        end.input(Duration::ZERO, &plain_reply(Revision::One, rejected));
        assert_eq!(end.events, [fall_back.clone(), Event::Closed]);
        assert_eq!(end.connection.transport(), Transport::Close);
    }
    let mut end = initiate(Revision::Two);
    end.connection.handle_end(Duration::ZERO);
    end.collect();
    assert_eq!(end.events, [fall_back, Event::Closed]);

    // Having asked in revision one, the same answers mean what they say.
    let mut end = initiate(Revision::One);
    end.input(Duration::ZERO, &plain_reply(Revision::One, false));
    assert_eq!(end.agreement().unwrap().revision, Revision::One);
    let mut end = initiate(Revision::One);
    end.input(Duration::ZERO, &plain_reply(Revision::One, true));
    assert!(matches!(&end.events[0], Event::Rejected { private_data, .. } if private_data == b"why"));
    let mut end = initiate(Revision::One);
    end.connection.handle_end(Duration::ZERO);
    end.collect();
    assert_eq!(end.events[0], Event::SetupFailed(SetupFailure::StreamEnded { received: 0 }));
}

#[test]
fn a_peer_of_revision_one_is_served_in_revision_one() {
    let mut pair = Pair::new(Config { revision: Revision::One, ..config() }, config());
    pair.drive();
    let agreement = pair.responder.agreement().unwrap();
    assert_eq!((agreement.revision, agreement.peer_depths), (Revision::One, None));
    assert_eq!((agreement.ird, agreement.ord), (16, 16));
}

#[test]
fn what_is_no_frame_ends_set_up_at_once() {
    let request = |change: fn(&mut Vec<u8>)| {
        let mut bytes = b"MPA ID Req Frame\x40\x01\0\0".to_vec();
        change(&mut bytes);
        let mut end = End::new(Connection::respond(config(), Duration::ZERO));
        end.input(Duration::ZERO, &bytes);
        end.events.first().cloned()
    };
    assert!(matches!(request(|_| ()), Some(Event::Requested { .. })));
    let failed = |change| matches!(request(change), Some(Event::SetupFailed(SetupFailure::Frame(_))));
    assert!(failed(|bytes| bytes[0] = b'm'));
    assert!(failed(|bytes| {
        // One wrong byte is enough, nothing more is waited for.
        bytes.truncate(1);
        bytes[0] = b'G';
    }));
    assert!(failed(|bytes| bytes[10] = b'p'), "a reply is no request");
    assert!(failed(|bytes| bytes[17] = 0), "revision 0");
    assert!(failed(|bytes| bytes[17] = 3), "revision 3");
    assert!(failed(|bytes| bytes[18..20].copy_from_slice(&[2, 1])), "513 bytes of private data");
    assert!(failed(|bytes| {
        // Flag S without the four bytes.
        bytes[16] |= 0x10;
        bytes[17] = 2;
    }));
    assert_eq!(request(|bytes| bytes[19] = 1), None, "one byte of private data is awaited");
}

#[test]
fn set_up_that_takes_too_long_fails() {
    let timeout = config().setup_timeout;
    let mut pair = Pair::new(config(), config());
    pair.accept_with = None;
    assert_eq!(pair.initiator.connection.poll_timeout(), Some(pair.now + timeout));
    pair.wait(timeout - Duration::from_nanos(1));
    assert!(pair.initiator.events.is_empty());
    pair.wait(Duration::from_nanos(1));
    for end in [&pair.initiator, &pair.responder] {
        let failure = SetupFailure::TimedOut { waited: timeout };
        assert_eq!(end.events, [Event::SetupFailed(failure), Event::Closed]);
        assert_eq!(end.connection.transport(), Transport::Reset);
        assert_eq!(end.connection.poll_timeout(), None);
    }
}

/// Linux siw sends its reply before it is ready to receive, and may lose the first wake-up.
#[test]
fn a_silent_peer_is_nudged_a_few_times() {
    let pause = Duration::from_millis(10);
    let mut pair = Pair::established(Config { nudge: Some(pause), ..config() }, config());
    assert_eq!(pair.initiator.connection.poll_timeout(), None, "nothing was sent yet");
    pair.initiator.send(b"anyone there?", PLAIN);
    let first = pair.initiator.output(pair.now);
    let mut lengths = Vec::new();
    while let Some(at) = pair.initiator.connection.poll_timeout() {
        let time = at - pair.now;
        pair.wait(time);
        lengths.push((time, pair.initiator.output(pair.now).len()));
    }
    // A write of length zero: 2 + 14 + 4 bytes; the pauses double.
    let expected: Vec<_> = (0..6).map(|n| (pause * (1 << n), 20)).collect();
    assert_eq!(lengths, expected);
    // The peer ignores all of them.
    pair.responder.post_receive(100);
    pair.responder.input(pair.now, &first);
    assert_eq!(pair.responder.completions.len(), 1);
}

#[test]
fn a_peer_that_speaks_is_not_nudged() {
    let pause = Duration::from_millis(10);
    let mut pair = Pair::established(Config { nudge: Some(pause), ..config() }, config());
    pair.responder.post_receive(100);
    pair.initiator.post_receive(100);
    pair.initiator.send(b"anyone there?", PLAIN);
    pair.responder.send(b"yes", PLAIN);
    pair.drive();
    assert_eq!(pair.initiator.connection.poll_timeout(), None);
}

#[test]
fn a_responder_that_goes_away_while_the_program_decides() {
    let mut pair = Pair::new(config(), config());
    pair.accept_with = None;
    pair.drive();
    pair.responder.connection.handle_end(pair.now);
    pair.responder.collect();
    assert_eq!(pair.responder.events.last(), Some(&Event::Closed));
    assert_eq!(pair.responder.connection.accept(b""), Err(Error::NothingToAnswer));
}
