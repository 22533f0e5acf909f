//! The stored inputs of the fuzz targets of this crate, as ordinary tests, with every byte of them changed in turn; and inputs by
//! chance.

mod fuzz_entry;

use std::path::Path;

use proptest::prelude::*;

#[test]
fn stored_inputs_and_their_neighbours() {
    for fuzz_entry::Target { name, entry } in fuzz_entry::TARGETS {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
        let stored: Vec<_> = std::fs::read_dir(&corpus).expect("a corpus").map(|file| file.unwrap().path()).collect();
        assert!(!stored.is_empty(), "no stored input for {name}");
        for path in stored {
            let bytes = std::fs::read(&path).unwrap();
            entry(&bytes);
            for at in 0..bytes.len().min(300) {
                let mut other = bytes.clone();
                for change in [0x01, 0x80, 0xFF] {
                    other[at] = bytes[at] ^ change;
                    entry(&other);
                }
                entry(&bytes[..at]);
            }
        }
    }
}

/// A stream of fragments that are as they should be, more or less.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let fragment = (any::<bool>(), prop::collection::vec(any::<u8>(), 0..40)).prop_map(|(is_last, bytes)| {
        let mark = bytes.len() as u32 | u32::from(is_last) << 31;
        [&mark.to_be_bytes()[..], &bytes].concat()
    });
    let fragments = prop::collection::vec(fragment, 0..12).prop_map(|fragments| fragments.concat());
    (any::<u8>(), fragments, prop::collection::vec(any::<u8>(), 0..6))
        .prop_map(|(piece, fragments, end)| [&[piece % 70][..], &fragments, &end].concat())
}

/// Calls whose arguments are small numbers, which lengths, booleans and enumerations are, and some bytes.
fn calls() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        4 => (0u32..6).prop_map(u32::to_be_bytes),
        1 => any::<[u8; 4]>(),
        1 => Just(*b"tcp\0"),
    ];
    let arguments = prop::collection::vec(word, 0..40).prop_map(|words| words.concat());
    let call = (any::<u8>(), 0u8..14, arguments).prop_map(|(version, procedure, arguments)| {
        let length = arguments.len() as u8;
        [&[version, procedure, length][..], &arguments].concat()
    });
    prop::collection::vec(call, 0..8).prop_map(|calls| calls.concat())
}

proptest! {
    #[test]
    fn streams_by_chance(stream in stream()) {
        fuzz_entry::record(&stream);
    }

    #[test]
    fn calls_by_chance(calls in calls()) {
        fuzz_entry::service(&calls);
    }
}
