//! The right to read alone: on links that map, reads need nothing of the owner; on the others they travel. What a reader
//! sees is the same.

use std::sync::atomic::{AtomicBool, Ordering};

use sidestep_fabric::{
    Access, Aperture, CloseReason, Error, Mode, RdmaQueue, Refusal, Region, Result, Rights, Tripwire,
};

use super::{
    fixture::Fixture,
    nodes::{PATIENCE_NS, Pair, contents, drive, pattern, soon, while_serving},
};

const LEN: usize = 100_000;

/// A reader of a region of `b`.
struct Reader {
    pair: Pair,
    region: Region,
    aperture: Aperture,
    queue: RdmaQueue,
    local: Region,
}

/// A region that is opened with the right to read is read, whatever the sizes and offsets; where it is mapped, while the owner
/// does nothing.
pub fn reads_need_nothing_of_the_owner(fixture: Fixture) {
    let reader = Reader::new(fixture);
    assert_eq!((reader.aperture.reads_directly(), reader.aperture.is_mapped()), (reader.pair.maps(), false));
    for (seed, (from, len)) in [(0, 1), (9, 1000), (LEN - 1, 1), (LEN, 0), (0, LEN)].into_iter().enumerate() {
        let bytes = pattern(LEN, seed as u64);
        reader.region.write(0, &bytes).expect("the whole region");
        assert!(reader.read(from, len).expect("a read") == bytes[from..from + len], "{len} bytes from {from}");
    }
}

/// What a reader asks for beyond reading is refused when it asks, and changes nothing.
pub fn a_reader_has_no_way_to_write(fixture: Fixture) {
    let reader = Reader::new(fixture);
    let Reader { pair, region, aperture, queue, local } = &reader;
    let lacks = |wanted| Some(Error::Cookie(Refusal::Rights { held: Rights::READ, wanted }));
    assert_eq!(aperture.write(0, &[1]).err(), lacks(Rights::WRITE));
    assert_eq!(aperture.store64(0, 1).err(), lacks(Rights::WRITE));
    assert_eq!(queue.immediate(aperture, 0, 1).err(), lacks(Rights::WRITE));
    assert_eq!(queue.write(&local.slice(0, 8).expect("inside"), aperture, 0).err(), lacks(Rights::WRITE));
    assert_eq!(queue.fetch_add(aperture, 0, 1, &local.slice(0, 8).expect("inside")).err(), lacks(Rights::ATOMIC));
    assert!(aperture.word64(0).map_or(true, |word| word.is_none()), "a word that can be changed in place");
    pair.settle();
    assert!(contents(region).iter().all(|byte| *byte == 0));
    assert!(matches!(reader.read(LEN - 1, 2), Err(Error::Cookie(Refusal::Range { .. }))));
}

/// Reads of one queue are in order: who finds a version, then bytes, then the same version has the bytes of that version.
pub fn reads_are_in_order(fixture: Fixture) {
    let reader = Reader::new(fixture);
    let version = reader.region.word64(0).expect("a word");
    let (over, mut whole) = (AtomicBool::new(false), 0);
    while_serving(&reader.pair.b, || {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut round = 0_u64;
                while !over.load(Ordering::Relaxed) {
                    round += 1;
                    // Odd while it is being written.
                    version.store(2 * round - 1, Ordering::Release);
                    std::sync::atomic::fence(Ordering::Release);
                    reader.region.write(64, &[round as u8; 256]).expect("inside");
                    version.store(2 * round, Ordering::Release);
                    std::thread::yield_now();
                }
            });
            let deadline = sidestep_sys::clock::now() + PATIENCE_NS;
            while whole < 200 && sidestep_sys::clock::now() < deadline {
                let local = |at, len| reader.local.slice(at, len).expect("inside");
                reader.queue.read(&reader.aperture, 0, &local(0, 8)).expect("room in the queue");
                reader.queue.read(&reader.aperture, 64, &local(64, 256)).expect("room in the queue");
                let last = reader.queue.read(&reader.aperture, 0, &local(8, 8)).expect("room in the queue");
                reader.queue.wait(last, soon()).expect("three reads");
                let found = |at| reader.local.word64(at).expect("a word").load(Ordering::Acquire);
                if found(0) == found(8) && found(0) % 2 == 0 {
                    let bytes = &contents(&reader.local)[64..320];
                    let expected = (found(0) / 2) as u8;
                    assert!(bytes.iter().all(|byte| *byte == expected), "bytes of another version than {expected}");
                    whole += 1;
                }
            }
            over.store(true, Ordering::Relaxed);
        });
    });
    assert_eq!(whole, 200, "so many versions were found whole");
}

/// The moment when a reader loses access: nothing that the owner writes after the revocation has returned is ever read. Until
/// the reader hears of it, it may find what was there before; from then on it is refused.
pub fn a_reader_loses_access_at_the_revocation(fixture: Fixture) {
    let mut reader = Reader::new(fixture);
    for round in 1..=20_u8 {
        reader.region.write(0, &[round; LEN]).expect("the whole region");
        assert!(reader.read(0, LEN).expect("a read").iter().all(|byte| *byte == round));
        reader.region.revoke().expect("a revocation");
        reader.region.write(0, &[0xee; LEN]).expect("the whole region");
        // It has not heard of it, where it did not have to ask.
        match reader.read_now(0, LEN) {
            Some(Ok(bytes)) => assert!(bytes.iter().all(|byte| *byte == round), "bytes from after the revocation"),
            Some(Err(error)) => assert_eq!(error, Refusal::Revoked.into()),
            None => assert!(!reader.aperture.reads_directly(), "a read that waits for the owner"),
        }
        reader.pair.settle();
        reader.queue.reset();
        assert_eq!(reader.read(0, 1).err(), Some(Refusal::Revoked.into()));
        if reader.aperture.reads_directly() {
            assert_eq!(reader.pair.open(reader.aperture.cookie()).err(), Some(Refusal::Revoked.into()));
        }
        reader.queue.reset();
        reader.aperture = reader.pair.open(&reader.region.cookie(Rights::READ)).expect("a new cookie");
        assert!(reader.read(0, LEN).expect("a read").iter().all(|byte| *byte == 0xee));
    }
}

/// A region that is dropped is no longer read once its reader has heard of that.
pub fn a_reader_of_a_dropped_region_is_told(fixture: Fixture) {
    let Reader { pair, region, aperture, queue, local } = Reader::new(fixture);
    drop(region);
    pair.settle();
    let read = queue.read(&aperture, 0, &local.slice(0, 8).expect("inside")).and_then(|id| pair.wait(&queue, id));
    assert!(matches!(read, Err(Error::Cookie(Refusal::Unknown | Refusal::Revoked))), "{read:?}");
}

/// A cookie with a lifetime is served access by access, and refused as expired when its time is over.
pub fn a_lifetime_keeps_pages_from_readers(fixture: Fixture) {
    let mut reader = Reader::new(fixture);
    let long = reader.region.cookie_for(Rights::READ, PATIENCE_NS);
    reader.aperture = reader.pair.open(&long).expect("a good cookie");
    assert!(!reader.aperture.reads_directly());
    assert_eq!(reader.read(0, 8).expect("a read"), [0; 8]);
    let short = reader.region.cookie_for(Rights::READ, 1);
    let began = sidestep_sys::clock::now();
    while sidestep_sys::clock::now() <= began + 1 {}
    assert_eq!(reader.pair.open(&short).err(), Some(Refusal::Expired.into()));
}

/// A region is mapped for reading or for writing, whichever was opened first, until it is revoked; the other right is served
/// access by access.
pub fn the_first_pages_decide_how_a_region_is_mapped(fixture: Fixture) {
    let mut reader = Reader::new(fixture);
    let maps = reader.pair.maps();
    for round in 1..=4_u8 {
        let reads_first = round % 2 == 0;
        reader.region.revoke().expect("a revocation");
        let open = |rights| reader.pair.open(&reader.region.cookie(rights)).expect("a good cookie");
        let (reading, writing) = if reads_first {
            let reading = open(Rights::READ);
            (reading, open(Rights::ALL))
        } else {
            let writing = open(Rights::ALL);
            (open(Rights::READ), writing)
        };
        assert_eq!(reading.reads_directly(), maps && reads_first);
        assert_eq!(writing.is_mapped(), maps && !reads_first);
        writing.write(7, &[round]).expect("a store");
        reader.pair.flush(&writing).expect("stores that arrive");
        reader.aperture = reading;
        assert_eq!(reader.read(7, 1).expect("a read"), [round]);
    }
}

/// Pages that were sent ahead are opened and read while the owner is busy.
pub fn pages_sent_ahead_are_read_at_once(fixture: Fixture) {
    let pair = Pair::new(fixture);
    let region = Region::new(&pair.b, LEN).expect("memory");
    region.write(0, b"a table").expect("inside");
    let cookie = pair.to_a.share(&region, Rights::READ).expect("an open connection");
    pair.settle();
    let aperture = if pair.maps() { Aperture::open(&pair.to_b, &cookie, soon()) } else { pair.open(&cookie) };
    let (queue, local) = (RdmaQueue::new(&pair.a, 8), Region::new(&pair.a, LEN).expect("memory"));
    let reader = Reader { region, aperture: aperture.expect("a good cookie"), queue, local, pair };
    assert_eq!(reader.aperture.reads_directly(), reader.pair.maps());
    assert_eq!(reader.read(0, 7).expect("a read"), b"a table");
}

/// A read fires what watches the words read, and no other.
pub fn a_read_fires_a_read_tripwire(fixture: Fixture) {
    let reader = Reader::new(fixture);
    // Across the boundary of 64 words that share one armed line, and at the end of the region.
    let offsets = [0, 248, 252, 256, LEN - 4];
    let tripwires = offsets.map(|offset| {
        let tripwire = Tripwire::new(&reader.region, offset, Access::Read, Mode::Once).expect("inside");
        tripwire.arm();
        tripwire
    });
    let firings = || {
        reader.pair.settle();
        tripwires.each_ref().map(Tripwire::firings)
    };
    reader.read(4, 244).expect("a read");
    assert_eq!(firings(), [0; 5]);
    reader.read(251, 2).expect("a read");
    assert_eq!(firings(), [0, 1, 1, 0, 0]);
    reader.read(0, LEN).expect("a read");
    assert_eq!(firings(), [1; 5]);
    reader.read(0, LEN).expect("a read");
    assert_eq!(firings(), [1; 5]);
}

/// Whoever arms again hears of the next read, however many reads were reported meanwhile.
pub fn a_read_of_words_armed_again_fires_again(fixture: Fixture) {
    let reader = Reader::new(fixture);
    let tripwire = Tripwire::new(&reader.region, 64, Access::Read, Mode::Repeating).expect("inside");
    tripwire.arm();
    for round in 1..=50 {
        for _ in 0..round % 4 {
            reader.read_now(0, 128);
        }
        reader.read(64, 4).expect("a read");
        reader.pair.until("a firing", || tripwire.test().then_some(()));
    }
    assert!(tripwire.firings() >= 50);
}

/// The death of the owner ends reads, also of memory that is mapped.
pub fn a_death_ends_reads(fixture: Fixture) {
    let reader = Reader::new(fixture);
    reader.pair.kill_b();
    let died = drive(&[&reader.pair.a], "the end of reads", || {
        let read = reader.queue.read(&reader.aperture, 0, &reader.local.slice(0, 8).expect("inside"));
        match read.and_then(|id| reader.queue.test(id)) {
            Err(Error::Closed(reason)) => Some(reason),
            // Behind one that has failed.
            Err(Error::Flushed(_)) => {
                reader.queue.reset();
                None
            }
            _ => None,
        }
    });
    assert_eq!(died, CloseReason::Died);
}

impl Reader {
    fn new(fixture: Fixture) -> Reader {
        let pair = Pair::new(fixture);
        let region = Region::new(&pair.b, LEN).expect("memory");
        let aperture = pair.open(&region.cookie(Rights::READ)).expect("a good cookie");
        let local = Region::new(&pair.a, LEN).expect("memory");
        Reader { region, aperture, queue: RdmaQueue::new(&pair.a, 8), local, pair }
    }

    /// Reads, while the owner makes progress if it has to.
    fn read(&self, offset: usize, len: usize) -> Result<Vec<u8>> {
        let id = self.queue.read(&self.aperture, offset, &self.local.slice(0, len).expect("inside"))?;
        match self.aperture.reads_directly() {
            true => self.queue.wait(id, soon())?,
            false => self.pair.wait(&self.queue, id)?,
        }
        Ok(contents(&self.local)[..len].to_vec())
    }

    /// Reads as far as that needs nothing of anybody; `None` if it is not done then.
    fn read_now(&self, offset: usize, len: usize) -> Option<Result<Vec<u8>>> {
        let local = self.local.slice(0, len).expect("inside");
        let ended = self.queue.read(&self.aperture, offset, &local).and_then(|id| Ok((id, self.queue.test(id)?)));
        match ended {
            Ok((_, true)) => Some(Ok(contents(&self.local)[..len].to_vec())),
            Ok((id, false)) => {
                // Let it come to its end: what follows is not to wait behind it.
                let _ = self.pair.wait(&self.queue, id);
                None
            }
            Err(error) => Some(Err(error)),
        }
    }
}
