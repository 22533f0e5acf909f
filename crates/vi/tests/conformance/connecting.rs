//! Both ways to connect.

use sidestep_testkit::conformance::{fixture::Fixture, nodes::scheme_of};
use sidestep_vi::{Error, NetAddress, Reliability, ViState};

use super::pair::{Options, Pair, address, in_ms, one, pattern, soon};

fn apart(fixture: Fixture) -> Pair {
    Pair::new(fixture, Options { connect: false, ..Options::default() })
}

pub fn rejection_is_told(fixture: Fixture) {
    let pair = apart(fixture);
    let reject = || {
        let request = pair.b.nic.connect_wait(&pair.address, soon()).unwrap();
        assert_eq!(request.attributes().reliability, Reliability::Delivery);
        request.reject().unwrap();
    };
    let outcome = pair.asking(reject, || pair.a.vi.connect(&address(), &pair.address, soon()));
    assert_eq!(outcome, Err(Error::Rejected));
    assert_eq!(pair.a.vi.state(), ViState::Idle);
    pair.join(&pair.a.vi, &pair.b.vi);
    assert_eq!(pair.a.vi.state(), ViState::Connected);
}

pub fn reliability_must_agree(fixture: Fixture) {
    let pair = apart(fixture);
    let other = pair.b.another(&Options { reliability: Reliability::Unreliable, ..Options::default() }, None, None);
    let accept = || {
        let mut request = pair.b.nic.connect_wait(&pair.address, soon()).unwrap();
        assert_eq!(request.accept(&other), Err(Error::Reliability));
        request.accept(&pair.b.vi).unwrap();
    };
    let remote = pair.asking(accept, || pair.a.vi.connect(&address(), &pair.address, soon())).unwrap();
    assert!(remote.rdma_write && remote.rdma_read);
    assert_eq!((other.state(), pair.b.vi.state()), (ViState::Idle, ViState::Connected));
}

pub fn nobody_is_no_match(fixture: Fixture) {
    let pair = apart(fixture);
    assert_eq!(pair.a.vi.connect(&address(), &pair.address, in_ms(0)), Err(Error::NoMatch));
    assert_eq!(pair.a.vi.connect(&address(), &pair.address, in_ms(20)), Err(Error::NoMatch));
    // Where other hosts are asked at all, the answer of one without a listener is the same.
    let (host, expected) = match scheme_of(pair.a.nic.node()) {
        "iwarp" => ([127, 0, 0, 9], Error::NoMatch),
        _ => ([192, 0, 2, 1], Error::NotReachable),
    };
    assert_eq!(pair.a.vi.connect(&address(), &NetAddress::new(&host, b"x"), in_ms(50)), Err(expected));
    assert_eq!(pair.a.vi.state(), ViState::Idle);
}

pub fn an_answer_may_time_out(fixture: Fixture) {
    let pair = apart(fixture);
    assert_eq!(pair.b.nic.connect_wait(&pair.address, in_ms(10)).unwrap_err(), Error::TimedOut);
    assert_eq!(pair.a.vi.connect(&address(), &pair.address, in_ms(50)), Err(Error::TimedOut));
    assert_eq!(pair.a.vi.state(), ViState::Idle);
}

pub fn peers_meet(fixture: Fixture) {
    let pair = apart(fixture);
    let (one_address, two) = (address(), address());
    pair.a.vi.connect_peer(&one_address, &two, soon()).unwrap();
    assert_eq!(pair.a.vi.poll_peer(), Ok(None));
    assert_eq!(pair.a.vi.state(), ViState::ConnectPending);
    pair.b.vi.connect_peer(&two, &one_address, soon()).unwrap();
    // Whoever is first must go on serving the other.
    pair.a.nic.serve().unwrap();
    pair.asking(|| assert!(pair.b.vi.wait_peer().is_ok()), || pair.a.vi.wait_peer().unwrap());
    let (source, target) = (pair.a.filled(100, 1), pair.b.buffer(100));
    pair.b.vi.post_receive(&one(1, &target, 100)).unwrap();
    pair.settle();
    pair.a.vi.post_send(&one(1, &source, 100)).unwrap();
    assert_eq!(pair.received(&pair.b.vi).len, 100);
}

pub fn peers_may_time_out(fixture: Fixture) {
    let pair = apart(fixture);
    let (one_address, two) = (address(), address());
    pair.a.vi.connect_peer(&one_address, &two, in_ms(20)).unwrap();
    assert_eq!(pair.a.vi.wait_peer(), Err(Error::TimedOut));
    assert_eq!(pair.a.vi.state(), ViState::Idle);
    assert!(matches!(pair.a.vi.poll_peer(), Err(Error::State { .. })));
}

pub fn a_vi_connects_again(fixture: Fixture) {
    let pair = apart(fixture);
    for round in 0..5 {
        pair.join(&pair.a.vi, &pair.b.vi);
        let (source, target) = (pair.a.filled(10_000, round), pair.b.buffer(10_000));
        pair.b.vi.post_receive(&one(1, &target, 10_000)).unwrap();
        pair.settle();
        pair.a.vi.post_send(&one(1, &source, 10_000)).unwrap();
        assert_eq!(pair.received(&pair.b.vi).len, 10_000);
        pair.sent(&pair.a.vi);
        pair.a.vi.disconnect().unwrap();
        pair.until("the end", || (pair.b.vi.state() == ViState::Error).then_some(()));
        pair.b.vi.disconnect().unwrap();
    }
}

pub fn one_that_nobody_finishes_holds_up_no_other(fixture: Fixture) {
    let pair = super::pair::pair(fixture);
    let late = [&pair.a, &pair.b].map(|side| side.another(&Options::default(), None, None));
    let [early_source, source] = [(100, 1), (200, 2)].map(|(len, seed)| pair.b.filled(len, seed));
    let [early_target, target] = [100, 200].map(|len| pair.a.buffer(len));
    late[0].post_receive(&one(1, &early_target, 100)).unwrap();
    pair.a.vi.post_receive(&one(2, &target, 200)).unwrap();
    let mut connecting = late[0].begin_connect(&address(), &pair.address).unwrap();
    let mut request = None;
    let asked = || pair.b.nic.poll_request(&pair.address).unwrap();
    pair.until("a request", || {
        request = request.take().or_else(asked);
        request.is_some().then_some(())
    });
    request.expect("a request").accept(&late[1]).unwrap();
    // What is sent on it comes first, and waits.
    late[1].post_send(&one(3, &early_source, 100)).unwrap();
    pair.b.vi.post_send(&one(4, &source, 200)).unwrap();
    assert_eq!(pair.received(&pair.a.vi).len, 200);
    assert_eq!(late[0].state(), ViState::ConnectPending);
    pair.until("a connection", || connecting.poll().unwrap().then_some(()));
    assert_eq!(pair.received(&late[0]).len, 100);
    let mut bytes = [0; 100];
    early_target.read(0, &mut bytes).unwrap();
    assert_eq!(bytes[..], pattern(100, 1)[..]);
}

pub fn states_are_checked(fixture: Fixture) {
    let pair = super::pair::pair(fixture);
    let state = Err(Error::State { is: ViState::Connected });
    assert_eq!(pair.a.vi.connect(&address(), &pair.address, in_ms(1)).map(drop), state);
    assert_eq!(pair.a.vi.connect_peer(&address(), &address(), in_ms(1)), state);
    assert_eq!(pair.a.vi.set_attributes(&pair.a.vi.attributes()), state);
    let (sends, receives) = pair.a.vi.queues_empty();
    assert!(sends && receives);
    assert_eq!(pair.a.nic.destroy_ptag(pair.a.ptag), Err(Error::InUse("the protection tag")));
    let long = NetAddress::new(&[127, 0, 0, 1], &[1; 65]);
    assert!(matches!(pair.b.nic.connect_wait(&long, in_ms(1)), Err(Error::Invalid(_))));
}
