//! Carriers: what moves the bytes of a stream that is not on TCP.
//!
//! A carrier is two halves, [`Outbound`] and [`Inbound`], a [`Watch`] on what comes, and [`Capabilities`]. Each kind is one file or
//! folder: [`ring`], [`via`], [`loopback`]; `any.rs` lists them. Nobody outside this folder asks which kind it is.
//!
//! # Contract
//!
//! `tests/conformance.rs` has a test for each of these, and runs them all for every kind.
//!
//! - C1. Bytes arrive once, whole and in order, in both directions at the same time, whatever the sizes of writes and reads.
//! - C2. What does not fit is not taken. When bytes have been read there is space again, and [`Watch::read`] changes.
//! - C3. The last note of each kind is seen, and not before the bytes that were sent before it; also while nothing else fits.
//! - C4. Where either end can end the carrier ([`Capabilities::freezes`]): what lies before is read, or taken back, once; what
//!   comes later is refused with [`Fault::Frozen`], and was not sent. Both see the end, also if the other one goes. Elsewhere there
//!   is no such end, and nothing comes of a try.
//! - C5. Bytes may be held back ([`Capabilities::holds_back`]) only until the reader has read what came before, or the next call;
//!   [`Outbound::take_back`] gives those that the reader will not find, and no others.
//! - C6. A carrier that grows ([`Capabilities::grows`]) takes what was offered, and loses nothing on the way.
//! - C7. A carrier that lends ([`Capabilities::lends`]) has no use for the caller's memory when the call has returned.
//! - C8. After [`Watch::arm_arrival`] or [`Watch::arm_space`] and another look, what comes is news of the node; the same for event
//!   queues that were attached. Nothing is lost between the look and the sleep.
//! - C9. When the peer is gone, [`Watch::stands`] says so, what had arrived is still read, and sends come to an end with
//!   [`Fault::Closed`] or for lack of space.
//! - C10. [`ENDED`] in a note is seen after the last byte, and also if the peer goes right after it.
//! - C11. Words that were said before, and nudges, leave room for the next word, however often they come to a peer that does not look.
//! - C12. Whatever a peer writes where it can, no call panics or waits, no more bytes are given out than were asked for, and the
//!   position never goes back.
//! - C13. Where the bounds of writes are kept, each read gives one write, whole or as much of it as was asked for.
//! - C14. Of a carrier whose packets only the writer can end ([`Capabilities::packets`]), what its reader
//!   [gives back](Inbound::give) is taken back by the writer if the reader says so in the end, and read by the reader if not; never
//!   both. Until then the writer neither leaves nor sends.
//!
//! # Notes
//!
//! The *writer's notes* announce switches: from this position of the stream on, bytes take that path. One note is for
//! switches to the ring, which have odd numbers, one for those to TCP, which have even ones. The *reader's note* says
//! whether the direction is open, and which switch it has carried out. A writer goes to the ring only when everything
//! before has been carried out, and leaves it at any time; so at most two switches are on the way, one in each note, and
//! the reader needs no list: it drains the old path up to the position, and goes on with the new one.

mod any;
mod contract;
mod host;
pub mod loopback;
mod notes;
mod reports;
pub mod ring;
mod shared;
pub mod via;

pub use any::{AnyInbound, AnyOutbound, AnyWatch};
pub use contract::{Capabilities, Fault, Inbound, Kind, Mode, Outbound, Result, Watch, Written};
pub use host::Host;
pub use notes::{ENDED, Reading, Switch};
pub use shared::{Carrier, Halves, Peer};
pub use via::{
    SharedNews,
    timer::{Still, end as end_timer},
};
