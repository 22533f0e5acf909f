//! Sends of the iWARP link.

#![no_main]

#[path = "../../crates/fabric/tests/fuzz_entry/mod.rs"]
mod fuzz_entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_entry::iwarp_control(data));
