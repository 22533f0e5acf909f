//! The header of an RDMA read request (RFC 5040 §4.4).
//!
//! ```text
//! | sink tag, 4 bytes | sink offset, 8 | length, 4 | source tag, 4 | source offset, 8 |
//! ```

use crate::bytes::{put_u32, put_u64, u32_at, u64_at};
use crate::error::{Error, Part, check_len};
use crate::{Stag, TaggedOffset};
use std::fmt;

/// The length of the header.
pub const LEN: usize = 28;

mod field {
    use std::ops::Range;
    pub(super) const SINK: Range<usize> = 0..4;
    pub(super) const SINK_OFFSET: Range<usize> = 4..12;
    pub(super) const SIZE: Range<usize> = 12..16;
    pub(super) const SOURCE: Range<usize> = 16..20;
    pub(super) const SOURCE_OFFSET: Range<usize> = 20..28;
}

/// A view of a read request header.
#[derive(Debug, Clone, Copy)]
pub struct Header<T> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Header<T> {
    /// A view of `buffer`, which may be longer than the header.
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        check_len(Part::ReadRequest, LEN, buffer.as_ref().len())?;
        Ok(Self { buffer })
    }

    /// The tag of the requester's buffer.
    pub fn sink(&self) -> Stag {
        Stag(u32_at(self.buffer.as_ref(), field::SINK))
    }

    /// Where in the requester's buffer the data goes.
    pub fn sink_offset(&self) -> TaggedOffset {
        TaggedOffset(u64_at(self.buffer.as_ref(), field::SINK_OFFSET))
    }

    /// How many bytes to read.
    pub fn size(&self) -> u32 {
        u32_at(self.buffer.as_ref(), field::SIZE)
    }

    /// The tag of the buffer to read from.
    pub fn source(&self) -> Stag {
        Stag(u32_at(self.buffer.as_ref(), field::SOURCE))
    }

    /// Where in that buffer the data lies.
    pub fn source_offset(&self) -> TaggedOffset {
        TaggedOffset(u64_at(self.buffer.as_ref(), field::SOURCE_OFFSET))
    }
}

/// The value of a read request header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// The tag of the requester's buffer.
    pub sink: Stag,
    /// Where in the requester's buffer the data goes.
    pub sink_offset: TaggedOffset,
    /// How many bytes to read.
    pub size: u32,
    /// The tag of the buffer to read from.
    pub source: Stag,
    /// Where in that buffer the data lies.
    pub source_offset: TaggedOffset,
}

impl Repr {
    /// Reads the value.
    pub fn parse<T: AsRef<[u8]>>(header: &Header<T>) -> Result<Self, Error> {
        Ok(Self {
            sink: header.sink(),
            sink_offset: header.sink_offset(),
            size: header.size(),
            source: header.source(),
            source_offset: header.source_offset(),
        })
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
        put_u32(buffer, field::SINK, self.sink.0);
        put_u64(buffer, field::SINK_OFFSET, self.sink_offset.0);
        put_u32(buffer, field::SIZE, self.size);
        put_u32(buffer, field::SOURCE, self.source.0);
        put_u64(buffer, field::SOURCE_OFFSET, self.source_offset.0);
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bytes from {}+{} to {}+{}",
            self.size, self.source, self.source_offset, self.sink, self.sink_offset
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5040 §4.4, field by field.
    const GOLDEN: [u8; LEN] = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 5];

    #[test]
    fn parses_and_emits_the_golden_header() {
        let repr = Repr::parse(&Header::new_checked(GOLDEN).unwrap()).unwrap();
        assert_eq!(
            repr,
            Repr {
                sink: Stag(1),
                sink_offset: TaggedOffset(2),
                size: 3,
                source: Stag(4),
                source_offset: TaggedOffset(5),
            }
        );
        let mut out = [0xee; LEN];
        repr.emit(&mut out);
        assert_eq!(out, GOLDEN);
        assert_eq!(repr.to_string(), "3 bytes from 0x00000004+0x5 to 0x00000001+0x2");
        assert!(Header::new_checked(&GOLDEN[..27]).is_err());
    }
}
