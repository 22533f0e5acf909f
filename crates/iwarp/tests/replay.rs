//! The stored inputs of the fuzz target of this crate, and random ones, as ordinary tests.

mod fuzz_entry;

use proptest::prelude::*;
use std::path::Path;

#[test]
fn replay_the_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(fuzz_entry::TARGET);
    let inputs = std::fs::read_dir(&corpus).unwrap_or_else(|error| panic!("{}: {error}", corpus.display()));
    let mut count = 0;
    for input in inputs {
        let path = input.expect("a directory entry").path();
        fuzz_entry::connection(&std::fs::read(&path).expect("a stored input"));
        count += 1;
    }
    assert!(count > 0, "no stored input");
}

/// A record of the fuzz target: an action, a length, and bytes that begin like a segment.
fn record() -> impl Strategy<Value = Vec<u8>> {
    let control = prop_oneof![Just(0x41), Just(0x01), Just(0xc1), Just(0x81), any::<u8>()];
    let opcode = prop_oneof![0x40u8..0x4c, any::<u8>()];
    let word = prop_oneof![
        Just([0u8, 0, 0, 0]),
        Just([0, 0, 0, 1]),
        Just([0, 0, 0, 2]),
        Just([1, 1, 1, 1]),
        Just([2, 2, 2, 2]),
        Just([0, 0, 0x10, 0]),
        any::<[u8; 4]>(),
    ];
    let segment = (control, opcode, proptest::collection::vec(word, 0..18)).prop_map(|(control, opcode, words)| {
        let mut bytes = vec![control, opcode];
        bytes.extend(words.concat());
        bytes
    });
    let body = prop_oneof![segment, proptest::collection::vec(any::<u8>(), 0..40)];
    (prop_oneof![Just(1u8), 0u8..8], body).prop_map(|(action, body)| {
        let mut record = vec![action, body.len() as u8];
        record.extend(body);
        record
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn replay_random_records(choice: u8, records in proptest::collection::vec(record(), 0..20)) {
        let mut input = vec![choice];
        input.extend(records.concat());
        fuzz_entry::connection(&input);
    }
}
