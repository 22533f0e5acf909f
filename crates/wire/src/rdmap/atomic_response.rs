//! The header of an atomic response (RFC 7306 §5.2.2).
//!
//! ```text
//! | request identifier, 4 bytes | the word before the operation, 8 bytes |
//! ```

use crate::bytes::{put_u32, put_u64, u32_at, u64_at};
use crate::error::{Error, Part, check_len};
use std::fmt;

/// The length of the header: what figure 6 shows. The text of §4 says 32, which fits no field.
pub const LEN: usize = 12;

mod field {
    use std::ops::Range;
    pub(super) const ID: Range<usize> = 0..4;
    pub(super) const ORIGINAL: Range<usize> = 4..12;
}

/// A view of an atomic response header.
#[derive(Debug, Clone, Copy)]
pub struct Header<T> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Header<T> {
    /// A view of `buffer`, which may be longer than the header.
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        check_len(Part::AtomicResponse, LEN, buffer.as_ref().len())?;
        Ok(Self { buffer })
    }

    /// The number that the request carried.
    pub fn id(&self) -> u32 {
        u32_at(self.buffer.as_ref(), field::ID)
    }

    /// The word as it was before the operation.
    pub fn original(&self) -> u64 {
        u64_at(self.buffer.as_ref(), field::ORIGINAL)
    }
}

/// The value of an atomic response header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// The number that the request carried.
    pub id: u32,
    /// The word as it was before the operation.
    pub original: u64,
}

impl Repr {
    /// Reads the value.
    pub fn parse<T: AsRef<[u8]>>(header: &Header<T>) -> Result<Self, Error> {
        Ok(Self { id: header.id(), original: header.original() })
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
        put_u32(buffer, field::ID, self.id);
        put_u64(buffer, field::ORIGINAL, self.original);
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "id {} was {:#x}", self.id, self.original)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_and_emits_the_golden_header() {
        let golden = [0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0x12, 0x34];
        let repr = Repr::parse(&Header::new_checked(golden).unwrap()).unwrap();
        assert_eq!(repr, Repr { id: 9, original: 0x1234 });
        let mut out = [0xee; LEN];
        repr.emit(&mut out);
        assert_eq!(out, golden);
        assert_eq!(repr.to_string(), "id 9 was 0x1234");
        assert!(Header::new_checked(&golden[..11]).is_err());
    }
}
