//! The link on a card: the contract of every link, with caches so small that most accesses miss.

use std::time::Duration;

use sidestep_fabric::link::AnyLink;
use sidestep_fabric::{Aperture, Node, Region, Rights};
use sidestep_testkit::conformance::fixture::{self, Links};
use sidestep_testkit::conformance::nodes::soon;
use sidestep_testkit::conformance::{event_queue, message_queue, program, rdma, stream};
use sidestep_testkit::conformance_suite;
use sidestep_testkit::seeded::Seeded;
use sidestep_vmmc::link::VmmcLink;
use sidestep_vmmc::{CacheShape, Config};

fn small() -> Config {
    let vmh = CacheShape { entries: 8, line: 2, ways: 2 };
    Config { vmh, cbh: CacheShape { entries: 4, line: 1, ways: 2 }, ..Config::default() }
}

fn on_card(links: Links) -> Links {
    links.wrapped(|link| AnyLink::other(VmmcLink::new(link.into_link(), small()).expect("a card")))
}

fn on_shm(count: usize) -> Links {
    on_card(fixture::shm(count))
}

fn on_iwarp(count: usize) -> Links {
    on_card(fixture::iwarp(count))
}

fn on_sim(count: usize) -> Links {
    on_card(fixture::sim_proxied(count))
}

fn on_narrow_sim(count: usize) -> Links {
    on_card(fixture::sim_narrow(count))
}

conformance_suite!(vmmc_on_shm, crate::on_shm);
conformance_suite!(vmmc_on_iwarp, crate::on_iwarp);
conformance_suite!(vmmc_on_sim, crate::on_sim);

/// A link underneath that takes eight packets at a time: what it has no room for is sent when it has.
#[test]
fn a_full_link_underneath_is_tried_again() {
    program::memories_are_what_the_oracle_says(on_narrow_sim);
    rdma::a_write_arrives(on_narrow_sim);
    rdma::a_read_fetches(on_narrow_sim);
    rdma::a_queue_is_in_order(on_narrow_sim);
    rdma::atomics_of_two_peers_add_up(on_narrow_sim);
    stream::bytes_arrive_in_order(on_narrow_sim);
    message_queue::messages_arrive_whole(on_narrow_sim);
    event_queue::the_descriptor_tells_of_events(on_narrow_sim);
}

/// The owner's program polls now and then, so that its service thread is sent away and comes back: whatever arrives just before
/// that thread sleeps is found by it, and no request waits until a sleep has lasted its longest.
#[test]
fn no_request_is_slept_over_by_the_service_thread() {
    let mut nodes = on_sim(2).links.into_iter().map(|link| Node::with_links(vec![link]).expect("a node"));
    let (a, b) = (nodes.next().unwrap(), nodes.next().unwrap());
    let name = format!("vmmc:{}", fixture::unique_name());
    let listener = b.listen(&name).expect("a name");
    let to_b = std::thread::scope(|scope| {
        let accepting = scope.spawn(|| listener.wait(soon()).unwrap().accept(&[]).unwrap());
        let to_b = a.connect(&name, &[], soon()).expect("a connection");
        (to_b, accepting.join().unwrap())
    });
    let region = Region::new(&b, 16 * 4096).expect("a region");
    let cookie = to_b.1.share(&region, Rights::ALL).expect("a cookie");
    let aperture = Aperture::open(&to_b.0, &cookie, soon()).expect("an aperture");
    let mut random = Seeded::new(7);
    for round in 0..400 {
        for _ in 0..random.below(3) {
            b.progress();
        }
        aperture.store64(4096 * random.below(16) as usize, round).expect("a store");
        aperture.flush(soon()).expect("a store that arrives");
        // About as long as the thread stays away from a program that polls.
        std::thread::sleep(Duration::from_micros(300 * random.below(4)));
        assert_eq!((a.counters().unrung, b.counters().unrung), (0, 0), "round {round}: something was slept over");
    }
}

/// Regions beyond what the card holds are reached all the same, and the counters say what it cost.
#[test]
fn misses_are_counted_and_lose_nothing() {
    let links: Vec<VmmcLink> = (0..2).map(|_| VmmcLink::open("shm", small()).expect("a card")).collect();
    let counters = links[1].counters();
    let mut nodes = links.into_iter().map(|link| Node::with_link(link).expect("a node"));
    let (a, b) = (nodes.next().unwrap(), nodes.next().unwrap());
    let name = format!("vmmc:shm:card-{}", std::process::id());
    let listener = b.listen(&name).expect("a name");
    let deadline = soon();
    std::thread::scope(|scope| {
        let accepting = scope.spawn(|| listener.wait(deadline).unwrap().accept(&[]).unwrap());
        let to_b = a.connect(&name, &[], deadline).expect("a connection");
        let to_a = accepting.join().unwrap();
        let regions: Vec<_> = (0..16).map(|_| Region::new(&b, 3 * 4096).expect("a region")).collect();
        for round in 0..3_u64 {
            for (at, region) in regions.iter().enumerate() {
                let cookie = to_a.share(region, Rights::ALL).expect("a cookie");
                let aperture = Aperture::open(&to_b, &cookie, deadline).expect("an aperture");
                let value = 100 * round + at as u64;
                aperture.store64(8192, value).expect("a store");
                aperture.flush(deadline).expect("a store that arrives");
                let mut found = [0; 8];
                region.read(8192, &mut found).expect("inside");
                assert_eq!(u64::from_le_bytes(found), value);
            }
        }
    });
    let counts = counters.read();
    assert!(counts.cbh_misses >= 16 && counts.vmh_misses[1] >= 16, "{counts:?}");
    assert!(counts.dropped >= counts.cbh_misses && counts.vmh_hits[1] >= 48, "{counts:?}");
    println!("{counts:?}");
}
