//! The vocabulary of VIPL 1.0, as numbers: return codes, status bits, error and resource codes. Each table appears here
//! and nowhere else.

/// What a call returns (`VIP_RETURN`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Code {
    /// Done.
    Success = 0,
    /// Nothing has completed.
    NotDone = 1,
    /// A handle or argument that means nothing.
    InvalidParameter = 2,
    /// Something ran out, or is still in use.
    ErrorResource = 3,
    /// The time is over.
    Timeout = 4,
    /// The other side said no.
    Reject = 5,
    /// The levels of the two sides differ, or the level does not exist.
    InvalidReliabilityLevel = 6,
    /// The largest transfers of the two sides do not agree with the limits.
    InvalidMtu = 7,
    /// A quality of service was asked for.
    InvalidQos = 8,
    /// The protection tag does not exist.
    InvalidPtag = 9,
    /// RDMA reads were asked for where they cannot be.
    InvalidRdmaRead = 10,
    /// A descriptor has completed with an error.
    DescriptorError = 11,
    /// The VI is in another state.
    InvalidState = 12,
    /// The name service knows no answer.
    ErrorNameService = 13,
    /// Nobody waits at that address.
    NoMatch = 14,
    /// There is no way to that host.
    NotReachable = 15,
}

/// The status word of a completed descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub u32);

#[allow(missing_docs)]
impl Status {
    pub const DONE: Status = Status(0x1);
    pub const FORMAT_ERROR: Status = Status(0x2);
    pub const PROTECTION_ERROR: Status = Status(0x4);
    pub const LENGTH_ERROR: Status = Status(0x8);
    pub const PARTIAL_ERROR: Status = Status(0x10);
    pub const FLUSHED: Status = Status(0x20);
    pub const TRANSPORT_ERROR: Status = Status(0x40);
    pub const RDMA_PROT_ERROR: Status = Status(0x80);
    pub const REMOTE_DESC_ERROR: Status = Status(0x100);
    pub const ERROR_MASK: Status = Status(0x1fe);
    pub const OP_SEND: Status = Status(0);
    pub const OP_RECEIVE: Status = Status(0x1_0000);
    pub const OP_RDMA_WRITE: Status = Status(0x2_0000);
    pub const OP_REMOTE_RDMA_WRITE: Status = Status(0x3_0000);
    pub const OP_RDMA_READ: Status = Status(0x4_0000);
    pub const OP_MASK: Status = Status(0x7_0000);
    pub const IMMEDIATE: Status = Status(0x8_0000);
}

impl Status {
    /// Both together.
    pub const fn and(self, other: Status) -> Status {
        Status(self.0 | other.0)
    }

    /// Whether a bit of `other` is set.
    pub const fn has(self, other: Status) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether the descriptor failed.
    pub const fn is_error(self) -> bool {
        self.has(Status::ERROR_MASK)
    }

    /// What kind of operation it was.
    pub const fn operation(self) -> Status {
        Status(self.0 & Status::OP_MASK.0)
    }
}

/// What an asynchronous error is about (`VIP_ERROR_CODE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ErrorCode {
    /// A descriptor that could not be taken: its own memory or alignment.
    PostDescriptor = 0,
    /// The connection is lost.
    ConnectionLost = 1,
    /// A message came and no receive was posted.
    ReceiveQueueEmpty = 2,
    /// A completion queue has more entries than it was made for.
    Overrun = 3,
    /// A remote write hit memory it may not write.
    RdmaWriteProtection = 4,
    /// The data of a remote write were damaged.
    RdmaWriteData = 5,
    /// A remote write ended early.
    RdmaWriteAbort = 6,
    /// A remote read hit memory it may not read.
    RdmaReadProtection = 7,
    /// A completion could not be written.
    CompletionProtection = 8,
    /// The transport failed during a remote operation.
    RdmaTransport = 9,
    /// Nothing works any more.
    Catastrophic = 10,
}

/// What kind of thing an asynchronous error hit (`VIP_RESOURCE_CODE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Resource {
    /// The NIC.
    Nic = 0,
    /// A VI.
    Vi = 1,
    /// A completion queue.
    Cq = 2,
    /// A descriptor.
    Descriptor = 3,
}

/// The state of a VI (`VIP_VI_STATE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ViState {
    /// Not connected; receives may be posted.
    Idle = 0,
    /// Connected.
    Connected = 1,
    /// A request is on the way.
    ConnectPending = 2,
    /// The connection failed; disconnect to go on.
    Error = 3,
}
