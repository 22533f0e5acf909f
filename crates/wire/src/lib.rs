//! Bytes to values and back, for the protocols that Sidestep speaks on a wire.
//!
//! **What it is.** One file per protocol header, all of the same shape: a private `field` module with
//! the byte ranges, a checked view over a buffer (`Header<T>` or `Packet<T>`), a small valid value
//! (`Repr`) with `parse`, `emit` and `buffer_len`, and a `Display` that reads like tcpdump. Today: the
//! iWARP family, that is [`mpa`] (RFC 5044, RFC 6581), [`ddp`] (RFC 5041), [`rdmap`] (RFC 5040,
//! RFC 7306), and [`hello`], what Sidestep adds to MPA's private data; the ONC RPC family, that is [`xdr`]
//! (RFC 4506), [`oncrpc`] (RFC 5531), [`rpcbind`] (RFC 1833) and [`rpcrdma`] (RFC 8166), whose headers vary in length
//! and are appended to a buffer; the CORBA family, that is [`cdr`], [`giop`] and [`ior`]; and [`cursor`], by which
//! Sidestep's own messages are read and written.
//!
//! **Who calls it.** The protocol engines (`sidestep-iwarp`, `sidestep-orb`), packet capture, tests.
//!
//! **What it calls.** A CRC32C routine. Nothing else.
//!
//! **What it never does.** It never reads a socket, a clock or a file, never allocates on the way in
//! more than the bytes that are there account for (the iWARP family: nothing at all), never keeps
//! state between two calls, and never panics because of bytes that came from a peer:
//! after `new_checked` has returned `Ok`, no accessor of a view panics.

#![forbid(unsafe_code)]

pub mod cdr;
pub mod cursor;
pub mod ddp;
pub mod giop;
pub mod hello;
pub mod ior;
pub mod mpa;
pub mod oncrpc;
pub mod rdmap;
pub mod rpcbind;
pub mod rpcrdma;
pub mod xdr;

mod bytes;
mod error;
mod number;

pub use error::{Error, Part};
pub use number::{MessageOffset, Msn, QueueNumber, Stag, TaggedOffset};
