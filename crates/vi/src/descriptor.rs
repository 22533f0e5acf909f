//! Descriptors: what is posted, and what comes back.

use crate::{code::Status, memory::MemHandle};

/// Bytes of registered memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Where they begin.
    pub address: u64,
    /// The registration they lie in.
    pub handle: MemHandle,
    /// How many.
    pub len: u32,
}

/// Memory of the peer, for RDMA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remote {
    /// Where, in the peer's addresses.
    pub address: u64,
    /// The peer's registration.
    pub handle: MemHandle,
}

/// What a descriptor asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Operation {
    /// A message to the peer; on the receive queue, room for one.
    #[default]
    Send,
    /// Write the peer's memory; with immediate data, it takes a receive of the peer.
    RdmaWrite(Remote),
    /// Read the peer's memory.
    RdmaRead(Remote),
}

/// One message, or room for one.
#[derive(Debug, Clone, Default)]
pub struct Descriptor {
    /// Comes back with the completion.
    pub token: u64,
    /// What to do.
    pub operation: Operation,
    /// 32 bits that travel with the message.
    pub immediate: Option<u32>,
    /// Begin only after all RDMA reads before it have ended.
    pub fence: bool,
    /// The bytes.
    pub segments: Segments,
    /// Where the descriptor itself lies, if that must be registered memory too.
    pub place: Option<Segment>,
    /// A fault that was found before: the descriptor takes its place in the queue and completes with it.
    pub fault: Option<Status>,
}

/// The segments of a descriptor; few need no memory of their own.
#[derive(Debug, Clone)]
pub struct Segments(List<Segment>);

/// A posted descriptor has completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The token of the descriptor.
    pub token: u64,
    /// How it ended.
    pub status: Status,
    /// Bytes transferred.
    pub len: u32,
    /// Immediate data that came with a message.
    pub immediate: Option<u32>,
    /// With splitting: the message goes on in the next receive.
    pub continues: bool,
}

impl Operation {
    /// Its bits in the status of a descriptor of the send queue.
    pub fn status(&self) -> Status {
        match self {
            Operation::Send => Status::OP_SEND,
            Operation::RdmaWrite(_) => Status::OP_RDMA_WRITE,
            Operation::RdmaRead(_) => Status::OP_RDMA_READ,
        }
    }
}

impl Descriptor {
    /// A message, or room for one, of these segments.
    pub fn new(token: u64, segments: &[Segment]) -> Descriptor {
        Descriptor { token, segments: Segments::from(segments), ..Descriptor::default() }
    }

    /// With immediate data.
    pub fn with_immediate(self, value: u32) -> Descriptor {
        Descriptor { immediate: Some(value), ..self }
    }

    /// As an RDMA write.
    pub fn write_to(self, address: u64, handle: MemHandle) -> Descriptor {
        Descriptor { operation: Operation::RdmaWrite(Remote { address, handle }), ..self }
    }

    /// As an RDMA read.
    pub fn read_from(self, address: u64, handle: MemHandle) -> Descriptor {
        Descriptor { operation: Operation::RdmaRead(Remote { address, handle }), ..self }
    }

    /// Behind all RDMA reads before it.
    pub fn fenced(self) -> Descriptor {
        Descriptor { fence: true, ..self }
    }
}

impl Segments {
    /// The segments in order.
    #[inline]
    pub fn iter(&self) -> std::slice::Iter<'_, Segment> {
        self.as_slice().iter()
    }

    /// All of them.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[Segment] {
        self.0.as_slice()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Default for Segments {
    fn default() -> Segments {
        Segments(List::Many(Vec::new()))
    }
}

impl From<&[Segment]> for Segments {
    #[inline]
    fn from(segments: &[Segment]) -> Segments {
        match segments {
            [one] => Segments(List::One(*one)),
            many => Segments(List::Many(many.to_vec())),
        }
    }
}

/// A list that is mostly one long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum List<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> List<T> {
    pub(crate) const NONE: List<T> = List::Many(Vec::new());

    #[inline]
    pub(crate) fn as_slice(&self) -> &[T] {
        match self {
            List::One(one) => std::slice::from_ref(one),
            List::Many(many) => many,
        }
    }
}
