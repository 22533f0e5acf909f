//! How connections end: in good order, half by half, abruptly, and by loss.

mod pair;

use pair::*;
use sidestep_iwarp::*;

const PLAIN: SendKind = SendKind { solicited: false, invalidate: None };

#[test]
fn close_lets_everything_out_first() {
    let mut pair = Pair::opened(config(), config());
    let sink = pair.responder.region(vec![0; 100_000], 0, Rights::WRITE | Rights::READ);
    let own = pair.initiator.region(vec![0; 100_000], 0, Rights::NONE);
    let data = pattern(100_000, 4);
    let write = pair.initiator.write(&data, sink, 0);
    let read = pair.initiator.read((own, 0), (sink, 0), 100_000);
    pair.initiator.connection.close(pair.now);
    let source = pair.initiator.source(b"x");
    let late = pair.initiator.connection.post_send(WorkId(1), source, PLAIN);
    assert_eq!(late, Err(Error::NotOpen));
    pair.drive();
    assert_eq!(pair.initiator.outcome(write), Some(Outcome::Sent));
    assert_eq!(pair.initiator.outcome(read), Some(Outcome::Read));
    assert_eq!(pair.initiator.memory.regions[&own], data);
    assert_eq!(pair.initiator.connection.transport(), Transport::Finish);
    assert_eq!(pair.responder.events.last(), Some(&Event::PeerClosed));

    pair.responder.connection.close(pair.now);
    pair.drive();
    for end in [&pair.initiator, &pair.responder] {
        assert_eq!(end.connection.transport(), Transport::Close);
        assert_eq!(end.events.last(), Some(&Event::Closed));
    }
}

/// The half that is still open goes on: its messages are delivered.
#[test]
fn a_half_closed_connection_still_receives() {
    let mut pair = Pair::opened(config(), config());
    let receive = pair.initiator.post_receive(100);
    let unused = pair.initiator.post_receive(100);
    pair.initiator.connection.close(pair.now);
    pair.drive();
    assert_eq!(pair.initiator.connection.transport(), Transport::Finish);
    let send = pair.responder.send(b"last words", PLAIN);
    pair.drive();
    assert_eq!(pair.responder.outcome(send), Some(Outcome::Sent));
    assert!(matches!(pair.initiator.outcome(receive), Some(Outcome::Received { len: 10, .. })));
    assert_eq!(pair.initiator.outcome(unused), None);
    // What needs an answer cannot be asked of an end that has closed.
    let request = pair.responder.connection.post_atomic(
        WorkId(1),
        Stag(1),
        TaggedOffset(0),
        Operation::FetchAdd { add: 1, mask: 0 },
    );
    assert_eq!(request, Err(Error::NotOpen));
    pair.responder.connection.close(pair.now);
    pair.drive();
    assert_eq!(pair.initiator.outcome(unused), Some(Outcome::Flushed));
    assert_eq!(pair.initiator.connection.transport(), Transport::Close);
}

/// A read that crosses the close of the other end finds it closed.
#[test]
fn a_read_that_crosses_a_close_is_lost() {
    let mut pair = Pair::opened(config(), config());
    let source = pair.initiator.region(pattern(10, 1), 0, Rights::READ);
    let sink = pair.responder.region(vec![0; 10], 0, Rights::NONE);
    let read = pair.responder.read((sink, 0), (source, 0), 10);
    let request = pair.responder.output(pair.now);
    pair.initiator.connection.close(pair.now);
    pair.initiator.output(pair.now);
    pair.initiator.input(pair.now, &request);
    assert_eq!(pair.initiator.connection.transport(), Transport::Reset);
    pair.drive();
    assert_eq!(pair.responder.outcome(read), Some(Outcome::Flushed));
    assert!(pair.responder.events.contains(&Event::Lost { unfinished_bytes: 0, unanswered: 1 }));
}

#[test]
fn abort_tells_the_peer() {
    let mut pair = Pair::opened(config(), config());
    let receive = pair.initiator.post_receive(100);
    let sink = pair.responder.region(vec![0; 10], 0, Rights::WRITE);
    let write = pair.initiator.write(b"never sent", sink, 0);
    pair.initiator.connection.abort(pair.now);
    pair.drive();
    assert_eq!(pair.initiator.outcome(write), Some(Outcome::Flushed));
    assert_eq!(pair.initiator.outcome(receive), Some(Outcome::Flushed));
    assert_eq!(pair.responder.peer_reason(), Some(Reason::new(0, 0, 0)));
    assert_eq!(pair.responder.memory.touched, 0);
    assert_eq!(pair.responder.connection.transport(), Transport::Close);
    assert_eq!(pair.initiator.connection.transport(), Transport::Close);
}

#[test]
fn reset_tells_nobody() {
    let mut pair = Pair::opened(config(), config());
    let receive = pair.initiator.post_receive(100);
    let before = pair.responder.record.len();
    pair.initiator.connection.reset();
    pair.drive();
    assert_eq!(pair.responder.record.len(), before);
    assert_eq!(pair.initiator.connection.transport(), Transport::Reset);
    assert_eq!(pair.initiator.outcome(receive), Some(Outcome::Flushed));
    assert_eq!(pair.responder.events.last(), Some(&Event::PeerClosed));
}

#[test]
fn a_stream_that_ends_within_an_fpdu_is_lost() {
    let mut pair = Pair::opened(config(), config());
    let receive = pair.responder.post_receive(100);
    pair.initiator.send(b"half of it", PLAIN);
    let bytes = pair.initiator.output(pair.now);
    pair.responder.input(pair.now, &bytes[..20]);
    pair.responder.connection.handle_end(pair.now);
    pair.responder.collect();
    let lost = Event::Lost { unfinished_bytes: 20, unanswered: 0 };
    assert!(pair.responder.events.contains(&lost));
    assert_eq!(pair.responder.outcome(receive), Some(Outcome::Flushed));
    assert_eq!(pair.responder.memory.touched, 0);
}

#[test]
fn a_peer_that_does_not_close_is_not_waited_for_forever() {
    let mut pair = Pair::opened(config(), config());
    pair.initiator.connection.close(pair.now);
    pair.drive();
    assert_eq!(pair.initiator.connection.transport(), Transport::Finish);
    pair.wait(config().close_timeout);
    assert_eq!(pair.initiator.connection.transport(), Transport::Reset);

    // The same while a read waits for its answer.
    let mut pair = Pair::opened(config(), config());
    let sink = pair.initiator.region(vec![0; 10], 0, Rights::NONE);
    let source = pair.responder.region(vec![0; 10], 0, Rights::READ);
    let read = pair.initiator.read((sink, 0), (source, 0), 10);
    pair.initiator.connection.close(pair.now);
    pair.initiator.output(pair.now);
    assert_eq!(pair.initiator.connection.transport(), Transport::Open);
    pair.wait(config().close_timeout);
    assert_eq!(pair.initiator.outcome(read), Some(Outcome::Flushed));
    assert_eq!(pair.initiator.connection.transport(), Transport::Reset);
}

/// A close that still has much to send takes its time, as long as something moves.
#[test]
fn a_slow_close_is_not_cut_off() {
    let mut pair = Pair::opened(config(), config());
    let sink = pair.responder.region(vec![0; 100_000], 0, Rights::WRITE);
    let write = pair.initiator.write(&pattern(100_000, 6), sink, 0);
    pair.initiator.connection.close(pair.now);
    pair.initiator.window = 5000;
    for _ in 0..30 {
        pair.step();
        pair.wait(config().close_timeout * 2 / 3);
    }
    assert_eq!(pair.initiator.outcome(write), Some(Outcome::Sent));
    assert_eq!(pair.responder.memory.regions[&sink], pattern(100_000, 6));
}

#[test]
fn after_a_terminate_nothing_is_taken_or_sent() {
    let mut pair = Pair::opened(config(), config());
    let sink = pair.responder.region(vec![0; 100], 0, Rights::WRITE);
    let receive = pair.responder.post_receive(10);
    // Out of bounds, and then a good one in the same delivery.
    pair.initiator.write(&[1; 10], sink, 95);
    pair.initiator.write(&[2; 10], sink, 0);
    pair.responder.send(b"unsent", PLAIN);
    let bytes = pair.initiator.output(pair.now);
    pair.responder.input(pair.now, &bytes);
    assert_eq!(pair.responder.memory.touched, 0);
    assert_eq!(pair.responder.outcome(receive), Some(Outcome::Flushed));
    let out = pair.responder.output(pair.now);
    // One FPDU, the terminate message.
    assert_eq!(out[2..4], [0x41, 0x47]);
    let len = usize::from(u16::from_be_bytes([out[0], out[1]]));
    assert_eq!(out.len(), sidestep_wire::mpa::fpdu::bare_len(len));
    pair.initiator.input(pair.now, &out);
    assert_eq!(pair.initiator.peer_reason(), Some(Reason::new(1, 1, 1)));
    assert_eq!(pair.responder.connection.post_receive(WorkId(1), 1), Err(Error::NotOpen));
    pair.drive();
    assert_eq!(pair.responder.connection.transport(), Transport::Close);
}

#[test]
fn closing_before_set_up_is_over() {
    let mut pair = Pair::new(config(), config());
    pair.initiator.connection.close(pair.now);
    pair.drive();
    assert_eq!(pair.initiator.connection.transport(), Transport::Close);
    assert_eq!(pair.initiator.events, [Event::Closed]);
}
