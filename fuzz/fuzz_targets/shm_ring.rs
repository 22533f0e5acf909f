//! Rings, events and armed bits, with a peer that writes what it likes.

#![no_main]

#[path = "../../crates/shm/tests/hostile/driver.rs"]
#[allow(dead_code)]
mod driver;

libfuzzer_sys::fuzz_target!(|data: &[u8]| driver::drive(&mut data.iter().copied()));
