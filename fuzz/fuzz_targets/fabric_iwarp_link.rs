//! A whole iWARP link, against a peer that says what it likes.

#![no_main]

#[path = "../../crates/fabric/tests/fuzz_entry/mod.rs"]
mod fuzz_entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_entry::iwarp_link(data));
