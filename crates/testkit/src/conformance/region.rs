//! Regions: own memory and the caller's, revocation, and the end of a region.

use std::sync::atomic::Ordering;

use sidestep_fabric::{Aperture, Error, RdmaQueue, Refusal, Region, Rights};
use sidestep_shm::{self as shm, Memory};

use super::{
    fixture::Fixture,
    nodes::{Pair, contents, nodes, pattern, soon},
};

/// A region has the length asked for, and zeros in it; no region has no bytes.
pub fn a_region_begins_as_zeros(fixture: Fixture) {
    let node = nodes(fixture, 1).remove(0);
    for len in [1, 63, 64, 4096, 4097, 1 << 20] {
        let region = Region::new(&node, len).expect("memory");
        assert_eq!((region.len(), region.is_empty()), (len, false));
        assert!(contents(&region).iter().all(|byte| *byte == 0));
    }
    assert!(matches!(Region::new(&node, 0), Err(Error::Size { value: 0, .. })));
    assert!(matches!(Region::new(&node, usize::MAX), Err(Error::Size { .. })));
}

/// The owner's own reads, writes and words stay inside the region.
pub fn the_owner_stays_inside(fixture: Fixture) {
    let node = nodes(fixture, 1).remove(0);
    // Not a multiple of 64: the armed bits that follow the data must be out of reach.
    let region = Region::new(&node, 100).expect("memory");
    region.write(0, &[1; 100]).expect("the whole region");
    let outside = |offset, len| Err(Error::Memory(shm::Error::Range { offset, len, size: 100 }));
    assert_eq!(region.write(93, &[2; 8]), outside(93, 8));
    assert_eq!(region.read(101, &mut []), outside(101, 0));
    assert!(region.word64(96).is_err());
    assert!(region.word32(100).is_err());
    assert!(region.word64(4).is_err(), "a word that is not aligned");
    assert!(region.slice(50, 51).is_err());
    assert!(region.slice(usize::MAX, 2).is_err());
    assert_eq!(region.slice(50, 50).expect("a part").len(), 50);
    assert_eq!(contents(&region), [1; 100]);
}

/// A region is the target of a peer's stores and the source of a peer's reads.
pub fn own_memory_is_target_and_source(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(10_000);
    transfers(&pair, &region, &aperture);
}

/// A read in one step finds what lies in pages that are mapped here, for reading and writing or for reading alone, within the
/// region and until it is revoked. Where they are not mapped it says so and reads nothing.
pub fn a_read_in_one_step_finds_what_is_mapped(fixture: Fixture) {
    for rights in [Rights::ALL, Rights::READ, Rights::READ.and(Rights::WRITE)] {
        let pair = Pair::new(fixture);
        let mut region = Region::new(&pair.b, 5000).expect("memory");
        let bytes = pattern(5000, 3);
        region.write(0, &bytes).expect("the whole region");
        let aperture = pair.open(&region.cookie(rights)).expect("a good cookie");
        let mut read = vec![0; 4000];
        let directly = aperture.read(1000, &mut read).expect("within the region");
        assert_eq!(directly, aperture.reads_directly(), "{rights}");
        assert!(read == if directly { &bytes[1000..] } else { &[0; 4000] }, "{rights}");
        for (offset, len) in [(1001, 4000), (5000, 1), (usize::MAX, 1)] {
            let refused = aperture.read(offset, &mut read[..len]).unwrap_err();
            assert!(matches!(refused, Error::Cookie(Refusal::Range { .. })), "{refused}");
        }
        region.revoke().expect("fresh pages");
        if directly {
            // As soon as this side has heard of it, which a link may put off.
            let refused = loop {
                pair.a.progress_kernel();
                if let Err(refused) = aperture.read(0, &mut read) {
                    break refused;
                }
            };
            assert_eq!(refused, Error::Cookie(Refusal::Revoked), "{rights}");
        }
    }
    let pair = Pair::new(fixture);
    let region = Region::new(&pair.b, 64).expect("memory");
    let aperture = pair.open(&region.cookie(Rights::WRITE)).expect("a good cookie");
    let refused = aperture.read(0, &mut [0]).unwrap_err();
    assert!(matches!(refused, Error::Cookie(Refusal::Rights { .. })), "{refused}");
}

/// Memory of the caller is target and source as well; its pages are never mapped.
pub fn caller_memory_is_target_and_source(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let region = Region::over(&pair.b, Memory::heap(10_000).expect("memory")).expect("a region");
    let aperture = pair.open(&region.cookie(Rights::ALL)).expect("a good cookie");
    assert!(!aperture.is_mapped());
    transfers(&pair, &region, &aperture);
}

/// Memory of the caller can be where a read arrives and what a write sends.
pub fn caller_memory_is_local_end_of_transfers(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (remote, aperture) = pair.target(5000);
    let local = Region::over(&pair.a, Memory::heap(5000).expect("memory")).expect("a region");
    let queue = RdmaQueue::new(&pair.a, 8);
    let bytes = pattern(5000, 1);
    local.write(0, &bytes).expect("the whole region");
    let id = queue.write(&local.all(), &aperture, 0).expect("room in the queue");
    pair.wait(&queue, id).expect("a write");
    assert!(contents(&remote) == bytes);
    remote.write(0, &pattern(5000, 2)).expect("the whole region");
    let id = queue.read(&aperture, 0, &local.all()).expect("room in the queue");
    pair.wait(&queue, id).expect("a read");
    assert!(contents(&local) == pattern(5000, 2));
}

/// Revoking keeps the content and the words of the region.
pub fn revoking_keeps_the_content(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (mut region, aperture) = pair.target(100_000);
    let bytes = pattern(100_000, 3);
    aperture.write(0, &bytes).expect("a store");
    pair.flush(&aperture).expect("stores that arrive");
    let (base, word) = (region.base(), region.word64(64).expect("a word"));
    region.revoke().expect("a revocation");
    assert_eq!(region.base(), base);
    assert!(contents(&region) == bytes);
    word.store(42, Ordering::Relaxed);
    assert_eq!(region.word64(64).expect("a word").load(Ordering::Relaxed), 42);
}

/// Revoking moves the owner to fresh pages: what a peer still writes into the old ones is not seen.
pub fn a_peer_keeps_the_old_pages_only(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (mut region, aperture) = pair.target(8192);
    aperture.write(0, &[1; 8192]).expect("a store");
    pair.flush(&aperture).expect("stores that arrive");
    region.revoke().expect("a revocation");
    // The peer has not heard of it. A store is either taken and lost, or refused later.
    let stored = aperture.write(100, &[2; 100]).and_then(|()| aperture.store64(512, 7));
    if aperture.is_mapped() {
        assert_eq!(stored, Ok(()), "mapped memory takes stores until the peer hears of the revocation");
    }
    let queue = RdmaQueue::new(&pair.a, 4);
    let local = Region::new(&pair.a, 64).expect("memory");
    let begun = queue.write(&local.all(), &aperture, 1000);
    pair.settle();
    assert!(contents(&region) == [1; 8192]);
    let _ = begun.map(|id| pair.wait(&queue, id));
    assert_eq!(aperture.write(0, &[3]), Err(Refusal::Revoked.into()));
    assert_eq!(pair.open(aperture.cookie()).err(), Some(Refusal::Revoked.into()));
    assert!(contents(&region) == [1; 8192]);
    let again = pair.open(&region.cookie(Rights::ALL)).expect("a new cookie");
    again.write(0, &[4]).expect("a store");
    pair.flush(&again).expect("stores that arrive");
    assert_eq!(contents(&region)[0], 4);
}

/// A region that is dropped is no longer reached, and the peer's aperture says so.
pub fn a_dropped_region_is_out_of_reach(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(4096);
    let cookie = *aperture.cookie();
    drop(region);
    pair.settle();
    // Who has the pages mapped was told; who has not finds out when a store arrives.
    let why = if aperture.is_mapped() { Refusal::Revoked } else { Refusal::Unknown };
    let stored = aperture.write(0, &[1]).and_then(|()| pair.flush(&aperture));
    assert_eq!(stored, Err(why.into()));
    assert_eq!(pair.open(&cookie).err(), Some(Refusal::Unknown.into()));
}

/// Pages that were sent ahead can be opened while the owner is busy.
pub fn shared_pages_open_while_the_owner_is_busy(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let region = Region::new(&pair.b, 4096).expect("memory");
    let cookie = pair.to_a.share(&region, Rights::ALL).expect("an open connection");
    assert_eq!(cookie, region.cookie(Rights::ALL));
    pair.settle();
    if pair.maps() {
        let aperture = Aperture::open(&pair.to_b, &cookie, soon()).expect("pages that are here already");
        assert!(aperture.is_mapped());
        aperture.write(0, &[7]).expect("a store");
        assert_eq!(contents(&region)[0], 7);
    }
    let aperture = pair.open(&cookie).expect("a good cookie");
    aperture.write(1, &[8]).expect("a store");
    pair.flush(&aperture).expect("stores that arrive");
    assert_eq!(contents(&region)[1], 8);
}

/// Pages that were sent ahead and revoked before they were opened are refused as revoked.
pub fn shared_pages_can_be_revoked(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let mut region = Region::new(&pair.b, 4096).expect("memory");
    let cookie = pair.to_a.share(&region, Rights::ALL).expect("an open connection");
    pair.settle();
    region.revoke().expect("a revocation");
    pair.settle();
    let opened = pair.open(&cookie);
    assert_eq!(opened.err(), Some(Refusal::Revoked.into()));
}

/// The end of one region does not touch a later one that has its number, whatever the peer has heard of when.
pub fn a_number_used_again_is_another_region(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (first, old) = pair.target(4096);
    drop(first);
    let second = Region::new(&pair.b, 4096).expect("memory");
    assert_eq!(second.cookie(Rights::ALL).region(), old.cookie().region(), "the number is used again");
    // Opened before the news of the first region's end is heard.
    let new = pair.open(&second.cookie(Rights::ALL)).expect("a good cookie");
    new.write(0, &[5]).expect("a store");
    pair.flush(&new).expect("stores that arrive");
    pair.settle();
    new.write(1, &[6]).expect("a store");
    pair.flush(&new).expect("stores that arrive");
    assert_eq!(contents(&second)[..2], [5, 6]);
}

/// Writes and reads, small and large, at any offset.
fn transfers(pair: &Pair, region: &Region, aperture: &Aperture) {
    let queue = RdmaQueue::new(&pair.a, 8);
    let local = Region::new(&pair.a, 10_000).expect("memory");
    for (offset, len) in [(0, 10_000), (1, 1), (3, 4), (8, 8), (17, 4000), (9_999, 1), (10_000, 0)] {
        let bytes = pattern(len, offset as u64);
        aperture.write(offset, &bytes).expect("a store");
        pair.flush(aperture).expect("stores that arrive");
        let mut seen = vec![0; len];
        region.read(offset, &mut seen).expect("inside");
        assert!(seen == bytes, "{len} bytes at {offset}");
        let id = queue.read(aperture, offset, &local.slice(0, len).expect("inside")).expect("room in the queue");
        pair.wait(&queue, id).expect("a read");
        local.read(0, &mut seen).expect("inside");
        assert!(seen == bytes, "{len} bytes from {offset}");
    }
}
