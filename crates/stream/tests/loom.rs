//! Every interleaving of two holders of one record, with every value that a weak machine may return.
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test -p sidestep-stream --test loom --release --target-dir target/loom
//! ```

#![cfg(loom)]

use loom::thread;
use sidestep_shm::memory::Memory;
use sidestep_stream::{
    path::{End, Tail},
    record::{self, Direction, Holder, Position, Record},
};

fn holder(place: usize) -> Holder {
    Holder::new(place).expect("a place")
}

/// A record with its first carrier, and memory with a few bytes behind it.
fn record() -> (Memory, Record) {
    let memory = Memory::heap(record::LEN + 64).expect("memory");
    let record = Record::create(&memory, 0, 1, holder(0), [0; 2]).expect("a record");
    assert_eq!(record.mount(1), Ok(true));
    (memory, record)
}

/// Two readers take the same bytes: each byte has one of them.
#[test]
fn each_byte_is_committed_once() {
    loom::model(|| {
        let (_memory, record) = record();
        let other = record.clone();
        let read = |record: Record| {
            let mut mine = Vec::new();
            for _ in 0..2 {
                let Position { at, .. } = record.reading().position().expect("a position");
                if at < 2 && record.reading().commit(1, at, at + 1) {
                    mine.push(at);
                }
            }
            mine
        };
        let theirs = thread::spawn(move || read(other));
        let mut all = read(record.clone());
        all.extend(theirs.join().expect("a reader"));
        all.sort_unstable();
        let Position { at, .. } = record.reading().position().expect("a position");
        assert_eq!(all, (0..at).collect::<Vec<u64>>());
    });
}

/// What is offered back is not committed, and what is committed is not offered.
#[test]
fn an_offer_and_a_commit_exclude_each_other() {
    loom::model(|| {
        let (_memory, record) = record();
        let other = record.clone();
        let offered = thread::spawn(move || other.reading().offer(1, 0));
        let committed = record.reading().commit(1, 0, 1);
        let offered = offered.join().expect("an offer");
        assert!(offered != committed);
        assert_eq!(record.reading().resume(1, 0, 0), offered);
        assert_eq!(record.reading().commit(1, 0, 1), offered);
    });
}

/// Whoever finds a record of this generation finds what it was made with.
#[test]
fn a_record_is_seen_whole() {
    loom::model(|| {
        let memory = Memory::heap(record::LEN).expect("memory");
        let theirs = memory.clone();
        let made = thread::spawn(move || Record::create(&theirs, 0, 7, holder(1), [5, 6]).map(|_| ()));
        if let Ok(found) = Record::attach(&memory, 0, 7).expect("memory") {
            assert_eq!((found.reading().tcp_taken(), found.writing().tcp_sent()), (5, 6));
            assert_eq!(found.reading().is_owner(holder(0)), Ok(false));
        }
        made.join().expect("a maker").expect("memory");
    });
}

/// Two writers count what they sent, two holders go into the kernel: nothing is lost.
#[test]
fn counts_add_up() {
    loom::model(|| {
        let (_memory, record) = record();
        let other = record.clone();
        let counted = thread::spawn(move || {
            other.writing().count_sent(2);
            other.shared().enter_kernel(holder(0), Direction::Read);
        });
        record.writing().count_sent(3);
        record.shared().enter_kernel(holder(0), Direction::Write);
        counted.join().expect("a writer");
        assert_eq!(record.writing().tcp_sent(), 5);
        let in_kernel =
            [Direction::Read, Direction::Write].map(|direction| record.shared().in_kernel(holder(0), direction));
        assert_eq!(in_kernel, [1, 1]);
    });
}

/// A carrier has one end, and two holders that take over leave nobody as the owner.
#[test]
fn one_end_wins_and_nobody_owns() {
    loom::model(|| {
        let (_memory, record) = record();
        let other = record.clone();
        let (frozen, taken) = (Tail { position: 3, end: End::Frozen }, Tail { position: 3, end: End::Taken });
        let theirs = thread::spawn(move || {
            other.reading().take_over();
            other.writing().set_end(Tail::default(), taken)
        });
        record.reading().take_over();
        let ours = record.writing().set_end(Tail::default(), frozen);
        let theirs = theirs.join().expect("a writer");
        assert!(ours != theirs);
        assert_eq!(record.writing().end(), Ok(if ours { frozen } else { taken }));
        assert_eq!(record.reading().is_owner(holder(1)), Ok(true));
    });
}
