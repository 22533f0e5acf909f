//! What the link underneath delivers, on its way to the node. Messages are packets; nothing else passes the card by.

use sidestep_fabric::cookie::{Cookie, RegionId};
use sidestep_fabric::error::{CloseReason, Refusal};
use sidestep_fabric::link::{Atomic, Mapping, Outcome, Pages, PeerNumber, Target, Ticket};
use sidestep_fabric::tripwire::Access;

use super::{Delivery, VmmcLink};

/// What the link underneath delivers.
pub(super) struct Arriving<'a> {
    pub(super) target: &'a dyn Target,
    pub(super) link: &'a VmmcLink,
}

impl Arriving<'_> {
    fn deliver(&self, peer: PeerNumber, deliveries: Vec<Delivery>) {
        for delivery in deliveries {
            match delivery {
                Delivery::Message(bytes) => self.target.message(peer, &bytes),
                Delivery::Completed(ticket, outcome) => self.target.completed(ticket, outcome),
            }
        }
    }
}

impl Target for Arriving<'_> {
    fn opened(&self, peer: PeerNumber) {
        self.target.opened(peer);
    }

    fn message(&self, peer: PeerNumber, bytes: &[u8]) {
        match self.link.take(self.target, peer, bytes) {
            Ok(deliveries) => self.deliver(peer, deliveries),
            Err(what) => self.link.link().close(peer, CloseReason::Violation(what)),
        }
    }

    fn place(&self, _: PeerNumber, _: &Cookie, offset: u64, bytes: &[u8]) -> Result<(), Refusal> {
        // Nothing passes the card by.
        Err(Refusal::Range { offset, len: bytes.len() as u64 })
    }

    fn fetch(&self, _: PeerNumber, _: &Cookie, offset: u64, bytes: &mut [u8]) -> Result<(), Refusal> {
        Err(Refusal::Range { offset, len: bytes.len() as u64 })
    }

    fn atomic(&self, _: PeerNumber, _: &Cookie, offset: u64, _: Atomic) -> Result<u64, Refusal> {
        Err(Refusal::Range { offset, len: 8 })
    }

    fn grant(&self, _: PeerNumber, _: &Cookie) -> Result<Option<Pages>, Refusal> {
        Ok(None)
    }

    fn offered(&self, _: PeerNumber, _: &Cookie, _: Mapping) {}

    fn fired(&self, region: RegionId, offset: usize, access: Access) {
        self.target.fired(region, offset, access);
    }

    fn fired_unknown(&self) {
        self.target.fired_unknown();
    }

    fn completed(&self, _: Ticket, _: Outcome) {}

    fn closed(&self, peer: PeerNumber, reason: CloseReason) {
        let deliveries = self.link.end(self.target, peer, reason);
        self.deliver(peer, deliveries);
        self.target.closed(peer, reason);
    }
}
