//! Random and mutated bytes into the CORBA parsers: nothing may panic, and what parses must come back.

mod fuzz_entry;

use proptest::prelude::*;
use sidestep_wire::cdr::{Any, Cdr, Encoder, Format, WString};
use sidestep_wire::giop::{self, MessageType, Target, Version, request};

/// Messages and values of every kind, for the mutations to begin with.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        let mut encoder = giop::begin(Vec::new(), version, giop_chars(), MessageType::Request);
        let repr = request::Repr {
            request_id: 7,
            response: request::Response::Target,
            target: Target::Key(b"key"),
            operation: b"echo",
            contexts: giop::Contexts::EMPTY,
        };
        repr.emit(version, &[(giop::CODE_SETS, &[1, 0, 0, 0])], &mut encoder).unwrap();
        request::align_body(version, &mut encoder);
        encoder.string("hello").unwrap();
        seeds.push(giop::finish(encoder).unwrap());
    }
    let values = [
        Any::new(&vec!["a".to_owned()]).unwrap(),
        Any::new(&[1u64, 2]).unwrap(),
        Any::new(&vec![Any::new(&WString::from("b")).unwrap()]).unwrap(),
    ];
    for value in values {
        let mut encoder = Encoder::new(Vec::new(), Format::NATIVE);
        value.encode(&mut encoder).unwrap();
        seeds.push([&[7], encoder.bytes()].concat());
    }
    seeds
}

fn giop_chars() -> sidestep_wire::cdr::CharSet {
    sidestep_wire::cdr::CharSet::Utf8
}

fn parse_as_everything(data: &[u8]) {
    fuzz_entry::giop_message(data);
    fuzz_entry::reference(data);
    fuzz_entry::any_value(data);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_bytes_are_parsed_or_refused(data in proptest::collection::vec(any::<u8>(), 0..200)) {
        parse_as_everything(&data);
    }

    #[test]
    fn changed_messages_are_parsed_or_refused(
        seed in 0usize..6,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
        truncate in any::<bool>(),
    ) {
        let mut data = seeds().swap_remove(seed);
        for (at, value) in changes {
            let at = at.index(data.len());
            data[at] = value;
        }
        if truncate {
            data.truncate(cut.index(data.len()));
        }
        parse_as_everything(&data);
    }
}
