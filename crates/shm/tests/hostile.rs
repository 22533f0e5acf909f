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
use sidestep_shm::Memory;

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
            let mut random = Random(seed);
            for _ in 0..20_000 {
                world.step(&mut random);
            }
            done.store(true, Relaxed);
        });
        world.check_guards();
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
