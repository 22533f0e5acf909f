//! What the card tells whoever drives it.

use crate::error::{Fault, Result};
use crate::id::{Cbh, NodeId, ProcessId, Work};

/// What the card tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// An operation has ended, once.
    Completed {
        /// Whose.
        process: ProcessId,
        /// Which.
        work: Work,
        /// How.
        outcome: Result<(), Fault>,
    },
    /// Something was sent into a buffer with the wish that its owner be told.
    Notified {
        /// The buffer.
        cbh: Cbh,
        /// Where in it.
        at: u64,
        /// How much.
        len: u64,
    },
    /// The buffer is no longer in use: nothing reads or writes it.
    Invalidated(Cbh),
    /// The process is no longer in use: its pages may be unpinned.
    Detached(ProcessId),
    /// Bytes for whoever stands above the card.
    Message(NodeId, Vec<u8>),
}
