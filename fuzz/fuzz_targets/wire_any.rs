//! Values with their type.

#![no_main]

#[path = "../../crates/wire/tests/fuzz_entry/mod.rs"]
mod fuzz_entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_entry::any_value(data));
