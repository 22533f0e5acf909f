//! What a connection tells the program above.

use crate::fault::Fault;
use crate::setup::{Agreement, PeerDepths};
use sidestep_wire::mpa::frame::Revision;
use sidestep_wire::rdmap::terminate;
use sidestep_wire::{Error as WireError, Stag};
use std::time::Duration;

/// The caller's name for something it posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkId(pub u64);

/// A change in the life of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Responder: a peer asks. Answer with [`accept`](crate::Connection::accept) or
    /// [`reject`](crate::Connection::reject).
    Requested {
        /// What the program above the peer sent along.
        private_data: Vec<u8>,
        /// The revision of the request.
        revision: Revision,
        /// The depths the peer offers, if it said so.
        depths: Option<PeerDepths>,
        /// The peer asks for the peer-to-peer model.
        peer_to_peer: bool,
    },
    /// Set-up is over. Requests can be posted.
    Established {
        /// What the program above the peer sent along; empty at the responder, which knows it already.
        private_data: Vec<u8>,
        /// What was agreed.
        agreement: Agreement,
    },
    /// Initiator: the peer refused.
    Rejected {
        /// What the program above the peer sent along.
        private_data: Vec<u8>,
        /// The depths the peer asks for, if it said so.
        depths: Option<PeerDepths>,
    },
    /// Initiator: the peer does not speak revision two. Connect again, on a new stream, with this one.
    FallBack {
        /// The revision to use.
        revision: Revision,
    },
    /// Set-up failed.
    SetupFailed(SetupFailure),
    /// The peer has closed its half. What is under way can still be sent; nothing more will come.
    PeerClosed,
    /// The peer ended the connection and says why.
    PeerTerminated(terminate::Repr),
    /// The peer broke the protocol and was told so.
    Failed(Fault),
    /// The stream was lost while something was under way.
    Lost {
        /// How many bytes of an unfinished FPDU had come.
        unfinished_bytes: usize,
        /// How many reads and atomics were without an answer.
        unanswered: usize,
    },
    /// Everything is over; the stream can be dropped.
    Closed,
}

/// Why set-up failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupFailure {
    /// The peer's frame is not a valid one.
    #[error("invalid set-up frame: {0}")]
    Frame(WireError),
    /// The peer's frame did not come in time.
    #[error("no set-up frame within {waited:?}")]
    TimedOut {
        /// How long it was waited for.
        waited: Duration,
    },
    /// The stream ended during set-up.
    #[error("the stream ended after {received} bytes of a set-up frame")]
    StreamEnded {
        /// How many bytes of a frame had come.
        received: usize,
    },
}

/// Something that was posted is done. Requests complete in the order in which they were posted, and
/// so do receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The caller's name for it.
    pub work: WorkId,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of something that was posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A send, a write or immediate data was handed to the stream; its source may be reused. Whether
    /// the peer got it is not known.
    Sent,
    /// The bytes that were read are in place.
    Read,
    /// The atomic operation was done.
    Atomic {
        /// The word as it was before.
        original: u64,
    },
    /// A message was placed in the receive buffer.
    Received {
        /// The length of the message.
        len: u32,
        /// The sender asks for an event.
        solicited: bool,
        /// The tag that the message has made invalid.
        invalidated: Option<Stag>,
    },
    /// Immediate data came; it consumed the receive buffer without touching it.
    ReceivedImmediate {
        /// The data.
        data: u64,
        /// The sender asks for an event.
        solicited: bool,
    },
    /// The connection ended first. What became of it is not known.
    Flushed,
}
