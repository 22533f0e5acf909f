//! What arrives: the node as the target of its link.

use sidestep_shm::Span;

use super::NodeCore;
use crate::{
    cookie::{Cookie, RegionId},
    error::{CloseReason, Refusal},
    link::{Atomic, Mapping, Outcome, Pages, PeerId, Target, Ticket},
    protocol::Message,
    tripwire::Access,
};

impl Target for NodeCore {
    fn opened(&self, _peer: PeerId) {}

    fn message(&self, peer: PeerId, bytes: &[u8]) {
        self.scheduler.note_news();
        match Message::parse(bytes) {
            Ok(Message::Revoked { region, generation }) => self.apertures.revoked(peer, region, generation),
            Ok(message) => self.endpoints.handle(self, peer, message),
            Err(what) => self.link().close(peer, CloseReason::Violation(what)),
        }
    }

    fn place(&self, _peer: PeerId, cookie: &Cookie, offset: u64, bytes: &[u8]) -> Result<(), Refusal> {
        self.region(cookie)?.place(cookie, offset, bytes)
    }

    fn lands(&self) -> bool {
        true
    }

    fn land(
        &self,
        _peer: PeerId,
        cookie: &Cookie,
        place: (u64, usize),
        fill: &mut dyn FnMut(&Span),
    ) -> Result<(), Refusal> {
        self.region(cookie)?.land(cookie, place, fill)
    }

    fn landed(&self, cookie: &Cookie, offset: u64, len: usize) {
        if let Ok(region) = self.region(cookie) {
            region.touched(offset as usize, len, Access::Write);
        }
    }

    fn fetch(&self, _peer: PeerId, cookie: &Cookie, offset: u64, bytes: &mut [u8]) -> Result<(), Refusal> {
        self.region(cookie)?.fetch(cookie, offset, bytes)
    }

    fn atomic(&self, _peer: PeerId, cookie: &Cookie, offset: u64, atomic: Atomic) -> Result<u64, Refusal> {
        self.region(cookie)?.atomic(cookie, offset, atomic)
    }

    fn grant(&self, peer: PeerId, cookie: &Cookie) -> Result<Option<Pages>, Refusal> {
        self.region(cookie)?.grant(peer, cookie, self.link().capabilities().maps)
    }

    fn offered(&self, peer: PeerId, cookie: &Cookie, pages: Mapping) {
        self.apertures.offered(peer, cookie, pages);
    }

    fn fired(&self, region: RegionId, offset: usize, access: Access) {
        if let Some(region) = self.regions.find(region) {
            region.fired(offset, access);
        }
    }

    fn fired_unknown(&self) {
        self.regions.all().iter().for_each(|region| region.fired_unknown());
    }

    fn completed(&self, ticket: Ticket, outcome: Outcome) {
        self.scheduler.note_news();
        if let Some(completion) = self.tickets.redeem(ticket) {
            completion.complete(self, outcome);
        }
    }

    fn closed(&self, peer: PeerId, reason: CloseReason) {
        self.scheduler.note_news();
        self.endpoints.peer_closed(peer, reason);
        self.apertures.peer_closed(peer, reason);
        self.arenas.peer_closed(&self.regions, peer);
    }
}
