//! RPC-over-RDMA version 1 (RFC 8166): the [`header`] before an RPC message that travels by RDMA.
//!
//! Small messages travel *inline*, behind the header in one send. What is larger lies in *chunks*: memory that one side
//! has registered and names by [`Segment`]s. The server reads *read chunks* (arguments), writes *write chunks* (results
//! that the caller expects to be large) and the *reply chunk* (a whole reply that may be too long to be sent).

pub mod header;
pub mod private;

use crate::xdr::{Error, Reader, Writer};
use std::fmt;

/// The only version spoken.
pub const VERSION: u32 = 1;

/// The length of an inline message that every receiver takes (RFC 8166 §3.3.3).
pub const INLINE: usize = 1024;

/// The greatest number of segments that one list is read with; a hostile header cannot ask for more work.
pub const MAX_SEGMENTS: usize = 256;

/// A piece of registered memory (RFC 8166 §4.2, `xdr_rdma_segment`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Segment {
    /// What names the memory: on iWARP, a steering tag.
    pub handle: u32,
    /// How many bytes.
    pub length: u32,
    /// Where in that memory.
    pub offset: u64,
}

/// A segment of a read chunk. Segments of one chunk have the same position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadSegment {
    /// Where in the RPC message the bytes belong; 0 if they are the beginning of the whole message.
    pub position: u32,
    /// Where they lie.
    pub target: Segment,
}

impl Segment {
    /// The length of a segment in a header.
    pub const LEN: usize = 16;

    pub(crate) fn parse(input: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self { handle: input.u32()?, length: input.u32()?, offset: input.u64()? })
    }

    pub(crate) fn emit(&self, out: &mut Writer<'_>) -> Result<(), Error> {
        out.u32(self.handle)?;
        out.u32(self.length)?;
        out.u64(self.offset)
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {:#010x}+{:#x}", self.length, self.handle, self.offset)
    }
}
