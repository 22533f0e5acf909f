//! RDMA queues: gather and scatter lists, and groups of requests.

use std::sync::atomic::Ordering;

use sidestep_fabric::{Error, Group, RdmaQueue, Refusal, Region, RegionSlice, Rights};

use super::{
    fixture::Fixture,
    nodes::{Pair, contents, pattern},
};

/// The bytes of several sources arrive one after the other, wherever they are cut: also in the last word, which arrives whole.
pub fn a_gather_list_arrives_as_one(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(400_000);
    let local = Region::new(&pair.a, 400_000).expect("memory");
    let bytes = pattern(400_000, 1);
    local.write(0, &bytes).expect("the whole region");
    let queue = RdmaQueue::new(&pair.a, 8);
    let lists: [&[usize]; 7] =
        [&[1, 1], &[3, 0, 5], &[7; 9], &[64, 4093, 2], &[100_000, 5, 100_000, 3], &[300_000, 1], &[0, 0]];
    for lens in lists {
        for to in [0, 4, 13] {
            let (sources, expected) = cut(&local, &bytes, lens);
            region.write(0, &vec![0xee; 400_000]).expect("the whole region");
            let id = queue.gather(&sources, &aperture, to).expect("room in the queue");
            pair.wait(&queue, id).expect("a write");
            let found = contents(&region);
            assert!(found[to..to + expected.len()] == expected, "{lens:?} at {to}");
            let rest = found[..to].iter().chain(&found[to + expected.len()..]);
            assert!(rest.into_iter().all(|byte| *byte == 0xee), "{lens:?} at {to} wrote beside its target");
        }
    }
    assert_eq!(queue.gather(&[], &aperture, 0).and_then(|id| pair.wait(&queue, id)), Ok(()), "a list of nothing");
}

/// A read fills several places one after the other.
pub fn a_scatter_list_is_filled(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(300_000);
    let bytes = pattern(300_000, 2);
    region.write(0, &bytes).expect("the whole region");
    let local = Region::new(&pair.a, 400_000).expect("memory");
    let queue = RdmaQueue::new(&pair.a, 8);
    let lists: [&[usize]; 4] = [&[1, 2, 3], &[4096, 0, 8], &[70_000, 70_000, 1], &[250_000]];
    for lens in lists {
        local.write(0, &vec![0; 400_000]).expect("the whole region");
        let (places, expected) = cut(&local, &bytes[11..], lens);
        let id = queue.scatter(&aperture, 11, &places).expect("room in the queue");
        pair.wait(&queue, id).expect("a read");
        let found = contents(&local);
        let got: Vec<u8> =
            places.iter().flat_map(|place| &found[place.offset()..place.offset() + place.len()]).copied().collect();
        assert!(got[..] == bytes[11..11 + expected.len()], "{lens:?}");
    }
}

/// The requests of a group take effect in order, and the end of the last one is the end of all.
pub fn a_group_is_in_order(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(8192);
    let local = Region::new(&pair.a, 8192).expect("memory");
    let queue = RdmaQueue::new(&pair.a, 16);
    for round in 1..=20_u32 {
        local.write(0, &[round as u8; 4096]).expect("inside");
        let mut group = Group::new();
        let source = local.slice(0, 4096).expect("inside");
        group
            .write(&source, &aperture, 0)
            .and_then(|group| group.immediate(&aperture, 4096, round))
            .expect("two requests");
        group.read(&aperture, 0, &local.slice(4096, 4096).expect("inside")).expect("a read");
        assert_eq!((group.len(), group.is_empty()), (3, false));
        let last = queue.post(group).expect("room in the queue");
        pair.wait(&queue, last).expect("all of them");
        assert_eq!(region.word32(4096).expect("a word").load(Ordering::Acquire), round);
        assert!(contents(&local).iter().all(|byte| *byte == round as u8), "round {round}");
    }
    let totals = queue.totals();
    let bytes = [totals.mapped_bytes, totals.asked_bytes];
    let expected = 20 * (4096 + 4 + 4096);
    assert_eq!((totals.requests, bytes), (60, if pair.maps() { [expected, 0] } else { [0, expected] }));
    let served = pair.b.counters().served_bytes;
    // Another link of the same node may have been served besides.
    assert_eq!(served >= expected, !pair.maps(), "the owner copied {served} bytes");
}

/// A group is posted whole, or not at all.
pub fn a_group_is_posted_whole(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(64);
    let queue = RdmaQueue::new(&pair.a, 3);
    let group = |count: usize| {
        let mut group = Group::new();
        for at in 0..count {
            group.immediate(&aperture, 4 * at, 7).expect("inside");
        }
        group
    };
    assert_eq!(queue.post(group(4)).err(), Some(Error::Full { what: "the RDMA queue", limit: 3 }));
    assert!(matches!(queue.post(Group::new()), Err(Error::Size { value: 0, .. })));
    pair.settle();
    assert_eq!(contents(&region), [0; 64]);
    let last = queue.post(group(3)).expect("room in the queue");
    pair.wait(&queue, last).expect("all of them");
    assert_eq!(contents(&region)[..16], [7, 0, 0, 0, 7, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
    let mut outside = Group::new();
    assert!(matches!(outside.immediate(&aperture, 64, 1), Err(Error::Cookie(Refusal::Range { .. }))));
    assert!(outside.is_empty());
}

/// When one request of a group fails, those after it are flushed.
pub fn a_failure_flushes_the_rest_of_a_group(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let mut region = Region::new(&pair.b, 64).expect("memory");
    let aperture = pair.open(&region.cookie(Rights::WRITE)).expect("a good cookie");
    let queue = RdmaQueue::new(&pair.a, 8);
    region.revoke().expect("a revocation");
    let mut group = Group::new();
    for at in 0..3 {
        group.immediate(&aperture, 4 * at, 7).expect("inside");
    }
    let last = queue.post(group).expect("room in the queue");
    assert!(matches!(pair.wait(&queue, last), Err(Error::Flushed(_))));
    assert_eq!((contents(&region), queue.totals().requests), (vec![0; 64], 0));
}

/// A group that fits into a turn is served in one turn: it is not begun at the end of the turn before.
pub fn a_group_is_served_in_one_turn(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(8 << 20);
    let local = Region::new(&pair.a, 8 << 20).expect("memory");
    local.write(0, &[1; 600_000]).expect("inside");
    let (other, queue) = (RdmaQueue::new(&pair.a, 8), RdmaQueue::new(&pair.a, 8));
    other.write(&local.slice(1 << 20, 6 << 20).expect("inside"), &aperture, 1 << 20).expect("room in the queue");
    queue.write(&local.slice(0, 200_000).expect("inside"), &aperture, 0).expect("room in the queue");
    let mut group = Group::new();
    group.write(&local.slice(200_000, 100_000).expect("inside"), &aperture, 200_000).expect("inside");
    group.write(&local.slice(300_000, 100_000).expect("inside"), &aperture, 300_000).expect("inside");
    let last = queue.post(group).expect("room in the queue");
    pair.until("the end of a group", || {
        let is_there = |at| {
            let mut byte = [0];
            region.read(at, &mut byte).expect("inside");
            byte == [1]
        };
        let parts = (is_there(200_000), is_there(399_999));
        // Where the owner places the bytes, it does so in its own time.
        assert!(!pair.maps() || parts.0 == parts.1, "a group was begun and not ended in a turn");
        queue.test(last).expect("a group").then_some(())
    });
    assert!(contents(&region)[..400_000].iter().all(|byte| *byte == 1));
}

/// Slices of these lengths that lie apart, and the bytes they have.
fn cut(local: &Region, bytes: &[u8], lens: &[usize]) -> (Vec<RegionSlice>, Vec<u8>) {
    let mut at = 3;
    let mut expected = Vec::new();
    let slices = lens.iter().map(|len| {
        let slice = local.slice(at, *len).expect("inside");
        expected.extend(&bytes[at.min(bytes.len())..(at + len).min(bytes.len())]);
        at += len + 5;
        slice
    });
    (slices.collect(), expected)
}
