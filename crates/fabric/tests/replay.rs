//! The stored inputs of the fuzz targets of this crate, as ordinary tests.

mod fuzz_entry;

use std::path::Path;

#[test]
fn replay_the_corpora() {
    for fuzz_entry::Target { name, entry } in fuzz_entry::TARGETS {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
        let inputs = std::fs::read_dir(&corpus).unwrap_or_else(|error| panic!("{}: {error}", corpus.display()));
        let mut count = 0;
        for input in inputs {
            let path = input.expect("a directory entry").path();
            entry(&std::fs::read(&path).expect("a stored input"));
            count += 1;
        }
        assert!(count > 0, "no stored input for {name}");
    }
}
