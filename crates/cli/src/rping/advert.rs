//! The one message of rping: where a buffer is.

use sidestep_iwarp::{Stag, TaggedOffset};

/// The length of the message.
pub const LEN: usize = 16;

/// A buffer of the client. The server sends the same message, without meaning, as "go ahead".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Advert {
    /// The offset of its first byte.
    pub offset: TaggedOffset,
    /// Its steering tag.
    pub stag: Stag,
    /// Its length.
    pub len: u32,
}

impl Advert {
    /// Reads a message.
    pub fn parse(bytes: &[u8; LEN]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *bytes;
        Self {
            offset: TaggedOffset(u64::from_be_bytes([a, b, c, d, e, f, g, h])),
            stag: Stag(u32::from_be_bytes([i, j, k, l])),
            len: u32::from_be_bytes([m, n, o, p]),
        }
    }

    /// The bytes of a message.
    pub fn emit(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes[..8].copy_from_slice(&self.offset.0.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.stag.0.to_be_bytes());
        bytes[12..].copy_from_slice(&self.len.to_be_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes() {
        let advert = Advert { offset: TaggedOffset(0x0102_0304_0506_0708), stag: Stag(0x090a_0b0c), len: 0x0d0e_0f10 };
        let bytes = advert.emit();
        assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
        assert_eq!(Advert::parse(&bytes), advert);
    }
}
