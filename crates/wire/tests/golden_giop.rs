//! Messages that omniORB has sent, and some that it never sends, are read, and written again byte for byte, except for padding.

use sidestep_wire::cdr::{ByteOrder, CharSet, Decoder, Format};
use sidestep_wire::giop::{self, MessageType, Version, fragment, header, locate, reply, request};

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
            MessageType::LocateRequest => {
                let request = locate::Request::parse(version, &mut decoder).unwrap();
                assert_eq!((request.request_id, request.target.key().unwrap().len()), (2, 14), "{name}");
                request.emit(version, &mut encoder).unwrap();
            }
            MessageType::LocateReply => {
                let reply = locate::Reply::parse(version, &mut decoder).unwrap();
                let is_there = reply.status == locate::Status::ObjectHere;
                assert!(is_there || reply.status == locate::Status::UnknownObject, "{name}");
                reply.emit(&mut encoder);
            }
            MessageType::CancelRequest => {
                let request_id = request::parse_cancel(&mut decoder).unwrap();
                assert_eq!(request_id, 7);
                encoder.u32(request_id);
            }
            MessageType::Fragment => {
                if version == Version::V1_2 {
                    let request_id = fragment::message_id(&mut decoder).unwrap();
                    assert!([7, 9].contains(&request_id), "{name}");
                    encoder.u32(request_id);
                }
                assert_eq!(decoder.position(), header::LEN + fragment::header_len(version), "{name}");
            }
            MessageType::CloseConnection | MessageType::MessageError => {
                assert_eq!(decoder.remaining(), 0, "{name}");
                assert_eq!(giop::bare(version, repr.message_type)[..], bytes);
            }
        }
        if decoder.remaining() > 0 {
            if matches!(repr.message_type, MessageType::Request | MessageType::Reply) {
                request::align_body(version, &mut encoder);
            }
            encoder.raw(decoder.rest());
        }
        let mut emitted = giop::finish(encoder).unwrap();
        let size = emitted.len() as u32 - header::LEN as u32;
        assert_eq!(size, repr.size, "{name}");
        repr.emit(&mut emitted);
        assert_eq!(emitted.len(), bytes.len(), "{name}");
        // omniORB does not clear the bytes between fields, which mean nothing.
        let different = emitted.iter().zip(&bytes).filter(|(ours, theirs)| ours != theirs);
        assert!(different.clone().all(|(ours, _)| *ours == 0) && different.count() < 8, "{name}");
    }
    let of = |version| kinds.iter().filter(|(of, _)| *of == version).map(|(_, kind)| *kind).collect::<Vec<_>>();
    assert_eq!(of(Version::V1_0), [0, 1, 2, 3, 4, 6]);
    assert_eq!(of(Version::V1_1), [0, 1, 4, 7]);
    assert_eq!(of(Version::V1_2), [0, 1, 2, 3, 4, 5, 6, 7]);
}
