//! Messages that omniORB has sent are read, and written again byte for byte, except for padding.

use sidestep_wire::cdr::{ByteOrder, CharSet, Decoder, Format};
use sidestep_wire::giop::{self, MessageType, header, reply, request};

fn recorded() -> Vec<(String, Vec<u8>)> {
    let lines = include_str!("../testdata/giop.txt").lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, digits) = line.split_once(' ').expect("a name and bytes");
            let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits");
            (name.to_owned(), (0..digits.len()).step_by(2).map(byte).collect())
        })
        .collect()
}

#[test]
fn recorded_messages_come_back() {
    // What is emitted is in the order of this machine, and what was recorded in little-endian order.
    if ByteOrder::NATIVE == ByteOrder::Big {
        return;
    }
    let mut kinds = std::collections::BTreeSet::new();
    for (name, bytes) in recorded() {
        let repr = header::Repr::parse(&header::Header::new_checked(&bytes).unwrap()).unwrap();
        let version = repr.version;
        kinds.insert((version, repr.message_type as u8));
        let format = Format { order: repr.order, minor: version.minor(), chars: CharSet::Latin1 };
        let mut decoder = Decoder::new(&bytes, format);
        decoder.raw(header::LEN).unwrap();
        let mut encoder = giop::begin(Vec::new(), version, CharSet::Latin1, repr.message_type);
        match repr.message_type {
            MessageType::Request => {
                let request = request::Repr::parse(version, &mut decoder).unwrap();
                assert_eq!(request.target.key(), Ok(&b"NameService"[..]), "{name}");
                request.emit(version, &[], &mut encoder).unwrap();
            }
            MessageType::Reply => {
                let reply = reply::Repr::parse(version, &mut decoder).unwrap();
                reply.emit(version, &mut encoder).unwrap();
            }
            other => assert_eq!((other, decoder.remaining()), (MessageType::CloseConnection, 0)),
        }
        if decoder.remaining() > 0 {
            request::align_body(version, &mut encoder);
            encoder.raw(decoder.rest());
        }
        let emitted = giop::finish(encoder).unwrap();
        assert_eq!(emitted.len(), bytes.len(), "{name}");
        // omniORB does not clear the bytes between fields, which mean nothing.
        let different = emitted.iter().zip(&bytes).filter(|(ours, theirs)| ours != theirs);
        assert!(different.clone().all(|(ours, _)| *ours == 0) && different.count() < 8, "{name}");
    }
    assert_eq!(kinds.len(), 7, "requests and replies of three versions, and a farewell");
}
