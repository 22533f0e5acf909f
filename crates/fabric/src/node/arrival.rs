//! What arrives: the node as the target of one of its links.

use std::sync::atomic::Ordering;

use sidestep_shm::Span;

use super::{LinkIndex, NodeCore};
use crate::{
    cookie::{Cookie, RegionId},
    error::{CloseReason, Refusal},
    link::{Atomic, Mapping, Outcome, Pages, PeerNumber, Target, Ticket},
    peer::PeerId,
    protocol::Message,
    tripwire::Access,
};

/// What arrives over one link.
pub(crate) struct Arrivals<'a> {
    node: &'a NodeCore,
    link: LinkIndex,
}

impl<'a> Arrivals<'a> {
    pub(crate) fn new(node: &'a NodeCore, link: LinkIndex) -> Arrivals<'a> {
        Arrivals { node, link }
    }

    fn id(&self, peer: PeerNumber) -> PeerId {
        PeerId::new(self.link, peer)
    }
}

impl Target for Arrivals<'_> {
    fn opened(&self, _peer: PeerNumber) {}

    fn message(&self, peer: PeerNumber, bytes: &[u8]) {
        let (node, peer) = (self.node, self.id(peer));
        node.scheduler.note_news();
        match Message::parse(bytes) {
            Ok(Message::Revoked { region, generation }) => node.apertures.revoked(peer, region, generation),
            Ok(Message::Locate { cookie }) => node.tell_location(peer, &cookie),
            Ok(Message::Located { cookie, address, turn }) => node.apertures.located(peer, &cookie, address, turn),
            Ok(message) => node.endpoints.handle(node, peer, message),
            Err(what) => node.links.peer(peer).close(CloseReason::Violation(what)),
        }
    }

    fn place(&self, _peer: PeerNumber, cookie: &Cookie, offset: u64, bytes: &[u8]) -> Result<(), Refusal> {
        self.node.region(cookie)?.place(cookie, offset, bytes)?;
        self.node.counters.served_bytes.add(bytes.len());
        Ok(())
    }

    fn lands(&self) -> bool {
        true
    }

    fn land(
        &self,
        _peer: PeerNumber,
        cookie: &Cookie,
        place: (u64, usize),
        fill: &mut dyn FnMut(&Span),
    ) -> Result<(), Refusal> {
        self.node.region(cookie)?.land(cookie, place, fill)?;
        self.node.counters.served_bytes.add(place.1);
        Ok(())
    }

    fn landed(&self, cookie: &Cookie, offset: u64, len: usize) {
        if let Ok(region) = self.node.region(cookie) {
            region.touched(offset as usize, len, Access::Write);
        }
    }

    fn fetch(&self, _peer: PeerNumber, cookie: &Cookie, offset: u64, bytes: &mut [u8]) -> Result<(), Refusal> {
        self.node.region(cookie)?.fetch(cookie, offset, bytes)?;
        self.node.counters.served_bytes.add(bytes.len());
        Ok(())
    }

    fn atomic(&self, _peer: PeerNumber, cookie: &Cookie, offset: u64, atomic: Atomic) -> Result<u64, Refusal> {
        self.node.region(cookie)?.atomic(cookie, offset, atomic)
    }

    fn grant(&self, peer: PeerNumber, cookie: &Cookie) -> Result<Option<Pages>, Refusal> {
        let peer = self.id(peer);
        self.node.region(cookie)?.grant(peer, cookie, self.node.links.peer(peer).maps())
    }

    fn offered(&self, peer: PeerNumber, cookie: &Cookie, pages: Mapping) {
        self.node.apertures.offered(self.id(peer), cookie, pages);
    }

    fn fired(&self, region: RegionId, offset: usize, access: Access) {
        if let Some(region) = self.node.regions.find(region) {
            region.fired(offset, access);
        }
    }

    fn fired_unknown(&self) {
        self.node.regions.all().iter().for_each(|region| region.fired_unknown());
    }

    fn completed(&self, ticket: Ticket, outcome: Outcome) {
        self.node.completed(ticket, outcome);
    }

    fn closed(&self, peer: PeerNumber, reason: CloseReason) {
        let (node, peer) = (self.node, self.id(peer));
        node.scheduler.note_news();
        node.endpoints.peer_closed(peer, reason);
        node.apertures.peer_closed(peer, reason);
        node.arenas.peer_closed(&node.regions, peer);
        node.departures.fetch_add(1, Ordering::SeqCst);
    }
}
