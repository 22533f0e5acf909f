//! The compiler of OMG IDL.

#![no_main]

use sidestep_idl::omg::{self, Files};

/// There is nothing to be included.
struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str, _: &str) -> Option<(String, String)> {
        None
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = omg::compile("fuzz.idl", text, &NoFiles);
    }
});
