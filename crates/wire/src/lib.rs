//! Bytes to values and back, for the protocols that Sidestep speaks on a wire.
//!
//! **What it is.** One file per protocol header, all of the same shape: a private `field` module with
//! the byte ranges, a checked view over a buffer (`Header<T>` or `Packet<T>`), a small valid value
//! (`Repr`) with `parse`, `emit` and `buffer_len`, and a `Display` that reads like tcpdump. Today: the
//! iWARP family, that is [`mpa`] (RFC 5044, RFC 6581), [`ddp`] (RFC 5041), [`rdmap`] (RFC 5040,
//! RFC 7306), and [`hello`], what Sidestep adds to MPA's private data.
//!
//! **Who calls it.** The protocol engines (`sidestep-iwarp`), packet capture, tests.
//!
//! **What it calls.** A CRC32C routine. Nothing else.
//!
//! **What it never does.** It never reads a socket, a clock or a file, never allocates on the way in,
//! never keeps state between two calls, and never panics because of bytes that came from a peer:
//! after `new_checked` has returned `Ok`, no accessor of a view panics.

#![forbid(unsafe_code)]

pub mod cursor;
pub mod ddp;
pub mod hello;
pub mod mpa;
pub mod rdmap;

mod bytes;
mod error;
mod number;

pub use error::{Error, Part};
pub use number::{MessageOffset, Msn, QueueNumber, Stag, TaggedOffset};
