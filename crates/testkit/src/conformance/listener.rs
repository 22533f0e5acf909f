//! Connecting, accepting and refusing, with private data.

use sidestep_fabric::{Error, EventQueue, Node, protocol::MAX_PRIVATE};
use sidestep_shm as shm;
use sidestep_sys::clock;

use super::{
    fixture::{Fixture, unique_name},
    nodes::{Pair, drive, name_on, nodes, pattern, scheme_of, soon},
};

/// A connection is made by a request and its acceptance; each side reads the other's private data.
pub fn accepting_exchanges_private_data(fixture: Fixture) {
    let two = nodes(fixture, 2);
    let (a, b) = (&two[0], &two[1]);
    let name = name_on(b);
    let listener = b.listen(&name).expect("a name that is free");
    for (ours, theirs) in [(0, 0), (1, 1), (1000, 10), (MAX_PRIVATE, MAX_PRIVATE)] {
        let (asked, answered) = (pattern(ours, 1), pattern(theirs, 2));
        let to_b = a.begin_connect(&name, &asked).expect("someone who listens");
        let request = drive(&[a, b], "a request", || listener.poll());
        assert_eq!(to_b.is_connected(), Ok(false));
        assert!(request.private() == asked);
        let to_a = request.accept(&answered).expect("a peer that waits");
        assert!(to_a.private() == asked);
        drive(&[a, b], "an answer", || to_b.is_connected().expect("no refusal").then_some(()));
        assert!(to_b.private() == answered);
    }
}

/// The waiting calls do the same.
pub fn connecting_and_accepting_wait(fixture: Fixture) {
    let two = nodes(fixture, 2);
    let name = name_on(&two[1]);
    let listener = two[1].listen(&name).expect("a name that is free");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let end = listener.wait(soon()).expect("a request").accept(b"welcome").expect("a peer that waits");
            assert_eq!(end.wait_message(soon()), Ok(b"hello".to_vec()));
            let _ = end.wait_closed(soon()).expect("an end");
        });
        let end = two[0].connect(&name, b"please", soon()).expect("someone who accepts");
        assert_eq!(end.private(), b"welcome");
        end.post(b"hello").expect("an open connection");
    });
}

/// A refusal is told, with its private data.
pub fn refusing_is_told_with_private_data(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let asking = pair.a.begin_connect(&pair.name, b"please").expect("someone who listens");
    let request = pair.until("a request", || pair.listener.poll());
    request.refuse(b"never").expect("a peer that waits");
    let error = pair.until("an answer", || asking.is_connected().err());
    assert_eq!(error, Error::Refused { private: b"never".to_vec() });
    assert_eq!(asking.post(b"x").err(), Some(error));
}

/// A request that is dropped is refused.
pub fn a_dropped_request_is_refused(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let asking = pair.a.begin_connect(&pair.name, b"").expect("someone who listens");
    drop(pair.until("a request", || pair.listener.poll()));
    let error = pair.until("an answer", || asking.is_connected().err());
    assert_eq!(error, Error::Refused { private: Vec::new() });
}

/// A listener that goes away refuses who waits, and gives the name back.
pub fn a_dropped_listener_refuses_who_waits(fixture: Fixture) {
    let two = nodes(fixture, 2);
    let (a, b) = (&two[0], &two[1]);
    let (keeper, name) = (name_on(b), name_on(b));
    let _keeper = b.listen(&keeper).expect("a name that is free");
    let listener = b.listen(&name).expect("a name that is free");
    let asking = a.begin_connect(&name, b"").expect("someone who listens");
    let queue = EventQueue::new(b);
    listener.attach(&queue, 1);
    drive(&[a, b], "a request", || queue.poll());
    drop(listener);
    let error = drive(&[a, b], "an answer", || asking.is_connected().err());
    assert_eq!(error, Error::Refused { private: Vec::new() });
    b.listen(&name).expect("a name that is free again");
}

/// Connecting to a name that nobody listens under says so, at once or when the other process answers.
pub fn nobody_listens(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let missing = name_on(&pair.b);
    let error = pair.a.connect(&missing, b"", soon()).expect_err("nobody is there");
    assert!(matches!(error, Error::NobodyListens(_) | Error::Memory(shm::Error::NobodyListens(_))), "{error:?}");
    // The process is there, and known; the name is not.
    let name = pair.name.clone();
    let Pair { a, b, listener, to_b, to_a, .. } = pair;
    drop(listener);
    let error = match a.begin_connect(&name, b"") {
        Ok(asking) => drive(&[&a, &b], "an answer", || asking.is_connected().err()),
        Err(error) => error,
    };
    assert!(matches!(error, Error::NobodyListens(_) | Error::Memory(shm::Error::NobodyListens(_))), "{error:?}");
    to_b.post(b"still").expect("an open connection");
    let message = drive(&[&a, &b], "a message", || to_a.poll_message().expect("an open connection"));
    assert_eq!(message, b"still");
}

/// Private data has a limit, on both sides, and a request that met it can still be answered.
pub fn private_data_has_a_limit(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let large = vec![1; MAX_PRIVATE + 1];
    let too_large = |error: Option<Error>| matches!(error, Some(Error::Size { value, .. }) if value == MAX_PRIVATE + 1);
    assert!(too_large(pair.a.begin_connect(&pair.name, &large).err()));
    let asking = pair.a.begin_connect(&pair.name, b"").expect("someone who listens");
    let request = pair.until("a request", || pair.listener.poll());
    assert!(too_large(request.accept(&large).err()));
    // What cannot be accepted is refused, since the request is gone.
    let error = pair.until("an answer", || asking.is_connected().err());
    assert!(matches!(error, Error::Refused { .. }), "{error:?}");
    let asking = pair.a.begin_connect(&pair.name, b"").expect("someone who listens");
    let request = pair.until("a request", || pair.listener.poll());
    assert!(too_large(request.refuse(&large).err()));
    let error = pair.until("an answer", || asking.is_connected().err());
    assert!(matches!(error, Error::Refused { .. }), "{error:?}");
}

/// A name has this link's scheme and 1 to 64 bytes.
pub fn names_have_a_form(fixture: Fixture) {
    let node: Node = nodes(fixture, 1).remove(0);
    let scheme = scheme_of(&node);
    let long = format!("{scheme}:{}", "n".repeat(65));
    let empty = format!("{scheme}:");
    for name in ["", "plain", &long, &empty, &format!("{scheme}:nul\0")] {
        assert!(matches!(node.listen(name).err(), Some(Error::Name { .. })), "{name:?}");
        assert!(matches!(node.begin_connect(name, b"").err(), Some(Error::Name { .. })), "{name:?}");
    }
    let fits = unique_name();
    let fits = format!("{scheme}:{fits}{}", "n".repeat(64 - fits.len()));
    node.listen(&fits).expect("a name of 64 bytes");
}

/// A name is taken while someone listens.
pub fn a_name_is_taken_while_someone_listens(fixture: Fixture) {
    let two = nodes(fixture, 2);
    let name = name_on(&two[0]);
    let listener = two[0].listen(&name).expect("a name that is free");
    for node in &two {
        assert!(matches!(node.listen(&name).err(), Some(Error::Memory(shm::Error::NameTaken(_)))));
    }
    drop(listener);
    two[1].listen(&name).expect("a name that is free again");
}

/// Giving up on a request tells the other side, whichever comes first.
pub fn giving_up_tells_the_other_side(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let asking = pair.a.begin_connect(&pair.name, b"").expect("someone who listens");
    let request = pair.until("a request", || pair.listener.poll());
    drop(asking);
    let end = request.accept(b"").expect("a peer that is there");
    let closed = pair.until("the end of a connection", || end.closed());
    assert!(matches!(closed.0, Error::Closed(_)));
}

/// A wait for a connection or a request ends at its deadline.
pub fn waits_end_at_their_deadline(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let soon_over = || Some(clock::now() + 1_000_000);
    assert!(matches!(pair.listener.wait(soon_over()).err(), Some(Error::TimedOut(_))));
    assert!(matches!(pair.a.connect(&pair.name, b"", soon_over()).err(), Some(Error::TimedOut(_))));
}

/// Many connections may wait to be accepted, and are accepted in order.
pub fn requests_wait_in_order(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let ask = |number: u8| pair.until("room", || pair.a.begin_connect(&pair.name, &[number]).ok());
    let asking: Vec<_> = (0..100u8).map(ask).collect();
    let mut ends = Vec::new();
    for number in 0..100u8 {
        let request = pair.until("a request", || pair.listener.poll());
        assert_eq!(request.private(), [number]);
        let answer = [number ^ 0xff];
        ends.push(request.accept(&answer).expect("a peer that waits"));
    }
    for (number, end) in asking.iter().enumerate() {
        pair.until("an answer", || end.is_connected().expect("no refusal").then_some(()));
        assert_eq!(end.private(), [number as u8 ^ 0xff]);
    }
}
