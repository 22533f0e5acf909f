//! Enhanced connection data: the first four bytes of private data (RFC 6581 §9).
//!
//! ```text
//!  0                   1                   2                   3
//! |A|B|          IRD              |C|D|          ORD              |
//! ```

use crate::bytes::{put_u16, u16_at};
use crate::error::{Error, Part, check_len};
use std::fmt;

/// The length of the data.
pub const LEN: usize = 4;

mod field {
    use std::ops::Range;
    pub(super) const IRD: Range<usize> = 0..2;
    pub(super) const ORD: Range<usize> = 2..4;
}

const PEER_TO_PEER: u16 = 0x8000;
const RTR_SEND: u16 = 0x4000;
const RTR_WRITE: u16 = 0x8000;
const RTR_READ: u16 = 0x4000;
const DEPTH_MASK: u16 = 0x3fff;

/// A read queue depth as it is sent: 14 bits, of which all ones means "not negotiated".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth(u16);

impl Depth {
    /// The depth is left to the programs above (RFC 6581 §9.1).
    pub const NOT_NEGOTIATED: Self = Self(DEPTH_MASK);
    /// The greatest depth that can be said.
    pub const MAX: Self = Self(DEPTH_MASK - 1);

    /// The depth nearest to `limit` that can be said.
    #[must_use]
    pub fn limit(limit: u16) -> Self {
        Self(limit.min(Self::MAX.0))
    }

    /// The limit, unless it is not negotiated.
    #[must_use]
    pub fn negotiated(self) -> Option<u16> {
        (self != Self::NOT_NEGOTIATED).then_some(self.0)
    }
}

/// The ways in which an initiator can say that it is ready to receive (RFC 6581 §9.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RtrModes {
    /// By a send of length zero.
    pub send: bool,
    /// By an RDMA write of length zero.
    pub write: bool,
    /// By an RDMA read of length zero.
    pub read: bool,
}

/// A view of enhanced connection data.
#[derive(Debug, Clone, Copy)]
pub struct Header<T> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Header<T> {
    /// A view of `buffer`, which may be longer than the data.
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        check_len(Part::Enhanced, LEN, buffer.as_ref().len())?;
        Ok(Self { buffer })
    }

    /// The inbound read queue depth of the sender.
    pub fn ird(&self) -> Depth {
        Depth(self.word(field::IRD) & DEPTH_MASK)
    }

    /// The outbound read queue depth of the sender.
    pub fn ord(&self) -> Depth {
        Depth(self.word(field::ORD) & DEPTH_MASK)
    }

    /// Flag A.
    pub fn peer_to_peer(&self) -> bool {
        self.word(field::IRD) & PEER_TO_PEER != 0
    }

    /// Flags B, C and D.
    pub fn rtr(&self) -> RtrModes {
        RtrModes {
            send: self.word(field::IRD) & RTR_SEND != 0,
            write: self.word(field::ORD) & RTR_WRITE != 0,
            read: self.word(field::ORD) & RTR_READ != 0,
        }
    }

    fn word(&self, field: std::ops::Range<usize>) -> u16 {
        u16_at(self.buffer.as_ref(), field)
    }
}

/// The value of enhanced connection data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// The inbound read queue depth of the sender.
    pub ird: Depth,
    /// The outbound read queue depth of the sender.
    pub ord: Depth,
    /// Set in the peer-to-peer model, with the modes that are asked for or supported.
    pub peer_to_peer: Option<RtrModes>,
}

impl Repr {
    /// Reads the value. Without flag A the other flags are ignored (RFC 6581 §9.2).
    pub fn parse<T: AsRef<[u8]>>(header: &Header<T>) -> Result<Self, Error> {
        Ok(Self { ird: header.ird(), ord: header.ord(), peer_to_peer: header.peer_to_peer().then(|| header.rtr()) })
    }

    /// The number of bytes that `emit` writes.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        LEN
    }

    /// Writes the value.
    ///
    /// # Panics
    /// If the buffer is shorter than [`Repr::buffer_len`].
    pub fn emit(&self, buffer: &mut [u8]) {
        let (mut ird, mut ord) = (self.ird.0, self.ord.0);
        if let Some(modes) = self.peer_to_peer {
            ird |= PEER_TO_PEER;
            ird |= if modes.send { RTR_SEND } else { 0 };
            ord |= if modes.write { RTR_WRITE } else { 0 };
            ord |= if modes.read { RTR_READ } else { 0 };
        }
        put_u16(buffer, field::IRD, ird);
        put_u16(buffer, field::ORD, ord);
    }
}

impl fmt::Display for Depth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.negotiated() {
            Some(limit) => limit.fmt(f),
            None => f.write_str("any"),
        }
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ird {} ord {}", self.ird, self.ord)?;
        let Some(modes) = self.peer_to_peer else {
            return Ok(());
        };
        f.write_str(" peer-to-peer")?;
        for (set, name) in [(modes.send, "send"), (modes.write, "write"), (modes.read, "read")] {
            if set {
                write!(f, " {name}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit positions of RFC 6581 §9: A, B above IRD; C, D above ORD.
    #[test]
    fn flags_and_depths() {
        let repr = Repr {
            ird: Depth::limit(16),
            ord: Depth::limit(3),
            peer_to_peer: Some(RtrModes { send: false, write: true, read: true }),
        };
        let mut bytes = [0; LEN];
        repr.emit(&mut bytes);
        assert_eq!(bytes, [0x80, 16, 0xc0, 3]);
        assert_eq!(Repr::parse(&Header::new_checked(bytes).unwrap()).unwrap(), repr);
        assert_eq!(repr.to_string(), "ird 16 ord 3 peer-to-peer write read");
    }

    #[test]
    fn all_ones_is_not_negotiated() {
        let repr = Repr { ird: Depth::NOT_NEGOTIATED, ord: Depth::limit(u16::MAX), peer_to_peer: None };
        let mut bytes = [0; LEN];
        repr.emit(&mut bytes);
        assert_eq!(bytes, [0x3f, 0xff, 0x3f, 0xfe]);
        assert_eq!(repr.to_string(), "ird any ord 16382");
    }

    #[test]
    fn modes_without_the_model_are_ignored() {
        let header = Header::new_checked([0x40, 1, 0xc0, 2]).unwrap();
        assert_eq!(Repr::parse(&header).unwrap().peer_to_peer, None);
        assert_eq!(
            Header::new_checked([0; 3]).unwrap_err().to_string(),
            "enhanced connection data needs 4 bytes, 3 are here"
        );
    }
}
