//! Endpoints: messages whole and in order, the on-close message, sessions, and the end of a connection.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use sidestep_fabric::{
    CloseReason, Endpoint, Error, Node,
    endpoint::INBOX,
    protocol::{MAX_PRIVATE, Message},
};

use super::{
    fixture::Fixture,
    nodes::{Pair, drive, name_on, nodes, pattern, soon},
    stranger::{Heard, Stranger, made_up},
};

/// Messages arrive whole and in order, in both directions, up to the largest size.
pub fn messages_are_whole_and_in_order(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let sizes = [0, 1, 100, MAX_PRIVATE - 1, MAX_PRIVATE];
    let messages: Vec<_> = (0..200u64).map(|seed| pattern(sizes[seed as usize % 5], seed)).collect();
    for (from, to) in [(&pair.to_b, &pair.to_a), (&pair.to_a, &pair.to_b)] {
        let mut posted = messages.iter();
        let mut next = posted.next();
        for expected in &messages {
            let got = pair.until("a message", || {
                // As many as the link takes, so that they queue up.
                while let Some(message) = next
                    && from.post(message).is_ok()
                {
                    next = posted.next();
                }
                to.poll_message().expect("an open connection")
            });
            assert!(got == *expected, "a message of {} bytes came as one of {}", expected.len(), got.len());
        }
        assert_eq!(to.dropped_messages(), 0);
    }
}

/// A message that is too large is refused, and the connection goes on.
pub fn a_large_message_is_refused(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let large = vec![1; MAX_PRIVATE + 1];
    assert!(matches!(pair.to_b.post(&large), Err(Error::Size { value, .. }) if value == MAX_PRIVATE + 1));
    assert!(matches!(pair.to_b.set_on_close(&large), Err(Error::Size { .. })));
    pair.to_b.post(b"fits").expect("an open connection");
    assert_eq!(message_at(&pair, &pair.to_a), b"fits");
}

/// Messages that nobody takes are dropped beyond a number, the latest ones, and counted.
pub fn an_inbox_is_bounded(fixture: Fixture) {
    let pair = Pair::new(fixture);
    for number in 0..INBOX as u32 + 10 {
        pair.until("room for a message", || pair.to_b.post(&number.to_le_bytes()).ok());
    }
    pair.settle();
    assert_eq!(pair.to_a.dropped_messages(), 10);
    for number in 0..INBOX as u32 {
        assert_eq!(pair.to_a.poll_message(), Ok(Some(number.to_le_bytes().to_vec())));
    }
    assert_eq!(pair.to_a.poll_message(), Ok(None));
}

/// A wait for a message ends when one arrives, or at its deadline.
pub fn a_wait_for_a_message_ends(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let soon_over = Some(sidestep_sys::clock::now() + 1_000_000);
    assert!(matches!(pair.to_a.wait_message(soon_over), Err(Error::TimedOut(_))));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..100u8 {
                assert_eq!(pair.to_a.wait_message(soon()), Ok(vec![number]));
                pair.to_a.post(&[number]).expect("an open connection");
            }
        });
        for number in 0..100u8 {
            pair.to_b.post(&[number]).expect("an open connection");
            assert_eq!(pair.to_b.wait_message(soon()), Ok(vec![number]));
        }
    });
}

/// A close is told to the other side, after the messages before it, with the on-close message; each side hears of one.
pub fn a_close_is_told_with_the_on_close_message(fixture: Fixture) {
    let pair = Pair::new(fixture);
    assert_eq!(pair.to_a.closed(), None);
    pair.to_b.set_on_close(b"goodbye").expect("an open connection");
    pair.to_b.post(b"last words").expect("an open connection");
    pair.to_b.close();
    let peer = Error::Closed(CloseReason::Peer);
    let end = pair.until("the end of a connection", || pair.to_a.closed());
    assert_eq!(end, (peer.clone(), b"goodbye".to_vec()));
    assert_eq!(pair.to_a.poll_message(), Ok(Some(b"last words".to_vec())));
    assert_eq!(pair.to_a.poll_message(), Err(peer.clone()));
    assert_eq!(pair.to_a.post(b"late"), Err(peer));
    let here = Error::Closed(CloseReason::Here);
    assert_eq!(pair.to_b.closed(), Some((here.clone(), Vec::new())));
    assert_eq!(pair.to_b.post(b"late"), Err(here.clone()));
    pair.to_b.close();
    pair.to_a.close();
    pair.settle();
    assert_eq!(pair.to_a.closed().map(|(error, _)| error), Some(Error::Closed(CloseReason::Peer)));
    assert_eq!(pair.to_b.closed().map(|(error, _)| error), Some(here));
}

/// Dropping an endpoint closes the connection.
pub fn a_drop_is_a_close(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (to_b, to_a) = pair.another();
    to_b.set_on_close(b"dropped").expect("an open connection");
    drop(to_b);
    let end = pair.until("the end of a connection", || to_a.closed());
    assert_eq!(end, (Error::Closed(CloseReason::Peer), b"dropped".to_vec()));
}

/// The on-close message is delivered when the peer dies, after everything it sent before.
pub fn a_death_delivers_the_on_close_message(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (other_b, other_a) = pair.another();
    pair.to_a.set_on_close(b"first will").expect("an open connection");
    pair.to_a.set_on_close(b"last will").expect("an open connection");
    pair.to_a.post(b"last words").expect("an open connection");
    pair.settle();
    pair.kill_b();
    let end = drive(&[&pair.a], "the end of a connection", || pair.to_b.closed());
    assert_eq!(end, (Error::Closed(CloseReason::Died), b"last will".to_vec()));
    assert_eq!(pair.to_b.poll_message(), Ok(Some(b"last words".to_vec())));
    assert_eq!(pair.to_b.poll_message(), Err(Error::Closed(CloseReason::Died)));
    assert_eq!(other_b.closed(), Some((Error::Closed(CloseReason::Died), Vec::new())));
    drop(other_a);
}

/// A sleeping thread hears of the other side's end.
pub fn an_end_wakes_a_sleeper(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (to_b, to_a) = pair.another();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| (to_a.wait_message(soon()), pair.to_a.wait_closed(soon())));
        // Long enough that it sleeps, most of the time; right in either case.
        let until = sidestep_sys::clock::now() + 1_000_000;
        while sidestep_sys::clock::now() < until {
            pair.a.progress();
        }
        to_b.close();
        pair.to_b.close();
        let (message, end) = waiting.join().expect("a thread that ends");
        assert_eq!(message, Err(Error::Closed(CloseReason::Peer)));
        assert_eq!(end, Ok((Error::Closed(CloseReason::Peer), Vec::new())));
    });
}

/// The end of one connection does not touch another between the same nodes.
pub fn connections_end_one_by_one(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (to_b, to_a) = pair.another();
    to_b.close();
    pair.until("the end of a connection", || to_a.closed());
    pair.to_b.post(b"still here").expect("an open connection");
    assert_eq!(message_at(&pair, &pair.to_a), b"still here");
}

/// When both sides have closed, the slot is used again under another session.
pub fn a_slot_is_used_again_under_another_session(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let mut sessions = Vec::new();
    for _ in 0..5 {
        let (to_b, to_a) = pair.another();
        to_b.post(b"x").expect("an open connection");
        assert_eq!(message_at(&pair, &to_a), b"x");
        sessions.push((to_b.id(), to_a.id()));
        drop(to_b);
        pair.until("the end of a connection", || to_a.closed());
        drop(to_a);
        pair.settle();
    }
    let slots = |pick: &dyn Fn(&(_, _)) -> sidestep_fabric::protocol::EndpointId| {
        let mut slots: Vec<_> = sessions.iter().map(|ids| pick(ids).slot).collect();
        slots.sort_unstable();
        slots.dedup();
        slots.len()
    };
    // `settle` makes connections of its own, so a few slots take turns.
    assert!(slots(&|ids| ids.0) < 5 && slots(&|ids| ids.1) < 5, "slots are not used again: {sessions:?}");
    for (index, ids) in sessions.iter().enumerate() {
        assert!(!sessions[..index].iter().any(|earlier| earlier.0 == ids.0 || earlier.1 == ids.1));
    }
}

/// What an endpoint owns is kept until both sides have closed, and no longer.
pub fn resources_live_until_both_sides_have_closed(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (to_b, to_a) = pair.another();
    let gone = Arc::new(AtomicBool::new(false));
    to_b.own(Noticed(gone.clone()));
    to_b.close();
    pair.until("the end of a connection", || to_a.closed());
    pair.settle();
    assert!(!gone.load(Ordering::Acquire), "the other side has not closed and may still write");
    to_a.close();
    pair.until("the end of a resource", || gone.load(Ordering::Acquire).then_some(()));
}

/// Who gives a request up keeps what its endpoint owns until the other side has refused, or has accepted and closed: it may write
/// as soon as it accepts, and hears only then that nobody waits any more.
pub fn resources_of_a_request_live_until_it_is_answered(fixture: Fixture) {
    let mut made = nodes(fixture, 2);
    let (b, a) = (made.remove(1), made.remove(0));
    let name = name_on(&b);
    let listener = b.listen(&name).expect("a name that is free");
    let both = [&a, &b];
    for accepts in [true, false] {
        let gone = Arc::new(AtomicBool::new(false));
        let asked = a.begin_connect(&name, b"").expect("someone who listens");
        asked.own(Noticed(gone.clone()));
        let request = drive(&both, "a request", || listener.poll());
        drop(asked);
        let is_gone = || gone.load(Ordering::Acquire);
        if accepts {
            let accepted = request.accept(b"").expect("a peer that lives");
            drive(&both, "the end of a connection", || accepted.closed());
            assert!(!is_gone(), "the other side has not closed and may still write");
        } else {
            assert!(!is_gone(), "the other side may accept");
            request.refuse(b"").expect("a peer that lives");
        }
        drive(&both, "the end of a resource", || is_gone().then_some(()));
    }
}

/// What belongs to an answer that is never sent is given back at once, and the other side is refused.
pub fn an_answer_that_is_not_sent_keeps_nothing(fixture: Fixture) {
    let mut made = nodes(fixture, 2);
    let (b, a) = (made.remove(1), made.remove(0));
    let name = name_on(&b);
    let listener = b.listen(&name).expect("a name that is free");
    let asked = a.begin_connect(&name, b"").expect("someone who listens");
    let request = drive(&[&a, &b], "a request", || listener.poll());
    let gone = Arc::new(AtomicBool::new(false));
    let accepted = request.accept_with(|endpoint| {
        endpoint.own(Noticed(gone.clone()));
        Err(Error::Unsupported("what is asked for"))
    });
    assert_eq!(accepted.err(), Some(Error::Unsupported("what is asked for")));
    assert!(gone.load(Ordering::Acquire));
    let ended = drive(&[&a, &b], "a refusal", || asked.is_connected().err());
    assert_eq!(ended, Error::Refused { private: Vec::new() });
}

/// What an endpoint owns is given back when the peer dies, once this side has closed.
pub fn resources_are_given_back_when_the_peer_dies(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let gone = Arc::new(AtomicBool::new(false));
    pair.to_b.own(Noticed(gone.clone()));
    pair.kill_b();
    drive(&[&pair.a], "the end of a connection", || pair.to_b.closed());
    pair.to_b.close();
    drive(&[&pair.a], "the end of a resource", || gone.load(Ordering::Acquire).then_some(()));
}

/// A message for an earlier session of a slot is dropped, and so is one from a peer whose endpoint it is not.
pub fn stale_and_foreign_messages_are_dropped(fixture: Fixture) {
    let mut links = fixture(3).links;
    let node = Node::with_links(vec![links.remove(2)]).expect("a node");
    let name = name_on(&node);
    let listener = node.listen(&name).expect("a name that is free");
    let local = name.split_once(':').expect("a scheme").1;
    let (one, two) = (Stranger::reach(links.remove(1), local), Stranger::reach(links.remove(0), local));
    let meet = |stranger: &Stranger, slot| {
        stranger.say(Message::Connect { from: made_up(slot, 0), name: local, private: b"" });
        let request = drive(&[&node], "a request", || {
            stranger.poll();
            listener.poll()
        });
        let end = request.accept(b"").expect("a peer that waits");
        stranger.hear_from(&node);
        end
    };
    let end = meet(&one, 1);
    let other = meet(&two, 1);
    let (id, earlier) = (end.id(), made_up(end.id().slot, end.id().session.wrapping_sub(1)));
    let later = made_up(end.id().slot, end.id().session.wrapping_add(1));
    for stale in [earlier, later, made_up(u32::MAX, 0)] {
        one.say(Message::Message { to: stale, bytes: b"stale" });
        one.say(Message::Close { to: stale, bytes: b"" });
    }
    two.say(Message::Message { to: id, bytes: b"foreign" });
    two.say(Message::Close { to: id, bytes: b"" });
    one.say(Message::Message { to: id, bytes: b"good" });
    two.say(Message::Message { to: other.id(), bytes: b"good" });
    for (end, stranger) in [(&end, &one), (&other, &two)] {
        let message = drive(&[&node], "a message", || {
            stranger.poll();
            end.poll_message().expect("an open connection")
        });
        assert_eq!(message, b"good");
    }
}

/// A peer that breaks the protocol ends its own connections, and nobody else's.
pub fn a_broken_message_ends_its_own_connection(fixture: Fixture) {
    let mut links = fixture(3).links;
    let node = Node::with_links(vec![links.remove(2)]).expect("a node");
    let good = Node::with_links(vec![links.remove(1)]).expect("a node");
    let (to_node, to_good, _listener, name) = super::nodes::connect(&good, &node);
    let local = name.split_once(':').expect("a scheme").1;
    let stranger = Stranger::reach(links.remove(0), local);
    stranger.link().post(stranger.peer, &[99, 1, 2, 3]).expect("a new connection");
    drive(&[&node], "the end of a connection", || {
        stranger.poll();
        stranger.ear.take().iter().any(|heard| matches!(heard, Heard::Closed(..))).then_some(())
    });
    to_node.post(b"fine").expect("an open connection");
    let message = drive(&[&good, &node], "a message", || to_good.poll_message().expect("an open connection"));
    assert_eq!(message, b"fine");
}

fn message_at(pair: &Pair, end: &Endpoint) -> Vec<u8> {
    pair.until("a message", || end.poll_message().expect("an open connection"))
}

struct Noticed(Arc<AtomicBool>);

impl Drop for Noticed {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
