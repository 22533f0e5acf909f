//! A whole connection.

#![no_main]

#[path = "../../crates/iwarp/tests/fuzz_entry/mod.rs"]
mod fuzz_entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_entry::connection(data));
