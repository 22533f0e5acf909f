//! The link on a card: the contract of every link, with caches so small that most accesses miss.

use sidestep_fabric::link::AnyLink;
use sidestep_fabric::{Aperture, Node, Region, Rights};
use sidestep_sys::clock;
use sidestep_testkit::conformance::fixture::{self, Links};
use sidestep_testkit::conformance_suite;
use sidestep_testkit::process::PATIENCE_NS;
use sidestep_vmmc::link::VmmcLink;
use sidestep_vmmc::{CacheShape, Config};

fn small() -> Config {
    let vmh = CacheShape { entries: 8, line: 2, ways: 2 };
    Config { vmh, cbh: CacheShape { entries: 4, line: 1, ways: 2 }, ..Config::default() }
}

fn on_shm(count: usize) -> Links {
    fixture::shm(count).wrapped(|link| AnyLink::other(VmmcLink::new(link.into_link(), small()).expect("a card")))
}

fn on_iwarp(count: usize) -> Links {
    fixture::iwarp(count).wrapped(|link| AnyLink::other(VmmcLink::new(link.into_link(), small()).expect("a card")))
}

conformance_suite!(vmmc_on_shm, crate::on_shm);
conformance_suite!(vmmc_on_iwarp, crate::on_iwarp);

/// Regions beyond what the card holds are reached all the same, and the counters say what it cost.
#[test]
fn misses_are_counted_and_lose_nothing() {
    let links: Vec<VmmcLink> = (0..2).map(|_| VmmcLink::open("shm", small()).expect("a card")).collect();
    let counters = links[1].counters();
    let mut nodes = links.into_iter().map(|link| Node::with_link(link).expect("a node"));
    let (a, b) = (nodes.next().unwrap(), nodes.next().unwrap());
    let name = format!("vmmc:shm:card-{}", std::process::id());
    let listener = b.listen(&name).expect("a name");
    let deadline = Some(clock::now() + PATIENCE_NS);
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
