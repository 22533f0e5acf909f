//! The transport header (RFC 8166 §4).
//!
//! ```text
//! | xid | 1 | credits | 0 | read list | write list | reply chunk | RPC message ...    RDMA_MSG
//! | xid | 1 | credits | 1 | read list | write list | reply chunk |                    RDMA_NOMSG
//! | xid | 1 | credits | 4 | 1 | low | high |                                          RDMA_ERROR, version
//! | xid | 1 | credits | 4 | 2 |                                                       RDMA_ERROR, chunk
//! ```
//!
//! RDMA_MSGP and RDMA_DONE are refused: RFC 8166 §4.5 and §4.6 have nobody send them.

use super::{MAX_SEGMENTS, ReadSegment, Segment, VERSION};
use crate::oncrpc::Xid;
use crate::xdr::{Error, Reader, Writer};
use std::fmt;

const MSG: u32 = 0;
const NOMSG: u32 = 1;
const ERROR: u32 = 4;

/// A view of a header: the lists are walked, not copied.
#[derive(Debug, Clone)]
pub struct Header<'a> {
    /// The number of the call.
    pub xid: Xid,
    /// How many calls the sender grants (in a reply) or asks for (in a call).
    pub credits: u32,
    /// What kind of message it is.
    pub kind: Kind,
    lists: Lists<'a>,
    rest: &'a [u8],
}

/// The kinds of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An RPC message, less its chunks, follows.
    Msg,
    /// The whole RPC message is a chunk.
    NoMsg,
    /// The version of the call is not spoken; these are.
    VersionError {
        /// The lowest.
        low: u32,
        /// The highest.
        high: u32,
    },
    /// The chunks of the call could not be used.
    ChunkError,
}

#[derive(Debug, Clone, Copy, Default)]
struct Lists<'a> {
    read: &'a [u8],
    write: &'a [u8],
    reply: Option<&'a [u8]>,
}

impl<'a> Header<'a> {
    /// Checks the header of a message, lists included.
    pub fn new_checked(message: &'a [u8]) -> Result<Self, Error> {
        let mut input = Reader::new(message);
        let xid = Xid(input.u32()?);
        let found = input.u32()?;
        if found != VERSION {
            return Err(Error::RdmaVersion { xid: xid.0, found });
        }
        let credits = input.u32()?;
        let kind = match input.u32()? {
            MSG => Kind::Msg,
            NOMSG => Kind::NoMsg,
            ERROR => match input.u32()? {
                1 => Kind::VersionError { low: input.u32()?, high: input.u32()? },
                2 => Kind::ChunkError,
                found => return Err(Error::Value { name: "rpc_rdma_errcode", found: found as i32 }),
            },
            found => return Err(Error::Value { name: "rdma_proc", found: found as i32 }),
        };
        let lists = match kind {
            Kind::Msg | Kind::NoMsg => Lists::parse(&mut input)?,
            Kind::VersionError { .. } | Kind::ChunkError => Lists::default(),
        };
        Ok(Self { xid, credits, kind, lists, rest: input.rest() })
    }

    /// What follows the header: for [`Kind::Msg`], the RPC message.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The segments of all read chunks.
    pub fn read_segments(&self) -> impl Iterator<Item = ReadSegment> + use<'a> {
        let mut input = Reader::new(self.lists.read);
        std::iter::from_fn(move || {
            input.bool().ok().filter(|more| *more)?;
            Some(ReadSegment { position: input.u32().ok()?, target: Segment::parse(&mut input).ok()? })
        })
    }

    /// The write chunks, each with its segments.
    pub fn write_chunks(&self) -> impl Iterator<Item = Segments<'a>> + use<'a> {
        let mut input = Reader::new(self.lists.write);
        std::iter::from_fn(move || {
            input.bool().ok().filter(|more| *more)?;
            Segments::parse(&mut input).ok()
        })
    }

    /// The reply chunk.
    #[must_use]
    pub fn reply_chunk(&self) -> Option<Segments<'a>> {
        self.lists.reply.map(|bytes| Segments { bytes })
    }
}

impl<'a> Lists<'a> {
    fn parse(input: &mut Reader<'a>) -> Result<Self, Error> {
        let start = input.rest();
        let mut count = 0;
        while input.bool()? {
            count += 1;
            check_count(count)?;
            input.fixed(4 + Segment::LEN)?;
        }
        let read = &start[..start.len() - input.rest().len()];
        let start = input.rest();
        let mut count = 0;
        while input.bool()? {
            // An empty chunk is work, too.
            count += 1 + Segments::parse(input)?.len();
            check_count(count)?;
        }
        let write = &start[..start.len() - input.rest().len()];
        let reply = if input.bool()? { Some(Segments::parse(input)?.bytes) } else { None };
        Ok(Self { read, write, reply })
    }
}

fn check_count(count: usize) -> Result<(), Error> {
    if count > MAX_SEGMENTS { Err(Error::Length { length: count, limit: MAX_SEGMENTS }) } else { Ok(()) }
}

/// The segments of a write or reply chunk.
#[derive(Debug, Clone, Copy)]
pub struct Segments<'a> {
    bytes: &'a [u8],
}

impl<'a> Segments<'a> {
    fn parse(input: &mut Reader<'a>) -> Result<Self, Error> {
        let count = input.length(MAX_SEGMENTS as u32)?;
        Ok(Self { bytes: input.fixed(count * Segment::LEN)? })
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() / Segment::LEN
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = Segment> + use<'a> {
        let mut input = Reader::new(self.bytes);
        std::iter::from_fn(move || Segment::parse(&mut input).ok())
    }
}

/// The value of a header, to be emitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr<'a> {
    /// The number of the call.
    pub xid: Xid,
    /// How many calls the sender grants or asks for.
    pub credits: u32,
    /// What kind of message it is. The lists of an error are not emitted.
    pub kind: Kind,
    /// The segments of all read chunks.
    pub read: &'a [ReadSegment],
    /// The write chunks.
    pub write: &'a [&'a [Segment]],
    /// The reply chunk.
    pub reply: Option<&'a [Segment]>,
}

impl Repr<'_> {
    /// A header without chunks.
    #[must_use]
    pub fn inline(xid: Xid, credits: u32) -> Self {
        Self { xid, credits, kind: Kind::Msg, read: &[], write: &[], reply: None }
    }

    /// Appends the header to a message.
    pub fn emit(&self, out: &mut Writer<'_>) -> Result<(), Error> {
        let (kind, detail): (u32, &[u32]) = match &self.kind {
            Kind::Msg => (MSG, &[]),
            Kind::NoMsg => (NOMSG, &[]),
            Kind::VersionError { low, high } => (ERROR, &[1, *low, *high]),
            Kind::ChunkError => (ERROR, &[2]),
        };
        for word in [self.xid.0, VERSION, self.credits, kind].iter().chain(detail) {
            out.u32(*word)?;
        }
        if kind == ERROR {
            return Ok(());
        }
        out.list(self.read, |out, segment| {
            out.u32(segment.position)?;
            segment.target.emit(out)
        })?;
        out.list(self.write, |out, chunk| emit_segments(out, chunk))?;
        out.bool(self.reply.is_some())?;
        self.reply.map_or(Ok(()), |chunk| emit_segments(out, chunk))
    }
}

fn emit_segments(out: &mut Writer<'_>, segments: &[Segment]) -> Result<(), Error> {
    out.array(segments, MAX_SEGMENTS as u32, |out, segment| segment.emit(out))
}

impl fmt::Display for Header<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} credits {}: ", self.xid, self.credits)?;
        match self.kind {
            Kind::Msg => write!(f, "{} bytes inline", self.rest.len())?,
            Kind::NoMsg => f.write_str("message in a chunk")?,
            Kind::VersionError { low, high } => return write!(f, "versions {low} to {high} are spoken"),
            Kind::ChunkError => return f.write_str("chunks are unusable"),
        }
        for segment in self.read_segments() {
            write!(f, ", read {} for position {}", segment.target, segment.position)?;
        }
        for segment in self.write_chunks().flat_map(|chunk| chunk.iter()) {
            write!(f, ", write {segment}")?;
        }
        for segment in self.reply_chunk().into_iter().flat_map(|chunk| chunk.iter()) {
            write!(f, ", reply {segment}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn parses_and_emits_the_golden_inline_message() {
        let golden = bytes(&[7, 1, 32, 0, 0, 0, 0]);
        let message = [golden.as_slice(), b"rest"].concat();
        let header = Header::new_checked(&message).unwrap();
        assert_eq!((header.xid, header.credits, header.kind), (Xid(7), 32, Kind::Msg));
        assert_eq!(header.rest(), b"rest");
        assert_eq!(header.read_segments().count() + header.write_chunks().count(), 0);
        assert!(header.reply_chunk().is_none());
        let mut out = Vec::new();
        Repr::inline(Xid(7), 32).emit(&mut Writer::new(&mut out, 100)).unwrap();
        assert_eq!(out, golden);
        assert_eq!(header.to_string(), "0x00000007 credits 32: 4 bytes inline");
    }

    #[test]
    fn parses_and_emits_the_golden_chunks() {
        let golden = bytes(&[
            7, 1, 32, 1, // RDMA_NOMSG
            1, 0, 0xa, 4096, 0, 0x10, 1, 0, 0xb, 5, 0, 0, 0, // two read segments
            1, 2, 0xc, 1, 0, 2, 0xd, 3, 0, 4, 1, 0, 0, // two write chunks, one empty
            1, 1, 0xe, 512, 1, 0, // a reply chunk
        ]);
        let header = Header::new_checked(&golden).unwrap();
        assert_eq!(header.kind, Kind::NoMsg);
        let read: Vec<_> = header.read_segments().collect();
        let first = Segment { handle: 0xa, length: 4096, offset: 0x10 };
        assert_eq!(read[0], ReadSegment { position: 0, target: first });
        assert_eq!(read[1].target.length, 5);
        let write: Vec<Vec<Segment>> = header.write_chunks().map(|chunk| chunk.iter().collect()).collect();
        assert_eq!(write.iter().map(Vec::len).collect::<Vec<_>>(), [2, 0]);
        let reply: Vec<_> = header.reply_chunk().unwrap().iter().collect();
        assert_eq!(reply, [Segment { handle: 0xe, length: 512, offset: 1 << 32 }]);
        let chunks: Vec<&[Segment]> = write.iter().map(Vec::as_slice).collect();
        let repr =
            Repr { xid: Xid(7), credits: 32, kind: Kind::NoMsg, read: &read, write: &chunks, reply: Some(&reply) };
        let mut out = Vec::new();
        repr.emit(&mut Writer::new(&mut out, 1000)).unwrap();
        assert_eq!(out, golden);
        for len in 0..golden.len() {
            assert!(Header::new_checked(&golden[..len]).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn parses_and_emits_errors() {
        for (words, kind) in [
            (vec![7, 1, 0, 4, 1, 1, 1], Kind::VersionError { low: 1, high: 1 }),
            (vec![7, 1, 0, 4, 2], Kind::ChunkError),
        ] {
            let golden = bytes(&words);
            assert_eq!(Header::new_checked(&golden).unwrap().kind, kind);
            let mut out = Vec::new();
            let repr = Repr { kind, ..Repr::inline(Xid(7), 0) };
            repr.emit(&mut Writer::new(&mut out, 100)).unwrap();
            assert_eq!(out, golden);
        }
    }

    #[test]
    fn what_nobody_may_send_is_refused() {
        let refused = |words: &[u32]| Header::new_checked(&bytes(words)).map(|_| ()).unwrap_err();
        assert_eq!(refused(&[7, 2, 0, 0, 0, 0, 0]), Error::RdmaVersion { xid: 7, found: 2 });
        assert!(matches!(refused(&[7, 1, 0, 2]), Error::Value { name: "rdma_proc", found: 2 }));
        assert!(matches!(refused(&[7, 1, 0, 3]), Error::Value { name: "rdma_proc", found: 3 }));
        assert!(matches!(refused(&[7, 1, 0, 4, 3]), Error::Value { name: "rpc_rdma_errcode", found: 3 }));
        let endless = [vec![7, 1, 0, 0], [1, 0, 0, 0, 0, 0].repeat(300), vec![0, 0, 0]].concat();
        assert_eq!(refused(&endless), Error::Length { length: 257, limit: 256 });
        let empty_chunks = [vec![7, 1, 0, 0, 0], [1, 0].repeat(300), vec![0, 0]].concat();
        assert_eq!(refused(&empty_chunks), Error::Length { length: 257, limit: 256 });
    }
}
