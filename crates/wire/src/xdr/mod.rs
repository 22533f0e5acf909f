//! XDR, the external data representation (RFC 4506).
//!
//! Every item is a multiple of four bytes, big-endian. [`Reader`] takes items from the bytes of one message, [`Writer`]
//! appends them to one, and [`Xdr`] is implemented by types that have one representation.
//!
//! Limits: a reader never looks beyond its message; every length is checked against the limit its type declares *and*
//! against what the message can still hold, before anything is allocated; recursive data nest
//! [`MAX_DEPTH`] deep at most, and less deep if that takes [`MAX_STACK`] of the stack; and values
//! take no more memory than [`memory_limit`] says.
//! The bytes that fill an item up to a multiple of four are written as zero and not looked at when read, as everybody does.

mod error;
mod nesting;
mod reader;
mod value;
mod writer;

pub use error::Error;
pub use reader::Reader;
pub use value::{Quadruple, Xdr};
pub use writer::{Place, Writer};

/// The limit of a length that declares none (RFC 4506 §4.10).
pub const UNBOUNDED: u32 = u32::MAX;

/// How deep recursive data may nest. The entries of a linked list nest in each other, except where [`Reader::list`] takes them.
///
/// Values of such types are dropped, compared and shown level by level, too: 500 levels take less than a quarter of the 2 MiB that
/// threads of Rust have unless they ask for more, also in builds that are not optimised.
pub const MAX_DEPTH: u32 = 500;

/// How much of the stack recursive data may take while they are decoded or encoded, without the last level: a quarter of what
/// threads of Rust have. A thread that decodes recursive data has this much, and what one value of the type takes without what
/// lies within it.
pub const MAX_STACK: usize = 512 << 10;

/// How much memory the values of a message of so many bytes may take: 32 times as much, and 1 MiB. The value of a union or of
/// optional data can be much larger than its four bytes in the message. A value counts again for each array and each structure that
/// it lies in.
#[must_use]
pub const fn memory_limit(len: usize) -> usize {
    len.saturating_mul(32).saturating_add(1 << 20)
}

/// The length of an item of `len` bytes with its fill.
#[must_use]
pub const fn padded(len: usize) -> usize {
    len.next_multiple_of(4)
}

#[cfg(test)]
mod tests;
