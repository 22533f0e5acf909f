//! What a peer can do wrong, with the values that show it.

use crate::config::RtrModes;
use crate::mem::{InvalidateFault, MemoryFault};
use crate::terminate::Check;
use sidestep_wire::rdmap::Opcode;
use sidestep_wire::{Error as WireError, MessageOffset, Msn, QueueNumber, Stag, TaggedOffset};

/// What a peer did wrong. The connection ends with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Bytes that are no valid FPDU or segment.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A write outside what it may write.
    #[error("write of {len} bytes at {offset} of {stag}: {fault}")]
    Write {
        /// What is wrong.
        fault: MemoryFault,
        /// The tag in the segment.
        stag: Stag,
        /// The offset in the segment.
        offset: TaggedOffset,
        /// The length of the payload.
        len: u64,
    },
    /// A read outside what it may read.
    #[error("read of {len} bytes at {offset} of {stag}: {fault}")]
    Read {
        /// What is wrong.
        fault: MemoryFault,
        /// The tag of the source.
        stag: Stag,
        /// The offset of the source.
        offset: TaggedOffset,
        /// The length asked for.
        len: u64,
    },
    /// An atomic outside what it may touch.
    #[error("atomic at {offset} of {stag}: {fault}")]
    Atomic {
        /// What is wrong.
        fault: MemoryFault,
        /// The tag of the word.
        stag: Stag,
        /// The offset of the word.
        offset: TaggedOffset,
    },
    /// An atomic on a word that is not aligned to eight bytes.
    #[error("atomic at {offset} of {stag}, which is not a multiple of 8")]
    Unaligned {
        /// The tag of the word.
        stag: Stag,
        /// The offset of the word.
        offset: TaggedOffset,
    },
    /// A tag that the peer may not invalidate.
    #[error("invalidate {stag}: {fault}")]
    Invalidate {
        /// What is wrong.
        fault: InvalidateFault,
        /// The tag in the message.
        stag: Stag,
    },
    /// A message for which no receive was posted.
    #[error("message {msn} finds no receive buffer")]
    NoReceive {
        /// The number of the message.
        msn: Msn,
    },
    /// More reads and atomics at a time than were agreed.
    #[error("request {msn} is beyond the {ird} that are served at a time")]
    ReadQueueFull {
        /// The number of the message.
        msn: Msn,
        /// How many are served at a time.
        ird: u16,
    },
    /// A message out of turn.
    #[error("message {found} on queue {queue} instead of {expected}")]
    MessageNumber {
        /// The queue.
        queue: QueueNumber,
        /// The number that was due.
        expected: Msn,
        /// The number found.
        found: Msn,
    },
    /// A segment out of turn.
    #[error("message offset {found} instead of {expected}")]
    MessageOffset {
        /// The offset that was due.
        expected: MessageOffset,
        /// The offset found.
        found: MessageOffset,
    },
    /// A message longer than its receive buffer.
    #[error("message of {len} bytes or more in a buffer of {capacity}")]
    TooLong {
        /// How long the message is so far.
        len: u64,
        /// The length of the buffer.
        capacity: u32,
    },
    /// A segment of another kind within a message.
    #[error("{found} within a message that began as {expected}")]
    OpcodeChanged {
        /// The opcode of the first segment.
        expected: Opcode,
        /// The opcode found.
        found: Opcode,
    },
    /// An answer to nothing that was asked.
    #[error("{opcode} that was not asked for")]
    UnexpectedResponse {
        /// The opcode of the segment.
        opcode: Opcode,
    },
    /// A read response for another buffer.
    #[error("read response for {found} instead of {expected}")]
    ResponseStag {
        /// The tag that was asked for.
        expected: Stag,
        /// The tag found.
        found: Stag,
    },
    /// A read response for another place, or of another length.
    #[error("read response covers {found_at}+{found_len}, {expected_at}+{expected_len} was due")]
    ResponseRange {
        /// Where the next bytes were due.
        expected_at: TaggedOffset,
        /// How many bytes were due.
        expected_len: u64,
        /// Where the bytes are said to belong.
        found_at: TaggedOffset,
        /// How many bytes there are.
        found_len: u64,
    },
    /// An atomic response to another request.
    #[error("atomic response to request {found} instead of {expected}")]
    ResponseId {
        /// The request that waits.
        expected: u32,
        /// The request in the response.
        found: u32,
    },
    /// The peer will read more at a time than this end can serve.
    #[error("the peer reads {needed} at a time, {have} can be served")]
    ReadDepthShort {
        /// How many the peer may have under way.
        needed: u16,
        /// How many can be served.
        have: u16,
    },
    /// There is no common way to say "ready to receive".
    #[error("the peer understands {offered:?} of {supported:?}")]
    NoReadyMode {
        /// What the peer understands.
        offered: RtrModes,
        /// What this end can produce.
        supported: RtrModes,
    },
    /// The program above gave up.
    #[error("aborted by the program above")]
    Aborted,
}

impl Fault {
    /// The rule that was broken.
    #[must_use]
    pub fn check(&self) -> Check {
        match self {
            Fault::Wire(error) => wire_check(error),
            Fault::Write { fault, .. } => match fault {
                MemoryFault::InvalidStag => Check::WriteStag,
                MemoryFault::NotAssociated => Check::WriteAssociation,
                MemoryFault::Rights => Check::WriteRights,
                MemoryFault::Wrap => Check::WriteWrap,
                MemoryFault::Bounds => Check::WriteBounds,
            },
            Fault::Read { fault, .. } | Fault::Atomic { fault, .. } => match fault {
                MemoryFault::InvalidStag => Check::ReadStag,
                MemoryFault::NotAssociated => Check::ReadAssociation,
                MemoryFault::Rights => Check::ReadRights,
                MemoryFault::Wrap => Check::ReadWrap,
                MemoryFault::Bounds => Check::ReadBounds,
            },
            Fault::Unaligned { .. } => Check::AtomicAlignment,
            Fault::Invalidate { fault: InvalidateFault::NotAssociated, .. } => Check::InvalidateAssociation,
            Fault::Invalidate { fault: InvalidateFault::NotAllowed, .. } => Check::InvalidateForbidden,
            Fault::NoReceive { .. } => Check::NoReceive,
            Fault::ReadQueueFull { .. } => Check::ReadQueueFull,
            Fault::MessageNumber { .. } => Check::MessageNumber,
            Fault::MessageOffset { .. } => Check::MessageOffset,
            Fault::TooLong { .. } => Check::MessageTooLong,
            Fault::OpcodeChanged { .. } => Check::OpcodeChanged,
            Fault::UnexpectedResponse { .. } => Check::UnexpectedResponse,
            Fault::ResponseStag { .. } => Check::ResponseStag,
            Fault::ResponseRange { .. } => Check::ResponseRange,
            Fault::ResponseId { .. } => Check::ResponseId,
            Fault::ReadDepthShort { .. } => Check::ReadDepthShort,
            Fault::NoReadyMode { .. } => Check::NoReadyMode,
            Fault::Aborted => Check::Aborted,
        }
    }
}

fn wire_check(error: &WireError) -> Check {
    match error {
        WireError::Crc { .. } => Check::Crc,
        WireError::Marker { .. } => Check::Marker,
        WireError::DdpVersion { tagged: true, .. } => Check::TaggedVersion,
        WireError::DdpVersion { tagged: false, .. } => Check::UntaggedVersion,
        WireError::RdmapVersion { .. } => Check::RdmapVersion,
        WireError::Opcode { .. } => Check::Opcode,
        WireError::Model { .. } => Check::Model,
        WireError::Queue { .. } => Check::Queue,
        WireError::Offset { .. } => Check::MessageOffset,
        WireError::AtomicOpcode { .. } => Check::AtomicOperation,
        WireError::Length { .. } | WireError::NotLast { .. } => Check::MessageShape,
        _ => Check::SegmentShort,
    }
}
