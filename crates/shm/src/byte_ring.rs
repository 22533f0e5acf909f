//! A ring of bytes with one producer and one consumer, in memory that the two do not trust each other with.
//!
//! The ring lies in the consumer's memory. Each side has the other's position as a *lazy copy* in its own
//! memory, so neither ever reads across:
//!
//! ```text
//!   consumer's memory: ring, tail (+ core, switch)   written by the producer
//!   producer's memory: head                          written by the consumer
//!   each side's handle: its own position             never seen by the peer
//! ```
//!
//! # Invariants
//!
//! - **B1** Positions are 64-bit byte counts that only grow. A position belongs to the ring index
//!   `position & (capacity - 1)`.
//! - **B2** `head <= consumer position <= tail <= producer position <= head + capacity` in a correct pair. A
//!   copy received from the peer that would break this is refused and never used.
//! - **B3** The producer writes only ring bytes in `tail .. head + capacity`, the consumer reads only bytes in
//!   `head .. tail`: they never touch the same byte at once.
//! - **B4** Each side's own truth is the position in its handle; what the other side can write is compared with it and never
//!   takes its place.
//! - **B5** The producer publishes by compare-and-swap on the tail that it published last. [`FROZEN`] in the tail is
//!   set by whoever holds either end, in one step, and never cleared. So exactly one tail is the last, and both sides
//!   know it without asking: bytes before it are the consumer's, and none come after it.
//! - **B6** [`WANTED`] is set with [`FROZEN`], by the consumer, when its position is in `head`; while it is set the
//!   consumer reads nothing. One swap takes it away: the producer's, which puts [`TAKEN`] in its place and has the
//!   bytes from `head` on again, so that the ring ends at `head` for both; or the consumer's, which reads on.
//! - **B7** The producer accepts no tail but its own last one, with the bits that B5 and B6 allow; the consumer none
//!   with other bits than those, and [`TAKEN`] only if it wanted that.

use crate::{Error, Result, Span, Word64};

mod consumer;
pub mod pieces;
mod producer;
mod remainder;
mod view;

pub use self::{
    remainder::{Remainder, Stopper},
    view::View,
};

/// The writing end.
#[derive(Debug)]
pub struct Producer {
    ring: Span,
    tail: Word64,
    core: Word64,
    switch: Word64,
    head: Word64,
    /// Bytes written, published or not.
    written: u64,
    /// Bytes published: what the tail says.
    published: u64,
    /// B5, B6: nothing is published any more.
    end: End,
    /// Position up to which the ring is known to be free.
    limit: u64,
    /// The last head that was accepted.
    known_head: u64,
    /// Where the current ring began; space before it does not count.
    began: u64,
    mask: u64,
    /// The ring before the switch, for a consumer that leaves before it has crossed.
    before: Option<Before>,
}

#[derive(Debug)]
struct Before {
    ring: Span,
    began: u64,
    mask: u64,
}

/// The reading end.
#[derive(Debug)]
pub struct Consumer {
    ring: Span,
    tail: Word64,
    core: Word64,
    switch: Word64,
    head: Word64,
    /// Bytes consumed.
    read: u64,
    /// The last tail that was accepted.
    known_tail: u64,
    /// What the producer was last told.
    published: u64,
    /// How far a view has reached: beyond the known tail if the ring is about to change.
    viewed: u64,
    /// A larger ring that the producer may switch to.
    next: Option<Span>,
    /// The last switch mark that was acted on.
    switched: u64,
    mask: u64,
    end: End,
    /// Others read what is left, and tell the producer how far.
    surrendered: bool,
}

/// What one side knows of the end of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum End {
    /// There is none yet.
    Open,
    /// The tail is frozen.
    Frozen,
    /// The consumer waits for the producer to take what was not read.
    Wanted,
    /// The producer has.
    Taken,
}

/// The four words and the ring that make up one direction.
#[derive(Debug, Clone)]
pub struct Parts {
    /// The ring itself; its length is a power of two.
    pub ring: Span,
    /// Published by the producer.
    pub tail: Word64,
    /// The core the producer last published on.
    pub core: Word64,
    /// Position + 1 from which bytes lie in the next ring.
    pub switch: Word64,
    /// Published by the consumer.
    pub head: Word64,
    /// Bytes that went through it before: tail and head are there, too.
    pub begin: u64,
}

/// The end of a ring, as its producer finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frozen {
    /// Bytes before this position are the consumer's; none come after it.
    pub position: u64,
    /// The consumer wants what it has not read of them to come in another way ([`Producer::take`]).
    pub wanted: bool,
}

/// In the tail: it is the last one.
pub const FROZEN: u64 = 1 << 63;
/// In the tail: the consumer wants what it has not read to come in another way.
pub const WANTED: u64 = 1 << 62;
/// In the tail: the producer has taken that.
pub const TAKEN: u64 = 1 << 61;
/// The rest of the tail is the position.
pub const POSITION: u64 = TAKEN - 1;

fn bad_end() -> Error {
    Error::Peer("the end of its ring is not one that it may have")
}

fn bad_tail(backwards: bool) -> Error {
    Error::Peer(if backwards {
        "its write position went backwards"
    } else {
        "its write position is ahead of the ring's space"
    })
}

fn ring_mask(ring: &Span) -> Result<u64> {
    let len = ring.len();
    if !len.is_power_of_two() || len > 1 << 40 {
        return Err(Error::Size { what: "ring", must: "a power of two", value: len });
    }
    Ok(len as u64 - 1)
}

#[inline]
fn copy_from_ring(ring: &Span, mask: u64, position: u64, bytes: &mut [u8]) -> Result<()> {
    let at = (position & mask) as usize;
    if bytes.len() <= mask as usize + 1 - at {
        return ring.copy_out(at, bytes);
    }
    copy_around(ring, at, bytes)
}

/// As `copy_from_ring`, over the end of the ring.
#[inline(never)]
fn copy_around(ring: &Span, at: usize, bytes: &mut [u8]) -> Result<()> {
    let (first, rest) = bytes.split_at_mut(ring.len() - at);
    ring.copy_out(at, first)?;
    ring.copy_out(0, rest)
}
