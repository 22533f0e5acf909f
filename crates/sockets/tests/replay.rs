//! The stored inputs of the fuzz target of this crate, as an ordinary test.

mod fuzz_entry;

use std::path::Path;

#[test]
fn replay_the_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/sockets_handshake");
    let inputs = std::fs::read_dir(&corpus).unwrap_or_else(|error| panic!("{}: {error}", corpus.display()));
    let mut count = 0;
    for input in inputs {
        fuzz_entry::handshake(&std::fs::read(input.expect("a directory entry").path()).expect("a stored input"));
        count += 1;
    }
    assert!(count > 0, "no stored input");
}
