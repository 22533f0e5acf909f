//! Programs on links that fail: every failure is an error or an end, and nothing is lost in silence.

use std::sync::atomic::Ordering;

use sidestep_fabric::{CloseReason, Error, Node, RdmaQueue, Region, Rights};
use sidestep_shm as shm;
use sidestep_testkit::conformance::{
    Links, fixture, message_queue,
    nodes::{connect, contents, drive, pattern, soon},
    program, rdma, stream, tripwire,
};
use sidestep_testkit::links::{
    faulty::{FaultPlan, INJECTED, When},
    sim::SimOptions,
};

const NONE: FaultPlan = FaultPlan {
    seed: 1,
    refuse_connect: When::Never,
    full_post: When::Never,
    limit_post: When::Never,
    full_request: When::Never,
    limit_request: When::Never,
    close_after: None,
    delay_polls: 0,
    spurious_news: When::Never,
    spurious_wakes: When::Never,
};

/// Two nodes on a simulated network, the first one with faults.
fn nodes(plan: FaultPlan) -> (Node, Node) {
    let mut links = fixture::sim(2, SimOptions::default()).links;
    let b = Node::with_links(vec![links.remove(1)]).unwrap();
    (Node::with_links(vec![fixture::faulty(links.remove(0), plan)]).unwrap(), b)
}

fn limit_reached(error: &Error) -> bool {
    matches!(error, Error::Memory(shm::Error::Limit { .. }))
}

#[test]
fn an_empty_plan_is_the_default() {
    assert_eq!(FaultPlan { seed: 0, ..NONE }, FaultPlan::default());
}

#[test]
fn a_refused_connect_is_an_error_and_the_next_one_works() {
    let (a, b) = nodes(FaultPlan { refuse_connect: When::Nth(1), ..NONE });
    let listener = b.listen("sim:b").unwrap();
    assert_eq!(a.begin_connect("sim:b", b"").err(), Some(Error::NobodyListens("b".to_string())));
    let asking = a.begin_connect("sim:b", b"").unwrap();
    let _end = drive(&[&a, &b], "a request", || listener.poll()).accept(b"").unwrap();
    drive(&[&a, &b], "an answer", || asking.is_connected().unwrap().then_some(()));
}

#[test]
fn a_message_that_finds_the_link_full_is_an_error_and_no_other_is_lost() {
    // The first message of all is the request for the connection.
    let (a, b) = nodes(FaultPlan { full_post: When::Nth(3), limit_post: When::Nth(4), ..NONE });
    let (to_b, to_a, ..) = connect(&a, &b);
    assert_eq!(to_b.post(b"one"), Ok(()));
    assert!(matches!(to_b.post(b"two"), Err(Error::Full { .. })));
    assert_eq!(to_b.post(b"three"), Ok(()));
    assert!(to_b.post(b"four").is_err_and(|error| limit_reached(&error)));
    assert_eq!(to_b.post(b"five"), Ok(()));
    for expected in [&b"one"[..], b"three", b"five"] {
        assert_eq!(drive(&[&a, &b], "a message", || to_a.poll_message().unwrap()), expected);
    }
}

#[test]
fn a_store_that_finds_the_link_full_arrives_all_the_same_and_one_at_a_limit_is_an_error() {
    // Opening, the first store, the same once more, the second, the third.
    let (a, b) = nodes(FaultPlan { full_request: When::Nth(2), limit_request: When::Nth(4), ..NONE });
    let (to_b, _to_a, ..) = connect(&a, &b);
    let region = Region::new(&b, 64).unwrap();
    let aperture = sidestep_fabric::Aperture::begin(&to_b, &region.cookie(Rights::ALL)).unwrap();
    drive(&[&a, &b], "an aperture", || aperture.is_open().unwrap().then_some(()));
    assert_eq!(aperture.store64(0, 1), Ok(()));
    assert_eq!(aperture.store64(8, 2), Ok(()));
    a.progress();
    assert!(aperture.store64(16, 3).is_err_and(|error| limit_reached(&error)));
    drive(&[&a, &b], "stores to arrive", || aperture.flush(Some(0)).ok());
    let words = [0, 8, 16].map(|at| region.word64(at).unwrap().load(Ordering::Acquire));
    assert_eq!(words, [1, 2, 0]);
}

#[test]
fn an_rdma_queue_waits_for_a_full_link_and_ends_at_a_limit() {
    let (a, b) = nodes(FaultPlan { full_request: When::PerMille(500), limit_request: When::Nth(40), seed: 3, ..NONE });
    let (to_b, _to_a, ..) = connect(&a, &b);
    let region = Region::new(&b, 1 << 20).unwrap();
    let open = || sidestep_fabric::Aperture::begin(&to_b, &region.cookie(Rights::ALL)).ok();
    let aperture = drive(&[&a, &b], "room", open);
    drive(&[&a, &b], "an aperture", || aperture.is_open().unwrap().then_some(()));
    let local = Region::new(&a, 1 << 20).unwrap();
    local.write(0, &pattern(1 << 20, 1)).unwrap();
    let queue = RdmaQueue::new(&a, 8);
    let error = drive(&[&a, &b], "a limit", || {
        let id = queue.write(&local.all(), &aperture, 0).ok()?;
        drive(&[&a, &b], "an outcome", || match queue.test(id) {
            Ok(ended) => ended.then_some(None),
            Err(error) => Some(Some(error)),
        })
    });
    assert!(limit_reached(&error), "{error:?}");
    queue.reset();
    let id = queue.write(&local.all(), &aperture, 0).unwrap();
    drive(&[&a, &b], "a write", || queue.test(id).unwrap().then_some(()));
    assert!(contents(&region) == pattern(1 << 20, 1));
}

#[test]
fn a_broken_link_ends_its_connections_on_both_sides() {
    let (a, b) = nodes(FaultPlan { close_after: Some(4), ..NONE });
    let (to_b, to_a, ..) = connect(&a, &b);
    to_a.set_on_close(b"will of b").unwrap();
    to_b.set_on_close(b"will of a").unwrap();
    to_b.post(b"one").unwrap();
    to_b.post(b"two").unwrap();
    let end = drive(&[&a, &b], "an end", || to_b.closed());
    assert_eq!(end, (Error::Closed(INJECTED), Vec::new()));
    let end = drive(&[&a, &b], "an end", || to_a.closed());
    assert_eq!(end, (Error::Closed(CloseReason::Peer), b"will of a".to_vec()));
    assert_eq!(to_a.poll_message(), Ok(Some(b"one".to_vec())));
    assert_eq!(to_a.poll_message(), Ok(Some(b"two".to_vec())));
    assert_eq!(to_b.post(b"three"), Err(Error::Closed(INJECTED)));
}

#[test]
fn a_broken_link_ends_requests_under_way() {
    // The request for the connection, the aperture, and the first pieces.
    let (a, b) = nodes(FaultPlan { close_after: Some(5), ..NONE });
    let (to_b, _to_a, ..) = connect(&a, &b);
    let region = Region::new(&b, 1 << 20).unwrap();
    let aperture = sidestep_fabric::Aperture::begin(&to_b, &region.cookie(Rights::ALL)).unwrap();
    drive(&[&a, &b], "an aperture", || aperture.is_open().unwrap().then_some(()));
    let local = Region::new(&a, 1 << 20).unwrap();
    let queue = RdmaQueue::new(&a, 8);
    let id = queue.read(&aperture, 0, &local.all()).unwrap();
    let error = drive(&[&a, &b], "an outcome", || queue.test(id).err());
    assert_eq!(error, Error::Closed(INJECTED));
}

#[test]
fn late_deliveries_keep_their_order() {
    let (a, b) = nodes(FaultPlan { delay_polls: 7, ..NONE });
    let (to_b, to_a, ..) = connect(&a, &b);
    for number in 0..10u8 {
        to_a.post(&[number]).unwrap();
    }
    to_a.close();
    b.progress();
    for poll in 1..=7 {
        a.progress();
        assert_eq!(to_b.closed(), None, "poll {poll}");
    }
    drive(&[&a, &b], "an end", || to_b.closed());
    for number in 0..10u8 {
        assert_eq!(to_b.poll_message(), Ok(Some(vec![number])));
    }
}

#[test]
fn the_same_seed_gives_the_same_faults() {
    let faults = |seed| -> Vec<bool> {
        let (a, b) = nodes(FaultPlan { full_post: When::PerMille(300), seed, ..NONE });
        let listener = b.listen("sim:b").unwrap();
        let to_b = drive(&[&a, &b], "room", || a.begin_connect("sim:b", b"").ok());
        let _to_a = drive(&[&a, &b], "a request", || listener.poll()).accept(b"").unwrap();
        drive(&[&a, &b], "an answer", || to_b.is_connected().unwrap().then_some(()));
        (0..50).map(|_| to_b.post(b"x").is_ok()).collect()
    };
    assert_eq!(faults(1), faults(1));
    assert_ne!(faults(1), faults(2));
}

#[test]
fn a_close_that_finds_the_link_full_is_told_all_the_same() {
    // Request for the connection, on-close message, close.
    let (a, b) = nodes(FaultPlan { full_post: When::Nth(3), ..NONE });
    let (to_b, to_a, ..) = connect(&a, &b);
    to_b.set_on_close(b"goodbye").unwrap();
    to_b.close();
    let end = drive(&[&a, &b], "an end", || to_a.closed());
    assert_eq!(end, (Error::Closed(CloseReason::Peer), b"goodbye".to_vec()));
}

#[test]
fn an_answer_that_finds_the_link_full_is_given_all_the_same() {
    let (b, a) = nodes(FaultPlan { full_post: When::Nth(1), ..NONE });
    let listener = b.listen("sim:b").unwrap();
    let asking = a.begin_connect("sim:b", b"").unwrap();
    drop(drive(&[&a, &b], "a request", || listener.poll()));
    let error = drive(&[&a, &b], "an answer", || asking.is_connected().err());
    assert_eq!(error, Error::Refused { private: Vec::new() });
}

#[test]
fn a_revocation_that_finds_the_link_full_is_told_all_the_same() {
    let mut links = fixture::sim(2, SimOptions { maps: true, ..SimOptions::default() }).links;
    // The acceptance, then the news of the revocation.
    let plan = FaultPlan { full_post: When::Nth(2), ..NONE };
    let b = Node::with_links(vec![fixture::faulty(links.remove(1), plan)]).unwrap();
    let a = Node::with_links(vec![links.remove(0)]).unwrap();
    let (to_b, _to_a, ..) = connect(&a, &b);
    let mut region = Region::new(&b, 64).unwrap();
    let aperture = sidestep_fabric::Aperture::begin(&to_b, &region.cookie(Rights::ALL)).unwrap();
    drive(&[&a, &b], "an aperture", || aperture.is_open().unwrap().then_some(()));
    region.revoke().unwrap();
    drive(&[&a, &b], "the news", || aperture.store64(0, 1).err());
}

/// A link that is full half of the time, whatever is asked of it.
fn often_full(count: usize) -> Links {
    let plan = FaultPlan { full_request: When::PerMille(500), seed: 8, ..NONE };
    fixture::sim_proxied(count).wrapped(|link| fixture::faulty(link, plan))
}

#[test]
fn programs_do_the_same_on_a_narrow_wire() {
    program::memories_are_what_the_oracle_says(fixture::sim_narrow);
}

#[test]
fn transfers_do_the_same_on_a_narrow_wire() {
    rdma::a_write_arrives(fixture::sim_narrow);
    rdma::a_read_fetches(fixture::sim_narrow);
    rdma::a_queue_is_in_order(fixture::sim_narrow);
    rdma::atomics_of_two_peers_add_up(fixture::sim_narrow);
}

#[test]
fn a_stream_goes_through_a_narrow_wire() {
    stream::bytes_arrive_in_order(fixture::sim_narrow);
}

#[test]
fn messages_go_through_a_narrow_wire() {
    message_queue::messages_arrive_whole(fixture::sim_narrow);
}

#[test]
fn a_stream_goes_through_a_link_that_is_often_full() {
    stream::bytes_arrive_in_order(often_full);
}

/// A link that says it has news and wakes for nothing, most of the time.
fn restless(count: usize) -> Links {
    let plan = FaultPlan { spurious_news: When::PerMille(700), spurious_wakes: When::PerMille(700), seed: 4, ..NONE };
    fixture::shm(count).wrapped(|link| fixture::faulty(link, plan))
}

#[test]
fn spurious_news_and_wakes_change_nothing() {
    tripwire::no_wake_up_is_lost_between_threads(restless);
    stream::no_byte_is_slept_over(restless);
    let mut nodes = restless(2).links.into_iter().map(|link| Node::with_links(vec![link]).unwrap());
    let (a, b) = (nodes.next().unwrap(), nodes.next().unwrap());
    let (to_b, to_a, ..) = connect(&a, &b);
    assert!(matches!(to_a.wait_message(Some(sidestep_sys::clock::now() + 2_000_000)), Err(Error::TimedOut(_))));
    to_b.post(b"x").unwrap();
    assert_eq!(to_a.wait_message(soon()), Ok(b"x".to_vec()));
}
