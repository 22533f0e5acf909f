//! Rings, armed bits and pending sources against oracles so simple that they are obviously right.
//!
//! Each case is a random row of operations on one thread; after every operation the answer must be the oracle's.
//! What threads do to each other is loom's (`loom.rs`), what a bad peer does is `hostile.rs`.

#![cfg(not(any(loom, miri)))]

#[path = "ring_model/bytes.rs"]
mod bytes;
#[path = "ring_model/release.rs"]
mod release;
#[path = "ring_model/sets.rs"]
mod sets;
#[path = "ring_model/slots.rs"]
mod slots;

use proptest::test_runner::Config;
use sidestep_shm::{Memory, byte_ring::Parts, sync::Ordering};

/// Two sides, as two processes would see them.
struct Words {
    memory: Memory,
    capacity: usize,
    begin: u64,
}

impl Words {
    const RING: usize = 0x80;

    /// A ring that has carried `begin` bytes already.
    fn new(capacity: usize, begin: u64) -> Words {
        let memory = Memory::heap(Words::RING + capacity).unwrap();
        for at in [0x00, 0x40] {
            memory.word64(at).unwrap().store(begin, Ordering::Relaxed);
        }
        Words { memory, capacity, begin }
    }

    fn parts(&self) -> Parts {
        let word = |at| self.memory.word64(at).unwrap();
        Parts {
            ring: self.memory.span(Words::RING, self.capacity).unwrap(),
            tail: word(0x00),
            core: word(0x08),
            switch: word(0x10),
            head: word(0x40),
            begin: self.begin,
        }
    }
}

fn cases(count: u32) -> Config {
    Config { cases: count, failure_persistence: None, ..Config::default() }
}
