//! A stream in which every position can be told from its neighbours.

/// The bytes of the stream from a position on.
pub fn pattern(position: u64, len: u64) -> Vec<u8> {
    (position..position + len).map(byte_at).collect()
}

/// That these are the bytes of the stream from a position on.
pub fn check(position: u64, bytes: &[u8]) {
    let wrong = bytes.iter().zip(position..).find(|(byte, at)| **byte != byte_at(*at));
    assert!(wrong.is_none(), "byte {} is not the one that was sent", wrong.unwrap().1);
}

fn byte_at(position: u64) -> u8 {
    (position ^ position >> 7 ^ position >> 14) as u8
}
