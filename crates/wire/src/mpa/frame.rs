//! The MPA request and reply frames of set-up (RFC 5044 §7.1.1, RFC 6581 §6).
//!
//! ```text
//! | key, 16 bytes | M C R S reserved | revision | length of private data | private data … |
//! ```

use super::enhanced;
use crate::bytes::{array, put_u16, u16_at};
use crate::error::{Error, Part, check_len};
use std::fmt;

/// The length of a frame without private data.
pub const HEADER_LEN: usize = 20;
/// The greatest length of private data, enhanced data included.
pub const MAX_PRIVATE_DATA: usize = 512;
/// The greatest length of a frame.
pub const MAX_LEN: usize = HEADER_LEN + MAX_PRIVATE_DATA;

const REQUEST_KEY: [u8; 16] = *b"MPA ID Req Frame";
const REPLY_KEY: [u8; 16] = *b"MPA ID Rep Frame";

const MARKERS: u8 = 0x80;
const CRC: u8 = 0x40;
const REJECT: u8 = 0x20;
const ENHANCED: u8 = 0x10;

mod field {
    use std::ops::Range;
    pub(super) const KEY: Range<usize> = 0..16;
    pub(super) const FLAGS: usize = 16;
    pub(super) const REVISION: usize = 17;
    pub(super) const PRIVATE_LEN: Range<usize> = 18..20;
}

/// The revision of MPA that a frame is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    /// RFC 5044.
    One,
    /// RFC 6581.
    Two,
}

/// Which of the two frames it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What the initiator sends.
    Request,
    /// What the responder answers.
    Reply {
        /// The connection is refused.
        rejected: bool,
    },
}

/// The whole length of the frame that begins with `prefix`, once it is known.
///
/// It fails as soon as the bytes cannot become a frame of the expected kind: a wrong key is found at
/// its first wrong byte, a length beyond the limit before any private data is waited for.
pub fn expected_len(prefix: &[u8], reply: bool) -> Result<Option<usize>, Error> {
    let key = if reply { &REPLY_KEY } else { &REQUEST_KEY };
    let seen = prefix.len().min(key.len());
    if prefix[..seen] != key[..seen] {
        let mut found = [0; 16];
        found[..seen].copy_from_slice(&prefix[..seen]);
        return Err(Error::Key { found });
    }
    if prefix.len() < HEADER_LEN {
        return Ok(None);
    }
    Ok(Some(HEADER_LEN + private_len(prefix)?))
}

/// The length of the private data, from a buffer that holds the whole header.
fn private_len(data: &[u8]) -> Result<usize, Error> {
    let length = usize::from(u16_at(data, field::PRIVATE_LEN));
    if length > MAX_PRIVATE_DATA {
        return Err(Error::PrivateData { length, limit: MAX_PRIVATE_DATA });
    }
    Ok(length)
}

/// A view of a frame.
#[derive(Debug, Clone, Copy)]
pub struct Packet<T> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// A view of `buffer`, which holds a whole frame and may be longer.
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        let data = buffer.as_ref();
        check_len(Part::MpaFrame, HEADER_LEN, data.len())?;
        let key: [u8; 16] = array(data, field::KEY);
        if key != REQUEST_KEY && key != REPLY_KEY {
            return Err(Error::Key { found: key });
        }
        check_len(Part::MpaFrame, HEADER_LEN + private_len(data)?, data.len())?;
        Ok(Self { buffer })
    }

    /// Whether the key is that of a reply.
    pub fn is_reply(&self) -> bool {
        self.buffer.as_ref()[field::KEY] == REPLY_KEY
    }

    /// Flag M: the sender wants to receive markers.
    pub fn markers(&self) -> bool {
        self.flag(MARKERS)
    }

    /// Flag C: the sender wants CRCs to be used.
    pub fn crc(&self) -> bool {
        self.flag(CRC)
    }

    /// Flag R: the connection is refused.
    pub fn rejected(&self) -> bool {
        self.flag(REJECT)
    }

    /// Flag S: the private data begins with enhanced connection data.
    pub fn enhanced(&self) -> bool {
        self.flag(ENHANCED)
    }

    /// The revision as a number.
    pub fn revision(&self) -> u8 {
        self.buffer.as_ref()[field::REVISION]
    }

    /// The private data, enhanced data included.
    pub fn private_data(&self) -> &[u8] {
        let data = self.buffer.as_ref();
        &data[HEADER_LEN..HEADER_LEN + usize::from(u16_at(data, field::PRIVATE_LEN))]
    }

    fn flag(&self, mask: u8) -> bool {
        self.buffer.as_ref()[field::FLAGS] & mask != 0
    }
}

/// The value of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr<'a> {
    /// Request or reply.
    pub kind: Kind,
    /// The revision.
    pub revision: Revision,
    /// The sender wants to receive markers.
    pub markers: bool,
    /// The sender wants CRCs to be used.
    pub crc: bool,
    /// Enhanced connection data; only with revision two.
    pub enhanced: Option<enhanced::Repr>,
    /// What the program above sends, without the enhanced data.
    pub private_data: &'a [u8],
}

impl<'a> Repr<'a> {
    /// Reads the value. In revision one flag S is a reserved bit and ignored.
    pub fn parse<T: AsRef<[u8]>>(packet: &'a Packet<T>) -> Result<Self, Error> {
        let revision = match packet.revision() {
            1 => Revision::One,
            2 => Revision::Two,
            found => return Err(Error::Revision { found }),
        };
        let mut private_data = packet.private_data();
        let mut enhanced = None;
        if revision == Revision::Two && packet.enhanced() {
            enhanced = Some(enhanced::Repr::parse(&enhanced::Header::new_checked(private_data)?)?);
            private_data = &private_data[enhanced::LEN..];
        }
        let kind = if packet.is_reply() { Kind::Reply { rejected: packet.rejected() } } else { Kind::Request };
        Ok(Self { kind, revision, markers: packet.markers(), crc: packet.crc(), enhanced, private_data })
    }

    /// How much private data a frame can carry for the program above.
    #[must_use]
    pub fn private_data_limit(enhanced: bool) -> usize {
        MAX_PRIVATE_DATA - if enhanced { enhanced::LEN } else { 0 }
    }

    /// The number of bytes that `emit` writes.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        HEADER_LEN + self.private_len()
    }

    /// Writes the value.
    ///
    /// # Panics
    /// If the buffer is shorter than [`Repr::buffer_len`], if the private data is longer than
    /// [`Repr::private_data_limit`], or if there is enhanced data in revision one.
    pub fn emit(&self, buffer: &mut [u8]) {
        assert!(self.private_len() <= MAX_PRIVATE_DATA, "private data too long");
        assert!(self.revision == Revision::Two || self.enhanced.is_none(), "enhanced data in revision one");
        let (key, rejected) = match self.kind {
            Kind::Request => (&REQUEST_KEY, false),
            Kind::Reply { rejected } => (&REPLY_KEY, rejected),
        };
        buffer[field::KEY].copy_from_slice(key);
        buffer[field::FLAGS] =
            [(self.markers, MARKERS), (self.crc, CRC), (rejected, REJECT), (self.enhanced.is_some(), ENHANCED)]
                .into_iter()
                .fold(0, |flags, (set, flag)| if set { flags | flag } else { flags });
        buffer[field::REVISION] = self.revision.number();
        put_u16(buffer, field::PRIVATE_LEN, self.private_len() as u16);
        let mut at = HEADER_LEN;
        if let Some(enhanced) = &self.enhanced {
            enhanced.emit(&mut buffer[at..]);
            at += enhanced.buffer_len();
        }
        buffer[at..at + self.private_data.len()].copy_from_slice(self.private_data);
    }

    fn private_len(&self) -> usize {
        self.private_data.len() + self.enhanced.map_or(0, |enhanced| enhanced.buffer_len())
    }
}

impl Revision {
    /// The number on the wire.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Revision::One => 1,
            Revision::Two => 2,
        }
    }
}

impl fmt::Display for Repr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Request => "mpa request",
            Kind::Reply { rejected: false } => "mpa reply",
            Kind::Reply { rejected: true } => "mpa reject",
        })?;
        write!(f, " rev {}", self.revision.number())?;
        for (set, name) in [(self.crc, "crc"), (self.markers, "markers")] {
            if set {
                write!(f, " {name}")?;
            }
        }
        if let Some(enhanced) = &self.enhanced {
            write!(f, " {enhanced}")?;
        }
        write!(f, ", {} bytes of private data", self.private_data.len())
    }
}

#[cfg(test)]
mod tests;
