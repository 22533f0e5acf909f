//! What goes out: requests to regions of peers, and messages, which wait in the outbox while a link is full.

use std::sync::Arc;

use super::{Node, NodeCore};
use crate::{
    aperture::ApertureCore,
    cookie::{Cookie, RegionId},
    error::{Error, Result},
    link::{Request, Ticket},
    outbox::Held,
    peer::{Peer, PeerId},
    protocol::Message,
    region::{RegionCore, RegionSlice},
    ticket::Completion,
};

impl Node {
    /// Starts a request; `completion` learns how it ends.
    pub(crate) fn request(
        &self,
        peer: PeerId,
        cookie: &Cookie,
        request: Request<'_>,
        completion: Completion,
    ) -> Result<()> {
        self.start(peer, completion, |peer, ticket| peer.request(ticket, cookie, request))
    }

    /// Starts a put of bytes that lie in a region; `completion` learns how it ends.
    pub(crate) fn put(
        &self,
        peer: PeerId,
        cookie: &Cookie,
        offset: u64,
        source: &RegionSlice,
        completion: Completion,
    ) -> Result<()> {
        self.start(peer, completion, |peer, ticket| peer.put(ticket, cookie, offset, source))
    }

    fn start(
        &self,
        peer: PeerId,
        completion: Completion,
        ask: impl FnOnce(Peer<'_>, Ticket) -> Result<()>,
    ) -> Result<()> {
        let ticket = self.core.tickets.issue(completion);
        let started = ask(self.peer(peer), ticket);
        if started.is_err() {
            self.core.tickets.redeem(ticket);
        }
        self.core.push_unattended();
        started
    }

    /// Sends a message that must arrive, as soon as the link takes it.
    pub(crate) fn post(&self, peer: PeerId, message: Message<'_>) -> Result<()> {
        self.core.post(peer, message)
    }

    /// Sends a message of the program's own; an error if the link is full.
    pub(crate) fn try_post(&self, peer: PeerId, message: Message<'_>) -> Result<()> {
        if !self.core.outbox.is_clear(peer) {
            return Err(Error::Full { what: "the link", limit: 0 });
        }
        self.peer(peer).post(&message.to_bytes())
    }

    /// Whether the link has taken everything that was meant for a peer.
    pub(crate) fn has_sent_all(&self, peer: PeerId) -> bool {
        self.core.outbox.is_clear(peer)
    }

    /// Starts a store that must arrive, as soon as the link takes it.
    pub(crate) fn store(
        &self,
        peer: PeerId,
        cookie: &Cookie,
        offset: u64,
        bytes: &[u8],
        completion: Completion,
    ) -> Result<()> {
        let ticket = self.core.tickets.issue(completion);
        let held = Held::Store { ticket, cookie: *cookie, offset, bytes: bytes.to_vec() };
        let sent = self.core.send(peer, held, true);
        if sent.is_err() {
            self.core.tickets.redeem(ticket);
        }
        sent
    }

    /// Sends the pages of a region ahead, if the cookie lets a peer map them.
    pub(crate) fn offer(&self, peer: PeerId, region: &RegionCore, cookie: &Cookie) -> Result<()> {
        let to = self.peer(peer);
        if !to.maps() {
            return to.check_here();
        }
        match region.grant(peer, cookie, true)? {
            Some(pages) => to.offer(cookie, &pages),
            None => Ok(()),
        }
    }

    /// Tells those who have pages of a region that its cookies before `generation` are void. The others find out when
    /// they use one.
    pub(crate) fn announce_revoked(&self, mapped_by: &[PeerId], region: RegionId, generation: u32) {
        for peer in mapped_by {
            // A peer that cannot be told is closing; its apertures end with it.
            let _ = self.post(*peer, Message::Revoked { region, generation });
        }
    }
}

impl NodeCore {
    /// Asks where the memory lies that is behind an aperture, if this side might copy there through the kernel.
    pub(crate) fn ask_location(&self, aperture: &ApertureCore) {
        let (peer, cookie) = aperture.names();
        if self.links.peer(peer).maps() && aperture.is_proxied() {
            // A peer that is gone does not answer.
            let _ = self.post(peer, Message::Locate { cookie });
        }
    }

    /// Tells a peer where memory of the program lies, if it may copy there through the kernel; else it goes on by messages.
    pub(super) fn tell_location(&self, peer: PeerId, cookie: &Cookie) {
        let location = || self.region(cookie).ok()?.locate(cookie, &self.links.peer(peer).gate()?);
        if let Some((address, turn)) = location() {
            let _ = self.post(peer, Message::Located { cookie: *cookie, address, turn });
        }
    }

    /// Tells the owner of a region that is mapped for reading that words of a line that it watches were read.
    pub(crate) fn report_read(&self, aperture: &Arc<ApertureCore>, line: usize, words: (usize, usize)) {
        let (peer, cookie) = aperture.names();
        let ticket = self.tickets.issue(Completion::Report(Arc::downgrade(aperture), line, words));
        let held = Held::Fetch { ticket, cookie, offset: words.0 as u64, len: words.1 };
        if self.send(peer, held, false).is_err() {
            // The peer is gone, and what it watched with it.
            self.tickets.redeem(ticket);
        }
    }

    /// Keeps or sends what must arrive. If it is kept, sleepers must look after it from now on.
    fn send(&self, peer: PeerId, held: Held, bound: bool) -> Result<()> {
        let sent = self.outbox.send(self.links.peer(peer), peer, held, bound);
        self.push_unattended();
        if !self.outbox.is_empty() {
            self.notify();
        }
        sent
    }

    pub(crate) fn post(&self, peer: PeerId, message: Message<'_>) -> Result<()> {
        self.send(peer, Held::Post(message.to_bytes()), false)
    }
}
