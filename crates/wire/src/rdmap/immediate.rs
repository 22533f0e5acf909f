//! Immediate data: eight bytes that complete a receive (RFC 7306 §6.2).

use crate::bytes::{put_u64, u64_at};
use crate::error::{Error, Part, check_len};
use std::fmt;

/// The length of the data.
pub const LEN: usize = 8;

mod field {
    use std::ops::Range;
    pub(super) const DATA: Range<usize> = 0..8;
}

/// A view of immediate data.
#[derive(Debug, Clone, Copy)]
pub struct Header<T> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Header<T> {
    /// A view of `buffer`, which may be longer than the data.
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        check_len(Part::Immediate, LEN, buffer.as_ref().len())?;
        Ok(Self { buffer })
    }

    /// The data, read as a big-endian number.
    pub fn data(&self) -> u64 {
        u64_at(self.buffer.as_ref(), field::DATA)
    }
}

/// The value of immediate data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// The data, as a big-endian number.
    pub data: u64,
}

impl Repr {
    /// Reads the value.
    pub fn parse<T: AsRef<[u8]>>(header: &Header<T>) -> Result<Self, Error> {
        Ok(Self { data: header.data() })
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
        put_u64(buffer, field::DATA, self.data);
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}", self.data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_and_emits_the_golden_data() {
        let golden = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef];
        let repr = Repr::parse(&Header::new_checked(golden).unwrap()).unwrap();
        assert_eq!(repr, Repr { data: 0x0123_4567_89ab_cdef });
        let mut out = [0; LEN];
        repr.emit(&mut out);
        assert_eq!(out, golden);
        assert_eq!(repr.to_string(), "0x0123456789abcdef");
        assert!(Header::new_checked(&golden[..7]).is_err());
    }
}
