//! XDR, the external data representation (RFC 4506).
//!
//! Every item is a multiple of four bytes, big-endian. [`Reader`] takes items from the bytes of one message, [`Writer`]
//! appends them to one, and [`Xdr`] is implemented by types that have one representation.
//!
//! Limits: a reader never looks beyond its message; every length is checked against the limit its type declares *and*
//! against what the message can still hold, before anything is allocated; optional data may nest [`MAX_DEPTH`] deep.
//! The bytes that fill an item up to a multiple of four are written as zero and not looked at when read, as everybody does.

mod error;
mod reader;
mod value;
mod writer;

pub use error::Error;
pub use reader::Reader;
pub use value::{Quadruple, Xdr};
pub use writer::{Place, Writer};

/// The limit of a length that declares none (RFC 4506 §4.10).
pub const UNBOUNDED: u32 = u32::MAX;

/// How deep recursive data may nest: bounded by the stack of the thread that decodes.
pub const MAX_DEPTH: u32 = 500;

/// The length of an item of `len` bytes with its fill.
#[must_use]
pub const fn padded(len: usize) -> usize {
    len.next_multiple_of(4)
}

#[cfg(test)]
mod tests;
