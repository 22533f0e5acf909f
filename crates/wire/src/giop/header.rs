//! The header of every message (CORBA 3.3 part 2 §9.4.1).
//!
//! ```text
//! | "GIOP", 4 bytes | major, 1 | minor, 1 | flags, 1 | type, 1 | size of what follows, 4 |
//! ```
//! In GIOP 1.0 the flags are a boolean, the byte order; 1.1 adds a bit: more fragments follow.

use std::fmt;

use super::{Error, MessageType, Version};
use crate::bytes::{array, put_u32, u32_at};
use crate::cdr::{self, ByteOrder};

/// The length of the header.
pub const LEN: usize = 12;

/// Where the size lies in the message.
pub const SIZE_AT: usize = 8;

mod field {
    use std::ops::Range;
    pub(super) const MAGIC: Range<usize> = 0..4;
    pub(super) const MAJOR: usize = 4;
    pub(super) const MINOR: usize = 5;
    pub(super) const FLAGS: usize = 6;
    pub(super) const TYPE: usize = 7;
    pub(super) const SIZE: Range<usize> = super::SIZE_AT..super::LEN;
}

const MAGIC: [u8; 4] = *b"GIOP";
const MORE_FRAGMENTS: u8 = 2;

/// The header up to the size, of a message in the byte order of this machine that does not go on in fragments.
pub(super) const fn begin(version: Version, message_type: MessageType) -> [u8; SIZE_AT] {
    let [g, i, o, p] = MAGIC;
    let flags = if cfg!(target_endian = "little") { 1 } else { 0 };
    [g, i, o, p, 1, version as u8, flags, message_type as u8]
}

/// A view of a message header.
#[derive(Debug, Clone, Copy)]
pub struct Header<T> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Header<T> {
    /// A view of `buffer`, which may be longer than the header.
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        let have = buffer.as_ref().len();
        if have < LEN {
            return Err(cdr::Error::Truncated { at: 0, needed: LEN, have }.into());
        }
        Ok(Self { buffer })
    }

    /// The first four bytes.
    pub fn magic(&self) -> [u8; 4] {
        array(self.buffer.as_ref(), field::MAGIC)
    }

    /// The version: the numbers in front of and behind the point.
    pub fn version(&self) -> (u8, u8) {
        (self.buffer.as_ref()[field::MAJOR], self.buffer.as_ref()[field::MINOR])
    }

    /// The flags.
    pub fn flags(&self) -> u8 {
        self.buffer.as_ref()[field::FLAGS]
    }

    /// The number of the message type.
    pub fn message_type(&self) -> u8 {
        self.buffer.as_ref()[field::TYPE]
    }

    /// How many bytes follow the header.
    pub fn size(&self) -> u32 {
        let size = u32_at(self.buffer.as_ref(), field::SIZE);
        match ByteOrder::from_flag(self.flags()) {
            ByteOrder::Big => size,
            ByteOrder::Little => size.swap_bytes(),
        }
    }
}

/// The value of a message header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// The version of the message.
    pub version: Version,
    /// The byte order of the message.
    pub order: ByteOrder,
    /// Whether fragments follow.
    pub more_fragments: bool,
    /// What the message is.
    pub message_type: MessageType,
    /// How many bytes follow the header.
    pub size: u32,
}

impl Repr {
    /// Reads the value.
    #[inline]
    pub fn parse<T: AsRef<[u8]>>(header: &Header<T>) -> Result<Self, Error> {
        let have = header.buffer.as_ref().len();
        let Some(bytes) = header.buffer.as_ref().first_chunk::<LEN>() else {
            return Err(cdr::Error::Truncated { at: 0, needed: LEN, have }.into());
        };
        // The length is known from here on.
        let header = Header { buffer: bytes };
        if header.magic() != MAGIC {
            return Err(Error::Magic { found: header.magic() });
        }
        let version = match header.version() {
            (1, 0) => Version::V1_0,
            (1, 1) => Version::V1_1,
            (1, 2) => Version::V1_2,
            (major, minor) => return Err(Error::Version { major, minor }),
        };
        let minor = version.minor();
        let found = header.message_type();
        let message_type = match MessageType::ALL.get(usize::from(found)) {
            Some(it) if *it != MessageType::Fragment || version != Version::V1_0 => *it,
            _ => return Err(Error::MessageType { found, minor }),
        };
        let more_fragments = header.flags() & MORE_FRAGMENTS != 0 && version != Version::V1_0;
        use MessageType as M;
        let may_continue = match message_type {
            M::Request | M::Reply | M::Fragment => true,
            M::LocateRequest | M::LocateReply => version == Version::V1_2,
            _ => false,
        };
        if more_fragments && !may_continue {
            return Err(Error::Fragmented { message_type, minor });
        }
        let order = ByteOrder::from_flag(header.flags());
        Ok(Self { version, order, more_fragments, message_type, size: header.size() })
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
    #[inline]
    pub fn emit(&self, buffer: &mut [u8]) {
        buffer[field::MAGIC].copy_from_slice(&MAGIC);
        buffer[field::MAJOR] = 1;
        buffer[field::MINOR] = self.version.minor();
        buffer[field::FLAGS] = self.order.flag() | if self.more_fragments { MORE_FRAGMENTS } else { 0 };
        buffer[field::TYPE] = self.message_type as u8;
        let size = match self.order {
            ByteOrder::Big => self.size,
            ByteOrder::Little => self.size.swap_bytes(),
        };
        put_u32(buffer, field::SIZE, size);
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = if self.more_fragments { ", more follows" } else { "" };
        write!(f, "GIOP {} {:?} of {} bytes, {:?}-endian{more}", self.version, self.message_type, self.size, self.order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: [u8; LEN] = *b"GIOP\x01\x02\x03\x00\x2c\x01\x00\x00";

    #[test]
    fn parses_and_emits_the_golden_header() {
        let repr = Repr::parse(&Header::new_checked(GOLDEN).unwrap()).unwrap();
        assert_eq!(
            repr,
            Repr {
                version: Version::V1_2,
                order: ByteOrder::Little,
                more_fragments: true,
                message_type: MessageType::Request,
                size: 300,
            }
        );
        let mut out = [0xee; LEN];
        repr.emit(&mut out);
        assert_eq!(out, GOLDEN);
        assert_eq!(repr.to_string(), "GIOP 1.2 Request of 300 bytes, Little-endian, more follows");
        assert!(Header::new_checked(&GOLDEN[..11]).is_err());
    }

    #[test]
    fn what_is_not_giop_is_refused() {
        let changed = |at: usize, value: u8| {
            let mut bytes = GOLDEN;
            bytes[at] = value;
            Repr::parse(&Header::new_checked(bytes).unwrap())
        };
        assert_eq!(changed(0, b'g'), Err(Error::Magic { found: *b"gIOP" }));
        assert_eq!(changed(4, 2), Err(Error::Version { major: 2, minor: 2 }));
        assert_eq!(changed(7, 8), Err(Error::MessageType { found: 8, minor: 2 }));
        let fragmented = Error::Fragmented { message_type: MessageType::CloseConnection, minor: 2 };
        assert_eq!(changed(7, 5), Err(fragmented));
    }
}
