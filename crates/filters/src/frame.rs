//! What stands before each buffer of a stream, in memory that a peer writes and on the wire.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 4 | length of what follows |
//! | 4 | 4 | 1: a buffer, 2: the producer copy has ended the unit of work |
//! | 8 | 8 | the buffer's number, or that of the unit of work |

/// The header of a frame, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub kind: FrameKind,
    pub len: u32,
    pub tag: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Data,
    End,
}

pub(crate) const HEADER: usize = 16;

impl Header {
    #[inline]
    pub fn data(tag: u64, len: usize) -> Header {
        Header { kind: FrameKind::Data, len: len as u32, tag }
    }

    pub fn end(unit: u64) -> Header {
        Header { kind: FrameKind::End, len: 0, tag: unit }
    }

    #[inline]
    pub fn words(self) -> [u64; 2] {
        let kind: u64 = match self.kind {
            FrameKind::Data => 1,
            FrameKind::End => 2,
        };
        [u64::from(self.len) | kind << 32, self.tag]
    }

    /// A header that a peer wrote; the reason if it cannot be one of a stream with buffers of this size.
    #[inline]
    pub fn from_words([first, tag]: [u64; 2], capacity: usize) -> Result<Header, &'static str> {
        let len = first as u32;
        let kind = match first >> 32 {
            1 => FrameKind::Data,
            2 if len == 0 => FrameKind::End,
            _ => return Err("a frame of no known kind"),
        };
        if len as usize > capacity {
            return Err("a frame longer than the buffers of its stream");
        }
        Ok(Header { kind, len, tag })
    }

    pub fn emit(self) -> [u8; HEADER] {
        let [first, second] = self.words().map(u64::to_le_bytes);
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&first);
        bytes[8..].copy_from_slice(&second);
        bytes
    }

    /// As [`from_words`](Self::from_words).
    pub fn parse(bytes: [u8; HEADER], capacity: usize) -> Result<Header, &'static str> {
        let ([first, second], _) = bytes.as_chunks() else { return Err("a header of no known size") };
        Header::from_words([*first, *second].map(u64::from_le_bytes), capacity)
    }

    /// Bytes of the whole frame.
    #[inline]
    pub fn frame_len(self) -> usize {
        HEADER + self.len as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back() {
        for header in [Header::data(0, 0), Header::data(u64::MAX, 4096), Header::end(7)] {
            assert_eq!(Header::parse(header.emit(), 4096), Ok(header));
        }
    }

    #[test]
    fn what_is_no_header_is_refused() {
        assert!(Header::parse(Header::data(1, 4097).emit(), 4096).is_err());
        assert!(Header::parse([0; HEADER], 4096).is_err());
        assert!(Header::parse([0xff; HEADER], usize::MAX).is_err());
    }

    proptest::proptest! {
        /// Whatever a peer writes is refused, or is a header that fits into a buffer and comes back.
        #[test]
        fn any_bytes_are_refused_or_fit(bytes: [u8; HEADER], len in 0u32..200, kind in 0u32..4, forged: bool) {
            let mut bytes = bytes;
            if forged {
                bytes[..4].copy_from_slice(&len.to_le_bytes());
                bytes[4..8].copy_from_slice(&kind.to_le_bytes());
            }
            if let Ok(header) = Header::parse(bytes, 100) {
                proptest::prop_assert!(header.len <= 100 && (header.kind == FrameKind::Data || header.len == 0));
                proptest::prop_assert_eq!(header.emit(), bytes);
            }
        }
    }
}
