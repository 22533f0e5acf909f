use super::*;
use crate::{Stag, TaggedOffset};

const TAGGED: [u8; 14] = [0xc1, 0x40, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 8];
const UNTAGGED: [u8; 18] = [0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0];

fn check(repr: Repr, golden: &[u8]) {
    let mut out = vec![0xee; repr.buffer_len()];
    repr.emit(&mut out);
    assert_eq!(out, golden);
    assert_eq!(Repr::parse(&Header::new_checked(golden).unwrap()), Ok(repr));
}

/// RFC 5040 figures 7 and 8: layer 1, type 1, code 1, M and D, length, tagged header.
#[test]
fn golden_with_a_tagged_header() {
    let mut golden = vec![0x11, 0x01, 0xc0, 0x00, 0x05, 0xb0];
    golden.extend(TAGGED);
    let repr =
        Repr { reason: Reason::new(1, 1, 1), segment_len: Some(1456), ddp: Terminated::new(&TAGGED), request: None };
    check(repr, &golden);
    assert_eq!(repr.to_string(), "DDP (1, 1, 0x01) base or bounds violation, segment of 1456 bytes");
}

/// RFC 5040 figure 10: a refused read request comes back with both headers.
#[test]
fn golden_with_a_read_request() {
    let request = read_request::Repr {
        sink: Stag(1),
        sink_offset: TaggedOffset(2),
        size: 3,
        source: Stag(4),
        source_offset: TaggedOffset(5),
    };
    let mut golden = vec![0x01, 0x02, 0xe0, 0x00, 0x00, 46];
    golden.extend(UNTAGGED);
    let mut header = [0; read_request::LEN];
    request.emit(&mut header);
    golden.extend(header);
    let repr = Repr {
        reason: Reason::new(0, 1, 2),
        segment_len: Some(46),
        ddp: Terminated::new(&UNTAGGED),
        request: Some(request),
    };
    check(repr, &golden);
    assert_eq!(repr.buffer_len(), MAX_LEN);
}

/// An error of the layer below carries no headers.
#[test]
fn golden_without_headers() {
    let repr = Repr { reason: Reason::new(2, 0, 2), segment_len: None, ddp: None, request: None };
    check(repr, &[0x20, 0x02, 0x00, 0x00]);
    assert_eq!(repr.to_string(), "MPA (2, 0, 0x02) CRC error");
}

/// What Linux siw sends for a read beyond a region: RDMAP, type 1, code 1, with all three flags.
#[test]
fn fields_in_the_bit_order_of_the_machine_are_read() {
    let mut bytes = vec![0x10, 0x01, 0x07, 0x00, 0x00, 0x00];
    bytes.extend(UNTAGGED);
    let repr = Repr::parse(&Header::new_checked(&bytes).unwrap()).unwrap();
    assert_eq!(repr.reason, Reason::new(0, 1, 1));
    assert_eq!(repr.ddp, Terminated::new(&UNTAGGED));
    assert_eq!((repr.segment_len, repr.request), (Some(0), None));
}

#[test]
fn announced_headers_that_are_cut_off_are_left_out() {
    let mut bytes = vec![0x01, 0x02, 0xe0, 0x00, 0x00, 46];
    bytes.extend(UNTAGGED);
    bytes.extend([0; 27]);
    for cut in MIN_LEN..=bytes.len() {
        let repr = Repr::parse(&Header::new_checked(&bytes[..cut]).unwrap()).unwrap();
        assert_eq!(repr.reason, Reason::new(0, 1, 2));
        assert_eq!(repr.segment_len.is_some(), cut >= 6);
        assert_eq!(repr.ddp.is_some(), cut >= 24);
        assert_eq!(repr.request, None);
    }
    assert!(Header::new_checked([0; 3]).is_err());
}

#[test]
fn every_reason_has_one_name() {
    for (at, (reason, name)) in NAMES.iter().enumerate() {
        assert_eq!(reason.name(), Some(*name));
        assert!(NAMES[at + 1..].iter().all(|(other, _)| other != reason));
    }
    assert_eq!(Reason::new(5, 0, 0).to_string(), "layer (5, 0, 0x00)");
}
