//! What happens when something goes wrong.

use sidestep_testkit::conformance::fixture::Fixture;
use sidestep_vi::{Descriptor, Error, FlowControl, MemAttributes, Reliability, Segment, Status, ViState, Way, clock};

use super::pair::{Options, Pair, one, pair};

fn level(fixture: Fixture, reliability: Reliability) -> Pair {
    Pair::new(fixture, Options { reliability, ..Options::default() })
}

pub fn unreliable_drops(fixture: Fixture) {
    let pair = level(fixture, Reliability::Unreliable);
    let (source, target) = (pair.a.filled(8, 1), pair.b.buffer(8));
    pair.a.vi.post_send(&one(1, &source, 8)).unwrap();
    assert_eq!(pair.sent(&pair.a.vi).status, Status::DONE);
    pair.settle();
    assert_eq!((pair.a.vi.state(), pair.b.vi.state()), (ViState::Connected, ViState::Connected));
    assert_eq!(pair.b.vi.poll_receive(), None);
    pair.b.vi.post_receive(&one(2, &target, 8)).unwrap();
    pair.settle();
    pair.a.vi.post_send(&one(3, &source, 8)).unwrap();
    assert_eq!(pair.received(&pair.b.vi).token, 2);
}

pub fn delivery_ends_the_connection(fixture: Fixture) {
    let pair = level(fixture, Reliability::Delivery);
    let source = pair.a.filled(8, 1);
    pair.a.vi.post_send(&one(1, &source, 8)).unwrap();
    assert_eq!(pair.sent(&pair.a.vi).status, Status::DONE);
    pair.until("the error state", || (pair.b.vi.state() == ViState::Error).then_some(()));
    pair.until("the error state", || (pair.a.vi.state() == ViState::Error).then_some(()));
    pair.a.vi.post_send(&one(2, &source, 8)).unwrap();
    assert!(pair.sent(&pair.a.vi).status.has(Status::FLUSHED));
}

pub fn reception_tells_both(fixture: Fixture) {
    let pair = level(fixture, Reliability::Reception);
    let (source, target) = (pair.a.filled(8, 1), pair.b.buffer(8));
    pair.b.vi.post_receive(&one(1, &target, 8)).unwrap();
    pair.settle();
    pair.a.vi.post_send(&one(1, &source, 8)).unwrap();
    assert_eq!(pair.received(&pair.b.vi).token, 1);
    assert_eq!(pair.sent(&pair.a.vi).status, Status::DONE);
    pair.a.vi.post_send(&one(2, &source, 8)).unwrap();
    pair.a.vi.post_send(&one(3, &source, 8)).unwrap();
    assert!(pair.sent(&pair.a.vi).status.has(Status::REMOTE_DESC_ERROR));
    assert!(pair.sent(&pair.a.vi).status.has(Status::FLUSHED));
    pair.until("the error state", || (pair.b.vi.state() == ViState::Error).then_some(()));
    assert_eq!(pair.a.vi.state(), ViState::Error);
}

pub fn too_long_is_a_length_error(fixture: Fixture) {
    for reliability in [Reliability::Delivery, Reliability::Reception] {
        let pair = level(fixture, reliability);
        let (source, target) = (pair.a.filled(64, 1), pair.b.buffer(32));
        pair.b.vi.post_receive(&one(1, &target, 32)).unwrap();
        pair.b.vi.post_receive(&one(2, &target, 32)).unwrap();
        pair.settle();
        pair.a.vi.post_send(&one(1, &source, 64)).unwrap();
        assert!(pair.received(&pair.b.vi).status.has(Status::LENGTH_ERROR));
        assert!(pair.received(&pair.b.vi).status.has(Status::FLUSHED));
        let sent = pair.sent(&pair.a.vi).status;
        assert_eq!(sent.has(Status::REMOTE_DESC_ERROR), reliability == Reliability::Reception);
        assert_eq!(pair.b.vi.state(), ViState::Error);
    }
}

pub fn unreliable_survives_a_length_error(fixture: Fixture) {
    let pair = level(fixture, Reliability::Unreliable);
    let (source, target) = (pair.a.filled(64, 1), pair.b.buffer(32));
    pair.b.vi.post_receive(&one(1, &target, 32)).unwrap();
    pair.b.vi.post_receive(&one(2, &target, 32)).unwrap();
    pair.settle();
    pair.a.vi.post_send(&one(1, &source, 64)).unwrap();
    pair.a.vi.post_send(&one(2, &source, 32)).unwrap();
    assert!(pair.received(&pair.b.vi).status.has(Status::LENGTH_ERROR));
    assert_eq!(pair.received(&pair.b.vi).len, 32);
    assert_eq!(pair.b.vi.state(), ViState::Connected);
}

pub fn sends_without_connection_are_flushed(fixture: Fixture) {
    let pair = Pair::new(fixture, Options { connect: false, ..Options::default() });
    let source = pair.a.filled(8, 1);
    pair.a.vi.post_send(&one(1, &source, 8)).unwrap();
    assert!(pair.sent(&pair.a.vi).status.has(Status::FLUSHED));
    assert_eq!(pair.a.vi.state(), ViState::Idle);
}

pub fn disconnecting_flushes(fixture: Fixture) {
    let pair = pair(fixture);
    let targets = [pair.a.buffer(8), pair.b.buffer(8)];
    for (side, target) in [&pair.a, &pair.b].into_iter().zip(&targets) {
        side.vi.post_receive(&one(1, target, 8)).unwrap();
        side.vi.post_receive(&one(2, target, 8)).unwrap();
    }
    pair.settle();
    let source = pair.a.filled(8, 4);
    pair.a.vi.post_send(&one(3, &source, 8)).unwrap();
    pair.a.vi.disconnect().unwrap();
    assert_eq!(pair.a.vi.state(), ViState::Idle);
    for token in [1, 2] {
        let flushed = pair.received(&pair.a.vi);
        assert_eq!((flushed.token, flushed.status.has(Status::FLUSHED)), (token, true));
    }
    // What was sent before counts at the other side.
    assert_eq!(pair.received(&pair.b.vi).len, 8);
    assert!(pair.received(&pair.b.vi).status.has(Status::FLUSHED));
    assert_eq!(pair.b.vi.state(), ViState::Error);
    pair.b.vi.disconnect().unwrap();
    assert_eq!(pair.b.vi.state(), ViState::Idle);
}

pub fn wrong_memory_is_refused(fixture: Fixture) {
    let other_tag = |pair: &Pair| {
        let attributes = MemAttributes::new(pair.a.nic.create_ptag().unwrap());
        pair.a.nic.allocate(64, &attributes).unwrap().segment(0, 8)
    };
    let beyond = |pair: &Pair| Segment { len: 65, ..pair.a.buffer(64).segment(0, 64) };
    let before = |pair: &Pair| Segment { address: pair.a.buffer(64).address() - 1, ..pair.a.buffer(64).segment(0, 8) };
    let unknown = |pair: &Pair| Segment { handle: sidestep_vi::MemHandle(77), ..pair.a.buffer(64).segment(0, 8) };
    let gone = |pair: &Pair| {
        let buffer = pair.a.buffer(64);
        pair.a.nic.deregister(buffer.address(), buffer.handle()).unwrap();
        buffer.segment(0, 8)
    };
    let bad: [fn(&Pair) -> Segment; 5] = [other_tag, beyond, before, unknown, gone];
    for segment in bad {
        let pair = level(fixture, Reliability::Unreliable);
        let descriptor = Descriptor::new(1, &[segment(&pair)]);
        pair.a.vi.post_send(&descriptor).unwrap();
        assert!(pair.sent(&pair.a.vi).status.has(Status::PROTECTION_ERROR));
        pair.a.vi.post_receive(&descriptor).unwrap();
        pair.settle();
        let source = pair.b.filled(8, 1);
        pair.b.vi.post_send(&one(2, &source, 8)).unwrap();
        assert!(pair.received(&pair.a.vi).status.has(Status::PROTECTION_ERROR));
        assert_eq!(pair.a.vi.state(), ViState::Connected);
    }
    let pair = level(fixture, Reliability::Delivery);
    pair.a.vi.post_send(&Descriptor::new(1, &[unknown(&pair)])).unwrap();
    assert!(pair.sent(&pair.a.vi).status.has(Status::PROTECTION_ERROR));
    assert_eq!(pair.a.vi.state(), ViState::Error);
    pair.until("the end", || (pair.b.vi.state() == ViState::Error).then_some(()));
}

pub fn memory_may_go_while_posted(fixture: Fixture) {
    let pair = level(fixture, Reliability::Reception);
    let (source, target) = (pair.a.filled(100, 1), pair.b.buffer(100));
    pair.b.vi.post_receive(&one(1, &target, 100)).unwrap();
    pair.settle();
    pair.b.nic.deregister(target.address(), target.handle()).unwrap();
    pair.a.vi.post_send(&one(1, &source, 100)).unwrap();
    assert!(pair.received(&pair.b.vi).status.has(Status::PROTECTION_ERROR));
    assert!(pair.sent(&pair.a.vi).status.has(Status::REMOTE_DESC_ERROR));
}

pub fn formats_are_checked(fixture: Fixture) {
    let pair = level(fixture, Reliability::Unreliable);
    let buffer = pair.a.buffer(64);
    let many = vec![buffer.segment(0, 1); sidestep_vi::MAX_SEGMENTS + 1];
    pair.a.vi.post_send(&Descriptor::new(1, &many)).unwrap();
    assert!(pair.sent(&pair.a.vi).status.has(Status::FORMAT_ERROR));
    pair.a.vi.post_send(&one(1, &buffer, 8).read_from(0, buffer.handle())).unwrap();
    assert!(pair.sent(&pair.a.vi).status.has(Status::FORMAT_ERROR), "reads need a reliable VI");
    pair.a.vi.post_receive(&one(1, &buffer, 8).write_to(0, buffer.handle())).unwrap();
    pair.settle();
    let source = pair.b.filled(8, 1);
    pair.b.vi.post_send(&one(2, &source, 8)).unwrap();
    assert!(pair.received(&pair.a.vi).status.has(Status::FORMAT_ERROR));
}

/// Receives in front of a bad one get their messages, and its own message finds out; what lies behind it is flushed, or on
/// an unreliable VI gets the next message. The same for senders that are told of receives, and for those that are not.
pub fn a_bad_receive_fails_the_message_that_meets_it(fixture: Fixture) {
    for reliability in [Reliability::Unreliable, Reliability::Delivery, Reliability::Reception] {
        for (size, flow) in [
            (0, FlowControl::Compliant),
            (8, FlowControl::Compliant),
            (20_000, FlowControl::Compliant),
            (8, FlowControl::Asynchronous),
            (20_000, FlowControl::Asynchronous),
        ] {
            let what = format!("{reliability:?}, {size} bytes, {flow:?}");
            let pair = level(fixture, reliability);
            pair.a.vi.set_flow_control(flow);
            let (source, target) = (pair.a.filled(size, 1), pair.b.buffer(40_000));
            let bad = Segment { handle: sidestep_vi::MemHandle(77), ..target.segment(0, 40_000) };
            pair.b.vi.post_receive(&one(1, &target, 40_000)).unwrap();
            pair.b.vi.post_receive(&Descriptor::new(2, &[bad])).unwrap();
            pair.b.vi.post_receive(&one(3, &target, 40_000)).unwrap();
            pair.settle();
            assert_eq!((pair.b.vi.state(), pair.b.vi.poll_receive()), (ViState::Connected, None), "{what}");
            for token in 1..=3 {
                pair.a.vi.post_send(&one(token, &source, size)).unwrap();
            }
            let good = |token| {
                let received = pair.received(&pair.b.vi);
                let outcome = (received.token, received.status.is_error(), received.len as usize);
                assert_eq!(outcome, (token, false, size), "{what}");
            };
            good(1);
            let met = pair.received(&pair.b.vi);
            assert_eq!((met.token, met.status.has(Status::PROTECTION_ERROR), met.len), (2, true, 0), "{what}");
            if reliability == Reliability::Unreliable {
                good(3);
                assert_eq!(pair.b.vi.state(), ViState::Connected, "{what}");
                continue;
            }
            let flushed = pair.received(&pair.b.vi);
            assert_eq!((flushed.token, flushed.status.has(Status::FLUSHED)), (3, true), "{what}");
            pair.until("the error state", || (pair.a.vi.state() == ViState::Error).then_some(()));
            assert!(!pair.sent(&pair.a.vi).status.is_error(), "{what}");
            let told = pair.sent(&pair.a.vi).status;
            assert_eq!(told.has(Status::REMOTE_DESC_ERROR), reliability == Reliability::Reception, "{what}: {told:?}");
        }
    }
}

/// A bad receive that no message met is flushed like the others.
pub fn a_bad_receive_is_flushed(fixture: Fixture) {
    let pair = pair(fixture);
    let target = pair.b.buffer(8);
    let bad = Segment { handle: sidestep_vi::MemHandle(77), ..target.segment(0, 8) };
    pair.b.vi.post_receive(&Descriptor::new(1, &[bad])).unwrap();
    pair.b.vi.disconnect().unwrap();
    assert_eq!(pair.received(&pair.b.vi).status, Status::DONE.and(Status::OP_RECEIVE).and(Status::FLUSHED));
}

pub fn queues_are_bounded(fixture: Fixture) {
    let pair = pair(fixture);
    let target = pair.b.buffer(16);
    for token in 0..sidestep_vi::MAX_DESCRIPTORS as u64 {
        pair.b.vi.post_receive(&one(token, &target, 16)).unwrap();
    }
    assert!(matches!(pair.b.vi.post_receive(&one(0, &target, 16)), Err(Error::Limit { .. })));
    pair.settle();
    let source = pair.a.filled(16, 1);
    for token in 0..sidestep_vi::MAX_DESCRIPTORS as u64 {
        pair.a.vi.post_send(&one(token, &source, 16)).unwrap();
        pair.sent(&pair.a.vi);
    }
    for token in 0..sidestep_vi::MAX_DESCRIPTORS as u64 {
        assert_eq!(pair.received(&pair.b.vi).token, token);
    }
}

pub fn a_killed_peer_is_noticed(fixture: Fixture) {
    let pair = pair(fixture);
    let target = pair.a.buffer(8);
    pair.a.vi.post_receive(&one(1, &target, 8)).unwrap();
    pair.settle();
    pair.kill_b();
    let flushed = pair.a.vi.wait_receive(super::pair::soon()).unwrap();
    assert!(flushed.status.has(Status::FLUSHED));
    assert_eq!(pair.a.vi.state(), ViState::Error);
}

/// A program that only ever looks, with sends that wait for room which the peer will never make.
pub fn a_killed_peer_is_noticed_while_sends_wait(fixture: Fixture) {
    let pair = pair(fixture);
    pair.a.vi.set_way(Way::Pio);
    let source = pair.a.filled(100_000, 1);
    for token in 0..20 {
        pair.a.vi.post_send(&one(token, &source, 100_000)).unwrap();
    }
    pair.kill_b();
    let deadline = super::pair::soon().expect("a deadline");
    let mut taken = 0;
    while taken < 20 {
        taken += u64::from(pair.a.vi.poll_send().is_some());
        assert!(clock::now() < deadline, "{taken} sends came back");
    }
}
