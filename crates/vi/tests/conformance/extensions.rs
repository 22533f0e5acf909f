//! What goes beyond the specification.

use std::{thread, time::Duration};

use sidestep_testkit::conformance::fixture::Fixture;
use sidestep_vi::{Error, FlowControl, Queue, Status};

use super::pair::{Options, Pair, contents, in_ms, one, pair, pattern, soon};

pub fn asynchronous_sends_wait_for_receives(fixture: Fixture) {
    let pair = pair(fixture);
    let (source, target) = (pair.a.filled(20_000, 1), pair.b.buffer(20_000));
    pair.a.vi.set_flow_control(FlowControl::Asynchronous);
    for token in 0..5 {
        pair.a.vi.post_send(&one(token, &source, 10_000)).unwrap();
    }
    pair.settle();
    assert_eq!(pair.a.vi.poll_send(), None);
    for token in 0..5 {
        pair.b.vi.post_receive(&one(token, &target, 20_000)).unwrap();
        assert_eq!(pair.received(&pair.b.vi).token, token);
        assert_eq!(pair.sent(&pair.a.vi).token, token);
    }
    assert!(contents(&target, 0, 10_000) == pattern(10_000, 1));
}

pub fn nonblocking_sends_are_refused(fixture: Fixture) {
    let pair = pair(fixture);
    let (source, target) = (pair.a.filled(8, 1), pair.b.buffer(8));
    let send = one(1, &source, 8);
    assert_eq!(pair.a.vi.post_send_with(&send, FlowControl::NonBlocking, None), Err(Error::NoReceive));
    assert_eq!(pair.a.vi.queues_empty(), (true, true));
    pair.b.vi.post_receive(&one(1, &target, 8)).unwrap();
    pair.until("a receive", || pair.a.vi.post_send_with(&send, FlowControl::NonBlocking, None).ok());
    assert_eq!(pair.a.vi.post_send_with(&send, FlowControl::NonBlocking, None), Err(Error::NoReceive));
    assert_eq!(pair.received(&pair.b.vi).len, 8);
}

pub fn blocking_sends_wait(fixture: Fixture) {
    let pair = pair(fixture);
    let (source, target) = (pair.a.filled(8, 1), pair.b.buffer(8));
    let send = one(1, &source, 8);
    assert_eq!(pair.a.vi.post_send_with(&send, FlowControl::Blocking, in_ms(5)), Err(Error::TimedOut));
    thread::scope(|scope| {
        let sending = scope.spawn(|| pair.a.vi.post_send_with(&send, FlowControl::Blocking, soon()).unwrap());
        thread::sleep(Duration::from_millis(20));
        pair.b.vi.post_receive(&one(1, &target, 8)).unwrap();
        // The first of them asks to be told of receives, which the other side has to hear.
        while !sending.is_finished() {
            pair.b.nic.node().progress();
            pair.b.vi.progress();
        }
    });
    assert_eq!(pair.received(&pair.b.vi).len, 8);
}

pub fn messages_are_split(fixture: Fixture) {
    for (whole, part) in [(100usize, 30usize), (100_000, 40_000)] {
        let pair = pair(fixture);
        pair.a.vi.set_splitting(true);
        let (source, target) = (pair.a.filled(whole, 4), pair.b.buffer(4 * part));
        let parts = whole.div_ceil(part);
        for token in 0..parts {
            let segment = target.segment(token * part, part);
            pair.b.vi.post_receive(&sidestep_vi::Descriptor::new(token as u64, &[segment])).unwrap();
        }
        pair.settle();
        pair.a.vi.post_send(&one(1, &source, whole).with_immediate(7)).unwrap();
        for token in 0..parts {
            let received = pair.received(&pair.b.vi);
            let last = token + 1 == parts;
            assert_eq!((received.continues, received.immediate), (!last, last.then_some(7)));
            assert_eq!(received.len as usize, if last { whole - token * part } else { part });
        }
        assert_eq!(pair.sent(&pair.a.vi).status, Status::DONE.and(Status::IMMEDIATE));
        assert!(contents(&target, 0, whole) == pattern(whole, 4));
    }
}

pub fn a_vi_moves_to_another_queue(fixture: Fixture) {
    let pair = Pair::new(fixture, Options::default());
    let (first, second) = (pair.b.nic.create_cq(10).unwrap(), pair.b.nic.create_cq(10).unwrap());
    let (source, target) = (pair.a.filled(8, 1), pair.b.buffer(8));
    for cq in [Some(&first), Some(&second), None] {
        pair.b.vi.move_to(Queue::Receive, cq);
        pair.b.vi.post_receive(&one(1, &target, 8)).unwrap();
        pair.settle();
        pair.a.vi.post_send(&one(1, &source, 8)).unwrap();
        if let Some(cq) = cq {
            pair.until("a completion", || cq.poll());
        }
        assert_eq!(pair.received(&pair.b.vi).token, 1);
    }
    assert!(!first.is_in_use() && !second.is_in_use());
}
