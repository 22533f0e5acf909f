//! A corrupted FPDU is caught by its CRC, whichever byte it is, and touches no memory.

mod pair;

use pair::*;
use sidestep_iwarp::*;

const PLAIN: SendKind = SendKind { solicited: false, invalidate: None };

/// A pair and the bytes of a write and a send on their way to the responder.
fn prepare(markers: Option<Interval>) -> (Pair, Vec<u8>) {
    let mut pair = Pair::opened(config(), Config { markers, ..config() });
    let sink = pair.responder.region(vec![0; 300], 0, Rights::WRITE);
    pair.responder.post_receive(100);
    pair.initiator.write(&pattern(300, 1), sink, 0);
    pair.initiator.send(&pattern(50, 2), PLAIN);
    let bytes = pair.initiator.output(pair.now);
    (pair, bytes)
}

#[test]
fn every_byte_of_an_fpdu_is_covered() {
    for markers in [None, Some(Interval::STANDARD), Interval::new(64).ok()] {
        let (_, intact) = prepare(markers);
        let first = {
            let (mut pair, bytes) = prepare(markers);
            (0..=bytes.len()).find(|len| {
                pair.responder.input(pair.now, &bytes[*len..(*len + 1).min(bytes.len())]);
                pair.responder.memory.touched > 0
            })
        }
        .expect("the write is placed")
            + 1;
        for at in 0..first {
            for flip in [0x01, 0x80] {
                let (mut pair, mut bytes) = prepare(markers);
                assert_eq!(bytes, intact);
                bytes[at] ^= flip;
                pair.responder.input(pair.now, &bytes);
                // A longer length makes the receiver wait for what never comes: the bytes that follow
                // complete the FPDU, wherever it is thought to end.
                if pair.responder.fault().is_none() {
                    pair.responder.input(pair.now, &vec![0; 1 << 17]);
                }
                let fault = pair.responder.fault().unwrap_or_else(|| panic!("byte {at} passes"));
                assert_eq!(fault.check(), Check::Crc, "byte {at}: {fault}");
                assert_eq!(pair.responder.memory.touched, 0, "byte {at}");
                let reply = pair.responder.output(pair.now);
                pair.initiator.input(pair.now, &reply);
                assert_eq!(pair.initiator.peer_reason(), Some(Reason::new(2, 0, 2)));
            }
        }
    }
}

/// What came whole before the damage stays; what comes after it is dropped.
#[test]
fn only_whole_fpdus_before_the_damage_count() {
    let (mut pair, mut bytes) = prepare(None);
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    pair.responder.input(pair.now, &bytes);
    assert_eq!(pair.responder.memory.touched, 300);
    assert_eq!(pair.responder.fault().unwrap().check(), Check::Crc);
    let flushed = pair.responder.completions.iter().all(|done| done.outcome == Outcome::Flushed);
    assert!(flushed);
}

/// Without CRC nothing can notice damage to payload; damage to markers is still seen.
#[test]
fn without_crc_markers_are_still_checked() {
    let side = Config { crc: false, ..config() };
    let marked = Config { markers: Interval::new(64).ok(), ..side.clone() };
    for (at, check) in [(0, None), (2, Some(Check::Marker)), (3, None)] {
        let mut pair = Pair::established(side.clone(), marked.clone());
        assert!(!pair.responder.agreement().unwrap().crc);
        let sink = pair.responder.region(vec![0; 100], 0, Rights::WRITE);
        pair.initiator.write(&[0; 100], sink, 0);
        let mut bytes = pair.initiator.output(pair.now);
        // Markers every 512 bytes, as the initiator did not say hello: one before the first FPDU.
        // Its reserved bytes and the two lowest bits of its pointer are not looked at.
        bytes[at] ^= if at == 3 { 0x03 } else { 0x40 };
        pair.responder.input(pair.now, &bytes);
        assert_eq!(pair.responder.fault().map(|fault| fault.check()), check);
        // It was the first FPDU, so that the responder may not even say what was wrong.
        if check.is_some() {
            assert_eq!(pair.responder.output(pair.now), b"");
            assert_eq!(pair.responder.connection.transport(), Transport::Reset);
        }
    }
}
