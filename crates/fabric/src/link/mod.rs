//! Links: what carries the fabric between two nodes.
//!
//! A link knows peers (the process at the other end), not endpoints: those are made above it from its messages.
//! Everything that arrives is handed to a [`Target`], the node, which alone knows regions and checks cookies. A link whose
//! peers map each other's memory is also a [`Maps`].
//!
//! A node has one link or several, each with another [scheme](Capabilities::scheme). Nothing above the fabric names the type
//! of a link: it says `shm` or `iwarp`, or begins a name so.
//!
//! # Contract
//!
//! Each line is one test of the conformance suite (`testkit::conformance`).
//!
//! - `connect` reaches whoever listens under a name, and says so if nobody does.
//! - What is posted to a peer arrives whole, once and in order, or the peer is reported closed.
//! - `put`, `get` and `atomic` to one peer take effect in the order they were asked for.
//! - A request without direct outcome ends in exactly one `completed` with its ticket, also when the peer closes.
//! - A put's bytes are taken at the call; the caller may change them at once.
//! - A refused request changes nothing at the owner and says why.
//! - A peer that closes or dies is reported exactly once, after everything it posted before.
//! - After `set_sleeping(true)`, any later news makes one of the descriptors given by `watch` ready.
//! - `poll` never blocks.

pub mod iwarp;
mod options;
mod provided;
pub mod shm;
pub mod traced;

pub use self::{options::LinkOptions, provided::provide};

use std::{fmt, net::IpAddr, os::fd::OwnedFd, sync::Arc};

use sidestep_shm::{
    Memory, Span,
    attach::{Attachment, Gate},
    doorbell::Sleeper,
    memfd::Sharing,
    read_only::ReadOnlyMemory,
};

use crate::{
    cookie::{Cookie, RegionId, Rights},
    error::{CloseReason, Error, Refusal, Result},
    queue::PeerBell,
    region::RegionSlice,
    tripwire::Access,
};

/// A process at the other end of a link, as the link numbers it. A node with several links knows it by a
/// [`PeerId`](crate::PeerId).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerNumber(pub u32);

/// Connects a request with its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// Token under which [`Link::watch`] adds what only the kernel knows of, as opposed to doorbells.
pub const KERNEL: u64 = u64::MAX - 1;

/// The most bytes of one put from a region to a link that [gathers](Capabilities::gathers).
pub const MAX_GATHERED: usize = 256 * 1024;

/// What a link can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// The first part of its names, as in `shm:NAME`.
    pub scheme: &'static str,
    /// Whether its peers may be on other hosts.
    pub distant: bool,
    /// Whether its peers wait for [`Link::poll`] to be called here, so that a node keeps a thread that does while the program
    /// does not.
    pub served: bool,
    /// Whether a put from a region is best left to [`Link::put`]; else whoever asks copies the bytes first.
    pub gathers: bool,
    /// The most bytes of one put or get.
    pub max_transfer: usize,
    /// The most bytes of one posted message.
    pub max_message: usize,
}

/// One of the two atomic operations, on an aligned 64-bit word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Atomic {
    /// Stores `new` if the word holds `expected`.
    CompareSwap {
        /// What the word must hold.
        expected: u64,
        /// What is stored then.
        new: u64,
    },
    /// Adds, wrapping.
    FetchAdd(u64),
}

/// The pages of a region, as they are at this moment: later ones of the same region are others.
#[derive(Debug, Clone)]
pub struct Pages {
    /// What a peer maps.
    pub descriptor: Arc<OwnedFd>,
    /// Length of the memory: data, then armed bits.
    pub len: usize,
}

/// The pages of a peer's region, mapped here.
#[derive(Debug, Clone)]
pub enum Mapping {
    /// For reading and writing.
    ReadWrite(Memory),
    /// For reading.
    ReadOnly(ReadOnlyMemory),
}

impl Mapping {
    /// Maps pages that a peer has sent for a cookie of these rights, after checking them.
    pub fn attach(descriptor: OwnedFd, len: usize, rights: Rights) -> Result<Mapping> {
        Ok(match rights.sharing() {
            Some(Sharing::ReadWrite) => Mapping::ReadWrite(Memory::attach(descriptor, len)?),
            _ => Mapping::ReadOnly(ReadOnlyMemory::attach(descriptor, len)?),
        })
    }

    /// Length of the memory: data, then armed bits.
    pub fn total_len(&self) -> usize {
        match self {
            Mapping::ReadWrite(memory) => memory.len(),
            Mapping::ReadOnly(memory) => memory.len(),
        }
    }
}

/// What can be asked of the owner of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request<'a> {
    /// The pages, to map them.
    Map,
    /// Write these bytes, which are taken at the call.
    Put {
        /// Where in the region.
        offset: u64,
        /// What.
        bytes: &'a [u8],
    },
    /// Read.
    Get {
        /// Where in the region.
        offset: u64,
        /// How much.
        len: usize,
    },
    /// An atomic operation on an aligned 64-bit word.
    Atomic {
        /// Where in the region.
        offset: u64,
        /// Which.
        atomic: Atomic,
    },
}

/// How a request ended.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// Done.
    Done,
    /// The bytes that were read.
    Bytes(Vec<u8>),
    /// What the word held before.
    Value(u64),
    /// The region can be mapped: its memory, data first, then its armed bits.
    Mapped(Mapping),
    /// The region is not mapped; the link carries every access.
    Proxied,
    /// The owner said no.
    Refused(Refusal),
    /// The peer went away first.
    Closed(CloseReason),
    /// This side could not take the answer, for want of resources.
    Failed(Error),
}

/// Where a link delivers what arrives. The node implements it; cookies are checked there and nowhere else. A link may
/// hold locks of its own while it calls `place`, `fetch`, `atomic` and `grant`, which call no link.
pub trait Target {
    /// A peer has connected.
    fn opened(&self, peer: PeerNumber);
    /// A message has arrived.
    fn message(&self, peer: PeerNumber, bytes: &[u8]);
    /// A peer asks to write.
    fn place(&self, peer: PeerNumber, cookie: &Cookie, offset: u64, bytes: &[u8]) -> Result<(), Refusal>;
    /// Whether [`land`](Self::land) may be called; a target that wants to see every byte itself says no.
    fn lands(&self) -> bool {
        false
    }
    /// A peer asks to write `len` bytes, which are still on their way: if the owner allows that, `fill` is called with the
    /// place for them. What watches them is told by [`landed`](Self::landed), when all of a segment is there.
    fn land(
        &self,
        peer: PeerNumber,
        cookie: &Cookie,
        (offset, len): (u64, usize),
        fill: &mut dyn FnMut(&Span),
    ) -> Result<(), Refusal> {
        let _ = (peer, cookie, fill);
        Err(Refusal::Range { offset, len: len as u64 })
    }
    /// Bytes that were put where [`land`](Self::land) said are all there.
    fn landed(&self, cookie: &Cookie, offset: u64, len: usize) {
        let _ = (cookie, offset, len);
    }
    /// A peer asks to read into `bytes`.
    fn fetch(&self, peer: PeerNumber, cookie: &Cookie, offset: u64, bytes: &mut [u8]) -> Result<(), Refusal>;
    /// A peer asks for an atomic operation.
    fn atomic(&self, peer: PeerNumber, cookie: &Cookie, offset: u64, atomic: Atomic) -> Result<u64, Refusal>;
    /// A peer asks for the pages of a region: `None` if it may use the region, but not map it.
    fn grant(&self, peer: PeerNumber, cookie: &Cookie) -> Result<Option<Pages>, Refusal>;
    /// A peer sent the pages of a region before they were asked for.
    fn offered(&self, peer: PeerNumber, cookie: &Cookie, pages: Mapping);
    /// A peer wrote or read an armed word of a region it has mapped.
    fn fired(&self, region: RegionId, offset: usize, access: Access);
    /// Armed words may have been written without a report: look at all of them.
    fn fired_unknown(&self);
    /// A request has ended.
    fn completed(&self, ticket: Ticket, outcome: Outcome);
    /// A peer is gone; nothing of it follows.
    fn closed(&self, peer: PeerNumber, reason: CloseReason);
}

/// What every link provides.
pub trait Link: fmt::Debug + Send + Sync {
    /// What this link can do.
    fn capabilities(&self) -> Capabilities;
    /// Lets peers connect under a name, until `unlisten`.
    fn listen(&self, name: &str) -> Result<()>;
    /// Stops that. Peers that are there stay.
    fn unlisten(&self, name: &str);
    /// Connects to whoever listens under a name. A live peer of that name is used again.
    fn connect(&self, name: &str) -> Result<PeerNumber>;
    /// Connects to whoever listens under a name, from this address of the host, over a line of its own: no other `connect` uses
    /// it. Gives up at the deadline. For links whose names are addresses.
    fn connect_from(&self, name: &str, from: IpAddr, deadline: u64) -> Result<PeerNumber> {
        let _ = (name, from, deadline);
        Err(Error::Unsupported("connect from an address over a link that has none"))
    }
    /// Makes a line of its own out of a stream that is connected already, and that is the link's from now on. One side `begins`, and
    /// the other waits for it. For links that run over streams.
    fn adopt(&self, stream: OwnedFd, begins: bool) -> Result<PeerNumber> {
        let _ = (stream, begins);
        Err(Error::Unsupported("a line over a stream of the caller on a link that has none"))
    }
    /// The name under which this side listens, for one that a peer used and nobody here listens under.
    fn local_name(&self, peer: PeerNumber, name: &str) -> Option<String> {
        let _ = (peer, name);
        None
    }
    /// Sends a message.
    fn post(&self, peer: PeerNumber, bytes: &[u8]) -> Result<()>;
    /// Starts a request to a region of the peer.
    fn request(&self, peer: PeerNumber, ticket: Ticket, cookie: &Cookie, request: Request<'_>) -> Result<()>;
    /// Starts a put of bytes that lie in a region, and stay there until it ends. A link that [gathers](Capabilities::gathers)
    /// sends them from there.
    fn put(&self, peer: PeerNumber, ticket: Ticket, cookie: &Cookie, offset: u64, source: &RegionSlice) -> Result<()> {
        let mut bytes = vec![0; source.len()];
        source.span()?.copy_out(0, &mut bytes)?;
        self.request(peer, ticket, cookie, Request::Put { offset, bytes: &bytes })
    }
    /// Whether the peer is there; one whose end has been told of is not. Links that map say so by [`Maps::offer`].
    fn is_here(&self, peer: PeerNumber) -> bool {
        let _ = peer;
        true
    }
    /// Collects what has arrived; with `kernel`, also what only the kernel knows of. `true` if there was anything.
    fn poll(&self, target: &dyn Target, kernel: bool) -> bool;
    /// A cheap guess whether `poll` would find something that memory can tell.
    fn has_news(&self) -> bool;
    /// Whether it holds something back until there is room underneath, which rings for nobody: it is to be polled again soon.
    fn is_full(&self) -> bool {
        false
    }
    /// Whether some peer was last heard of on this core, so that spinning would keep it from running.
    fn shares_core(&self, core: u32) -> bool {
        let _ = core;
        false
    }
    /// Adds the descriptors to sleep on to `sleeper`, now and as peers come, for as long as it lives. Those that make
    /// `poll` with `kernel` find something have the token [`KERNEL`].
    fn watch(&self, sleeper: &Arc<Sleeper>) -> Result<()>;
    /// Announces sleep, or takes that back: while it stands, news rings.
    fn set_sleeping(&self, sleeping: bool);
    /// Somebody polls, has just found something, and nobody sleeps: until the next `set_sleeping(true)`, news need not make a
    /// descriptor ready, which costs its sender. `true` if that is so from now on; then look again whether nobody sleeps.
    fn attend(&self) -> bool {
        false
    }
    /// Does at once what the link puts off for a moment to save messages: somebody waits for the end of a request, or nobody
    /// may poll for a while.
    fn push(&self) {}
    /// What it adds, if its peers map each other's memory.
    fn maps(&self) -> Option<&dyn Maps> {
        None
    }
    /// The number that names the line to a peer, and no other line of this host, for as long as it lives: who connected has
    /// given it to its end, and the kernel has told it to the other. For proofs that somebody speaks on this very line.
    fn caller(&self, peer: PeerNumber) -> Option<u64> {
        let _ = peer;
        None
    }
    /// The user of a peer's process, where the kernel tells that.
    fn user(&self, peer: PeerNumber) -> Option<u32> {
        let _ = peer;
        None
    }
    /// The process at the other end, as the kernel told when the line to it was made; `None` where it cannot tell.
    fn process(&self, peer: PeerNumber) -> Option<u32> {
        let _ = peer;
        None
    }
    /// The address that a peer's line comes from, on links whose names are addresses.
    fn address(&self, peer: PeerNumber) -> Option<IpAddr> {
        let _ = peer;
        None
    }
    /// Ends the connection with a peer. `closed` follows.
    fn close(&self, peer: PeerNumber, reason: CloseReason);
}

/// What links add whose peers map each other's memory. A cookie with all rights, or the right
/// to read alone, lets a peer map the pages.
pub trait Maps {
    /// Gives a peer the pages of a region before it asks, so that it can map them while this process is busy.
    fn offer(&self, peer: PeerNumber, cookie: &Cookie, pages: &Pages) -> Result<()>;
    /// Tells the owner of a mapped region that an armed word of it was written or read.
    fn fire(&self, peer: PeerNumber, region: RegionId, offset: usize, access: Access);
    /// How often this link rang the doorbell of a peer.
    fn doorbells(&self) -> u64 {
        0
    }
    /// Where a peer copies into and out of this process through the kernel, if the link's peers are processes of this host
    /// whose threads can be told.
    fn gate(&self, peer: PeerNumber) -> Option<Arc<Gate>> {
        let _ = peer;
        None
    }
    /// Where this process copies into and out of a peer, if the kernel lets it. Tried once: the peer must have asked for its
    /// `gate` before.
    fn attachment(&self, peer: PeerNumber) -> Option<Arc<Attachment>> {
        let _ = peer;
        None
    }
    /// What a forked child of this process needs to wake a peer.
    fn bell(&self, peer: PeerNumber) -> Option<PeerBell> {
        let _ = peer;
        None
    }
}

/// The schemes of the links that [`AnyLink::open`] makes.
pub const SCHEMES: [&str; 2] = ["shm", "iwarp"];

/// A link of this process by its scheme, for one that wraps it: one of [`SCHEMES`].
pub fn open(scheme: &str, options: &LinkOptions) -> Result<Box<dyn Link>> {
    Ok(AnyLink::open(scheme, options)?.into_link())
}

/// Any link.
#[derive(Debug)]
pub enum AnyLink {
    /// Shared memory between processes of one host.
    Shm(shm::ShmLink),
    /// iWARP over TCP, between hosts.
    Iwarp(Box<iwarp::IwarpLink>),
    /// One that wraps another, or that is not of this crate.
    Other(Box<dyn Link>),
}

impl AnyLink {
    /// A link of this process by its scheme: one of [`SCHEMES`], or one that was [provided](provide).
    pub fn open(scheme: &str, options: &LinkOptions) -> Result<AnyLink> {
        match scheme {
            "shm" => Ok(AnyLink::Shm(shm::ShmLink::new(options.admits)?)),
            "iwarp" => Ok(AnyLink::Iwarp(Box::new(iwarp::IwarpLink::new(*options)?))),
            _ => provided::open(scheme, options).map(AnyLink::Other),
        }
    }

    /// A link of another type.
    pub fn other(link: impl Link + 'static) -> AnyLink {
        AnyLink::Other(Box::new(link))
    }

    /// The link itself, for one that wraps it.
    pub fn into_link(self) -> Box<dyn Link> {
        match self {
            AnyLink::Shm(link) => Box::new(link),
            AnyLink::Iwarp(link) => link,
            AnyLink::Other(link) => link,
        }
    }

    /// The link behind the name.
    #[inline]
    pub fn as_link(&self) -> &dyn Link {
        match self {
            AnyLink::Shm(link) => link,
            AnyLink::Iwarp(link) => &**link,
            AnyLink::Other(link) => &**link,
        }
    }
}
