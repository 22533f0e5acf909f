use super::enhanced::{Depth, RtrModes};
use super::*;

fn golden() -> Vec<u8> {
    // RFC 5044 §7.1.1 and RFC 6581 §6, §9: key, flags C and S, revision 2, 4 + 3 bytes, IRD 1, ORD 1.
    let mut bytes = b"MPA ID Req Frame".to_vec();
    bytes.extend([0x50, 0x02, 0x00, 0x07, 0x00, 0x01, 0x00, 0x01]);
    bytes.extend(b"abc");
    bytes
}

fn golden_repr() -> Repr<'static> {
    Repr {
        kind: Kind::Request,
        revision: Revision::Two,
        markers: false,
        crc: true,
        enhanced: Some(enhanced::Repr { ird: Depth::limit(1), ord: Depth::limit(1), peer_to_peer: None }),
        private_data: b"abc",
    }
}

#[test]
fn parses_and_emits_the_golden_request() {
    let bytes = golden();
    let packet = Packet::new_checked(&bytes).unwrap();
    let repr = Repr::parse(&packet).unwrap();
    assert_eq!(repr, golden_repr());
    let mut out = vec![0xee; repr.buffer_len()];
    repr.emit(&mut out);
    assert_eq!(out, bytes);
    assert_eq!(repr.to_string(), "mpa request rev 2 crc ird 1 ord 1, 3 bytes of private data");
}

#[test]
fn the_request_of_siw_is_understood() {
    // Linux siw sends revision 2, flag S only, four bytes of private data.
    let mut bytes = b"MPA ID Req Frame".to_vec();
    bytes.extend([0x10, 0x02, 0x00, 0x04, 0x00, 0x01, 0x00, 0x01]);
    let packet = Packet::new_checked(&bytes).unwrap();
    let repr = Repr::parse(&packet).unwrap();
    assert!(!repr.crc && !repr.markers);
    assert_eq!(repr.enhanced.unwrap().ird.negotiated(), Some(1));
    assert_eq!(repr.private_data, b"");
}

#[test]
fn reject_and_markers_in_a_reply() {
    let repr = Repr {
        kind: Kind::Reply { rejected: true },
        revision: Revision::One,
        markers: true,
        crc: false,
        enhanced: None,
        private_data: b"",
    };
    let mut out = vec![0; repr.buffer_len()];
    repr.emit(&mut out);
    assert_eq!(&out[..16], b"MPA ID Rep Frame");
    assert_eq!(out[16..], [0xa0, 0x01, 0, 0]);
    assert_eq!(repr.to_string(), "mpa reject rev 1 markers, 0 bytes of private data");
}

#[test]
fn the_reserved_bit_of_revision_one_is_ignored() {
    let mut bytes = golden();
    bytes[17] = 1;
    let packet = Packet::new_checked(&bytes).unwrap();
    let repr = Repr::parse(&packet).unwrap();
    assert_eq!(repr.enhanced, None);
    assert_eq!(repr.private_data, b"\0\x01\0\x01abc");
}

#[test]
fn what_is_refused() {
    let mut wrong_key = golden();
    wrong_key[9] = b'x';
    assert!(matches!(Packet::new_checked(&wrong_key), Err(Error::Key { .. })));

    let mut long = golden();
    long[18..20].copy_from_slice(&513u16.to_be_bytes());
    long.resize(1000, 0);
    assert_eq!(Packet::new_checked(&long).unwrap_err(), Error::PrivateData { length: 513, limit: 512 });

    for revision in [0, 3, 255] {
        let mut bytes = golden();
        bytes[17] = revision;
        let packet = Packet::new_checked(&bytes).unwrap();
        assert_eq!(Repr::parse(&packet).unwrap_err(), Error::Revision { found: revision });
    }

    // Flag S with less private data than the enhanced data needs.
    let mut short = golden();
    short[19] = 3;
    let packet = Packet::new_checked(&short).unwrap();
    assert!(matches!(Repr::parse(&packet), Err(Error::Truncated { part: Part::Enhanced, .. })));
}

#[test]
fn the_length_is_known_as_soon_as_it_can_be() {
    let bytes = golden();
    for cut in 0..bytes.len() {
        let expected = (cut >= HEADER_LEN).then_some(bytes.len());
        assert_eq!(expected_len(&bytes[..cut], false), Ok(expected), "cut at {cut}");
        assert!(Packet::new_checked(&bytes[..cut]).is_err());
    }
    assert!(expected_len(&bytes[..14], true).is_err(), "a request where a reply is expected");
    assert_eq!(expected_len(&bytes[..9], true), Ok(None), "the keys are alike up to here");
    assert!(expected_len(b"GET / HTTP", false).is_err());
}

#[test]
fn peer_to_peer_is_shown() {
    let mut repr = golden_repr();
    repr.enhanced.as_mut().unwrap().peer_to_peer = Some(RtrModes { send: true, write: false, read: false });
    assert_eq!(repr.to_string(), "mpa request rev 2 crc ird 1 ord 1 peer-to-peer send, 3 bytes of private data");
}
