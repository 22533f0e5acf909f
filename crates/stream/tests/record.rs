//! The record: its layout, words that nobody should have written, and generations.

use std::{collections::BTreeSet, fmt::Write as _, fs, io::IoSlice, io::IoSliceMut, path::Path};

use proptest::prelude::*;
use sidestep_fabric::Node;
use sidestep_shm::memory::Memory;
use sidestep_stream::{
    carrier::{Halves, Outbound, loopback},
    driver::{Anchor, Holders, Inward, Locked, Outward, ReadCall, WriteCall},
    path::Outcome,
    record::{self, Corrupt, Direction, Holder, LEN, Options, PAIR, Record},
};

fn holder(place: usize) -> Holder {
    Holder::new(place).expect("a place")
}

fn fresh() -> (Memory, Record) {
    let memory = Memory::heap(LEN).expect("memory");
    let record = Record::create(&memory, 0, 1, holder(0), [10, 20]).expect("a record");
    (memory, record)
}

/// The table of the documents is that of the program.
#[test]
fn the_layout_is_documented() {
    let mut table = String::from("| offset | word | what |\n|---|---|---|\n");
    for entry in record::layout() {
        let part = ["", "reader's ", "writer's "][entry.offset / PAIR];
        writeln!(table, "| {:#05x} | {part}{} | {} |", entry.offset, entry.name, entry.what).expect("memory");
    }
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sockets.md");
    let document = fs::read_to_string(document).expect("the document");
    assert!(document.contains(&table), "docs/sockets.md should have this table:\n\n{table}");
}

/// R1: the words of the two directions, and those of both, share no pair of cache lines.
#[test]
fn words_lie_apart() {
    let offsets: Vec<usize> = record::layout().map(|entry| entry.offset).collect();
    assert!(offsets.iter().all(|offset| offset % 8 == 0 && *offset < LEN));
    assert_eq!(offsets.iter().collect::<BTreeSet<_>>().len(), offsets.len(), "two words in one place");
    assert_eq!(offsets.iter().map(|offset| offset / PAIR).collect::<BTreeSet<_>>(), BTreeSet::from([0, 1, 2]));
    for direction in [Direction::Read, Direction::Write] {
        let at = Record::lock_offset(direction);
        assert!(record::layout().any(|entry| entry.offset == at && entry.name == "lock"));
    }
}

#[test]
fn a_generation_ends() {
    let (memory, record) = fresh();
    let found = Record::attach(&memory, 0, 1).expect("memory").expect("this one");
    assert_eq!((found.reading().tcp_taken(), found.writing().tcp_sent()), (10, 20));
    assert_eq!(Record::attach(&memory, 0, 2).expect("memory").err(), Some(Corrupt("generation")));
    record.retire();
    assert!(!found.is_current());
    Record::create(&memory, 0, 2, holder(3), [0; 2]).expect("a record");
    assert!(!found.is_current() && !record.is_current());
    assert!(Record::create(&memory, 8, 2, holder(3), [0; 2]).is_err(), "it ends behind this memory");
    assert_eq!(Holder::new(record::MOST_HOLDERS), None);
}

#[test]
fn carriers_follow_each_other() {
    let (_memory, record) = fresh();
    assert_eq!((record.mount(2), record.mount(1), record.mount(2)), (Ok(false), Ok(true), Ok(false)));
    record.reading().set_over(1);
    assert_eq!((record.has_parted(1), record.mount(2)), (Ok(false), Ok(false)));
    record.writing().forget(1);
    assert_eq!((record.has_parted(1), record.mount(2), record.mount(2)), (Ok(true), Ok(true), Ok(false)));
    assert!(!record.reading().commit(1, 0, 1), "that carrier is over");
    assert!(record.reading().commit(2, 0, 1) && !record.reading().commit(2, 0, 1));
    assert!(record.reading().offer(2, 1) && !record.reading().commit(2, 1, 2));
    assert!(record.reading().resume(2, 1, 1) && record.reading().commit(2, 1, 2));
}

#[test]
fn holders_share_options_and_counts() {
    let (_memory, record) = fresh();
    let shared = record.shared();
    let options = Options { nonblocking: true, low_water: u32::MAX };
    shared.set_nonblocking(true);
    shared.set_low_water(u32::MAX);
    assert_eq!(shared.options(), Ok(options));
    let time = std::time::Duration::from_micros(1500);
    shared.set_timeout(Direction::Write, Some(time));
    assert_eq!((shared.timeout(Direction::Read), shared.timeout(Direction::Write)), (None, Some(time)));
    for place in 0..record::MOST_HOLDERS {
        (0..=place).for_each(|_| shared.enter_kernel(holder(place), Direction::Write));
        shared.leave_kernel(holder(place), Direction::Read);
        shared.leave_kernel(holder(place), Direction::Write);
        assert_eq!(shared.in_kernel(holder(place), Direction::Write) as usize, place);
        assert_eq!(shared.in_kernel(holder(place), Direction::Read), 0);
    }
    shared.forget(holder(7));
    assert_eq!(shared.in_kernel(holder(7), Direction::Write), 0);
}

/// Every word that has forbidden values says so.
#[test]
fn words_that_nobody_writes_are_noticed() {
    let spoilt = |name: &str, value: u64, look: &dyn Fn(&Record) -> Option<Corrupt>| {
        for entry in record::layout().filter(|entry| entry.name == name) {
            let (memory, record) = fresh();
            assert_eq!(look(&record), None);
            memory.word64(entry.offset).expect("a word").store(value, std::sync::atomic::Ordering::Relaxed);
            if let Some(corrupt) = look(&record) {
                assert_eq!(corrupt, Corrupt(entry.name));
                return;
            }
        }
        panic!("{value:#x} in {name} was taken for good");
    };
    spoilt("owner", 9, &|record| record.reading().is_owner(holder(0)).err());
    spoilt("owner", 1 << 31, &|record| record.writing().is_owner(holder(0)).err());
    spoilt("opened", 1 << 19, &|record| record.reading().opened().err());
    spoilt("opened", 0xffff, &|record| record.reading().opened().err());
    spoilt("over", 1 << 16, &|record| record.reading().over().err());
    spoilt("options", 2, &|record| record.shared().options().err());
    spoilt("entered", 1 << 63, &|record| record.writing().entered().err());
    spoilt("end", 6 << 48, &|record| record.writing().end().err());
    spoilt("forgotten", u64::MAX, &|record| record.writing().forgotten().err());
}

/// An anchor that has some bytes, and takes some.
struct Kernel(u64);

impl Anchor for Kernel {
    fn pending(&mut self) -> (u64, bool) {
        (self.0 % 5, self.0 % 3 == 0)
    }

    fn receive(&mut self, _: &mut [IoSliceMut<'_>], most: usize) -> usize {
        most.min(2)
    }

    fn send(&mut self, parts: &[IoSlice<'_>]) -> usize {
        parts[0].len().min(self.0 as usize % 3)
    }

    fn send_all(&mut self, _: &[u8]) {}

    fn received(&mut self) -> u64 {
        self.0
    }

    fn sent(&mut self) -> u64 {
        self.0
    }
}

struct Alone;

impl Holders for Alone {
    fn own(&self) -> Holder {
        holder(0)
    }

    fn is_sole(&self) -> bool {
        true
    }

    fn try_lock(&mut self, _: Direction) -> Locked {
        Locked::Inherited
    }

    fn unlock(&mut self, _: Direction) {}
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a descendant has written into the record, and the peer into its notes: every call comes to an end, and gives out
    /// no more than there is room for.
    #[test]
    fn hostile_words_end_calls(
        words in prop::collection::vec((0..LEN / 8, prop_oneof![any::<u64>(), 0..4u64, (0..8u64).prop_map(|end| end << 48 | 1), (0..4u64).prop_map(|number| number << 49 | 1)]), 1..12),
        notes in prop::collection::vec((0..2usize, prop_oneof![any::<u64>(), (0..8u64).prop_map(|end| end << 48 | 1)]), 0..3),
        kernel in any::<u64>(),
        spoils in any::<bool>(),
    ) {
        thread_local! {
            static NODES: [Node; 2] = [(); 2].map(|()| Node::new().expect("a node"));
        }
        let [mut own, mut peer] = NODES.with(|nodes| loopback::pair([&nodes[0], &nodes[1]], 8));
        let (memory, record) = fresh();
        assert_eq!(record.mount(1), Ok(true));
        let out = peer.outbound.as_mut().expect("a half");
        out.send(&[IoSlice::new(b"bytes")], false).expect("room");
        for (which, note) in notes {
            out.set_note(which, note).expect("a peer");
        }
        if spoils {
            record.reading().open(1);
        }
        for (at, word) in words {
            memory.word64(at * 8).expect("a word").store(word, std::sync::atomic::Ordering::Relaxed);
        }
        let Halves { carrier, outbound, inbound } = &mut own;
        let (inbound, outbound) = (inbound.as_mut().expect("a half"), outbound.as_mut().expect("a half"));
        for round in 0..4 {
            let mut buffer = [0; 4];
            let mut read = ReadCall {
                record: &record,
                carrier: Some(Inward { number: 1, half: inbound, watch: carrier.watch() }),
                anchor: &mut Kernel(kernel),
                holders: &mut Alone,
                parts: &mut [IoSliceMut::new(&mut buffer)],
            };
            let outcome = if round == 2 { read.give_back() } else { read.read(round % 2 == 0) };
            if let Outcome::Moved(count) = outcome {
                prop_assert!(count <= 4);
            }
            let mut write = WriteCall {
                record: &record,
                carrier: Some(Outward { number: 1, half: outbound, watch: carrier.watch(), capacity: 8 }),
                anchor: &mut Kernel(kernel),
                holders: &mut Alone,
                parts: &[IoSlice::new(b"more bytes")],
                taken: &mut Vec::new(),
            };
            let outcome = match round {
                0 => write.write(true),
                1 => write.write(false),
                2 => write.part(),
                _ => write.close(),
            };
            if let Outcome::Moved(count) = outcome {
                prop_assert!(count <= 10);
            }
        }
    }
}
