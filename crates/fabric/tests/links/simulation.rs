//! The simulated network itself.

use sidestep_fabric::{
    CloseReason, Error,
    link::{Link, Request},
};
use sidestep_testkit::{
    conformance::stranger::{Ear, Heard, good_cookie},
    links::sim::{SimNet, SimOptions},
};

#[test]
fn a_delivery_takes_its_steps_and_keeps_its_order() {
    let polls_of = |seed| -> Vec<usize> {
        let net = SimNet::new(SimOptions { max_delay: 9, seed, ..SimOptions::default() });
        let (a, b, ear) = (net.link().unwrap(), net.link().unwrap(), Ear::default());
        b.listen("b").unwrap();
        let peer = a.connect("b").unwrap();
        for number in 0..20 {
            a.post(peer, &[number]).unwrap();
        }
        let mut polls = vec![0; 20];
        for step in 1..=20 {
            b.poll(&ear, false);
            for heard in ear.take() {
                if let Heard::Message(_, bytes) = heard {
                    polls[usize::from(bytes[0])] = step;
                }
            }
        }
        assert!(polls.is_sorted() && polls[0] >= 1 && polls[19] <= 10, "{polls:?}");
        polls
    };
    assert_eq!(polls_of(5), polls_of(5));
    assert!((1..20).any(|seed| polls_of(seed) != polls_of(seed + 1)));
}

#[test]
fn nothing_is_delivered_outside_a_poll() {
    let net = SimNet::new(SimOptions::default());
    let (a, b, ear) = (net.link().unwrap(), net.link().unwrap(), Ear::default());
    b.listen("b").unwrap();
    let peer = a.connect("b").unwrap();
    a.post(peer, b"x").unwrap();
    assert!(b.has_news() && ear.all().is_empty());
    assert!(b.poll(&ear, false));
    assert_eq!(ear.all().len(), 2);
    assert!(!b.has_news() && !b.poll(&ear, false));
}

#[test]
fn a_wire_has_a_limit_for_what_can_be_asked_again() {
    let net = SimNet::new(SimOptions { max_in_flight: 4, ..SimOptions::default() });
    let (a, b, ear) = (net.link().unwrap(), net.link().unwrap(), Ear::default());
    b.listen("b").unwrap();
    let peer = a.connect("b").unwrap();
    b.poll(&ear, false);
    for ticket in 0..4 {
        let request = Request::Get { offset: 0, len: 8 };
        a.request(peer, sidestep_fabric::link::Ticket(ticket), &good_cookie(), request).unwrap();
    }
    let full = Err(Error::Full { what: "the simulated wire", limit: 4 });
    assert_eq!(a.post(peer, b"x"), full);
    b.poll(&ear, false);
    // The four answers are on the other wire now, which takes them whatever its limit.
    assert_eq!(a.post(peer, b"x"), Ok(()));
    let answers = Ear::default();
    while a.poll(&answers, false) {}
    assert_eq!(answers.all().len(), 4);
}

#[test]
fn a_dead_link_is_dead_to_itself_and_to_others() {
    let net = SimNet::new(SimOptions::default());
    let (a, b, c) = (net.link().unwrap(), net.link().unwrap(), net.link().unwrap());
    let (ears, dead) = ([Ear::default(), Ear::default()], Ear::default());
    b.listen("b").unwrap();
    let (from_a, from_c) = (a.connect("b").unwrap(), c.connect("b").unwrap());
    a.post(from_a, b"unheard").unwrap();
    net.kill(b.id());
    net.kill(b.id());
    assert!(!b.has_news() && !b.poll(&dead, true) && dead.all().is_empty());
    assert_eq!(b.listen("again"), Err(Error::Closed(CloseReason::Here)));
    for (link, ear, peer) in [(&a, &ears[0], from_a), (&c, &ears[1], from_c)] {
        while link.poll(ear, true) {}
        assert_eq!(ear.all(), [Heard::Closed(peer, CloseReason::Died)]);
        assert_eq!(link.post(peer, b"late"), Err(Error::Closed(CloseReason::Here)));
        assert_eq!(link.connect("b"), Err(Error::NobodyListens("b".to_string())));
    }
}

#[test]
fn a_link_that_is_dropped_dies() {
    let net = SimNet::new(SimOptions::default());
    let (a, b, ear) = (net.link().unwrap(), net.link().unwrap(), Ear::default());
    b.listen("b").unwrap();
    let peer = a.connect("b").unwrap();
    drop(b);
    a.poll(&ear, true);
    assert_eq!(ear.all(), [Heard::Closed(peer, CloseReason::Died)]);
}
