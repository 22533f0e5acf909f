//! DDP: segments that say where their payload belongs (RFC 5041).
//!
//! A segment is either [`tagged`], for a buffer that was advertised under a steering tag, or
//! [`untagged`], for the next buffer of a queue. Both begin with the same control byte.

pub mod tagged;
pub mod untagged;

use crate::error::{Error, Part, check_len};

const TAGGED: u8 = 0x80;
const LAST: u8 = 0x40;
const VERSION_MASK: u8 = 0x03;
const VERSION: u8 = 1;

/// The control byte with which every segment begins (RFC 5041 §4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Control(pub(crate) u8);

impl Control {
    /// The control byte of a segment.
    pub fn new_checked(segment: &[u8]) -> Result<Self, Error> {
        check_len(Part::Segment, 1, segment.len())?;
        Ok(Self(segment[0]))
    }

    /// Flag T: the payload belongs to a tagged buffer.
    #[must_use]
    pub fn tagged(self) -> bool {
        self.0 & TAGGED != 0
    }

    /// Flag L: this is the last segment of its message.
    #[must_use]
    pub fn last(self) -> bool {
        self.0 & LAST != 0
    }

    /// The version of DDP.
    #[must_use]
    pub fn version(self) -> u8 {
        self.0 & VERSION_MASK
    }

    /// Fails unless the version is the one that is spoken here.
    pub fn check_version(self) -> Result<(), Error> {
        if self.version() == VERSION {
            Ok(())
        } else {
            Err(Error::DdpVersion { tagged: self.tagged(), found: self.version() })
        }
    }

    /// The length of the DDP header that begins with this byte.
    #[must_use]
    pub fn header_len(self) -> usize {
        if self.tagged() { tagged::LEN } else { untagged::LEN }
    }

    fn byte(tagged: bool, last: bool) -> u8 {
        VERSION | if tagged { TAGGED } else { 0 } | if last { LAST } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_byte() {
        let control = Control::new_checked(&[0xc1, 0]).unwrap();
        assert!(control.tagged() && control.last());
        assert_eq!((control.version(), control.header_len()), (1, 14));
        assert_eq!(Control::byte(true, true), 0xc1);
        assert_eq!(Control::byte(false, false), 0x01);
        assert!(Control::new_checked(&[]).is_err());
        let old = Control::new_checked(&[0x80]).unwrap();
        assert_eq!(old.check_version(), Err(Error::DdpVersion { tagged: true, found: 0 }));
    }
}
