//! Order across connections. What a process has told by way of the kernel (bytes on a connection that is on TCP, a new
//! connection, an end) before it wrote to a ring is reported before that ring, or together with it, as on loopback TCP; and so
//! is what it wrote before to another ring.
//!
//! A process counts what it tells by way of the kernel, where its peers can see it ([`Peer::kernel_news`]). A set that finds
//! bytes in a ring compares the count of their writer with that at its last question to the kernel: one load of a word that
//! stays in the cache while it does not change. If it has changed, the kernel is asked first. A process of another user, whose
//! count cannot be seen, tells it with its bytes; of those the kernel is asked first in each collection.
//!
//! [`Peer::kernel_news`]: sidestep_stream::carrier::Peer::kernel_news

use std::time::Duration;

use sidestep_fabric::PeerId;
use sidestep_stream::carrier::Peer;
use sidestep_sys::cpu;

use super::state::State;
use crate::{kernel, readiness::member::Ring};

/// What the kernel has been asked about.
#[derive(Debug, Default)]
pub struct Order {
    /// The count of each process before the last question; by its place in the registry.
    asked: Vec<u64>,
    /// The processes that are known there.
    peers: Vec<Peer>,
    /// The counts that others had told before the last question.
    told: Vec<(PeerId, u64)>,
    /// The kernel may have more than there was room for: it is asked again.
    pub more: bool,
    /// Questions for which members with news were kept waiting.
    held: u32,
    /// A member has news which must wait for the kernel's.
    pub behind: bool,
    /// The number of the last collection, and of the one for which the kernel was last asked about a peer whose count is not seen.
    pub pass: u32,
    questioned: u32,
}

/// After so many questions members with news are kept waiting no longer: the kernel may always have something.
const MOST_HELD: u32 = 16;
/// So many peers are looked at before each sleep.
const FEW: usize = 16;
/// So many that tell their counts are remembered.
const MOST_TELLERS: usize = 1024;
/// No count of any process.
const NEVER: u64 = u64::MAX;

impl Order {
    /// Whether the kernel has been asked since the peer told it something.
    #[inline]
    pub fn is_current(&self, ring: &Ring) -> bool {
        let is_known = match ring.carrier.peer.get() {
            Some(peer) => self.asked.get(peer.index) == Some(&peer.kernel_news()),
            None => self.is_told(ring),
        };
        is_known && !self.more || self.held >= MOST_HELD
    }

    /// The same of a peer whose count is not seen: the kernel must have been asked for this collection. If it tells its count with its
    /// bytes, that must have been heard before; what comes over TCP comes without it.
    #[cold]
    fn is_told(&self, ring: &Ring) -> bool {
        let news = ring.carrier.kernel_news();
        let is_heard = |teller: &PeerId| self.told.iter().any(|(other, count)| other == teller && news <= *count);
        self.questioned == self.pass && ring.carrier.teller.get().is_none_or(is_heard)
    }

    /// The kernel is about to be asked.
    pub fn asks(&mut self, ring: &Ring) {
        let Some(peer) = ring.carrier.peer.get() else { return self.hears(ring) };
        let index = peer.index;
        if self.asked.len() <= index {
            self.asked.resize(index + 1, NEVER);
        }
        if self.asked[index] == NEVER {
            self.peers.push(peer.clone());
        }
        self.asked[index] = peer.kernel_news();
    }

    #[cold]
    fn hears(&mut self, ring: &Ring) {
        let news = ring.carrier.kernel_news();
        self.questioned = self.pass;
        let Some(teller) = ring.carrier.teller.get() else { return };
        match self.told.iter_mut().find(|(other, _)| other == teller) {
            Some((_, count)) => *count = news.max(*count),
            None => {
                if self.told.len() >= MOST_TELLERS {
                    self.told.clear();
                }
                self.told.push((*teller, news));
            }
        }
    }

    /// Before a sleep, which may ask the kernel: how far the peers have come, unless there are many.
    pub fn now(&self) -> Vec<(usize, u64)> {
        let peers = if self.peers.len() <= FEW { &self.peers[..] } else { &[] };
        peers.iter().map(|peer| (peer.index, peer.kernel_news())).collect()
    }

    /// The kernel was asked after that.
    pub fn asked_at(&mut self, then: &[(usize, u64)]) {
        for (index, count) in then {
            self.asked[*index] = *count;
        }
    }

    /// A member is reported.
    #[inline]
    pub fn reports(&mut self) {
        self.held = 0;
    }
}

impl State {
    /// Notes how far the peers of active members have come: the kernel is about to be asked.
    pub fn asks_kernel(&mut self) {
        let State { members, active, order, .. } = self;
        for ring in active.iter().filter_map(|id| members.get(*id)?.ring.as_ref()) {
            order.asks(ring);
        }
    }

    /// Reports ready members, and before them what the kernel has, if that may have come first; else after them, now and then.
    /// The kernel is asked once at the most: it tells again what it has told.
    pub fn collect_in_order(&mut self, set: i32, events: &mut [libc::epoll_event]) -> usize {
        loop {
            let count = self.collect(events);
            if count > 0 {
                return if self.kernel_is_due() { self.add_kernel(set, events, count) } else { count };
            }
            if !self.order.behind {
                return 0;
            }
            let count = self.ask_first(set, events);
            if count > 0 {
                return count;
            }
        }
    }

    /// Reports what the kernel has, and ready members after it.
    #[cold]
    fn ask_first(&mut self, set: i32, events: &mut [libc::epoll_event]) -> usize {
        self.asks_kernel();
        self.looked = cpu::ticks();
        self.order.held += 1;
        let found = kernel::epoll_wait(set, events, Some(Duration::ZERO), None).unwrap_or(0);
        self.order.more = found == events.len();
        let count = self.translate(events, found);
        self.see_to_full();
        self.rouse();
        count + self.collect_rest(&mut events[count..])
    }
}
