//! Messages of CDR of which only the beginning is at hand.

#![no_main]

#[path = "../../crates/wire/tests/fuzz_entry/mod.rs"]
mod fuzz_entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_entry::elsewhere(data));
