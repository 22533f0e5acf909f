//! What two ends of a connection say to each other before it is promoted.

#![no_main]

#[path = "../../crates/sockets/tests/fuzz_entry/mod.rs"]
mod fuzz_entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_entry::handshake(data));
