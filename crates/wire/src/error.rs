//! Why bytes are not what they should be. Every variant carries the offending values.

use crate::{MessageOffset, QueueNumber, rdmap::Opcode};
use std::fmt;

/// Why a buffer could not be read as the header it was taken for.
///
/// All variants are of one kind: whoever wrote the bytes broke the protocol, or the bytes are not
/// all here yet ([`Error::Truncated`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The buffer ends before the part does.
    #[error("{part} needs {needed} bytes, {have} are here")]
    Truncated {
        /// The part that was read.
        part: Part,
        /// How many bytes it needs, as far as is known.
        needed: usize,
        /// How many bytes there are.
        have: usize,
    },
    /// A part of fixed length has another length.
    #[error("{part} has {found} bytes instead of {expected}")]
    Length {
        /// The part that was read.
        part: Part,
        /// The length it must have.
        expected: usize,
        /// The length it has.
        found: usize,
    },
    /// The frame begins with neither key, or the key differs from the expected one.
    #[error("MPA key is {found:02x?}")]
    Key {
        /// The bytes in the place of the key; bytes that are not here yet are zero.
        found: [u8; 16],
    },
    /// A revision of MPA that is not spoken here.
    #[error("MPA revision {found} is not supported")]
    Revision {
        /// The revision in the frame.
        found: u8,
    },
    /// The private data is longer than a frame may carry.
    #[error("{length} bytes of private data, at most {limit} are allowed")]
    PrivateData {
        /// The length in the frame.
        length: usize,
        /// The greatest length allowed.
        limit: usize,
    },
    /// A marker interval that is not a multiple of four, or out of range.
    #[error("marker interval {found} is not a multiple of 4 from {min} to {max}")]
    Interval {
        /// The interval asked for.
        found: u32,
        /// The smallest interval.
        min: u32,
        /// The greatest interval.
        max: u32,
    },
    /// The CRC of an FPDU is not that of its bytes.
    #[error("FPDU has CRC {found:#010x}, its bytes give {computed:#010x}")]
    Crc {
        /// The CRC in the FPDU.
        found: u32,
        /// The CRC of its bytes.
        computed: u32,
    },
    /// A marker does not point to the beginning of its FPDU.
    #[error("marker at byte {at} of the FPDU points back {found} bytes instead of {expected}")]
    Marker {
        /// Where the marker lies, counted from the first byte of the FPDU.
        at: usize,
        /// The pointer that the marker must carry.
        expected: u16,
        /// The pointer that it carries.
        found: u16,
    },
    /// A DDP version other than one.
    #[error("DDP version {found} in a segment whose tagged flag is {tagged}")]
    DdpVersion {
        /// Whether the segment is tagged.
        tagged: bool,
        /// The version found.
        found: u8,
    },
    /// The tagged flag contradicts what the header is read as, or its opcode.
    #[error("{part} in a segment whose tagged flag is {tagged}")]
    Model {
        /// What was read.
        part: Part,
        /// The tagged flag found.
        tagged: bool,
    },
    /// An RDMAP version other than one.
    #[error("RDMAP version {found}")]
    RdmapVersion {
        /// The version found.
        found: u8,
    },
    /// An RDMAP opcode that no specification defines.
    #[error("RDMAP opcode {found:#x}")]
    Opcode {
        /// The opcode found.
        found: u8,
    },
    /// A queue number that does not belong to the opcode.
    #[error("{opcode} on queue {found} instead of {expected}")]
    Queue {
        /// The opcode of the segment.
        opcode: Opcode,
        /// The queue of that opcode.
        expected: QueueNumber,
        /// The queue found.
        found: QueueNumber,
    },
    /// A message that fits in one segment does not begin at offset zero.
    #[error("{opcode} begins at message offset {found}")]
    Offset {
        /// The opcode of the segment.
        opcode: Opcode,
        /// The offset found.
        found: MessageOffset,
    },
    /// A message that fits in one segment lacks the last flag.
    #[error("{opcode} without the last flag")]
    NotLast {
        /// The opcode of the segment.
        opcode: Opcode,
    },
    /// An atomic operation that RFC 7306 does not define.
    #[error("atomic operation code {found:#x}")]
    AtomicOpcode {
        /// The code found.
        found: u8,
    },
    /// The private data does not begin with Sidestep's hello.
    #[error("no Sidestep hello: it begins with {found:02x?}")]
    HelloMagic {
        /// The bytes in the place of the magic.
        found: [u8; 4],
    },
    /// A hello of another version.
    #[error("Sidestep hello of version {found}")]
    HelloVersion {
        /// The version found.
        found: u8,
    },
}

/// What was being read when an [`Error`] was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// An MPA request or reply frame.
    MpaFrame,
    /// The enhanced connection data at the start of private data.
    Enhanced,
    /// A whole FPDU.
    Fpdu,
    /// A marker.
    Marker,
    /// A tagged DDP header.
    TaggedHeader,
    /// An untagged DDP header.
    UntaggedHeader,
    /// A DDP segment of any kind.
    Segment,
    /// The RDMAP header of a read request.
    ReadRequest,
    /// The RDMAP header of a terminate message.
    Terminate,
    /// The RDMAP header of immediate data.
    Immediate,
    /// The RDMAP header of an atomic request.
    AtomicRequest,
    /// The RDMAP header of an atomic response.
    AtomicResponse,
    /// The message of this opcode.
    Message(Opcode),
    /// Sidestep's hello.
    Hello,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::MpaFrame => "MPA frame",
            Part::Enhanced => "enhanced connection data",
            Part::Fpdu => "FPDU",
            Part::Marker => "marker",
            Part::TaggedHeader => "tagged DDP header",
            Part::UntaggedHeader => "untagged DDP header",
            Part::Segment => "DDP segment",
            Part::ReadRequest => "read request header",
            Part::Terminate => "terminate header",
            Part::Immediate => "immediate data",
            Part::AtomicRequest => "atomic request header",
            Part::AtomicResponse => "atomic response header",
            Part::Message(opcode) => return opcode.fmt(f),
            Part::Hello => "Sidestep hello",
        })
    }
}

/// Fails unless `have` is at least `needed`.
pub(crate) fn check_len(part: Part, needed: usize, have: usize) -> Result<(), Error> {
    if have < needed { Err(Error::Truncated { part, needed, have }) } else { Ok(()) }
}
