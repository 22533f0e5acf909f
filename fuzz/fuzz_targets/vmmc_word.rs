//! What a card reads from the shared memory of its processes, and a link from its peers.

#![no_main]

#[path = "../../crates/vmmc/tests/fuzz_entry/mod.rs"]
mod fuzz_entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_entry::word(data));
