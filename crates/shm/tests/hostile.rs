//! A peer that writes random values into every shared word it can reach ends its own connection and does nothing
//! else: no panic (and so no overflow: tests are built with the checks), nothing outside the ring, no endless loop.

#![cfg(not(any(loom, miri)))]

#[path = "hostile/driver.rs"]
mod driver;

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};

use driver::{Reach, World};
use sidestep_shm::{
    Error, Memory,
    byte_ring::{Consumer, Parts, Producer},
    event_ring::{EVENT_RING_LEN, EventTaker},
    slot_ring::SlotConsumer,
};

/// Small, seeded, good enough.
struct Random(u64);

impl Random {
    fn next_word(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

impl Iterator for Random {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        Some((self.next_word() >> 56) as u8)
    }
}

/// Short lives, since a handle that has met a bad value rarely does much afterwards.
#[test]
fn random_values_in_every_word() {
    for seed in 1..=12_000_u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        driver::drive(&mut random.by_ref().take(400));
    }
}

#[test]
fn random_values_over_a_long_life() {
    for seed in 1..=4_u64 {
        driver::drive(&mut Random(seed << 32 | seed).take(400_000));
    }
}

/// Real shared memory, mapped twice; the peer writes all the time, also in the middle of a step.
#[test]
fn a_peer_writes_while_messages_flow() {
    for seed in 1..=20_u64 {
        let mut world = World::new(&mut |len| Memory::create("sidestep-hostile", len).unwrap(), seed * 16);
        let reach: Vec<Reach> = world.reach().iter().map(second_mapping).collect();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = Random(seed << 40 | 77);
                while !done.load(Relaxed) {
                    scribble(&reach, &mut random);
                }
            });
            let _ended = Ended(&done);
            let mut random = Random(seed);
            for _ in 0..20_000 {
                world.step(&mut random);
            }
        });
        world.check_guards();
    }
}

/// One impossible value each: refused, by the name of the peer, and the handle goes on when the value is mended.
#[test]
fn impossible_values_are_refused() {
    let memory = Memory::heap(0x200).unwrap();
    let word = |at| memory.word64(at).unwrap();
    let parts = || Parts {
        ring: memory.span(0x100, 64).unwrap(),
        tail: word(0x00),
        core: word(0x08),
        switch: word(0x10),
        head: word(0x40),
        begin: 0,
    };
    let mut producer = Producer::new(parts()).unwrap();
    let mut consumer = Consumer::new(parts()).unwrap();
    let mut slots = SlotConsumer::new(parts(), 16).unwrap();
    let mut buffer = [0; 32];
    producer.copy_in(&[9; 40]).unwrap();
    let _ = producer.publish(0);
    assert_eq!(consumer.copy_out(&mut buffer), Ok(32));
    consumer.publish_head();
    assert_eq!(producer.space(64), Ok(56));

    assert!(matches!(slots.pop(&mut buffer), Err(Error::Peer(_))), "a length beyond the slot");
    let mut refused = |at, value, mended| {
        word(at).store(value, Relaxed);
        let outcomes =
            (producer.space(64).is_err(), consumer.available_now().is_err(), slots.pop(&mut buffer).is_err());
        word(at).store(mended, Relaxed);
        assert!(producer.space(64).is_ok() && consumer.available_now().is_ok());
        outcomes
    };
    assert_eq!(refused(0x00, 39, 40), (false, true, true), "a tail that goes back");
    assert_eq!(refused(0x00, 32 + 65, 40), (false, true, true), "a tail beyond the ring");
    assert_eq!(refused(0x40, 31, 32), (true, false, true), "a head that goes back");
    assert_eq!(refused(0x40, 41, 32), (true, false, true), "a head beyond the tail");
    consumer.offer(Memory::heap(128).unwrap().span(0, 128).unwrap()).unwrap();
    word(0x10).store(40, Relaxed);
    assert!(matches!(consumer.available_now(), Err(Error::Peer(_))), "a switch before what is known");
    word(0x10).store(0, Relaxed);
    assert_eq!(consumer.available_now(), Ok(8));
}

#[test]
fn part_of_a_slot_or_of_an_event_is_refused() {
    let memory = Memory::heap(0x200).unwrap();
    let word = |at| memory.word64(at).unwrap();
    let (tail, core, switch, head) = (word(0), word(8), word(16), word(24));
    let parts = Parts { ring: memory.span(0x100, 64).unwrap(), tail, core, switch, head, begin: 0 };
    let mut slots = SlotConsumer::new(parts, 16).unwrap();
    word(0).store(15, Relaxed);
    assert!(matches!(slots.pop(&mut [0; 8]), Err(Error::Peer(_))));

    let [ours, theirs] = [0, 1].map(|_| Memory::heap(EVENT_RING_LEN).unwrap());
    let mut taker = EventTaker::new(&ours, 0, &theirs, 0).unwrap();
    ours.word64(0).unwrap().store(12, Relaxed);
    assert!(matches!(taker.take(), Err(Error::Peer(_))));
}

/// Ends the peer when the test ends, in whatever way.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// As the peer sees it: another mapping of the same pages.
fn second_mapping(reach: &Reach) -> Reach {
    let descriptor = reach.memory.descriptor().unwrap().try_clone().unwrap();
    Reach { memory: Memory::attach(descriptor, reach.memory.len()).unwrap(), ..reach.clone() }
}

/// Mostly the control words, mostly with values near what is there.
fn scribble(reach: &[Reach], random: &mut Random) {
    let choice = random.next_word();
    let Reach { memory, offset, len } = &reach[choice as usize % reach.len()];
    let words = if choice & 0x300 == 0 { len / 8 } else { (len / 8).min(0x18) };
    let word = memory.word64(offset + (choice >> 16) as usize % words * 8).unwrap();
    let value = match choice >> 12 & 7 {
        0 => random.next_word(),
        1 => u64::MAX - (choice >> 56),
        2 => 1 << 63 | word.load(Relaxed),
        _ => word.load(Relaxed).wrapping_add(choice >> 58),
    };
    word.store(value, Relaxed);
}
