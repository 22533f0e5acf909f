use super::*;

fn parse(bytes: &[u8]) -> Result<Repr, Error> {
    Repr::parse(&Header::new_checked(bytes, bytes.len())?)
}

fn golden(name: &str) -> Vec<u8> {
    include_str!("../../../testdata/segments.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| *key == name)
        .map(|(_, hex)| {
            let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
            digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
        })
        .unwrap_or_else(|| panic!("no golden segment {name}"))
}

/// Every golden segment, the value it stands for, and how it is shown.
#[test]
fn golden_segments() {
    let send = |msn, offset, last, solicited, invalidate| Repr::Send {
        last,
        msn: Msn(msn),
        offset: MessageOffset(offset),
        kind: SendKind { solicited, invalidate },
    };
    let stag = Stag(0xcafe_babe);
    let cases = [
        (
            "write",
            Repr::Write { last: false, sink: stag, offset: TaggedOffset(0x4000) },
            "rdmap write to 0xcafebabe+0x4000",
        ),
        (
            "read response",
            Repr::ReadResponse { last: true, sink: stag, offset: TaggedOffset(8) },
            "rdmap read response to 0xcafebabe+0x8 last",
        ),
        ("send", send(1, 0, true, false, None), "rdmap send msn 1 mo 0 last"),
        ("send, not last", send(2, 1482, false, false, None), "rdmap send msn 2 mo 1482"),
        (
            "send with invalidate",
            send(3, 0, true, false, Some(stag)),
            "rdmap send with invalidate msn 3 mo 0 last of 0xcafebabe",
        ),
        ("send with solicited event", send(4, 0, true, true, None), "rdmap send with solicited event msn 4 mo 0 last"),
        (
            "send with solicited event and invalidate",
            send(5, 0, true, true, Some(stag)),
            "rdmap send with solicited event and invalidate msn 5 mo 0 last of 0xcafebabe",
        ),
        (
            "immediate",
            Repr::Immediate {
                msn: Msn(6),
                solicited: false,
                immediate: immediate::Repr { data: 0x0102_0304_0506_0708 },
            },
            "rdmap immediate msn 6 0x0102030405060708",
        ),
        (
            "immediate with solicited event",
            Repr::Immediate { msn: Msn(7), solicited: true, immediate: immediate::Repr { data: 1 } },
            "rdmap immediate with solicited event msn 7 0x0000000000000001",
        ),
        (
            "read request",
            Repr::ReadRequest {
                msn: Msn(1),
                request: read_request::Repr {
                    sink: stag,
                    sink_offset: TaggedOffset(0x10),
                    size: 4096,
                    source: Stag(0x1234_5678),
                    source_offset: TaggedOffset(0x20),
                },
            },
            "rdmap read request msn 1 4096 bytes from 0x12345678+0x20 to 0xcafebabe+0x10",
        ),
        (
            "atomic request, fetch-add",
            Repr::AtomicRequest {
                msn: Msn(2),
                request: atomic_request::Repr {
                    id: 9,
                    stag,
                    offset: TaggedOffset(0x40),
                    operation: atomic_request::Operation::FetchAdd { add: 5, mask: 0 },
                },
            },
            "rdmap atomic request msn 2 id 9 at 0xcafebabe+0x40 fetch-add 0x5 mask 0x0",
        ),
        (
            "atomic response",
            Repr::AtomicResponse { msn: Msn(1), response: atomic_response::Repr { id: 9, original: 0x1234 } },
            "rdmap atomic response msn 1 id 9 was 0x1234",
        ),
        (
            "terminate",
            Repr::Terminate {
                msn: Msn(1),
                terminate: terminate::Repr {
                    reason: terminate::Reason::new(2, 0, 2),
                    segment_len: None,
                    ddp: None,
                    request: None,
                },
            },
            "rdmap terminate msn 1 MPA (2, 0, 0x02) CRC error",
        ),
    ];
    for (name, repr, shown) in cases {
        let bytes = golden(name);
        assert_eq!(parse(&bytes), Ok(repr), "{name}");
        let mut out = vec![0xee; repr.buffer_len()];
        repr.emit(&mut out);
        assert_eq!(out, bytes, "{name}");
        assert_eq!(repr.to_string(), shown);
        for cut in 0..bytes.len() {
            assert!(parse(&bytes[..cut]).is_err(), "{name} cut at {cut}");
        }
    }
}

#[test]
fn payload_follows_the_headers_of_sends_and_writes_only() {
    for (name, allowed) in [
        ("write", true),
        ("read response", true),
        ("send", true),
        ("immediate", false),
        ("read request", false),
        ("atomic request, fetch-add", false),
        ("atomic response", false),
    ] {
        let mut bytes = golden(name);
        bytes.extend([1, 2, 3]);
        assert_eq!(parse(&bytes).is_ok(), allowed, "{name}");
    }
}

#[test]
fn what_the_opcode_fixes_is_checked() {
    // Each case changes one byte of a golden segment.
    let changed = |name, at: usize, byte| {
        let mut bytes = golden(name);
        bytes[at] = byte;
        parse(&bytes).unwrap_err()
    };
    assert_eq!(changed("send", 0, 0x42), Error::DdpVersion { tagged: false, found: 2 });
    assert_eq!(changed("write", 0, 0x80), Error::DdpVersion { tagged: true, found: 0 });
    assert_eq!(changed("send", 1, 0x83), Error::RdmapVersion { found: 2 });
    assert_eq!(changed("send", 1, 0x4f), Error::Opcode { found: 0xf });
    assert_eq!(changed("send", 1, 0x40), Error::Model { part: Part::Message(Opcode::Write), tagged: false });
    assert_eq!(changed("write", 1, 0x43), Error::Model { part: Part::Message(Opcode::Send), tagged: true });
    assert_eq!(
        changed("send", 9, 1),
        Error::Queue { opcode: Opcode::Send, expected: QueueNumber::SEND, found: QueueNumber::READ_REQUEST }
    );
    assert_eq!(changed("read request", 17, 4), Error::Offset { opcode: Opcode::ReadRequest, found: MessageOffset(4) });
    assert_eq!(changed("read request", 0, 0x01), Error::NotLast { opcode: Opcode::ReadRequest });
    assert_eq!(changed("atomic request, fetch-add", 21, 1), Error::AtomicOpcode { found: 1 });
}

#[test]
fn a_prefix_is_enough_where_it_holds_the_headers() {
    let mut bytes = golden("write");
    bytes.resize(MAX_HEADER_LEN, 0);
    let header = Header::new_checked(&bytes, 1454).unwrap();
    assert!(matches!(Repr::parse(&header), Ok(Repr::Write { .. })));
    assert!(Header::new_checked(&bytes[..20], 1454).is_err());
}
