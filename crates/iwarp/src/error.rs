//! What a caller can ask for in vain. What a peer can do wrong is a [`Fault`](crate::Fault).

use crate::mem::MemoryFault;
use sidestep_wire::{Stag, TaggedOffset};

/// Why a request of the caller was refused. Nothing has changed when one of these is returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The connection is not established, or no longer.
    #[error("the connection is not open for requests")]
    NotOpen,
    /// There is no request of a peer to accept or reject.
    #[error("no peer is waiting for an answer")]
    NothingToAnswer,
    /// Too many requests are waiting.
    #[error("{limit} requests are waiting already")]
    QueueFull {
        /// The limit of the configuration.
        limit: usize,
    },
    /// A read or an atomic was asked for and the peer serves none.
    #[error("the peer serves no reads and no atomics")]
    NoReadDepth,
    /// The private data does not fit in a frame.
    #[error("{length} bytes of private data, {limit} fit")]
    PrivateData {
        /// The length of the data.
        length: usize,
        /// How much fits.
        limit: usize,
    },
    /// The buffer for the result of a read may not be used so.
    #[error("{len} bytes at {offset} of {stag}: {fault}")]
    Memory {
        /// What is wrong.
        fault: MemoryFault,
        /// The tag of the buffer.
        stag: Stag,
        /// The place in the buffer.
        offset: TaggedOffset,
        /// The length asked for.
        len: u64,
    },
    /// The region would reach beyond the last offset.
    #[error("a region of {length} bytes cannot begin at {base}")]
    RegionWraps {
        /// The first offset of the region.
        base: TaggedOffset,
        /// The length of the region.
        length: u64,
    },
    /// No free steering tag was found among the random numbers given.
    #[error("{tries} random numbers gave no free steering tag")]
    NoFreeStag {
        /// How many numbers were tried.
        tries: usize,
    },
}
