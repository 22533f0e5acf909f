//! What both ends of a connection say about themselves while it is made (RFC 8797), in the private data of the set-up.
//!
//! ```text
//! | 0xf6ab0e18 | 1 | reserved, R | send size | receive size |
//! ```
//!
//! Sizes are in KiB, less one.

/// The length of the message.
pub const LEN: usize = 8;

const FORMAT: [u8; 4] = 0xf6ab_0e18_u32.to_be_bytes();
const VERSION: u8 = 1;
const INVALIDATE: u8 = 1;
const KIB: usize = 1024;

/// The value of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// The peer may invalidate a tag with a send.
    pub remote_invalidation: bool,
    /// The longest message that this end sends, a multiple of 1 KiB up to 256 KiB.
    pub send: usize,
    /// The longest message that this end takes, the same.
    pub receive: usize,
}

impl Repr {
    /// Reads the message from private data. `None`: the peer has sent no such message, and the limits of RFC 8166 hold.
    #[must_use]
    pub fn parse(private_data: &[u8]) -> Option<Self> {
        let [a, b, c, d, VERSION, flags, send, receive] = *private_data.first_chunk::<LEN>()? else {
            return None;
        };
        let size = |number: u8| (usize::from(number) + 1) * KIB;
        (FORMAT == [a, b, c, d]).then(|| Self {
            remote_invalidation: flags & INVALIDATE != 0,
            send: size(send),
            receive: size(receive),
        })
    }

    /// The message. Sizes are rounded down, and cut off where they cannot be said.
    #[must_use]
    pub fn emit(&self) -> [u8; LEN] {
        let number = |size: usize| ((size / KIB).clamp(1, 256) - 1) as u8;
        let [a, b, c, d] = FORMAT;
        [a, b, c, d, VERSION, u8::from(self.remote_invalidation), number(self.send), number(self.receive)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_and_emits_the_golden_message() {
        let golden = [0xf6, 0xab, 0x0e, 0x18, 1, 1, 0, 3];
        let repr = Repr { remote_invalidation: true, send: 1024, receive: 4096 };
        assert_eq!(Repr::parse(&golden), Some(repr));
        assert_eq!(repr.emit(), golden);
        // Linux pads it.
        assert_eq!(Repr::parse(&[&golden[..], &[0; 8]].concat()), Some(repr));
        let largest = Repr { remote_invalidation: false, send: 256 << 10, receive: 1 << 20 };
        assert_eq!(largest.emit()[6..], [255, 255]);
    }

    #[test]
    fn others_are_not_understood() {
        for other in [&b""[..], b"hello", &[0xf6, 0xab, 0x0e, 0x18, 2, 0, 3, 3], &[0; 8]] {
            assert_eq!(Repr::parse(other), None);
        }
    }
}
