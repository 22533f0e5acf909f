//! The header of untagged segments (RFC 5041 §4.3).
//!
//! ```text
//! | control, 1 byte | for the layer above, 1 + 4 bytes | queue, 4 | message number, 4 | offset, 4 |
//! ```

use super::Control;
use crate::bytes::{put_u32, u32_at};
use crate::error::{Error, Part, check_len};
use crate::{MessageOffset, Msn, QueueNumber};
use std::fmt;

/// The length of the header.
pub const LEN: usize = 18;

mod field {
    use std::ops::Range;
    pub(super) const CONTROL: usize = 0;
    pub(super) const UPPER: usize = 1;
    pub(super) const UPPER_WORD: Range<usize> = 2..6;
    pub(super) const QUEUE: Range<usize> = 6..10;
    pub(super) const MSN: Range<usize> = 10..14;
    pub(super) const OFFSET: Range<usize> = 14..18;
}

/// A view of an untagged header.
#[derive(Debug, Clone, Copy)]
pub struct Header<T> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Header<T> {
    /// A view of `buffer`, which may be longer than the header.
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        check_len(Part::UntaggedHeader, LEN, buffer.as_ref().len())?;
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

    /// The word of the layer above.
    pub fn upper_word(&self) -> u32 {
        u32_at(self.buffer.as_ref(), field::UPPER_WORD)
    }

    /// The queue of the message.
    pub fn queue(&self) -> QueueNumber {
        QueueNumber(u32_at(self.buffer.as_ref(), field::QUEUE))
    }

    /// The number of the message in its queue.
    pub fn msn(&self) -> Msn {
        Msn(u32_at(self.buffer.as_ref(), field::MSN))
    }

    /// Where in its message the payload belongs.
    pub fn offset(&self) -> MessageOffset {
        MessageOffset(u32_at(self.buffer.as_ref(), field::OFFSET))
    }
}

/// The value of an untagged header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// This is the last segment of its message.
    pub last: bool,
    /// The byte of the layer above.
    pub upper: u8,
    /// The word of the layer above.
    pub upper_word: u32,
    /// The queue of the message.
    pub queue: QueueNumber,
    /// The number of the message in its queue.
    pub msn: Msn,
    /// Where in its message the payload belongs.
    pub offset: MessageOffset,
}

impl Repr {
    /// Reads the value. Reserved bits are ignored.
    pub fn parse<T: AsRef<[u8]>>(header: &Header<T>) -> Result<Self, Error> {
        let control = header.control();
        control.check_version()?;
        if control.tagged() {
            return Err(Error::Model { part: Part::UntaggedHeader, tagged: true });
        }
        Ok(Self {
            last: control.last(),
            upper: header.upper(),
            upper_word: header.upper_word(),
            queue: header.queue(),
            msn: header.msn(),
            offset: header.offset(),
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
        buffer[field::CONTROL] = Control::byte(false, self.last);
        buffer[field::UPPER] = self.upper;
        put_u32(buffer, field::UPPER_WORD, self.upper_word);
        put_u32(buffer, field::QUEUE, self.queue.0);
        put_u32(buffer, field::MSN, self.msn.0);
        put_u32(buffer, field::OFFSET, self.offset.0);
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ddp untagged qn {} msn {} mo {}", self.queue, self.msn, self.offset)?;
        if self.last { f.write_str(" last") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5041 §4.3: L set, version 1, five bytes of the layer above, queue, number, offset.
    const GOLDEN: [u8; LEN] = [0x41, 0x44, 1, 2, 3, 4, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 5, 0xca];

    #[test]
    fn parses_and_emits_the_golden_header() {
        let repr = Repr::parse(&Header::new_checked(GOLDEN).unwrap()).unwrap();
        assert_eq!(
            repr,
            Repr {
                last: true,
                upper: 0x44,
                upper_word: 0x0102_0304,
                queue: QueueNumber(2),
                msn: Msn(7),
                offset: MessageOffset(1482),
            }
        );
        let mut out = [0xee; LEN];
        repr.emit(&mut out);
        assert_eq!(out, GOLDEN);
        assert_eq!(repr.to_string(), "ddp untagged qn 2 msn 7 mo 1482 last");
    }

    #[test]
    fn what_is_refused() {
        assert!(Header::new_checked(&GOLDEN[..17]).is_err());
        let mut tagged = GOLDEN;
        tagged[0] = 0xc1;
        assert_eq!(
            Repr::parse(&Header::new_checked(tagged).unwrap()),
            Err(Error::Model { part: Part::UntaggedHeader, tagged: true })
        );
        let mut version = GOLDEN;
        version[0] = 0x43;
        assert_eq!(
            Repr::parse(&Header::new_checked(version).unwrap()),
            Err(Error::DdpVersion { tagged: false, found: 3 })
        );
    }
}
