//! Why an owner does not honour a cookie, in the one form in which every link carries it.
//!
//! A code, then two numbers of 64 bits, little-endian: 1 unknown, 2 forged, 3 revoked, 4 expired (both zero); 5 rights (held,
//! wanted); 6 range (offset, length).

use sidestep_wire::cursor::little::{Reader, Writer};

use crate::cookie::Rights;

/// Why an owner does not honour a cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// No region of that number exists at the owner.
    #[error("it names no region of this owner")]
    Unknown,
    /// The region exists; the key, the rights or the length are not what its owner issued.
    #[error("it is forged: the owner never issued it")]
    Forged,
    /// The owner took this and all earlier cookies of the region back.
    #[error("it was revoked by its owner")]
    Revoked,
    /// The time it was issued for is over.
    #[error("it has expired")]
    Expired,
    /// It is genuine, and does not allow this.
    #[error("it allows {held}, not {wanted}")]
    Rights {
        /// What it allows.
        held: Rights,
        /// What was asked.
        wanted: Rights,
    },
    /// It is genuine, and the range lies outside the region.
    #[error("the range {offset}..{offset}+{len} lies outside the region, or is not aligned")]
    Range {
        /// Where the range starts.
        offset: u64,
        /// How long it is.
        len: u64,
    },
}

impl Refusal {
    /// Bytes of the form that travels.
    pub const WIRE_LEN: usize = 17;

    /// The form that travels.
    pub fn to_bytes(self) -> [u8; Refusal::WIRE_LEN] {
        let (code, first, second) = match self {
            Refusal::Unknown => (1, 0, 0),
            Refusal::Forged => (2, 0, 0),
            Refusal::Revoked => (3, 0, 0),
            Refusal::Expired => (4, 0, 0),
            Refusal::Rights { held, wanted } => (5, u64::from(held.bits()), u64::from(wanted.bits())),
            Refusal::Range { offset, len } => (6, offset, len),
        };
        let mut bytes = [0; Refusal::WIRE_LEN];
        Writer::new(&mut bytes[..]).u8(code).u64(first).u64(second);
        bytes
    }

    /// Reads the form that travels.
    pub fn from_bytes(bytes: &[u8]) -> Result<Refusal, &'static str> {
        let mut fields = Reader::new(bytes);
        let refusal = Refusal::read(&mut fields)?;
        if bytes.len() == Refusal::WIRE_LEN { Ok(refusal) } else { Err("a refusal with more behind it") }
    }

    /// Reads it where it stands within a message.
    pub(crate) fn read(fields: &mut Reader<'_>) -> Result<Refusal, &'static str> {
        let rights = |bits: u64| u8::try_from(bits).ok().and_then(Rights::from_bits).ok_or("rights are unknown");
        Ok(match (fields.u8()?, fields.u64()?, fields.u64()?) {
            (1, 0, 0) => Refusal::Unknown,
            (2, 0, 0) => Refusal::Forged,
            (3, 0, 0) => Refusal::Revoked,
            (4, 0, 0) => Refusal::Expired,
            (5, held, wanted) => Refusal::Rights { held: rights(held)?, wanted: rights(wanted)? },
            (6, offset, len) => Refusal::Range { offset, len },
            _ => return Err("a refusal without a known reason"),
        })
    }
}
