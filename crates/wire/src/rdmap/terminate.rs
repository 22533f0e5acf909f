//! The header of a terminate message: who found which error in which segment (RFC 5040 §4.8).
//!
//! ```text
//! | layer, type | code | M D R reserved, 2 bytes |
//! | segment length, 2, if M or D | DDP header of the segment, 14 or 18, if D | read request, 28, if R |
//! ```

use super::read_request;
use crate::bytes::{put_u16, u16_at};
use crate::ddp::{Control, tagged, untagged};
use crate::error::{Error, Part, check_len};
use std::fmt;

/// The length of the part that is always there.
pub const MIN_LEN: usize = 4;
/// The length with everything.
pub const MAX_LEN: usize = MIN_LEN + SEGMENT_LEN + untagged::LEN + read_request::LEN;

const SEGMENT_LEN: usize = 2;
const LENGTH_VALID: u8 = 0x80;
const DDP_INCLUDED: u8 = 0x40;
const RDMAP_INCLUDED: u8 = 0x20;

mod field {
    use std::ops::Range;
    pub(super) const LAYER_AND_TYPE: usize = 0;
    pub(super) const CODE: usize = 1;
    pub(super) const HEADERS: usize = 2;
    pub(super) const RESERVED: usize = 3;
    pub(super) const SEGMENT_LEN: Range<usize> = 4..6;
}

/// The layer, type and code of an error, as numbers. The names are those of the RFCs; the numbers of
/// layers and types have four bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reason {
    /// 0 RDMAP, 1 DDP, 2 the layer below (MPA).
    pub layer: u8,
    /// The type of the error within its layer.
    pub etype: u8,
    /// The code of the error within its type.
    pub code: u8,
}

impl Reason {
    /// A reason by its three numbers.
    #[must_use]
    pub const fn new(layer: u8, etype: u8, code: u8) -> Self {
        Self { layer, etype, code }
    }

    /// The name that the RFCs give to the reason, if they give one.
    #[must_use]
    pub fn name(&self) -> Option<&'static str> {
        NAMES.iter().find(|(reason, _)| reason == self).map(|(_, name)| *name)
    }
}

/// RFC 5040 figure 9, RFC 5041 §7.2, RFC 5044 §8, RFC 6581 §8.
const NAMES: [(Reason, &str); 33] = [
    (Reason::new(0, 0, 0x00), "local catastrophic error"),
    (Reason::new(0, 1, 0x00), "invalid steering tag"),
    (Reason::new(0, 1, 0x01), "base or bounds violation"),
    (Reason::new(0, 1, 0x02), "access rights violation"),
    (Reason::new(0, 1, 0x03), "steering tag not associated with the stream"),
    (Reason::new(0, 1, 0x04), "tagged offset wraps"),
    (Reason::new(0, 1, 0x09), "steering tag cannot be invalidated"),
    (Reason::new(0, 1, 0xff), "unspecified protection error"),
    (Reason::new(0, 2, 0x05), "invalid RDMAP version"),
    (Reason::new(0, 2, 0x06), "unexpected opcode"),
    (Reason::new(0, 2, 0x07), "catastrophic error of the stream"),
    (Reason::new(0, 2, 0x08), "catastrophic error, global"),
    (Reason::new(0, 2, 0x09), "steering tag cannot be invalidated"),
    (Reason::new(0, 2, 0xff), "unspecified operation error"),
    (Reason::new(1, 0, 0x00), "local catastrophic error"),
    (Reason::new(1, 1, 0x00), "invalid steering tag"),
    (Reason::new(1, 1, 0x01), "base or bounds violation"),
    (Reason::new(1, 1, 0x02), "steering tag not associated with the stream"),
    (Reason::new(1, 1, 0x03), "tagged offset wraps"),
    (Reason::new(1, 1, 0x04), "invalid DDP version"),
    (Reason::new(1, 2, 0x01), "invalid queue number"),
    (Reason::new(1, 2, 0x02), "no buffer for the message number"),
    (Reason::new(1, 2, 0x03), "message number out of range"),
    (Reason::new(1, 2, 0x04), "invalid message offset"),
    (Reason::new(1, 2, 0x05), "message too long for its buffer"),
    (Reason::new(1, 2, 0x06), "invalid DDP version"),
    (Reason::new(2, 0, 0x01), "TCP connection closed or lost"),
    (Reason::new(2, 0, 0x02), "CRC error"),
    (Reason::new(2, 0, 0x03), "marker and length disagree"),
    (Reason::new(2, 0, 0x04), "invalid MPA request or reply"),
    (Reason::new(2, 0, 0x05), "local catastrophic error"),
    (Reason::new(2, 0, 0x06), "insufficient inbound read depth"),
    (Reason::new(2, 0, 0x07), "no matching way to signal readiness"),
];

/// The DDP header of the segment that was refused, as it came: its fields may be invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminated {
    bytes: [u8; untagged::LEN],
}

impl Terminated {
    /// The DDP header at the beginning of `segment`, if it is all there.
    #[must_use]
    pub fn new(segment: &[u8]) -> Option<Self> {
        let len = Control::new_checked(segment).ok()?.header_len();
        let header = segment.get(..len)?;
        let mut bytes = [0; untagged::LEN];
        bytes[..len].copy_from_slice(header);
        Some(Self { bytes })
    }

    /// The bytes of the header: 14 of a tagged segment, 18 of an untagged one.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        let tagged = Control::new_checked(&self.bytes).is_ok_and(Control::tagged);
        &self.bytes[..if tagged { tagged::LEN } else { untagged::LEN }]
    }
}

/// A view of a terminate header.
#[derive(Debug, Clone, Copy)]
pub struct Header<T> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Header<T> {
    /// A view of `buffer`, which is the whole rest of the segment.
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        check_len(Part::Terminate, MIN_LEN, buffer.as_ref().len())?;
        Ok(Self { buffer })
    }

    /// The reason.
    pub fn reason(&self) -> Reason {
        let data = self.buffer.as_ref();
        let (high, low) = (data[field::LAYER_AND_TYPE] >> 4, data[field::LAYER_AND_TYPE] & 0x0f);
        let (layer, etype) = if self.is_swapped() { (low, high) } else { (high, low) };
        Reason { layer, etype, code: data[field::CODE] }
    }

    /// Whether the fields are in the bit order of a little-endian machine, as Linux siw sends them:
    /// layer and type have changed places, and the three flags are at the wrong end of their byte. It
    /// shows if a flag is set, since the wrong end is reserved.
    fn is_swapped(&self) -> bool {
        let flags = self.buffer.as_ref()[field::HEADERS];
        let all = LENGTH_VALID | DDP_INCLUDED | RDMAP_INCLUDED;
        flags & all == 0 && flags.reverse_bits() & all != 0
    }

    /// The length of the refused segment, if it is valid.
    pub fn segment_len(&self) -> Option<u16> {
        let data = self.buffer.as_ref();
        let valid = self.flag(LENGTH_VALID) && data.len() >= MIN_LEN + SEGMENT_LEN;
        valid.then(|| u16_at(data, field::SEGMENT_LEN))
    }

    /// The DDP header of the refused segment, if it was included.
    pub fn ddp(&self) -> Option<Terminated> {
        if !self.flag(DDP_INCLUDED) {
            return None;
        }
        Terminated::new(self.buffer.as_ref().get(MIN_LEN + SEGMENT_LEN..)?)
    }

    /// The read request that was refused, if it was included.
    pub fn request(&self) -> Option<read_request::Repr> {
        if !self.flag(RDMAP_INCLUDED) {
            return None;
        }
        let mut at = MIN_LEN;
        if self.flag(DDP_INCLUDED) {
            at += SEGMENT_LEN + self.ddp()?.as_bytes().len();
        } else if self.flag(LENGTH_VALID) {
            at += SEGMENT_LEN;
        }
        let header = read_request::Header::new_checked(self.buffer.as_ref().get(at..)?).ok()?;
        read_request::Repr::parse(&header).ok()
    }

    fn flag(&self, mask: u8) -> bool {
        let flags = self.buffer.as_ref()[field::HEADERS];
        (if self.is_swapped() { flags.reverse_bits() } else { flags }) & mask != 0
    }
}

/// The value of a terminate header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// Why the stream ends.
    pub reason: Reason,
    /// The length of the refused segment.
    pub segment_len: Option<u16>,
    /// The DDP header of the refused segment.
    pub ddp: Option<Terminated>,
    /// The read request that was refused.
    pub request: Option<read_request::Repr>,
}

impl Repr {
    /// Reads the value. Headers that were announced and are not all there are left out: the reason is
    /// what matters, and implementations differ in what they include.
    pub fn parse<T: AsRef<[u8]>>(header: &Header<T>) -> Result<Self, Error> {
        Ok(Self {
            reason: header.reason(),
            segment_len: header.segment_len(),
            ddp: header.ddp(),
            request: header.request(),
        })
    }

    /// The number of bytes that `emit` writes.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        let length = self.segment_len.is_some() || self.ddp.is_some();
        MIN_LEN
            + if length { SEGMENT_LEN } else { 0 }
            + self.ddp.map_or(0, |ddp| ddp.as_bytes().len())
            + self.request.map_or(0, |request| request.buffer_len())
    }

    /// Writes the value.
    ///
    /// # Panics
    /// If the buffer is shorter than [`Repr::buffer_len`].
    pub fn emit(&self, buffer: &mut [u8]) {
        buffer[field::LAYER_AND_TYPE] = self.reason.layer << 4 | (self.reason.etype & 0x0f);
        buffer[field::CODE] = self.reason.code;
        buffer[field::HEADERS] = [
            (self.segment_len.is_some(), LENGTH_VALID),
            (self.ddp.is_some(), DDP_INCLUDED),
            (self.request.is_some(), RDMAP_INCLUDED),
        ]
        .into_iter()
        .fold(0, |flags, (set, flag)| if set { flags | flag } else { flags });
        buffer[field::RESERVED] = 0;
        let mut at = MIN_LEN;
        if self.segment_len.is_some() || self.ddp.is_some() {
            put_u16(buffer, field::SEGMENT_LEN, self.segment_len.unwrap_or(0));
            at += SEGMENT_LEN;
        }
        if let Some(ddp) = &self.ddp {
            let bytes = ddp.as_bytes();
            buffer[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        }
        if let Some(request) = &self.request {
            request.emit(&mut buffer[at..]);
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layer = match self.layer {
            0 => "RDMAP",
            1 => "DDP",
            2 => "MPA",
            _ => "layer",
        };
        write!(f, "{layer} ({}, {}, {:#04x})", self.layer, self.etype, self.code)?;
        self.name().map_or(Ok(()), |name| write!(f, " {name}"))
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)?;
        if let Some(len) = self.segment_len {
            write!(f, ", segment of {len} bytes")?;
        }
        self.request.map_or(Ok(()), |request| write!(f, ", read of {request}"))
    }
}

#[cfg(test)]
mod tests;
