//! Apertures: stores into a peer's region, in order, mapped or not.

use std::sync::atomic::Ordering;

use sidestep_fabric::{Aperture, CloseReason, Error, Refusal, Region, Rights};
use sidestep_sys::clock;

use super::{
    fixture::Fixture,
    nodes::{PATIENCE_NS, Pair, contents, pattern, scheme_of, soon, while_serving},
};

/// Only a cookie with all rights is mapped for writing, and only if the link maps.
pub fn pages_are_mapped_for_writing_with_all_rights_only(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let region = Region::new(&pair.b, 4096).expect("memory");
    assert_eq!(pair.open(&region.cookie(Rights::ALL)).expect("a good cookie").is_mapped(), pair.maps());
    for rights in [Rights::NONE, Rights::READ, Rights::WRITE, Rights::READ.and(Rights::WRITE)] {
        assert!(!pair.open(&region.cookie(rights)).expect("a good cookie").is_mapped());
    }
    assert!(!pair.open(&region.cookie_for(Rights::ALL, PATIENCE_NS)).expect("a good cookie").is_mapped());
}

/// Opening waits for the owner's word; a deadline ends that, unless the link serves a node that is busy.
pub fn opening_waits_for_the_owner(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let region = Region::new(&pair.b, 4096).expect("memory");
    let cookie = region.cookie(Rights::ALL);
    let soon_over = Some(clock::now() + 1_000_000);
    let early = Aperture::open(&pair.to_b, &cookie, soon_over);
    assert!(pair.is_served() || matches!(early, Err(Error::TimedOut(_))));
    let aperture = while_serving(&pair.b, || Aperture::open(&pair.to_b, &cookie, soon())).expect("a good cookie");
    assert_eq!(aperture.cookie(), &cookie);
    assert_eq!(aperture.is_open(), Ok(true));
}

/// The owner's refusal is the answer to opening.
pub fn a_refusal_is_reported(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let mut region = Region::new(&pair.b, 4096).expect("memory");
    let cookie = region.cookie(Rights::ALL);
    region.revoke().expect("a revocation");
    assert_eq!(pair.open(&cookie).err(), Some(Refusal::Revoked.into()));
    let other = Region::new(&pair.a, 4096).expect("memory");
    let unknown = pair.open(&other.cookie(Rights::ALL)).err();
    assert!(
        matches!(unknown, Some(Error::Cookie(Refusal::Unknown | Refusal::Forged | Refusal::Revoked))),
        "{unknown:?}"
    );
}

/// Opening the same cookie again gives the same aperture, without asking.
pub fn an_aperture_is_opened_once(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, first) = pair.target(4096);
    let second = Aperture::begin(&pair.to_b, &region.cookie(Rights::ALL)).expect("an open connection");
    assert_eq!(second.is_open(), Ok(true));
    first.write(0, b"a").expect("a store");
    second.write(1, b"b").expect("a store");
    first.clone().write(2, b"c").expect("a store");
    pair.flush(&second).expect("stores that arrive");
    assert_eq!(contents(&region)[..3], *b"abc");
}

/// A store outside the region, or without the right, is refused and changes nothing.
pub fn stores_outside_or_without_right_are_refused(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(1000);
    for (offset, len) in [(1000, 1), (993, 8), (0, 1001), (usize::MAX, 2)] {
        let outside = Err(Refusal::Range { offset: offset as u64, len: len as u64 }.into());
        assert_eq!(aperture.write(offset, &vec![1; len]), outside);
    }
    assert!(aperture.store32(1000, 1).is_err());
    assert!(aperture.store64(996, 1).is_err());
    assert_eq!(aperture.write(1000, &[]), Ok(()));
    let held = Rights::READ;
    let reading = pair.open(&region.cookie(held)).expect("a good cookie");
    let wanted = Rights::WRITE;
    assert_eq!(reading.write(0, &[1]), Err(Refusal::Rights { held, wanted }.into()));
    assert_eq!(reading.store64(0, 1), Err(Refusal::Rights { held, wanted }.into()));
    pair.flush(&aperture).expect("stores that arrive");
    assert!(contents(&region).iter().all(|byte| *byte == 0));
}

/// A word store must be aligned, on every link.
pub fn word_stores_are_aligned(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(64);
    for offset in [1, 2, 3, 5, 6, 7, 9] {
        assert!(aperture.store32(offset, u32::MAX).is_err(), "a 32-bit word at {offset}");
    }
    for offset in [1, 2, 4, 12] {
        assert!(aperture.store64(offset, u64::MAX).is_err(), "a 64-bit word at {offset}");
    }
    pair.flush(&aperture).expect("stores that arrive");
    assert_eq!(contents(&region), [0; 64]);
    aperture.store32(4, 1).expect("an aligned word");
    aperture.store64(8, 2).expect("an aligned word");
    pair.flush(&aperture).expect("stores that arrive");
    assert_eq!(region.word32(4).expect("a word").load(Ordering::Acquire), 1);
    assert_eq!(region.word64(8).expect("a word").load(Ordering::Acquire), 2);
}

/// Stores become visible in the order of the calls: whoever sees a word sees what was stored before it.
pub fn stores_are_seen_in_order(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let (region, aperture) = pair.target(4096);
    let (flag, seen) = (region.word64(0).expect("a word"), region.word64(8).expect("a word"));
    let rounds = 500;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=rounds {
                let bytes = vec![round as u8; 1000];
                store(&pair, || aperture.write(1024, &bytes));
                store(&pair, || aperture.store64(0, round));
                let deadline = clock::now() + PATIENCE_NS;
                while seen.load(Ordering::Acquire) != round {
                    pair.a.progress();
                    assert!(clock::now() < deadline, "the owner never saw round {round}");
                    std::thread::yield_now();
                }
            }
        });
        let deadline = clock::now() + 3 * PATIENCE_NS;
        let mut bytes = vec![0; 1000];
        for round in 1..=rounds {
            while flag.load(Ordering::Acquire) != round {
                pair.b.progress();
                assert!(clock::now() < deadline, "round {round} never came");
                std::thread::yield_now();
            }
            region.read(1024, &mut bytes).expect("inside");
            // Let the other side go on before anything here may fail.
            seen.store(round, Ordering::Release);
            assert!(bytes.iter().all(|byte| *byte == round as u8), "the word of round {round} came before its bytes");
        }
    });
}

/// A store larger than any transfer of the link arrives whole.
pub fn a_large_store_arrives_whole(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let len = 3 * pair.a.capabilities(scheme_of(&pair.a)).expect("its own link").max_transfer + 17;
    let (region, aperture) = pair.target(len + 100);
    let bytes = pattern(len, 9);
    store(&pair, || aperture.write(33, &bytes));
    pair.flush(&aperture).expect("stores that arrive");
    let mut seen = vec![0; len];
    region.read(33, &mut seen).expect("inside");
    assert!(seen == bytes);
}

/// `flush` waits for the stores so far, and reports one that the owner refused.
pub fn flush_reports_a_refused_store(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let mut region = Region::new(&pair.b, 4096).expect("memory");
    // Fewer rights than all, so that every store travels on every link.
    let aperture = pair.open(&region.cookie(Rights::WRITE)).expect("a good cookie");
    aperture.write(0, &[1]).expect("a store");
    pair.flush(&aperture).expect("stores that arrive");
    region.revoke().expect("a revocation");
    let taken = aperture.write(1, &[2]);
    let flushed = taken.and_then(|()| pair.flush(&aperture));
    assert_eq!(flushed, Err(Refusal::Revoked.into()));
    assert_eq!(contents(&region)[..2], [1, 0]);
}

/// Opening, and stores that travel, fail when the peer is gone.
pub fn a_dead_peer_ends_its_apertures(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let region = Region::new(&pair.b, 4096).expect("memory");
    let cookie = region.cookie(Rights::ALL);
    let stores = pair.open(&region.cookie(Rights::WRITE)).expect("a good cookie");
    let opening = Aperture::begin(&pair.to_b, &cookie).expect("an open connection");
    pair.kill_b();
    let gone = |error: &Error| matches!(error, Error::Closed(CloseReason::Died));
    let deadline = clock::now() + PATIENCE_NS;
    let error = loop {
        pair.a.progress();
        match opening.is_open() {
            // Where a busy node is served, the answer may have been quicker.
            Ok(open) => {
                assert!(!open || pair.is_served(), "a dead peer has answered");
                assert!(clock::now() < deadline, "a dead peer has not ended an opening");
            }
            Err(error) => break error,
        }
    };
    assert!(gone(&error), "{error:?}");
    assert!(stores.write(0, &[1]).and_then(|()| stores.flush(soon())).is_err());
    assert!(Aperture::begin(&pair.to_b, &cookie).and_then(|aperture| aperture.wait_open(soon())).is_err());
}

/// Stores when the link has room.
fn store(pair: &Pair, mut attempt: impl FnMut() -> sidestep_fabric::Result<()>) {
    let deadline = clock::now() + PATIENCE_NS;
    loop {
        match attempt() {
            Ok(()) => return,
            Err(Error::Full { .. }) => pair.a.progress(),
            Err(error) => panic!("a store: {error}"),
        };
        assert!(clock::now() < deadline, "there was never room for a store");
    }
}
