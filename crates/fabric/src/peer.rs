//! Peers: the processes at the other ends of a node's links, and what can be asked about them.

use std::{
    hash::{Hash, Hasher},
    net::IpAddr,
    sync::Arc,
};

use sidestep_shm::attach::{Attachment, Gate};

use crate::{
    cookie::{Cookie, RegionId},
    error::{CloseReason, Error, Result},
    link::{Capabilities, Link, Pages, PeerNumber, Request, Ticket},
    node::{Attached, LinkIndex, Node},
    queue::PeerBell,
    region::RegionSlice,
    tripwire::Access,
};

/// A process at the other end of a link of this node: which link, and as whom the link knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerId {
    link: LinkIndex,
    number: PeerNumber,
}

/// A peer, to be asked about. How it is reached depends on its link; a node with several has peers of several kinds.
#[derive(Debug, Clone, Copy)]
pub struct Peer<'a> {
    attached: &'a Attached,
    number: PeerNumber,
}

impl PeerId {
    pub(crate) fn new(link: LinkIndex, number: PeerNumber) -> PeerId {
        PeerId { link, number }
    }

    pub(crate) fn link(self) -> LinkIndex {
        self.link
    }

    pub(crate) fn number(self) -> PeerNumber {
        self.number
    }
}

impl Hash for PeerId {
    /// As one word: peers are keys of tables that are looked into whenever something is opened.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from(self.link.number()) << 32 | u64::from(self.number.0));
    }
}

impl Node {
    /// A peer of this node.
    #[inline]
    pub fn peer(&self, id: PeerId) -> Peer<'_> {
        self.core().links.peer(id)
    }
}

impl<'a> Peer<'a> {
    pub(crate) fn new(attached: &'a Attached, number: PeerNumber) -> Peer<'a> {
        Peer { attached, number }
    }

    /// Whether the two map each other's memory.
    pub fn maps(&self) -> bool {
        self.link().maps().is_some()
    }

    /// Whether it is there; one whose end has been told of is not.
    pub fn is_here(&self) -> bool {
        self.link().is_here(self.number)
    }

    /// Whether it may be on another host.
    pub fn is_distant(&self) -> bool {
        self.attached.capabilities.distant
    }

    /// Whether it waits for polls of this node, since it cannot reach memory here by itself.
    pub fn is_served(&self) -> bool {
        self.attached.capabilities.served
    }

    /// Whether it, or another peer of its link, was last heard of on this core, so that spinning would keep it from running.
    pub fn shares_core(&self, core: u32) -> bool {
        self.link().shares_core(core)
    }

    /// Where it copies into and out of this process through the kernel, if it can.
    pub fn gate(&self) -> Option<Arc<Gate>> {
        self.link().maps()?.gate(self.number)
    }

    /// Where this process copies into and out of it, if the kernel lets it. Tried once: it must have asked for its `gate`
    /// before.
    pub fn attachment(&self) -> Option<Arc<Attachment>> {
        self.link().maps()?.attachment(self.number)
    }

    /// The number that names the line to it, where lines have one: see [`Link::caller`].
    pub fn caller(&self) -> Option<u64> {
        self.link().caller(self.number)
    }

    /// The user of its process, where the kernel tells that.
    pub fn user(&self) -> Option<u32> {
        self.link().user(self.number)
    }

    /// Its process, on links of one host: see [`Link::process`].
    pub fn process(&self) -> Option<u32> {
        self.link().process(self.number)
    }

    /// The address that its line comes from, on links between hosts: see [`Link::address`].
    pub fn address(&self) -> Option<IpAddr> {
        self.link().address(self.number)
    }

    /// Ends everything with it. Its connections report that.
    pub fn close(&self, reason: CloseReason) {
        self.link().close(self.number, reason);
    }

    #[inline]
    fn link(&self) -> &'a dyn Link {
        self.attached.as_link()
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        self.attached.capabilities
    }

    /// The name under which this side listens, for one that it used and nobody here listens under.
    pub(crate) fn local_name(&self, name: &str) -> Option<String> {
        self.link().local_name(self.number, name)
    }

    pub(crate) fn post(&self, bytes: &[u8]) -> Result<()> {
        self.link().post(self.number, bytes)
    }

    pub(crate) fn request(&self, ticket: Ticket, cookie: &Cookie, request: Request<'_>) -> Result<()> {
        self.link().request(self.number, ticket, cookie, request)
    }

    pub(crate) fn put(&self, ticket: Ticket, cookie: &Cookie, offset: u64, source: &RegionSlice) -> Result<()> {
        self.link().put(self.number, ticket, cookie, offset, source)
    }

    /// Does at once what its link puts off for a moment.
    pub(crate) fn push(&self) {
        self.link().push();
    }

    /// Gives it the pages of a region, if it can map them.
    pub(crate) fn offer(&self, cookie: &Cookie, pages: &Pages) -> Result<()> {
        self.link().maps().map_or(Ok(()), |maps| maps.offer(self.number, cookie, pages))
    }

    /// An error if its end has been told of.
    pub(crate) fn check_here(&self) -> Result<()> {
        if self.link().is_here(self.number) { Ok(()) } else { Err(Error::Closed(CloseReason::Died)) }
    }

    /// Tells it that an armed word of a region of its own was written or read.
    pub(crate) fn fire(&self, region: RegionId, offset: usize, access: Access) {
        if let Some(maps) = self.link().maps() {
            maps.fire(self.number, region, offset, access);
        }
    }

    /// What a forked child of this process needs to wake it.
    pub(crate) fn bell(&self) -> Option<PeerBell> {
        self.link().maps()?.bell(self.number)
    }
}
