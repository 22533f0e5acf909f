use super::marker::Interval;
use super::*;

/// The ULPDU of RFC 5044 figures 5 and 6: a send of 24 zero bytes with the given MSN.
fn ulpdu(msn: u8) -> Vec<u8> {
    let mut bytes = vec![0x41, 0x43];
    bytes.extend([0; 8]);
    bytes.extend([0, 0, 0, msn]);
    bytes.extend([0; 4 + 24]);
    bytes
}

/// RFC 5044 figure 5, an FPDU that opens the stream: marker, length, ULPDU, CRC.
#[test]
fn golden_first_fpdu() {
    let mut golden = vec![0, 0, 0, 0, 0x00, 0x2a];
    golden.extend(ulpdu(1));
    golden.extend([0x52, 0x23, 0x99, 0x83]);
    check_golden(&golden, &ulpdu(1), Spacing::new(Some(Interval::STANDARD), 0));
}

/// RFC 5044 figure 6, an FPDU at 0x1ec with a marker behind its DDP header.
#[test]
fn golden_fpdu_with_marker_inside() {
    let mut golden = vec![0x00, 0x2a];
    golden.extend(&ulpdu(2)[..18]);
    golden.extend([0x00, 0x00, 0x00, 0x14]);
    golden.extend(&ulpdu(2)[18..]);
    golden.extend([0x84, 0x92, 0x58, 0x98]);
    check_golden(&golden, &ulpdu(2), Spacing::new(Some(Interval::STANDARD), 0x1ec));
}

fn check_golden(golden: &[u8], ulpdu: &[u8], spacing: Spacing) {
    let repr = Repr { ulpdu_len: ulpdu.len() as u16 };
    let mut out = vec![0xee; repr.buffer_len(spacing)];
    repr.emit(ulpdu, spacing, &mut out);
    assert_eq!(out, golden);

    let packet = Packet::new_checked(golden, spacing).unwrap();
    packet.check_crc().unwrap();
    packet.check_markers().unwrap();
    assert_eq!(Repr::parse(&packet), Ok(repr));
    assert_eq!(packet.wire_len(), golden.len());
    let mut copy = vec![0; 100];
    assert_eq!(packet.copy_ulpdu(&mut copy), ulpdu.len());
    assert_eq!(&copy[..ulpdu.len()], ulpdu);

    for cut in 0..golden.len() {
        assert!(needed(&golden[..cut], spacing) > cut);
        assert!(Packet::new_checked(&golden[..cut], spacing).is_err());
    }
    assert_eq!(needed(golden, spacing), golden.len());
}

#[test]
fn padding_fills_to_four() {
    // The length field and the ULPDU together are a multiple of four with the padding.
    assert_eq!([0, 1, 2, 3, 4, 42].map(padding), [2, 1, 0, 3, 2, 0]);
    assert_eq!(bare_len(0), 8);
    assert_eq!(bare_len(42), 48);
}

#[test]
fn crc_catches_every_single_byte() {
    let spacing = Spacing::new(Some(Interval::STANDARD), 0x1ec);
    let repr = Repr { ulpdu_len: 42 };
    let mut out = vec![0; repr.buffer_len(spacing)];
    repr.emit(&ulpdu(2), spacing, &mut out);
    for at in (0..out.len()).filter(|at| *at > 1) {
        let mut bad = out.clone();
        bad[at] ^= 0x10;
        let packet = Packet::new_checked(&bad, spacing).unwrap();
        assert!(matches!(packet.check_crc(), Err(Error::Crc { .. })), "byte {at}");
    }
}

#[test]
fn a_marker_that_points_elsewhere_is_found() {
    let spacing = Spacing::new(Some(Interval::new(16).unwrap()), 4);
    let repr = Repr { ulpdu_len: 42 };
    let mut out = vec![0; repr.buffer_len(spacing)];
    repr.emit(&ulpdu(1), spacing, &mut out);
    Packet::new_checked(&out, spacing).unwrap().check_markers().unwrap();
    out[12 + 16 + 3] ^= 8;
    assert_eq!(
        Packet::new_checked(&out, spacing).unwrap().check_markers(),
        Err(Error::Marker { at: 28, expected: 28, found: 20 })
    );
}

/// RFC 5044 §4.5, computed by hand for an Ethernet segment of 1460 bytes.
#[test]
fn max_ulpdu_of_a_segment() {
    assert_eq!(max_ulpdu(1460, None), 1454);
    assert_eq!(max_ulpdu(1460, Some(Interval::STANDARD)), 1460 - (6 + 4 * 3));
    assert_eq!(max_ulpdu(1461, None), 1461 - 7);
    assert_eq!(max_ulpdu(40, None), 128);
    assert_eq!(max_ulpdu(1 << 20, None), 65535);
    for size in 200..3000 {
        for interval in [None, Some(Interval::STANDARD), Some(Interval::new(64).unwrap())] {
            let ulpdu = max_ulpdu(size, interval);
            if ulpdu > MIN_MULPDU {
                for position in (0..512).step_by(4) {
                    let spacing = Spacing::new(interval, position);
                    assert!(spacing.wire_len(bare_len(ulpdu)) <= size);
                }
            }
        }
    }
}

#[test]
fn an_empty_ulpdu() {
    let repr = Repr { ulpdu_len: 0 };
    let mut out = [0xee; 8];
    repr.emit(&[], Spacing::none(), &mut out);
    let packet = Packet::new_checked(out, Spacing::none()).unwrap();
    packet.check_crc().unwrap();
    assert_eq!(packet.chunks(0..10).count(), 0);
    assert_eq!(repr.to_string(), "fpdu 0 bytes");
}
