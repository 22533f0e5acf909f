//! Message queues: a ring in the receiver's memory, with lazy copies of the positions on each side.
//!
//! A connection has one *block* in a region of each side. The peer writes it, its owner reads it; where its words lie is
//! [`BLOCK_LAYOUT`]. Its `tail` and its `head` are tripwires: data, and space.
//!
//! So [`Sender`] writes the peer's tail and ring and reads its own head; [`Receiver`] reads its own tail and ring and
//! writes the peer's head. Nothing is read across but armed bits, and the tail by the step that publishes it. A queue is a stream of bytes, or has slots of a fixed
//! size, one message each. One publish can cover many messages.
//!
//! # In place
//!
//! A stream can be written and read where its bytes lie, without a buffer of the program's own on either side:
//!
//! ```
//! # use sidestep_fabric::{Result, queue::{Receiver, Sender}};
//! /// A record is its length, in four bytes, and so many bytes.
//! fn send_record(sender: &mut Sender, number: u64) -> Result<()> {
//!     sender.wait_space(12, None)?;
//!     let Some(mut space) = sender.reserve(12)? else { return Ok(()) };
//!     space.copy_in(4, &number.to_le_bytes())?;
//!     space.copy_in(0, &8u32.to_le_bytes())?;
//!     space.commit(12)
//! }
//!
//! /// The sum of the bytes of the next record, if it has arrived.
//! fn take_record(receiver: &mut Receiver) -> Result<Option<u64>> {
//!     let Some(head) = receiver.view(4)? else { return Ok(None) };
//!     let len = u32::from_le_bytes(head.array(0)?) as usize;
//!     // A peer may send anything: a length that no ring holds is an error of `view`.
//!     let Some(view) = receiver.view(4 + len)? else { return Ok(None) };
//!     let sum = |sum, piece: &[u8]| piece.iter().fold(sum, |sum, byte| sum + u64::from(*byte));
//!     let sum = view.part(4, len)?.fold(0, sum)?;
//!     receiver.consume(4 + len)?;
//!     Ok(Some(sum))
//! }
//! ```
//!
//! The peer can change bytes that were not consumed, so a [`View`] loads and copies and gives no reference. A value that
//! was loaded and checked must be used, not loaded again: above, `len`. Offsets run on around the end of the ring.

mod heir;
mod home;
mod receiver;
mod reserved;
mod sender;
mod wire;

pub use sidestep_shm::byte_ring::{Frozen, View};

pub use self::{
    heir::{Heir, PeerBell},
    receiver::Receiver,
    reserved::Reserved,
    sender::Sender,
};

use std::sync::{
    Arc,
    atomic::{Ordering, fence},
};

use sidestep_shm::{
    Word64,
    byte_ring::{FROZEN, POSITION},
    slot_ring,
};
use sidestep_wire::cursor::little::{Reader, Writer};

use self::{home::Home, wire::Wire};
use crate::{
    aperture::Aperture,
    cookie::{Cookie, Rights},
    endpoint::Endpoint,
    error::{Error, Result},
    node::Node,
    region::{Region, RegionCore, RegionSlice},
    tripwire::{Access, Mode, Tripwire},
};

sidestep_shm::layout! {
    /// A queue block, in a region of the side that reads it.
    BLOCK_LAYOUT {
        pub(crate) TAIL = 0x00, "`tail`: bytes the peer has published into this ring; bit 63: frozen, bit 62: wanted, bit 61: taken", "peer's `Sender`; the bits: either side";
        pub(crate) TAIL_CORE = 0x08, "core the peer published on", "peer's `Sender`";
        pub(crate) SWITCH = 0x10, "`switch`: position + 1 from which bytes lie in the next ring", "peer's `Sender`";
        FIRST_NOTE = 0x18, "a word of the program's own, for whoever reads", "peer's `Sender`";
        SECOND_NOTE = 0x20, "another one", "peer's `Sender`";
        pub(crate) COUNT = 0x28, "a count of the program's own, which comes with the bytes behind it", "peer's `Sender`";
        pub(crate) HEAD = 0x80, "`head`: bytes the peer has read of what we sent", "peer's `Receiver`";
        pub(crate) HEAD_CORE = 0x88, "core the peer published on", "peer's `Receiver`";
        pub(crate) HEAD_NOTE = 0x90, "a word of the program's own, for whoever writes", "peer's `Receiver`";
        pub(crate) WITNESS = 0xc0, "how far we have read, for a peer that outlives us", "owner's `Receiver`";
        RING = BLOCK_HEADER, "ring, a power of two", "peer's `Sender`";
    }
}
pub(crate) const TAIL_NOTES: [usize; 2] = [FIRST_NOTE, SECOND_NOTE];
/// Bytes of a block before its ring.
pub const BLOCK_HEADER: usize = 0x100;

/// The smallest and the largest ring.
pub const MIN_CAPACITY: usize = 256;
/// The largest ring.
pub const MAX_CAPACITY: usize = 1 << 30;

/// What a queue carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// A stream of bytes.
    #[default]
    Stream,
    /// Messages of at most this many bytes less 8, one a slot; a power of two.
    Slots(u32),
}

/// What the other side must know of a block. Travels as private data when a connection is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSpec {
    /// The region.
    pub cookie: Cookie,
    /// Where the block lies in it.
    pub offset: u64,
    /// Length of its ring, a power of two.
    pub capacity: u64,
    /// What the ring carries.
    pub kind: Kind,
}

/// One side's half of a connection: a block in a region of its own.
#[derive(Debug, Clone)]
pub struct QueueBlock {
    slice: RegionSlice,
    cookie: Cookie,
    capacity: usize,
    kind: Kind,
}

impl QueueSpec {
    /// Bytes on the wire.
    pub const WIRE_LEN: usize = Cookie::WIRE_LEN + 24;

    /// The form that travels.
    pub fn to_bytes(&self) -> [u8; QueueSpec::WIRE_LEN] {
        let stride = match self.kind {
            Kind::Stream => 0,
            Kind::Slots(stride) => u64::from(stride),
        };
        let mut bytes = [0; QueueSpec::WIRE_LEN];
        let mut out = Writer::new(&mut bytes[..]);
        out.bytes(&self.cookie.to_bytes()).u64(self.offset).u64(self.capacity).u64(stride);
        bytes
    }

    /// Reads the form that travels, and checks everything that can be checked without the owner.
    pub fn from_bytes(bytes: &[u8]) -> Result<QueueSpec> {
        let bad =
            || Error::Size { what: "queue", must: "described by 72 bytes that fit its region", value: bytes.len() };
        let read = |fields: &mut Reader<'_>| -> std::result::Result<QueueSpec, &'static str> {
            let (cookie, offset, capacity) = (Cookie::read(fields)?, fields.u64()?, fields.u64()?);
            let kind = match fields.u64()? {
                0 => Kind::Stream,
                stride => Kind::Slots(u32::try_from(stride).map_err(|_| "a slot is too long")?),
            };
            fields.end()?;
            Ok(QueueSpec { cookie, offset, capacity, kind })
        };
        let spec = read(&mut Reader::new(bytes)).map_err(|_| bad())?;
        let end = spec.offset.checked_add(spec.capacity).and_then(|end| end.checked_add(BLOCK_HEADER as u64));
        if spec.offset % 128 != 0 || end.is_none_or(|end| end > spec.cookie.len() as u64) {
            return Err(bad());
        }
        check_ring(spec.capacity as usize, spec.kind)?;
        Ok(spec)
    }
}

impl QueueBlock {
    /// Lays a block into a region, at a multiple of 128. The bytes there are cleared.
    pub fn new(region: &Region, offset: usize, capacity: usize, kind: Kind) -> Result<QueueBlock> {
        Self::on(region.core(), offset, capacity, kind)
    }

    pub(crate) fn on(region: &Arc<RegionCore>, offset: usize, capacity: usize, kind: Kind) -> Result<QueueBlock> {
        check_ring(capacity, kind)?;
        if offset % 128 != 0 {
            return Err(Error::Size { what: "offset of a queue", must: "a multiple of 128", value: offset });
        }
        let slice = region.slice(offset, BLOCK_HEADER + capacity)?;
        for at in (0..BLOCK_HEADER).step_by(8) {
            slice.word64(at)?.store(0, Ordering::Relaxed);
        }
        Ok(QueueBlock { slice, cookie: region.cookie(), capacity, kind })
    }

    /// What the other side must know.
    pub fn spec(&self) -> QueueSpec {
        QueueSpec {
            cookie: self.cookie,
            offset: self.slice.offset() as u64,
            capacity: self.capacity as u64,
            kind: self.kind,
        }
    }

    /// What can be known of this block without its sender and receiver.
    pub fn monitor(&self, node: &Node) -> Result<Monitor> {
        let tripwire = |at| Tripwire::on_slice(node, &self.slice, at, Access::Write, Mode::Once);
        Ok(Monitor {
            tail: self.slice.word64(TAIL)?,
            core: self.slice.word64(TAIL_CORE)?,
            head: self.slice.word64(HEAD)?,
            sender_notes: [self.slice.word64(TAIL_NOTES[0])?, self.slice.word64(TAIL_NOTES[1])?],
            sender_count: self.slice.word64(COUNT)?,
            receiver_note: self.slice.word64(HEAD_NOTE)?,
            arrival: tripwire(TAIL)?,
            space: tripwire(HEAD)?,
        })
    }

    pub(crate) fn slice(&self) -> &RegionSlice {
        &self.slice
    }
}

/// A look at a block from beside: for programs that keep the receiver under a lock and poll or wait without it.
#[derive(Debug)]
pub struct Monitor {
    tail: Word64,
    core: Word64,
    head: Word64,
    sender_notes: [Word64; 2],
    sender_count: Word64,
    receiver_note: Word64,
    arrival: Tripwire,
    space: Tripwire,
}

impl Monitor {
    /// How far the peer says it has written. Compare it with an earlier answer, and use it for nothing else.
    #[inline]
    pub fn written(&self) -> u64 {
        self.tail.load(Ordering::Relaxed) & POSITION
    }

    /// Whether the queue that is received from has been ended, by either side.
    #[inline]
    pub fn is_frozen(&self) -> bool {
        self.tail.load(Ordering::Relaxed) & FROZEN != 0
    }

    /// How far the peer says it has read of what was sent. For comparison only.
    #[inline]
    pub fn read(&self) -> u64 {
        self.head.load(Ordering::Relaxed)
    }

    /// One of the two notes that the peer's sender left ([`Sender::set_note`]). What it sent before is visible, and
    /// nothing of what it stores later is promised.
    #[inline]
    pub fn sender_note(&self, which: usize) -> u64 {
        self.sender_notes[which & 1].load(Ordering::Acquire)
    }

    /// The count that the peer's sender left ([`Sender::set_count`]): at least the one that came with bytes which were seen before.
    #[inline]
    pub fn sender_count(&self) -> u64 {
        // Pairs with the Release of the publication behind it: the look at the tail comes first.
        fence(Ordering::Acquire);
        self.sender_count.load(Ordering::Acquire)
    }

    /// The note that the peer's receiver left ([`Receiver::set_note`]).
    #[inline]
    pub fn receiver_note(&self) -> u64 {
        self.receiver_note.load(Ordering::Acquire)
    }

    /// The core on which the peer last published.
    #[inline]
    pub fn peer_core(&self) -> u32 {
        self.core.load(Ordering::Relaxed) as u32
    }

    /// Fires once, when armed, as soon as something arrives.
    pub fn arrival(&self) -> &Tripwire {
        &self.arrival
    }

    /// Fires once, when armed, as soon as the peer has made space.
    pub fn space(&self) -> &Tripwire {
        &self.space
    }
}

/// Joins this side's block with the peer's, which the open `aperture` and `theirs` name. Both sides do this.
pub fn attach(
    endpoint: &Endpoint,
    ours: &QueueBlock,
    aperture: &Aperture,
    theirs: &QueueSpec,
) -> Result<(Sender, Receiver)> {
    let offset = theirs.offset as usize;
    aperture.check(offset, BLOCK_HEADER + theirs.capacity as usize, Rights::WRITE)?;
    let node = endpoint.node();
    let home = |at| -> Result<Home> {
        let tripwire = Tripwire::on_slice(node, &ours.slice, at, Access::Write, Mode::Once)?;
        Ok(Home::new(node.clone(), endpoint.core().clone(), tripwire))
    };
    let sender = Sender::new(home(HEAD)?, Wire::new(aperture, offset, TAIL)?, ours, theirs)?;
    let receiver = Receiver::new(home(TAIL)?, Wire::new(aperture, offset, HEAD)?, ours)?;
    Ok((sender, receiver))
}

fn check_ring(capacity: usize, kind: Kind) -> Result<()> {
    if !capacity.is_power_of_two() || !(MIN_CAPACITY..=MAX_CAPACITY).contains(&capacity) {
        return Err(Error::Size { what: "ring", must: "a power of two from 256 B to 1 GiB", value: capacity });
    }
    if let Kind::Slots(stride) = kind {
        slot_ring::check_stride(stride as usize, capacity)?;
    }
    Ok(())
}
