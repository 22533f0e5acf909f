//! Private data of the iWARP link's set-up.

#![no_main]

#[path = "../../crates/fabric/tests/fuzz_entry/mod.rs"]
mod fuzz_entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_entry::iwarp_hello(data));
