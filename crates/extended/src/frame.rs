//! What two ends say to each other beside the memory: a header of 16 bytes, little-endian, and what follows it.
//!
//! | kind | length | value | what follows |
//! |---|---|---|---|
//! | 1 message | of the message | 0 | the message |
//! | 2 notice | 0 | of the program | nothing |
//! | 3 export | 48 | tag of the program | the cookie of a region |

use sidestep_fabric::Cookie;
use sidestep_wire::cursor::little::{Reader, Writer};

/// A header, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame {
    Message(usize),
    Notice(u64),
    Export(u64),
}

pub(crate) const HEADER: usize = 16;
/// The longest message, so that a length fits into its field with room to spare.
pub(crate) const MAX_MESSAGE: usize = 1 << 30;

const MESSAGE: u32 = 1;
const NOTICE: u32 = 2;
const EXPORT: u32 = 3;

impl Frame {
    pub(crate) fn to_bytes(self) -> [u8; HEADER] {
        let (kind, len, value) = match self {
            Frame::Message(len) => (MESSAGE, len as u32, 0),
            Frame::Notice(value) => (NOTICE, 0, value),
            Frame::Export(tag) => (EXPORT, Cookie::WIRE_LEN as u32, tag),
        };
        let mut bytes = [0; HEADER];
        Writer::new(&mut bytes[..]).u32(kind).u32(len).u64(value);
        bytes
    }

    pub(crate) fn parse(bytes: &[u8; HEADER]) -> Result<Frame, &'static str> {
        let mut fields = Reader::new(bytes);
        let (kind, len, value) = (fields.u32()?, fields.u32()? as usize, fields.u64()?);
        match (kind, len, value) {
            (MESSAGE, len, 0) if len <= MAX_MESSAGE => Ok(Frame::Message(len)),
            (NOTICE, 0, value) => Ok(Frame::Notice(value)),
            (EXPORT, Cookie::WIRE_LEN, tag) => Ok(Frame::Export(tag)),
            _ => Err("a frame of no known kind, or with a length that its kind cannot have"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back() {
        for frame in [Frame::Message(0), Frame::Message(MAX_MESSAGE), Frame::Notice(u64::MAX), Frame::Export(7)] {
            assert_eq!(Frame::parse(&frame.to_bytes()), Ok(frame));
        }
        assert_eq!(Frame::Notice(1).to_bytes(), [2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn other_headers_are_refused() {
        for (kind, len, value) in
            [(0, 0, 0), (4, 0, 0), (1, MAX_MESSAGE as u32 + 1, 0), (1, 4, 1), (2, 1, 0), (3, 47, 0)]
        {
            let mut bytes = [0; HEADER];
            Writer::new(&mut bytes[..]).u32(kind).u32(len).u64(value);
            assert!(Frame::parse(&bytes).is_err(), "{kind} {len} {value}");
        }
    }
}
