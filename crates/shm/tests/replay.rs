//! The stored inputs of this crate's fuzz target, as an ordinary test.

#![cfg(not(any(loom, miri)))]

#[path = "hostile/driver.rs"]
#[allow(dead_code)]
mod driver;

use std::path::Path;

#[test]
fn replay_the_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/shm_ring");
    let inputs = std::fs::read_dir(&corpus).unwrap_or_else(|error| panic!("{}: {error}", corpus.display()));
    let mut count = 0;
    for input in inputs {
        let path = input.expect("a directory entry").path();
        driver::drive(&mut std::fs::read(&path).expect("a stored input").into_iter());
        count += 1;
    }
    assert!(count > 0, "no stored input");
}
