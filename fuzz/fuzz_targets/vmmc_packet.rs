//! Packets of another card.

#![no_main]

#[path = "../../crates/vmmc/tests/fuzz_entry/mod.rs"]
mod fuzz_entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_entry::packet(data));
