//! The stored inputs of the fuzz targets of this crate, as ordinary tests, with every byte of them changed in turn.

mod fuzz_entry;

use std::path::Path;

#[test]
fn stored_inputs_and_their_neighbours() {
    for fuzz_entry::Target { name, entry } in fuzz_entry::TARGETS {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
        let stored: Vec<_> = std::fs::read_dir(&corpus).expect("a corpus").map(|file| file.unwrap().path()).collect();
        assert!(!stored.is_empty(), "no stored input for {name}");
        for path in stored {
            let bytes = std::fs::read(&path).unwrap();
            entry(&bytes);
            for at in 0..bytes.len().min(200) {
                let mut other = bytes.clone();
                other[at] ^= 0xFF;
                entry(&other);
                entry(&bytes[..at]);
            }
        }
    }
}
