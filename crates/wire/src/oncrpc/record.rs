//! The mark before each fragment of a record on a byte stream (RFC 5531 §11).
//!
//! ```text
//! | last, 1 bit | length, 31 bits |
//! ```

use crate::bytes::{put_u32, u32_at};
use crate::xdr::Error;
use std::fmt;

/// The length of a mark.
pub const LEN: usize = 4;

/// The greatest length of a fragment.
pub const MAX_FRAGMENT: usize = 0x7fff_ffff;

const LAST: u32 = 1 << 31;

mod field {
    use std::ops::Range;
    pub(super) const MARK: Range<usize> = 0..4;
}

/// A view of a mark.
#[derive(Debug, Clone, Copy)]
pub struct Header<T> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Header<T> {
    /// A view of `buffer`, which may be longer than the mark.
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        let have = buffer.as_ref().len();
        if have < LEN { Err(Error::Truncated { needed: LEN, have }) } else { Ok(Self { buffer }) }
    }

    /// Whether the fragment is the last of its record.
    pub fn last(&self) -> bool {
        u32_at(self.buffer.as_ref(), field::MARK) & LAST != 0
    }

    /// How many bytes the fragment has.
    pub fn length(&self) -> usize {
        (u32_at(self.buffer.as_ref(), field::MARK) & !LAST) as usize
    }
}

/// The value of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// Whether the fragment is the last of its record.
    pub last: bool,
    /// How many bytes the fragment has, at most [`MAX_FRAGMENT`].
    pub length: usize,
}

impl Repr {
    /// Reads the value.
    pub fn parse<T: AsRef<[u8]>>(header: &Header<T>) -> Result<Self, Error> {
        Ok(Self { last: header.last(), length: header.length() })
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
        let length = self.length.min(MAX_FRAGMENT) as u32;
        put_u32(buffer, field::MARK, length | if self.last { LAST } else { 0 });
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes", if self.last { "last fragment" } else { "fragment" }, self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_and_emits_the_golden_mark() {
        for (golden, last) in [([0x80, 0, 1, 2], true), ([0, 0, 1, 2], false)] {
            let repr = Repr::parse(&Header::new_checked(golden).unwrap()).unwrap();
            assert_eq!(repr, Repr { last, length: 258 });
            let mut out = [0xee; LEN];
            repr.emit(&mut out);
            assert_eq!(out, golden);
        }
        assert_eq!(Header::new_checked([0; 3]).err(), Some(Error::Truncated { needed: 4, have: 3 }));
    }
}
