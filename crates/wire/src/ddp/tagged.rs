//! The header of tagged segments (RFC 5041 §4.2).
//!
//! ```text
//! | control, 1 byte | for the layer above, 1 byte | steering tag, 4 bytes | offset, 8 bytes |
//! ```

use super::Control;
use crate::bytes::{put_u32, put_u64, u32_at, u64_at};
use crate::error::{Error, Part, check_len};
use crate::{Stag, TaggedOffset};
use std::fmt;

/// The length of the header.
pub const LEN: usize = 14;

mod field {
    use std::ops::Range;
    pub(super) const CONTROL: usize = 0;
    pub(super) const UPPER: usize = 1;
    pub(super) const STAG: Range<usize> = 2..6;
    pub(super) const OFFSET: Range<usize> = 6..14;
}

/// A view of a tagged header.
#[derive(Debug, Clone, Copy)]
pub struct Header<T> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Header<T> {
    /// A view of `buffer`, which may be longer than the header.
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        check_len(Part::TaggedHeader, LEN, buffer.as_ref().len())?;
        Ok(Self { buffer })
    }

    /// The control byte.
    pub fn control(&self) -> Control {
        Control(self.buffer.as_ref()[field::CONTROL])
    }

    /// The byte of the layer above.
    pub fn upper(&self) -> u8 {
        self.buffer.as_ref()[field::UPPER]
    }

    /// The steering tag of the buffer.
    pub fn stag(&self) -> Stag {
        Stag(u32_at(self.buffer.as_ref(), field::STAG))
    }

    /// Where in the buffer the payload belongs.
    pub fn offset(&self) -> TaggedOffset {
        TaggedOffset(u64_at(self.buffer.as_ref(), field::OFFSET))
    }
}

/// The value of a tagged header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// This is the last segment of its message.
    pub last: bool,
    /// The byte of the layer above.
    pub upper: u8,
    /// The steering tag of the buffer.
    pub stag: Stag,
    /// Where in the buffer the payload belongs.
    pub offset: TaggedOffset,
}

impl Repr {
    /// Reads the value. Reserved bits are ignored.
    pub fn parse<T: AsRef<[u8]>>(header: &Header<T>) -> Result<Self, Error> {
        let control = header.control();
        control.check_version()?;
        if !control.tagged() {
            return Err(Error::Model { part: Part::TaggedHeader, tagged: false });
        }
        Ok(Self { last: control.last(), upper: header.upper(), stag: header.stag(), offset: header.offset() })
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
        buffer[field::CONTROL] = Control::byte(true, self.last);
        buffer[field::UPPER] = self.upper;
        put_u32(buffer, field::STAG, self.stag.0);
        put_u64(buffer, field::OFFSET, self.offset.0);
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ddp tagged stag {} to {}", self.stag, self.offset)?;
        if self.last { f.write_str(" last") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5041 §4.2: T and L set, version 1, one byte of the layer above, tag, offset.
    const GOLDEN: [u8; LEN] = [0xc1, 0x40, 0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 1, 0, 0, 0x40, 0];

    #[test]
    fn parses_and_emits_the_golden_header() {
        let repr = Repr::parse(&Header::new_checked(GOLDEN).unwrap()).unwrap();
        assert_eq!(
            repr,
            Repr { last: true, upper: 0x40, stag: Stag(0xcafe_babe), offset: TaggedOffset(0x1_0000_4000) }
        );
        let mut out = [0xee; LEN];
        repr.emit(&mut out);
        assert_eq!(out, GOLDEN);
        assert_eq!(repr.to_string(), "ddp tagged stag 0xcafebabe to 0x100004000 last");
    }

    #[test]
    fn what_is_refused() {
        assert!(Header::new_checked(&GOLDEN[..13]).is_err());
        let mut untagged = GOLDEN;
        untagged[0] = 0x41;
        assert_eq!(
            Repr::parse(&Header::new_checked(untagged).unwrap()),
            Err(Error::Model { part: Part::TaggedHeader, tagged: false })
        );
        let mut version = GOLDEN;
        version[0] = 0xc2;
        assert_eq!(
            Repr::parse(&Header::new_checked(version).unwrap()),
            Err(Error::DdpVersion { tagged: true, found: 2 })
        );
    }
}
