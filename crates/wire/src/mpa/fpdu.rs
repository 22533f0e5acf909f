//! FPDUs: one ULPDU with its length, padding and CRC, and the markers that fall into it
//! (RFC 5044 §4.1, §4.4).
//!
//! ```text
//! | length, 2 bytes | ULPDU … | padding, 0 to 3 bytes | CRC32C, 4 bytes |
//! ```

use super::{crc32c, marker, marker::Spacing};
use crate::bytes::{array, put_u16, u16_at};
use crate::error::{Error, Part, check_len};
use std::{fmt, ops::Range};

/// The length of the header, that is of the length field.
pub const HEADER_LEN: usize = 2;
/// The length of the CRC.
pub const CRC_LEN: usize = 4;
/// RFC 5044 §4.5 forbids a smaller greatest ULPDU, whatever the segment size.
pub const MIN_MULPDU: usize = 128;

mod field {
    use std::ops::Range;
    pub(super) const LENGTH: Range<usize> = 0..2;
}

/// How many bytes of padding follow a ULPDU of this length.
#[must_use]
pub fn padding(ulpdu_len: usize) -> usize {
    (HEADER_LEN + ulpdu_len).wrapping_neg() % 4
}

/// The length of an FPDU without markers.
#[must_use]
pub fn bare_len(ulpdu_len: usize) -> usize {
    HEADER_LEN + ulpdu_len + padding(ulpdu_len) + CRC_LEN
}

/// The greatest ULPDU whose FPDU fits in `segment_size` bytes, at least [`MIN_MULPDU`]
/// (RFC 5044 §4.5).
#[must_use]
pub fn max_ulpdu(segment_size: usize, interval: Option<marker::Interval>) -> usize {
    let markers = interval.map_or(0, |interval| marker::LEN * segment_size.div_ceil(interval.bytes() as usize));
    let overhead = HEADER_LEN + CRC_LEN + markers + segment_size % 4;
    segment_size.saturating_sub(overhead).clamp(MIN_MULPDU, usize::from(u16::MAX))
}

/// How many bytes the FPDU takes that begins with `prefix`; before its length field is here, how many
/// bytes are needed to know.
#[must_use]
pub fn needed(prefix: &[u8], spacing: Spacing) -> usize {
    let at = spacing.wire_offset(0);
    match prefix.get(at..at + HEADER_LEN) {
        Some(length) => spacing.wire_len(bare_len(usize::from(u16_at(length, field::LENGTH)))),
        None => at + HEADER_LEN,
    }
}

/// A view of an FPDU.
#[derive(Debug, Clone, Copy)]
pub struct Packet<T> {
    buffer: T,
    spacing: Spacing,
    ulpdu_len: usize,
    wire_len: usize,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// A view of `buffer`, which holds a whole FPDU and may be longer.
    pub fn new_checked(buffer: T, spacing: Spacing) -> Result<Self, Error> {
        let data = buffer.as_ref();
        let wire_len = needed(data, spacing);
        check_len(Part::Fpdu, wire_len, data.len())?;
        let at = spacing.wire_offset(0);
        let ulpdu_len = usize::from(u16_at(&data[at..], field::LENGTH));
        Ok(Self { buffer, spacing, ulpdu_len, wire_len })
    }

    /// The length of the ULPDU.
    pub fn ulpdu_len(&self) -> usize {
        self.ulpdu_len
    }

    /// The bytes that the FPDU takes on the wire, markers included.
    pub fn wire_len(&self) -> usize {
        self.wire_len
    }

    /// The CRC in the FPDU. Its bytes are in the order of iSCSI digests, least significant first.
    pub fn crc(&self) -> u32 {
        let at = self.wire_len - CRC_LEN;
        u32::from_le_bytes(array(self.buffer.as_ref(), at..at + CRC_LEN))
    }

    /// Fails unless the CRC is that of the bytes before it, markers and padding included.
    pub fn check_crc(&self) -> Result<(), Error> {
        let computed = crc32c(0, &self.buffer.as_ref()[..self.wire_len - CRC_LEN]);
        let found = self.crc();
        if found == computed { Ok(()) } else { Err(Error::Crc { found, computed }) }
    }

    /// Fails unless every marker points to the beginning of this FPDU.
    pub fn check_markers(&self) -> Result<(), Error> {
        let data = self.buffer.as_ref();
        let end = bare_len(self.ulpdu_len);
        let mut at = 0;
        while at < end {
            if let Some(marker::Repr { pointer: expected }) = self.spacing.marker_before(at) {
                let offset = self.spacing.wire_offset(at) - marker::LEN;
                let found = marker::Header::new_checked(&data[offset..])?.pointer();
                if found != expected {
                    return Err(Error::Marker { at: offset, expected, found });
                }
            }
            at = at.saturating_add(self.spacing.run(at));
        }
        Ok(())
    }

    /// Copies the beginning of the ULPDU; returns how many bytes were copied.
    pub fn copy_ulpdu(&self, into: &mut [u8]) -> usize {
        let mut copied = 0;
        for chunk in self.chunks(0..into.len()) {
            into[copied..copied + chunk.len()].copy_from_slice(chunk);
            copied += chunk.len();
        }
        copied
    }

    /// The bytes of the ULPDU in this range, in pieces between markers. What lies beyond the end of
    /// the ULPDU is left out.
    pub fn chunks(&self, range: Range<usize>) -> Chunks<'_> {
        Chunks {
            data: self.buffer.as_ref(),
            spacing: self.spacing,
            at: HEADER_LEN + range.start.min(self.ulpdu_len),
            end: HEADER_LEN + range.end.min(self.ulpdu_len),
        }
    }
}

/// The pieces of a ULPDU between markers.
#[derive(Debug, Clone)]
pub struct Chunks<'a> {
    data: &'a [u8],
    spacing: Spacing,
    at: usize,
    end: usize,
}

impl<'a> Iterator for Chunks<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.at >= self.end {
            return None;
        }
        let len = self.spacing.run(self.at).min(self.end - self.at);
        let offset = self.spacing.wire_offset(self.at);
        self.at += len;
        Some(&self.data[offset..offset + len])
    }
}

/// The value of an FPDU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// The length of the ULPDU.
    pub ulpdu_len: u16,
}

impl Repr {
    /// Reads the value. CRC and markers are checked where they are in use:
    /// [`Packet::check_crc`], [`Packet::check_markers`].
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Result<Self, Error> {
        Ok(Self { ulpdu_len: packet.ulpdu_len as u16 })
    }

    /// The number of bytes that `emit` writes.
    #[must_use]
    pub fn buffer_len(&self, spacing: Spacing) -> usize {
        spacing.wire_len(bare_len(usize::from(self.ulpdu_len)))
    }

    /// Writes the FPDU of `ulpdu`. The CRC is always written.
    ///
    /// # Panics
    /// If the buffer is shorter than [`Repr::buffer_len`] or `ulpdu` has another length.
    pub fn emit(&self, ulpdu: &[u8], spacing: Spacing, buffer: &mut [u8]) {
        assert_eq!(ulpdu.len(), usize::from(self.ulpdu_len), "another length than announced");
        let mut length = [0; HEADER_LEN];
        put_u16(&mut length, field::LENGTH, self.ulpdu_len);
        let crc_at = bare_len(ulpdu.len()) - CRC_LEN;
        let body = length.iter().chain(ulpdu).chain(&[0; 3]).copied().take(crc_at);
        for (at, byte) in body.enumerate() {
            put_marker(buffer, spacing, at);
            buffer[spacing.wire_offset(at)] = byte;
        }
        put_marker(buffer, spacing, crc_at);
        let offset = spacing.wire_offset(crc_at);
        let crc = crc32c(0, &buffer[..offset]);
        buffer[offset..offset + CRC_LEN].copy_from_slice(&crc.to_le_bytes());
    }
}

fn put_marker(buffer: &mut [u8], spacing: Spacing, at: usize) {
    if let Some(marker) = spacing.marker_before(at) {
        marker.emit(&mut buffer[spacing.wire_offset(at) - marker::LEN..]);
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fpdu {} bytes", self.ulpdu_len)
    }
}

#[cfg(test)]
mod tests;
