//! The path machine: where the next byte of a direction is written to or read from.
//!
//! A direction alternates between TCP and rings. Ring `n` begins after a stated number of bytes of TCP ([`Start`]) and ends
//! with one word ([`Tail`]); then TCP goes on. So two counts say where a reader stands: bytes taken from TCP, and bytes
//! taken from the present ring. Both ends may have several holders, since sockets are inherited.
//!
//! # How it is driven
//!
//! [`Reader::begin`] or [`Writer::begin`] starts a call. [`Reader::step`] and [`Writer::step`] then take the answer to the
//! last question and return the next one. Each [`Ask`] is *one* access to a shared word, or one system call; the driver
//! carries it out and answers. [`Ask::Done`] ends the call. A machine keeps nothing between calls but whether this process
//! has taken the stream over, so a forked child begins with a fresh one.
//!
//! | question | carried out on |
//! |---|---|
//! | [`Ask::Start`], [`Ask::Tail`], [`Ask::Freeze`], [`Ask::Withdraw`], [`Ask::Reclaim`], [`Ask::Want`], [`Ask::Request`], [`Ask::TellHead`], [`Ask::Head`], [`Ask::Opened`] | pair memory, shared with the other end |
//! | [`Ask::Owner`], [`Ask::TakeOver`], [`Ask::TcpTaken`], [`Ask::CountTaken`], [`Ask::Position`], [`Ask::Commit`], [`Ask::Resume`], [`Ask::Offer`], [`Ask::Lock`], [`Ask::Unlock`], [`Ask::Entered`], [`Ask::CountSent`] | family memory, shared by the holders of this end |
//! | [`Ask::CopyOut`], [`Ask::CopyIn`], [`Ask::Publish`], [`Ask::TakeBack`], [`Ask::ConfirmSent`], [`Ask::Arrived`], [`Ask::Enter`], [`Ask::Forget`] | the ring |
//! | [`Ask::Pending`], [`Ask::Recover`], [`Ask::TakeTcp`], [`Ask::SendTcp`], [`Ask::SendBack`] | the anchor |
//!
//! # Rules
//!
//! Each has a name by which it is left out, to show that an exploration then fails (`tests/rules.rs`).
//!
//! - `limit`: while a ring is announced, a reader takes no more from TCP than lies before it.
//! - `look_again`: a reader asks what TCP holds, and whether its end has come, *before* it looks at the ring, and takes no more
//!   than that.
//! - `lock_tcp`: one holder at a time takes bytes from TCP, since a receive cannot be undone.
//! - `recover`: whoever finds that the last holder of the lock has died asks the kernel how many bytes were taken.
//! - `commit`: bytes of a ring are the reader's only after the position was moved by compare-and-swap.
//! - `publish`: a writer moves the tail by compare-and-swap, which a frozen ring refuses.
//! - `take_over`: a holder that is not the owner freezes the ring before it moves a byte.
//! - `give_back_first`: unread bytes that the reader wants go over TCP before anything else.
//! - `await_sent`: a holder that finds the unread bytes taken by another waits until they are with TCP.
//! - `offer`: bytes that are offered back are marked in the position first, so that no other holder commits them.
//! - `arrive`: what a writer says of a ring may be on its way for a while; nothing follows over TCP before it has arrived.
//! - `reclaim`: if the writer dies after it took unread bytes back, those that it had not sent are the reader's again.
//! - `give_way`: a writer that is to leave a full ring leaves it also where there seemed to be room, and nothing was taken.
//! - `sole_enters`: only a sole holder begins a ring, and only if its count of bytes sent equals the kernel's.
//!
//! A carrier may be one that only its writer can end ([`End::Asked`]), since one process alone can reach its memory:
//!
//! - `ask_end`: a reader that gives such a carrier back asks for its end, and has given it back only when the writer has ended
//!   it and everything before was read.
//! - `follow`: a writer that is asked ends the carrier before its next byte, or does not begin it.
//! - `left_before_fork`: `fork` returns only when such a carrier has ended, since a child cannot reach it: the writer has ended
//!   it ([`Writer::begin_close`]), or the reader has given it back ([`GiveBack`]).
//!
//! *Parting* is giving a carrier up so that the stream may get another one ([`Writer::begin_part`]):
//!
//! - `part_when_read`: a writer forgets a carrier only when its reader has read it to the end, or has the rest over TCP.
//!
//! A reader that takes over freezes its ring, too. The bytes do not need that, since reading commits by compare-and-swap; it
//! ends the use of what one process alone may have, such as armed words and larger rings on offer.

mod give_back;
mod reader;
pub mod words;
mod writer;

pub use give_back::GiveBack;
pub use reader::Reader;
pub use words::{End, Start, Tail};
pub use writer::Writer;

/// One access that the driver carries out for a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ask {
    /// Load who owns this end. Answer: [`Answer::Yes`] if this holder does.
    Owner,
    /// Make all holders equal: nobody owns this end from now on. Answer: any.
    TakeOver,
    /// Load where the newest ring begins.
    Start,
    /// Load the tail of a ring.
    Tail(u16),
    /// Freeze a ring, unless it has ended; a reader cannot where only the writer can. Answer: the tail as it is afterwards; or no,
    /// if the reader cannot be told now.
    Freeze(u16),
    /// Load the newest ring that the reader has opened. Answer: a count.
    Opened,
    /// Load how far the reader says that it has read a ring. Answer: a count.
    Head(u16),
    /// Load how many bytes this end has taken from TCP. Answer: a count.
    TcpTaken,
    /// Add to that. Under the lock.
    CountTaken(u64),
    /// Ask the kernel how many bytes were ever moved over TCP by this end, and store that. Under the lock. Answer: how many
    /// since the newest ring began.
    Recover,
    /// Load how far this end has read a ring. Answer: [`Answer::Position`].
    Position(u16),
    /// Copy bytes of a ring out, for the caller.
    CopyOut {
        /// Which ring.
        ring: u16,
        /// From this position.
        at: u64,
        /// So many.
        count: u64,
    },
    /// Move the position of a ring by compare-and-swap, unless its bytes are offered back. Answer: yes or no.
    Commit {
        /// Which ring.
        ring: u16,
        /// From here.
        from: u64,
        /// To here.
        to: u64,
    },
    /// Withdraw the offer of unread bytes: change [`End::Wanted`] into [`End::Frozen`] and [`End::Open`] into it, too.
    Withdraw(u16),
    /// Let holders of this end read on after an offer was withdrawn: compare-and-swap on the position. Answer: yes or no.
    Resume {
        /// Which ring.
        ring: u16,
        /// Where the offer began.
        from: u64,
        /// Where to go on.
        to: u64,
    },
    /// Change [`End::Taken`] into [`End::Frozen`]: every holder of the other end is gone. Answer: [`Answer::No`] where a carrier
    /// does not give back what was taken from it.
    Reclaim(u16),
    /// Mark the unread bytes as offered back, by compare-and-swap on the position. Answer: yes or no.
    Offer {
        /// Which ring.
        ring: u16,
        /// The position.
        at: u64,
    },
    /// Tell the writer how far a ring was read.
    TellHead {
        /// Which ring.
        ring: u16,
        /// So far.
        at: u64,
    },
    /// Change [`End::Open`] into [`End::Wanted`] by compare-and-swap. Answer: yes or no.
    Want {
        /// Which ring.
        ring: u16,
        /// With its tail here.
        at: u64,
    },
    /// Ask the writer to end a carrier that only it can end: change [`End::Open`] into [`End::Asked`].
    Request(u16),
    /// Take the lock of this end's TCP bytes. Answer: [`Answer::Yes`], [`Answer::Inherited`] or [`Answer::No`].
    Lock,
    /// Give it back.
    Unlock,
    /// Ask the kernel how many bytes wait on the anchor, and whether its end has come. Answer: [`Answer::Pending`].
    Pending,
    /// Take up to so many bytes from TCP. Answer: a count.
    TakeTcp(u64),
    /// Load the ring that this end has begun last. Answer: a count.
    Entered,
    /// Begin a ring, if this process can reach it, is the sole holder, and no call of it sends over TCP: stores where it begins.
    /// Excludes `fork`. Answer: yes or no.
    Enter(u16),
    /// Copy the caller's bytes into a ring.
    CopyIn {
        /// Which ring.
        ring: u16,
        /// At this position.
        at: u64,
    },
    /// Move the tail of an open ring by compare-and-swap. Answer: yes, no, or how many bytes went, where a carrier counts
    /// otherwise.
    Publish {
        /// Which ring.
        ring: u16,
        /// From here.
        from: u64,
        /// To here.
        to: u64,
    },
    /// Change [`End::Wanted`] into [`End::Taken`] by compare-and-swap. Answer: yes or no.
    TakeBack(u16),
    /// See whether the reader can know how a ring began and ended. Answer: yes or no.
    Arrived(u16),
    /// Send bytes of a ring over TCP, as many as it takes now. Answer: a count.
    SendBack {
        /// Which ring.
        ring: u16,
        /// From this position.
        from: u64,
        /// Up to here.
        to: u64,
    },
    /// Change [`End::Taken`] into [`End::Sent`].
    ConfirmSent(u16),
    /// Give the memory of a carrier up: this end does not look at it again.
    Forget(u16),
    /// Send the caller's bytes over TCP. Answer: a count.
    SendTcp,
    /// Add to what this end has sent over TCP.
    CountSent(u64),
    /// The call is over.
    Done(Outcome),
}

/// What the driver answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Answer {
    /// Nothing to say.
    Done,
    /// It is so, or it was done.
    Yes,
    /// It is not so, or it could not be done.
    No,
    /// The lock was taken from a holder that has died.
    Inherited,
    /// A count or a position.
    Count(u64),
    /// How far a ring was read.
    Position {
        /// So far.
        at: u64,
        /// The rest is offered back to the writer: nobody reads on.
        offered: bool,
    },
    /// Where a ring begins.
    Start(Start),
    /// The tail of a ring.
    Tail(Tail),
    /// What was found is not what a correct process writes: the call ends.
    Broken,
    /// What waits on the anchor.
    Pending {
        /// Bytes.
        bytes: u64,
        /// Its end has come.
        ended: bool,
    },
}

/// How a call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// So many bytes were moved.
    Moved(u64),
    /// Nothing can be moved now: sleep, on the ring and on the anchor.
    Wait,
    /// Another holder is at work; look again soon.
    Busy,
    /// The stream has ended.
    End,
    /// The other end has written what no correct one writes.
    Broken,
}

impl Outcome {
    /// Nothing was left to do.
    pub const DONE: Outcome = Outcome::Moved(0);
}

/// Whether a rule is in force. Builds of `tests/rules.rs` leave one out.
macro_rules! rule {
    ($name:literal) => {
        !cfg!(without = $name)
    };
}
use rule;
