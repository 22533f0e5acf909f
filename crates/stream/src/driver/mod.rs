//! Carries out what a path machine asks for: on the record, on the halves of the present carrier, and on the anchor.
//!
//! # A call
//!
//! A receiving call makes a [`ReadCall`] of what it has: the [`Record`], the present carrier if this process can reach
//! it, the anchor's system calls ([`Anchor`]), the other holders ([`Holders`]) and the caller's memory; then [`ReadCall::read`].
//! A sending call makes a [`WriteCall`] and [`WriteCall::write`]. Neither blocks. What they return says what to do next:
//!
//! | outcome | the caller |
//! |---|---|
//! | [`Outcome::Moved`] | returns |
//! | [`Outcome::Wait`] | arms the carrier's watch and asks for news of the anchor, calls once more with `look`, and sleeps |
//! | [`Outcome::Busy`] | calls again soon: another holder has the lock |
//! | [`Outcome::End`] | returns the end of the stream |
//! | [`Outcome::Broken`] | treats the stream as reset |
//!
//! One call per direction has the halves at a time within a process; between processes the record decides.
//!
//! # A carrier's life
//!
//! 1. Both ends have agreed on a carrier. Each, as sole holder, calls [`Record::mount`] with the next number.
//! 2. [`ReadCall::open`] lets the peer write into it. The writer enters it by itself, at its next call.
//! 3. It ends: a full one gives way, either end closes, forks or gives it back ([`ReadCall::give_back`]).
//! 4. [`WriteCall::part`] at both ends, again and again, until [`Record::has_parted`]: then the halves may be dropped, and
//!    another carrier may be mounted.
//!
//! # Words between the ends
//!
//! Beside its bytes a carrier has three notes ([`crate::carrier`]). The writer's first is where the carrier begins
//! ([`Start`](crate::path::Start)); its second, where only the writer can end it, how it ends ([`Tail`](crate::path::Tail)); the reader's says that it is open
//! (bit 0), and that its end is asked for (bit 1). What a peer has written there is checked like everything else.

mod read;
mod write;

use std::io::{IoSlice, IoSliceMut};

pub use read::{Inward, ReadCall};
pub use write::{Outward, WriteCall};

use crate::{
    path::{Answer, Ask, Outcome},
    record::{Direction, Holder, Record},
};

/// The anchor's system calls, none of which blocks.
pub trait Anchor {
    /// Bytes that wait to be received, and whether the end of the anchor comes behind them: FIN, a reset, an error.
    fn pending(&mut self) -> (u64, bool);

    /// Receives at most so many bytes into these parts; how many. Not more than were [`pending`](Self::pending).
    fn receive(&mut self, parts: &mut [IoSliceMut<'_>], most: usize) -> usize;

    /// Sends what the kernel takes; how many bytes.
    fn send(&mut self, parts: &[IoSlice<'_>]) -> usize;

    /// Sends all of it: bytes that the reader has given back go before everything else. The kernel has room for a carrier's
    /// bytes in an empty buffer; a reader that gives back takes what lies there.
    fn send_all(&mut self, bytes: &[u8]);

    /// Bytes of the stream that were ever received on the anchor, by whomever.
    fn received(&mut self) -> u64;

    /// Bytes of the stream that were ever sent on it, by whomever.
    fn sent(&mut self) -> u64;
}

/// The processes that hold this end.
pub trait Holders {
    /// This process.
    fn own(&self) -> Holder;

    /// Whether no other process holds the socket. What begins a carrier excludes `fork` meanwhile.
    fn is_sole(&self) -> bool;

    /// Takes the lock of a direction ([`Record::lock_offset`]) if that is possible now.
    fn try_lock(&mut self, direction: Direction) -> Locked;

    /// Gives it back, if this process has it.
    fn unlock(&mut self, direction: Direction);
}

/// What came of a try to take a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locked {
    /// It was free.
    Yes,
    /// Its last holder has died.
    Inherited,
    /// Another holder has it.
    No,
}

/// In the reader's note: every wait of the reader covers the carrier.
const OPEN: u64 = 1;
/// In the reader's note: the writer is asked to end the carrier.
const ASKED: u64 = 2;
/// The writer's note that says where the carrier begins, and the one that says how it ends.
const BEGIN_NOTE: usize = 0;
const END_NOTE: usize = 1;

fn yes(condition: bool) -> Answer {
    if condition { Answer::Yes } else { Answer::No }
}

/// The answer, or that a word was none.
fn checked(answer: std::result::Result<Answer, impl Sized>) -> Answer {
    answer.unwrap_or(Answer::Broken)
}

fn locked(found: Locked) -> Answer {
    match found {
        Locked::Yes => Answer::Yes,
        Locked::Inherited => Answer::Inherited,
        Locked::No => Answer::No,
    }
}

/// Something is not as a correct process leaves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bad;

impl From<crate::record::Corrupt> for Bad {
    fn from(_: crate::record::Corrupt) -> Bad {
        Bad
    }
}

impl From<crate::carrier::Fault> for Bad {
    fn from(_: crate::carrier::Fault) -> Bad {
        Bad
    }
}

type Result<T> = std::result::Result<T, Bad>;

/// Lets a machine ask until its call is over. Nobody who changes words all the time keeps a call from coming to an end.
fn drive(mut step: impl FnMut() -> Ask) -> Outcome {
    for _ in 0..MOST_QUESTIONS {
        if let Ask::Done(outcome) = step() {
            return outcome;
        }
    }
    Outcome::Busy
}

/// The lock is given back when a call has ended, also if it ended before its time.
fn finish(outcome: Outcome, holders: &mut impl Holders, direction: Direction) -> Outcome {
    if matches!(outcome, Outcome::Broken | Outcome::Busy) {
        holders.unlock(direction);
    }
    outcome
}

/// No call of a stream whose other holders keep to the rules asks so much: the longest way, with a carrier taken back, is some
/// thirty questions, and begins again only when another holder was faster.
const MOST_QUESTIONS: usize = 1000;
