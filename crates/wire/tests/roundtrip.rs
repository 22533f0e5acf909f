//! For every header: what is emitted is parsed as the same value, and nothing panics on any bytes.

mod fuzz_entry;

use proptest::prelude::*;
use sidestep_wire::ddp::{tagged, untagged};
use sidestep_wire::mpa::enhanced::{self, Depth, RtrModes};
use sidestep_wire::mpa::marker::{self, Interval, Spacing};
use sidestep_wire::mpa::{fpdu, frame};
use sidestep_wire::rdmap::segment::{self, SendKind};
use sidestep_wire::rdmap::{
    atomic_request, atomic_response, immediate, read_request, terminate, terminate::Terminated,
};
use sidestep_wire::{MessageOffset, Msn, QueueNumber, Stag, TaggedOffset, hello};

fn stag() -> impl Strategy<Value = Stag> {
    any::<u32>().prop_map(Stag)
}

fn tagged_offset() -> impl Strategy<Value = TaggedOffset> {
    any::<u64>().prop_map(TaggedOffset)
}

fn msn() -> impl Strategy<Value = Msn> {
    any::<u32>().prop_map(Msn)
}

fn interval() -> impl Strategy<Value = Interval> {
    (4u32..=16383).prop_map(|quarter| Interval::new(quarter * 4).unwrap())
}

fn depth() -> impl Strategy<Value = Depth> {
    prop_oneof![Just(Depth::NOT_NEGOTIATED), (0u16..0x3fff).prop_map(Depth::limit)]
}

prop_compose! {
    fn rtr_modes()(send: bool, write: bool, read: bool) -> RtrModes {
        RtrModes { send, write, read }
    }
}

prop_compose! {
    fn enhanced_data()(
        ird in depth(),
        ord in depth(),
        peer_to_peer in proptest::option::of(rtr_modes()),
    ) -> enhanced::Repr {
        enhanced::Repr { ird, ord, peer_to_peer }
    }
}

prop_compose! {
    fn request_to_read()(
        sink in stag(),
        sink_offset in tagged_offset(),
        size: u32,
        source in stag(),
        source_offset in tagged_offset(),
    ) -> read_request::Repr {
        read_request::Repr { sink, sink_offset, size, source, source_offset }
    }
}

fn operation() -> impl Strategy<Value = atomic_request::Operation> {
    use atomic_request::Operation;
    prop_oneof![
        any::<(u64, u64)>().prop_map(|(add, mask)| Operation::FetchAdd { add, mask }),
        any::<(u64, u64, u64, u64)>().prop_map(|(swap, swap_mask, compare, compare_mask)| {
            Operation::CompareSwap { swap, swap_mask, compare, compare_mask }
        }),
    ]
}

prop_compose! {
    fn reason_to_stop()(
        layer in 0u8..16,
        etype in 0u8..16,
        code: u8,
        segment_len: Option<u16>,
        ddp in proptest::option::of(any::<[u8; 18]>()),
        request in proptest::option::of(request_to_read()),
    ) -> terminate::Repr {
        terminate::Repr {
            reason: terminate::Reason::new(layer, etype, code),
            segment_len,
            ddp: ddp.and_then(|bytes| Terminated::new(&bytes)),
            request,
        }
    }
}

fn any_segment() -> impl Strategy<Value = segment::Repr> {
    use segment::Repr;
    prop_oneof![
        (any::<bool>(), stag(), tagged_offset()).prop_map(|(last, sink, offset)| Repr::Write { last, sink, offset }),
        (any::<bool>(), stag(), tagged_offset()).prop_map(|(last, sink, offset)| Repr::ReadResponse {
            last,
            sink,
            offset
        }),
        (any::<(bool, u32, bool)>(), msn(), proptest::option::of(stag())).prop_map(
            |((last, offset, solicited), msn, invalidate)| Repr::Send {
                last,
                msn,
                offset: MessageOffset(offset),
                kind: SendKind { solicited, invalidate },
            }
        ),
        (any::<(bool, u64)>(), msn()).prop_map(|((solicited, data), msn)| Repr::Immediate {
            msn,
            solicited,
            immediate: immediate::Repr { data },
        }),
        (msn(), request_to_read()).prop_map(|(msn, request)| Repr::ReadRequest { msn, request }),
        (msn(), any::<u32>(), stag(), tagged_offset(), operation()).prop_map(|(msn, id, stag, offset, operation)| {
            Repr::AtomicRequest { msn, request: atomic_request::Repr { id, stag, offset, operation } }
        }),
        (msn(), any::<(u32, u64)>()).prop_map(|(msn, (id, original))| Repr::AtomicResponse {
            msn,
            response: atomic_response::Repr { id, original },
        }),
        (msn(), reason_to_stop()).prop_map(|(msn, terminate)| Repr::Terminate { msn, terminate }),
    ]
}

proptest! {
    #[test]
    fn mpa_frames(
        reply: bool,
        rejected: bool,
        two: bool,
        markers: bool,
        crc: bool,
        enhanced in proptest::option::of(enhanced_data()),
        private_data in proptest::collection::vec(any::<u8>(), 0..=508),
    ) {
        let repr = frame::Repr {
            kind: if reply { frame::Kind::Reply { rejected } } else { frame::Kind::Request },
            revision: if two { frame::Revision::Two } else { frame::Revision::One },
            markers,
            crc,
            enhanced: enhanced.filter(|_| two),
            private_data: &private_data,
        };
        let mut bytes = vec![0xee; repr.buffer_len()];
        repr.emit(&mut bytes);
        prop_assert_eq!(frame::expected_len(&bytes, reply), Ok(Some(bytes.len())));
        let packet = frame::Packet::new_checked(&bytes).unwrap();
        prop_assert_eq!(frame::Repr::parse(&packet), Ok(repr));
    }

    #[test]
    fn enhanced_connection_data(repr in enhanced_data()) {
        let mut bytes = [0xee; enhanced::LEN];
        repr.emit(&mut bytes);
        let header = enhanced::Header::new_checked(bytes).unwrap();
        prop_assert_eq!(enhanced::Repr::parse(&header), Ok(repr));
    }

    #[test]
    fn markers(quarter in 0u16..0x4000) {
        let repr = marker::Repr { pointer: quarter * 4 };
        let mut bytes = [0xee; marker::LEN];
        repr.emit(&mut bytes);
        let header = marker::Header::new_checked(bytes).unwrap();
        prop_assert_eq!(marker::Repr::parse(&header), Ok(repr));
    }

    #[test]
    fn fpdus(
        ulpdu in proptest::collection::vec(any::<u8>(), 0..3000),
        interval in proptest::option::of(interval()),
        position in 0u64..100_000,
        flip: proptest::sample::Index,
    ) {
        let spacing = Spacing::new(interval, position * 4);
        let repr = fpdu::Repr { ulpdu_len: ulpdu.len() as u16 };
        let mut bytes = vec![0xee; repr.buffer_len(spacing)];
        repr.emit(&ulpdu, spacing, &mut bytes);
        let packet = fpdu::Packet::new_checked(&bytes, spacing).unwrap();
        prop_assert_eq!(fpdu::Repr::parse(&packet), Ok(repr));
        prop_assert_eq!(packet.wire_len(), bytes.len());
        packet.check_crc().unwrap();
        packet.check_markers().unwrap();
        let whole: Vec<u8> = packet.chunks(0..ulpdu.len()).flatten().copied().collect();
        prop_assert_eq!(&whole, &ulpdu);

        let at = flip.index(bytes.len());
        bytes[at] ^= 1;
        // A changed length field asks for other bytes; anything else is caught by the CRC.
        if let Ok(packet) = fpdu::Packet::new_checked(&bytes, spacing) {
            prop_assert!(packet.check_crc().is_err());
        }
    }

    #[test]
    fn tagged_headers(
        last: bool,
        upper: u8,
        stag in stag(),
        offset in tagged_offset(),
    ) {
        let repr = tagged::Repr { last, upper, stag, offset };
        let mut bytes = [0xee; tagged::LEN];
        repr.emit(&mut bytes);
        let header = tagged::Header::new_checked(bytes).unwrap();
        prop_assert_eq!(tagged::Repr::parse(&header), Ok(repr));
    }

    #[test]
    fn untagged_headers(
        last: bool,
        upper: u8,
        upper_word: u32,
        queue: u32,
        msn in msn(),
        offset: u32,
    ) {
        let (queue, offset) = (QueueNumber(queue), MessageOffset(offset));
        let repr = untagged::Repr { last, upper, upper_word, queue, msn, offset };
        let mut bytes = [0xee; untagged::LEN];
        repr.emit(&mut bytes);
        let header = untagged::Header::new_checked(bytes).unwrap();
        prop_assert_eq!(untagged::Repr::parse(&header), Ok(repr));
    }

    #[test]
    fn segments(repr in any_segment(), payload in proptest::collection::vec(any::<u8>(), 0..100)) {
        let mut bytes = vec![0xee; repr.buffer_len()];
        repr.emit(&mut bytes);
        let opcode = repr.opcode();
        if opcode.tagged() || matches!(repr, segment::Repr::Send { .. }) {
            bytes.extend(payload);
        }
        let header = segment::Header::new_checked(&bytes, bytes.len()).unwrap();
        prop_assert_eq!(segment::Repr::parse(&header), Ok(repr));
    }

    #[test]
    fn hellos(interval in proptest::option::of(interval())) {
        let repr = hello::Repr { interval };
        let mut bytes = [0xee; hello::LEN];
        repr.emit(&mut bytes);
        let header = hello::Header::new_checked(bytes).unwrap();
        prop_assert_eq!(hello::Repr::parse(&header), Ok(repr));
    }

    #[test]
    fn no_bytes_make_it_panic(data in proptest::collection::vec(any::<u8>(), 0..700)) {
        for target in fuzz_entry::TARGETS {
            (target.entry)(&data);
        }
    }

    /// Random bytes seldom get past the first check; bytes near valid ones do.
    #[test]
    fn no_bytes_near_valid_ones_make_it_panic(
        repr in any_segment(),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
        len: proptest::sample::Index,
    ) {
        let mut bytes = vec![0xee; repr.buffer_len()];
        repr.emit(&mut bytes);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(len.index(bytes.len() + 1));
        fuzz_entry::ddp_segment(&bytes);
    }
}
