use super::*;

const NO_MODES: RtrModes = RtrModes { send: false, write: false, read: false };

fn parse(bytes: &[u8], expect_hello: bool) -> PeerFrame {
    let packet = frame::Packet::new_checked(bytes).unwrap();
    PeerFrame::new(&frame::Repr::parse(&packet).unwrap(), expect_hello)
}

/// Both sides of a set-up: what the initiator and the responder agree on.
fn negotiate(initiator: &Config, responder: &Config) -> (Agreement, Result<Option<ReadySignal>, Fault>, Agreement) {
    let asked = parse(&request(initiator, b"hi").unwrap(), true);
    assert_eq!(asked.private_data, b"hi");
    let (reply, theirs) = accept(responder, &asked, b"there").unwrap();
    let reply = parse(&reply, says_hello(initiator));
    assert_eq!(reply.private_data, b"there");
    assert!(!reply.rejected);
    let (ours, signal) = agree(initiator, &reply);
    (ours, signal, theirs)
}

#[test]
fn crc_is_used_if_either_end_asks() {
    for (ours, theirs) in [(false, false), (false, true), (true, false), (true, true)] {
        let initiator = Config { crc: ours, ..Config::default() };
        let responder = Config { crc: theirs, ..Config::default() };
        let (one, _, other) = negotiate(&initiator, &responder);
        assert_eq!((one.crc, other.crc), (ours || theirs, ours || theirs));
    }
}

#[test]
fn each_end_receives_the_markers_it_asks_for() {
    let interval = |bytes| Some(Interval::new(bytes).unwrap());
    for (ours, theirs, sent, received) in [
        (None, None, None, None),
        (interval(512), None, None, interval(512)),
        (None, interval(512), interval(512), None),
        (interval(1024), interval(2048), interval(2048), interval(1024)),
        (interval(1024), None, None, interval(1024)),
        // The initiator did not say hello, so the responder cannot ask for more than the standard.
        (None, interval(2048), interval(512), None),
        (interval(512), interval(2048), interval(512), interval(512)),
    ] {
        let initiator = Config { markers: ours, ..Config::default() };
        let responder = Config { markers: theirs, ..Config::default() };
        let (one, _, other) = negotiate(&initiator, &responder);
        assert_eq!((one.markers_sent, one.markers_received), (sent, received));
        assert_eq!((other.markers_sent, other.markers_received), (received, sent));
    }
}

/// A responder that is not Sidestep answers without hello: markers come at the standard interval.
#[test]
fn without_a_hello_in_the_reply_the_standard_interval_is_received() {
    let config = Config { markers: Interval::new(4096).ok(), ..Config::default() };
    let reply = frame::Repr {
        kind: Kind::Reply { rejected: false },
        revision: Revision::Two,
        markers: false,
        crc: true,
        enhanced: None,
        private_data: b"",
    };
    let (agreement, _) = agree(&config, &PeerFrame::new(&reply, true));
    assert_eq!(agreement.markers_received, Some(Interval::STANDARD));
}

#[test]
fn a_hello_is_only_looked_for_where_one_is_expected() {
    let reply = frame::Repr {
        kind: Kind::Reply { rejected: false },
        revision: Revision::One,
        markers: true,
        crc: true,
        enhanced: None,
        private_data: b"SdSt\x01\0\x10\0rest",
    };
    assert_eq!(PeerFrame::new(&reply, true).private_data, b"rest");
    assert_eq!(PeerFrame::new(&reply, false).private_data, reply.private_data);
}

#[test]
fn depths_become_the_smaller_ones() {
    let initiator = Config { ird: 4, ord: 20, ..Config::default() };
    let responder = Config { ird: 8, ord: 16, ..Config::default() };
    let (one, signal, other) = negotiate(&initiator, &responder);
    assert_eq!(signal, Ok(None));
    assert_eq!((one.ird, one.ord), (4, 8));
    assert_eq!((other.ird, other.ord), (8, 4));
    assert_eq!(one.peer_depths, Some(PeerDepths { ird: Some(8), ord: Some(4) }));
    assert_eq!(other.peer_depths, Some(PeerDepths { ird: Some(4), ord: Some(20) }));
}

#[test]
fn depths_that_are_not_negotiated_stay() {
    let initiator = Config { ird: 4, ord: 20, negotiate_depths: false, ..Config::default() };
    let responder = Config { ird: 8, ord: 16, ..Config::default() };
    let (one, _, other) = negotiate(&initiator, &responder);
    assert_eq!((one.ird, one.ord, other.ird, other.ord), (4, 20, 8, 16));
    assert_eq!(one.peer_depths, Some(PeerDepths { ird: None, ord: None }));
    assert_eq!(other.peer_depths, Some(PeerDepths { ird: None, ord: None }));
    // And in revision one there is nothing to negotiate with.
    let initiator = Config { revision: Revision::One, ..initiator };
    let (one, _, other) = negotiate(&initiator, &responder);
    assert_eq!((one.ord, other.ord, one.peer_depths), (20, 16, None));
    assert_eq!(other.revision, Revision::One);
}

fn reply_with(ord: u16, modes: Option<RtrModes>) -> PeerFrame {
    let reply = frame::Repr {
        kind: Kind::Reply { rejected: false },
        revision: Revision::Two,
        markers: false,
        crc: true,
        enhanced: Some(enhanced::Repr { ird: Depth::limit(1), ord: Depth::limit(ord), peer_to_peer: modes }),
        private_data: b"",
    };
    PeerFrame::new(&reply, false)
}

#[test]
fn a_responder_that_reads_too_much_is_refused() {
    let config = Config { ird: 4, ..Config::default() };
    assert_eq!(agree(&config, &reply_with(4, None)).1, Ok(None));
    assert_eq!(agree(&config, &reply_with(5, None)).1, Err(Fault::ReadDepthShort { needed: 5, have: 4 }));
}

#[test]
fn the_first_common_mode_is_used() {
    let all = RtrModes { send: true, write: true, read: true };
    for (ours, theirs, expected) in [
        (all, all, ReadySignal::Write),
        (RtrModes { write: false, ..all }, all, ReadySignal::Read),
        (all, RtrModes { send: true, ..NO_MODES }, ReadySignal::Send),
    ] {
        let initiator = Config { peer_to_peer: true, rtr: ours, ..Config::default() };
        let responder = Config { rtr: theirs, ..Config::default() };
        let (one, signal, other) = negotiate(&initiator, &responder);
        assert_eq!(signal, Ok(Some(expected)));
        assert!(one.peer_to_peer && other.peer_to_peer);
    }
}

#[test]
fn no_common_mode_is_a_fault() {
    let write = RtrModes { write: true, ..NO_MODES };
    let read = RtrModes { read: true, ..NO_MODES };
    let initiator = Config { peer_to_peer: true, rtr: write, ..Config::default() };
    let responder = Config { rtr: read, ..Config::default() };
    let (_, signal, _) = negotiate(&initiator, &responder);
    assert_eq!(signal, Err(Fault::NoReadyMode { offered: read, supported: write }));
}

/// RFC 6581 §9.1: with a read as the signal, a place is kept for it.
#[test]
fn a_read_that_says_ready_gets_a_place() {
    let read = RtrModes { read: true, ..NO_MODES };
    let initiator = Config { peer_to_peer: true, rtr: read, ord: 0, ..Config::default() };
    let responder = Config { ird: 0, ..Config::default() };
    let (one, signal, other) = negotiate(&initiator, &responder);
    assert_eq!(signal, Ok(Some(ReadySignal::Read)));
    assert_eq!((one.ord, other.ird), (0, 1));
}

#[test]
fn a_reply_outside_the_model_is_accepted_without_signal() {
    let config = Config { peer_to_peer: true, ..Config::default() };
    assert_eq!(agree(&config, &reply_with(1, None)).1, Ok(None));
}

#[test]
fn private_data_that_does_not_fit() {
    let data = [7; 600];
    let config = Config::default();
    assert!(request(&config, &data[..508]).is_ok());
    assert_eq!(request(&config, &data[..509]), Err(Error::PrivateData { length: 509, limit: 508 }));
    let one = Config { revision: Revision::One, ..Config::default() };
    assert!(request(&one, &data[..512]).is_ok());
    let hello = Config { markers: Interval::new(4096).ok(), ..Config::default() };
    assert_eq!(request(&hello, &data[..501]), Err(Error::PrivateData { length: 501, limit: 500 }));
}

#[test]
fn a_reject_carries_what_would_be_accepted() {
    let asked = parse(&request(&Config::default(), b"").unwrap(), true);
    let config = Config { ird: 3, ord: 2, ..Config::default() };
    let reply = parse(&reject(&config, &asked, b"no").unwrap(), false);
    assert!(reply.rejected);
    assert_eq!(reply.private_data, b"no");
    assert_eq!(reply.depths(), Some(PeerDepths { ird: Some(3), ord: Some(2) }));
}
