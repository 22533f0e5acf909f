//! A ring whose writer gives pages back at any moment, against a queue of bytes.

use std::{collections::VecDeque, os::fd::AsFd};

use proptest::{collection::vec, prelude::*};
use sidestep_shm::{
    Memory,
    byte_ring::{Consumer, Parts, Producer},
    sync::Ordering,
};

use super::cases;

#[derive(Debug, Clone)]
enum Operation {
    Push(usize),
    Publish,
    Take(usize),
    Tell,
    Release,
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation::*;
    prop_oneof![
        (0..9_000_usize).prop_map(Push),
        Just(Publish),
        (0..9_000_usize).prop_map(Take),
        Just(Tell),
        Just(Release),
    ]
}

const CAPACITY: usize = 16 << 10;
/// Not at the beginning of a page, as in a block.
const RING: usize = 0x1100;

fn parts(memory: &Memory, begin: u64) -> Parts {
    let word = |at| memory.word64(at).unwrap();
    let ring = memory.span(RING, CAPACITY).unwrap();
    Parts { ring, tail: word(0x00), core: word(0x08), switch: word(0x10), head: word(0x40), begin }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn what_is_released_is_nobodys(begin in 0..3 * CAPACITY as u64, operations in vec(operation(), 1..60)) {
        let memory = Memory::create_sparse("released", 0x8000).unwrap();
        // What lies around the ring stays.
        memory.span(0x1000, 0x100).unwrap().copy_in(0, &[7; 0x100]).unwrap();
        memory.span(RING + CAPACITY, 0x100).unwrap().copy_in(0, &[9; 0x100]).unwrap();
        for at in [0x00, 0x40] {
            memory.word64(at).unwrap().store(begin, Ordering::Relaxed);
        }
        let mut producer = Producer::new(parts(&memory, begin)).unwrap();
        let mut consumer = Consumer::new(parts(&memory, begin)).unwrap();
        let (mut queue, mut next, mut published) = (VecDeque::new(), 0u32, 0);
        for operation in operations {
            match operation {
                Operation::Push(len) => {
                    let bytes: Vec<u8> = (next..next + len as u32).map(|number| (number % 251 + 1) as u8).collect();
                    let count = producer.copy_in(&bytes).unwrap();
                    next += count as u32;
                    queue.extend(&bytes[..count]);
                }
                Operation::Publish => {
                    prop_assert!(producer.publish(0));
                    published = queue.len();
                }
                Operation::Take(len) => {
                    let mut bytes = vec![0; len];
                    let count = consumer.copy_out(&mut bytes).unwrap();
                    prop_assert!(count <= published);
                    published -= count;
                    let expected: Vec<u8> = queue.drain(..count).collect();
                    prop_assert_eq!(&bytes[..count], expected);
                }
                Operation::Tell => consumer.publish_head(),
                Operation::Release => _ = producer.release().unwrap(),
            }
        }
        let mut around = [[0; 0x100]; 2];
        memory.span(0x1000, 0x100).unwrap().copy_out(0, &mut around[0]).unwrap();
        memory.span(RING + CAPACITY, 0x100).unwrap().copy_out(0, &mut around[1]).unwrap();
        prop_assert_eq!(around, [[7; 0x100], [9; 0x100]]);
    }
}

#[test]
fn pages_go_back() {
    let memory = Memory::create("released", 0x8000).unwrap();
    let held = || rustix::fs::fstat(memory.descriptor().unwrap().as_fd()).unwrap().st_blocks as usize * 512;
    let mut producer = Producer::new(parts(&memory, 0)).unwrap();
    assert_eq!(held(), 0x8000);
    assert_eq!(producer.release().unwrap(), CAPACITY - 0x1000);
    assert_eq!(held(), 0x8000 - (CAPACITY - 0x1000));
}
