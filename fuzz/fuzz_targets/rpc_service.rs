//! Calls of services: every type of XDR, and rpcbind.

#![no_main]

#[path = "../../crates/rpc/tests/fuzz_entry/mod.rs"]
mod fuzz_entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_entry::service(data));
