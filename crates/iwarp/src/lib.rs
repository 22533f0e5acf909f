//! One iWARP connection as a state machine: RDMAP over DDP over MPA over a byte stream.
//!
//! **What it is.** A [`Connection`] takes bytes from the stream, the time, and the requests of the
//! program above; it gives bytes for the stream, placements into memory, completions and events. A
//! [`MemoryTable`] says which memory a peer may touch. RFC 5040, 5041, 5042, 5044, 6581, 7306.
//!
//! **Who calls it.** A driver that owns a TCP connection and the memory: the fabric's iWARP link,
//! tests, fuzz targets. The driver implements [`Host`].
//!
//! **What it calls.** `sidestep-wire` for every byte, and the [`Host`] for every byte of payload.
//!
//! **What it never does.** It never names a socket, a clock, a thread or a file. It never copies
//! payload: outgoing payload is named in a [`Gather`] and fetched by the driver, unless it is short
//! and the [`Host`] prefers to copy it into its frame; incoming payload is
//! handed to the [`Host`] out of the driver's own buffer, after its CRC, bounds and rights were
//! checked. It never panics because of what a peer sent, and never lets a peer make it hold more
//! than a fixed amount of memory.

#![forbid(unsafe_code)]

mod config;
mod connection;
mod ending;
mod error;
mod event;
mod fault;
mod framer;
mod gather;
mod handshake;
mod host;
mod ledger;
mod mem;
mod nudge;
mod passage;
mod post;
mod rx;
mod setup;
mod terminate;
mod tx;
mod vectors;

pub use config::{Config, RtrModes};
pub use connection::{Connection, Transport};
pub use error::Error;
pub use event::{Completion, Event, Outcome, SetupFailure, WorkId};
pub use fault::Fault;
pub use gather::{BufferId, Gather, Piece, Source, SourceSlice};
pub use host::{Host, Target};
pub use mem::{Access, DomainId, InvalidateFault, MemoryFault, MemoryTable, Region, Rights, StreamId, StreamIdentity};
pub use passage::Passage;
pub use setup::{Agreement, PeerDepths};
pub use sidestep_wire::mpa::crc32c;
pub use sidestep_wire::mpa::frame::Revision;
pub use sidestep_wire::mpa::marker::Interval;
pub use sidestep_wire::rdmap::atomic_request::Operation;
pub use sidestep_wire::rdmap::read_request::Repr as ReadRequest;
pub use sidestep_wire::rdmap::segment::SendKind;
pub use sidestep_wire::rdmap::terminate::Reason;
pub use sidestep_wire::{Stag, TaggedOffset};
pub use terminate::Check;
pub use vectors::Vectors;
