//! The contract of [`sidestep_fabric::link::Link`], bullet by bullet.

use std::sync::Arc;

use sidestep_fabric::{
    Access, CloseReason, Cookie, Error, Refusal,
    cookie::RegionId,
    link::{AnyLink, Atomic, Request, Ticket},
};
use sidestep_shm::{
    self as shm,
    doorbell::{Sleeper, Tokens},
};
use sidestep_sys::clock;

use super::{
    fixture::{Fixture, unique_name},
    nodes::{PATIENCE_NS, pattern, soon},
    stranger::{EAR_LEN, Ear, Ending, Heard, Stranger, bad_cookie, good_cookie, until},
};

/// `connect` reaches whoever listens under a name, and says so if nobody does.
pub fn connect_reaches_who_listens_or_says_that_nobody_does(fixture: Fixture) {
    let links = fixture(3).links;
    let name = unique_name();
    let nobody = |error: &Error| matches!(error, Error::NobodyListens(n) | Error::Memory(shm::Error::NobodyListens(n)) if *n == name);
    assert!(links[0].as_link().connect(&name).is_err_and(|error| nobody(&error)));
    links[1].as_link().listen(&name).expect("a name that is free");
    let peer = links[0].as_link().connect(&name).expect("someone who listens");
    links[0].as_link().post(peer, b"hello").expect("a new connection");
    let (here, there) = (Ear::default(), Ear::default());
    poll_until(&[(&links[0], &here), (&links[1], &there)], "a message", || {
        there.all().iter().any(|heard| matches!(heard, Heard::Message(_, bytes) if bytes == b"hello"))
    });
    links[1].as_link().unlisten(&name);
    assert!(links[2].as_link().connect(&name).is_err_and(|error| nobody(&error)));
}

/// A name belongs to one listener at a time, and is free again after `unlisten`.
pub fn a_name_has_one_listener(fixture: Fixture) {
    let links = fixture(2).links;
    let name = unique_name();
    links[0].as_link().listen(&name).expect("a name that is free");
    for link in &links {
        assert_eq!(link.as_link().listen(&name), Err(Error::Memory(shm::Error::NameTaken(name.clone()))));
    }
    links[0].as_link().unlisten(&name);
    links[1].as_link().listen(&name).expect("a name that is free again");
}

/// A live peer of a name is used again; one that has closed is not.
pub fn a_live_peer_of_a_name_is_used_again(fixture: Fixture) {
    let links = fixture(2).links;
    let name = unique_name();
    links[1].as_link().listen(&name).expect("a name that is free");
    let first = links[0].as_link().connect(&name).expect("someone who listens");
    assert_eq!(links[0].as_link().connect(&name), Ok(first));
    links[0].as_link().close(first, CloseReason::Here);
    assert_ne!(links[0].as_link().connect(&name).expect("someone who listens"), first);
}

/// Peers that are there stay when a name is given back.
pub fn peers_outlive_the_name_they_came_by(fixture: Fixture) {
    let links = fixture(2).links;
    let (a, b) = (&links[0], &links[1]);
    let name = unique_name();
    b.as_link().listen(&name).expect("a name that is free");
    let peer = a.as_link().connect(&name).expect("someone who listens");
    let (ear_a, ear_b) = (Ear::default(), Ear::default());
    let ends = [(a, &ear_a), (b, &ear_b)];
    let count = |ear: &Ear| ear.all().iter().filter(|heard| matches!(heard, Heard::Message(..))).count();
    a.as_link().post(peer, b"one").expect("an open connection");
    poll_until(&ends, "a message", || count(&ear_b) == 1);
    b.as_link().unlisten(&name);
    a.as_link().post(peer, b"two").expect("an open connection");
    poll_until(&ends, "a message", || count(&ear_b) == 2);
}

/// What is posted to a peer arrives whole, once and in order.
pub fn posts_arrive_whole_once_and_in_order(fixture: Fixture) {
    let (a, b) = Stranger::meet(fixture(2).links);
    let longest = a.link().capabilities().max_message;
    let messages: Vec<_> = (0..1000u64).map(|i| pattern([0, 1, 7, 64, 1000, longest][i as usize % 6], i)).collect();
    for message in &messages {
        until(&a, &b, "room for a message", || match a.link().post(a.peer, message) {
            Ok(()) => Some(()),
            Err(Error::Full { .. }) => None,
            Err(error) => panic!("an open connection: {error}"),
        });
    }
    let expected: Vec<_> = messages.into_iter().map(|message| Heard::Message(b.peer, message)).collect();
    until(&a, &b, "all messages", || (b.ear.all().len() >= expected.len()).then_some(()));
    assert!(b.ear.all() == expected, "the messages are not those that were posted");
}

/// `put`, `get` and `atomic` to one peer take effect in the order they were asked for.
pub fn requests_take_effect_in_the_order_asked(fixture: Fixture) {
    let (mut a, b) = Stranger::meet(fixture(2).links);
    let cookie = good_cookie();
    let mut expected = Vec::new();
    for round in 0..100u64 {
        let bytes = round.to_le_bytes();
        let add = Atomic::FetchAdd(1000);
        let requests = [
            (Request::Put { offset: 8, bytes: &bytes }, Ending::Done),
            (Request::Atomic { offset: 8, atomic: add }, Ending::Value(round)),
            (Request::Get { offset: 8, len: 8 }, Ending::Bytes((round + 1000).to_le_bytes().to_vec())),
        ];
        for (request, ending) in requests {
            let ticket = ask_when_there_is_room(&mut a, &b, &cookie, request);
            expected.push(Heard::Completed(ticket, ending));
        }
    }
    until(&a, &b, "all answers", || (a.ear.all().len() >= expected.len()).then_some(()));
    assert_eq!(a.ear.all(), expected);
}

/// A request ends in exactly one `completed` with its ticket.
pub fn a_request_ends_once(fixture: Fixture) {
    let (mut a, b) = Stranger::meet(fixture(2).links);
    let cookie = good_cookie();
    let requests = [
        Request::Map,
        Request::Put { offset: 0, bytes: b"x" },
        Request::Get { offset: 0, len: 1 },
        Request::Atomic { offset: 0, atomic: Atomic::FetchAdd(0) },
    ];
    let asked = requests.map(|request| a.ask(&cookie, request).expect("an open connection"));
    until(&a, &b, "all answers", || (completed(&a.ear).len() >= asked.len()).then_some(()));
    settle(&a, &b);
    assert_eq!(completed(&a.ear), asked);
}

/// A request that a closing peer leaves unanswered ends all the same, once.
pub fn a_close_ends_requests_once(fixture: Fixture) {
    let (mut a, b) = Stranger::meet(fixture(2).links);
    let cookie = good_cookie();
    let asked: Vec<_> =
        (0..5).map(|_| a.ask(&cookie, Request::Get { offset: 0, len: 8 }).expect("an open connection")).collect();
    b.link().close(b.peer, CloseReason::Here);
    until(&a, &b, "the end of the connection", || {
        a.ear.all().iter().any(|heard| matches!(heard, Heard::Closed(..))).then_some(())
    });
    let heard = a.ear.all();
    assert_eq!(completed(&a.ear), asked);
    assert!(matches!(heard.last(), Some(Heard::Closed(..))), "something came after the end: {heard:?}");
    assert!(a.ask(&cookie, Request::Map).is_err());
}

/// Requests of this side end too when this side closes.
pub fn closing_ends_own_requests_once(fixture: Fixture) {
    let (mut a, b) = Stranger::meet(fixture(2).links);
    let cookie = good_cookie();
    let asked: Vec<_> =
        (0..5).map(|_| a.ask(&cookie, Request::Get { offset: 0, len: 8 }).expect("an open connection")).collect();
    a.link().close(a.peer, CloseReason::Link("enough"));
    until(&a, &b, "the end of the connection", || closed(&a.ear).first().copied());
    for _ in 0..20 {
        a.poll();
        b.poll();
    }
    assert_eq!(completed(&a.ear), asked);
    assert_eq!(closed(&a.ear), [CloseReason::Link("enough")]);
}

/// A put's bytes are taken at the call; the caller may change them at once.
pub fn a_put_takes_its_bytes_at_the_call(fixture: Fixture) {
    let (mut a, b) = Stranger::meet(fixture(2).links);
    let mut bytes = [1; 32];
    a.ask(&good_cookie(), Request::Put { offset: 0, bytes: &bytes }).expect("an open connection");
    bytes.fill(2);
    a.ask(&good_cookie(), Request::Put { offset: 32, bytes: &bytes }).expect("an open connection");
    until(&a, &b, "two answers", || (completed(&a.ear).len() == 2).then_some(()));
    assert_eq!(b.ear.bytes()[..32], [1; 32]);
    assert_eq!(b.ear.bytes()[32..64], [2; 32]);
}

/// A refused request changes nothing at the owner and says why.
pub fn a_refused_request_changes_nothing_and_says_why(fixture: Fixture) {
    let (mut a, b) = Stranger::meet(fixture(2).links);
    let (far, end) = (EAR_LEN as u64 - 4, EAR_LEN as u64);
    let add = Atomic::FetchAdd(1);
    let forged = Ending::Refused(Refusal::Forged);
    let outside = |offset, len| Ending::Refused(Refusal::Range { offset, len });
    let cases = [
        (bad_cookie(), Request::Map, forged.clone()),
        (bad_cookie(), Request::Put { offset: 0, bytes: &[9; 8] }, forged.clone()),
        (bad_cookie(), Request::Get { offset: 0, len: 8 }, forged.clone()),
        (bad_cookie(), Request::Atomic { offset: 0, atomic: add }, forged),
        (good_cookie(), Request::Put { offset: far, bytes: &[9; 8] }, outside(far, 8)),
        (good_cookie(), Request::Get { offset: end, len: 1 }, outside(end, 1)),
        (good_cookie(), Request::Atomic { offset: far, atomic: add }, outside(far, 8)),
    ];
    for (cookie, request, ending) in cases {
        let ticket = a.ask(&cookie, request).expect("an open connection");
        let answer = Heard::Completed(ticket, ending);
        until(&a, &b, "an answer", || a.ear.take().pop().inspect(|heard| assert_eq!(*heard, answer)));
    }
    assert_eq!(b.ear.bytes(), [0; EAR_LEN]);
}

/// A peer that closes is reported exactly once, after everything it posted before.
pub fn a_close_is_reported_once_after_all_posts(fixture: Fixture) {
    let (a, b) = Stranger::meet(fixture(2).links);
    for number in 0..50u8 {
        a.link().post(a.peer, &[number]).expect("room for a few messages");
    }
    a.link().close(a.peer, CloseReason::Here);
    until(&a, &b, "the end at both", || (!closed(&a.ear).is_empty() && !closed(&b.ear).is_empty()).then_some(()));
    for _ in 0..50 {
        a.poll();
        b.poll();
    }
    assert_eq!(closed(&a.ear), [CloseReason::Here]);
    assert!(matches!(closed(&b.ear)[..], [CloseReason::Peer | CloseReason::Died]), "{:?}", closed(&b.ear));
    let heard = b.ear.all();
    let posts: Vec<_> = (0..50u8).map(|number| Heard::Message(b.peer, vec![number])).collect();
    assert_eq!(heard[..50], posts);
    assert_eq!(heard.len(), 51);
    assert!(a.link().post(a.peer, b"late").is_err());
}

/// A peer that dies is reported as that, exactly once, after everything it posted before.
pub fn a_death_is_reported_once_after_all_posts(fixture: Fixture) {
    let made = fixture(2);
    let (a, b) = Stranger::meet(made.links);
    for number in 0..50u8 {
        a.link().post(a.peer, &[number]).expect("room for a few messages");
    }
    match made.kill {
        Some(kill) => kill(0),
        // The kernel closes what a dead process held; dropping the link does the same.
        None => drop(a),
    }
    let deadline = clock::now() + PATIENCE_NS;
    while closed(&b.ear).is_empty() {
        b.poll();
        assert!(clock::now() < deadline, "a death was not reported");
    }
    for _ in 0..50 {
        b.poll();
    }
    assert_eq!(closed(&b.ear), [CloseReason::Died]);
    let heard = b.ear.all();
    let posts: Vec<_> = (0..50u8).map(|number| Heard::Message(b.peer, vec![number])).collect();
    assert_eq!(heard[..50], posts);
    assert_eq!(heard.len(), 51);
}

/// After `set_sleeping(true)`, any later news makes one of the descriptors given by `watch` ready.
pub fn news_wakes_a_sleeper(fixture: Fixture) {
    let made = fixture(2);
    let maps = made.links[0].as_link().maps().is_some();
    let (mut a, mut b) = Stranger::meet(made.links);
    let sleeper = Arc::new(Sleeper::new().expect("an epoll set"));
    b.link().watch(&sleeper).expect("descriptors to watch");
    let heard = |b: &Stranger, what: &dyn Fn(&Heard) -> bool| b.ear.take().iter().any(what);
    for round in 0..100 {
        fall_asleep(&b, &sleeper);
        match round % 4 {
            0 => {
                a.link().post(a.peer, b"news").expect("an open connection");
                wake(&b, &sleeper, "a message");
                until(&a, &b, "a message", || heard(&b, &|h| matches!(h, Heard::Message(..))).then_some(()));
            }
            1 => {
                a.ask(&good_cookie(), Request::Put { offset: 0, bytes: b"news" }).expect("an open connection");
                wake(&b, &sleeper, "a request");
                until(&a, &b, "a request", || heard(&b, &|h| matches!(h, Heard::Place(..))).then_some(()));
                until(&a, &b, "an answer", || completed(&a.ear).pop());
                a.ear.take();
            }
            2 => {
                b.ask(&good_cookie(), Request::Get { offset: 0, len: 4 }).expect("an open connection");
                fall_asleep(&b, &sleeper);
                poll_until(&[(&a.link, &a.ear)], "a request", || {
                    a.ear.take().iter().any(|heard| matches!(heard, Heard::Fetch(..)))
                });
                wake(&b, &sleeper, "an answer");
                until(&a, &b, "an answer", || heard(&b, &|h| matches!(h, Heard::Completed(..))).then_some(()));
            }
            _ if maps => {
                let maps = a.link().maps().expect("asked above");
                maps.fire(a.peer, RegionId(3), 64, Access::Write);
                wake(&b, &sleeper, "a report of an armed word");
                let report = Heard::Fired(RegionId(3), 64, Access::Write);
                until(&a, &b, "a report", || heard(&b, &|h| *h == report).then_some(()));
            }
            _ => {}
        }
    }
    fall_asleep(&b, &sleeper);
    a.link().close(a.peer, CloseReason::Here);
    a.poll();
    wake(&b, &sleeper, "the end of a connection");
}

/// Someone who connects makes news too.
pub fn a_new_peer_wakes_a_sleeper(fixture: Fixture) {
    let links = fixture(2).links;
    let name = unique_name();
    links[1].as_link().listen(&name).expect("a name that is free");
    let sleeper = Arc::new(Sleeper::new().expect("an epoll set"));
    links[1].as_link().watch(&sleeper).expect("descriptors to watch");
    let b = Ear::default();
    links[1].as_link().set_sleeping(true);
    links[0].as_link().connect(&name).expect("someone who listens");
    let mut tokens = Tokens::new();
    sleeper.sleep(soon(), &mut tokens).expect("a sleep");
    assert!(!tokens.is_empty(), "slept over a new peer");
    poll_until(&[(&links[1], &b)], "a new peer", || b.all().iter().any(|heard| matches!(heard, Heard::Opened(_))));
}

/// `poll` never blocks, and says whether there was anything.
pub fn poll_never_blocks(fixture: Fixture) {
    let (a, b) = Stranger::meet(fixture(2).links);
    settle(&a, &b);
    let began = clock::now();
    for _ in 0..1000 {
        assert!(!a.poll(), "there was nothing: {:?}", a.ear.all());
    }
    assert!(clock::now() - began < PATIENCE_NS / 2);
    a.link().post(a.peer, b"x").expect("an open connection");
    let deadline = clock::now() + PATIENCE_NS;
    while !b.poll() {
        assert!(clock::now() < deadline, "a message never arrived");
    }
}

fn poll_until(ends: &[(&AnyLink, &Ear)], what: &str, mut found: impl FnMut() -> bool) {
    let deadline = clock::now() + PATIENCE_NS;
    while !found() {
        for (link, ear) in ends {
            link.as_link().poll(*ear, true);
        }
        assert!(clock::now() < deadline, "this never happened: {what}");
    }
}

fn ask_when_there_is_room(a: &mut Stranger, b: &Stranger, cookie: &Cookie, request: Request<'_>) -> Ticket {
    let deadline = clock::now() + PATIENCE_NS;
    loop {
        match a.ask(cookie, request) {
            Ok(ticket) => return ticket,
            Err(Error::Full { .. }) => {}
            Err(error) => panic!("an open connection: {error}"),
        }
        a.poll();
        b.poll();
        assert!(clock::now() < deadline, "there was never room for a request");
    }
}

/// Polls until everything so far has arrived, at both; takes it out.
fn settle(a: &Stranger, b: &Stranger) {
    let mark = Heard::Message(b.peer, b"mark".to_vec());
    a.link().post(a.peer, b"mark").expect("an open connection");
    until(a, b, "a mark", || b.ear.take().contains(&mark).then_some(()));
    b.link().post(b.peer, b"mark").expect("an open connection");
    let mark = Heard::Message(a.peer, b"mark".to_vec());
    until(a, b, "a mark", || a.ear.all().contains(&mark).then_some(()));
}

fn completed(ear: &Ear) -> Vec<Ticket> {
    ear.all()
        .iter()
        .filter_map(|heard| if let Heard::Completed(ticket, _) = heard { Some(*ticket) } else { None })
        .collect()
}

fn closed(ear: &Ear) -> Vec<CloseReason> {
    ear.all()
        .iter()
        .filter_map(|heard| if let Heard::Closed(_, reason) = heard { Some(*reason) } else { None })
        .collect()
}

/// Announces sleep with nothing left to find, and nothing ready.
fn fall_asleep(b: &Stranger, sleeper: &Sleeper) {
    let mut tokens = Tokens::new();
    let deadline = clock::now() + PATIENCE_NS;
    loop {
        b.poll();
        sleeper.sleep(Some(0), &mut tokens).expect("a look");
        b.link().set_sleeping(true);
        if tokens.is_empty() && !b.link().has_news() {
            return;
        }
        assert!(clock::now() < deadline, "there is always news");
    }
}

fn wake(b: &Stranger, sleeper: &Sleeper, what: &str) {
    let mut tokens = Tokens::new();
    sleeper.sleep(soon(), &mut tokens).expect("a sleep");
    assert!(!tokens.is_empty(), "slept over {what}");
    b.link().set_sleeping(false);
}
