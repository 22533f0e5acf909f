//! The compiler of `.x` files.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = sidestep_idl::rpc::compile("fuzz.x", text);
    }
});
