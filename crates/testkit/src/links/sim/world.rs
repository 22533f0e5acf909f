//! What a simulated network holds: a station per link, a wire per direction between two of them, and who listens.
//!
//! All of it lies behind one lock, so that every operation is one step; no [`Target`](sidestep_fabric::link::Target) is called
//! with the lock held.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use sidestep_shm::{self as shm, doorbell::Doorbell};

use super::{LinkId, SimOptions};
use crate::seeded::Seeded;
use sidestep_fabric::{
    cookie::{Cookie, RegionId},
    error::{CloseReason, Error, Result},
    link::{Atomic, Mapping, Outcome, PeerNumber, Ticket},
    tripwire::Access,
};

/// What travels on a wire.
#[derive(Debug)]
pub(super) enum Item {
    Opened,
    Message(Vec<u8>),
    Ask { ticket: Ticket, cookie: Cookie, ask: Ask },
    Reply { ticket: Ticket, outcome: Outcome },
    Fired { region: RegionId, offset: usize, access: Access },
    Pages(Cookie, Mapping),
    Closed(CloseReason),
}

/// A request with bytes of its own: those of the caller were taken at the call.
#[derive(Debug)]
pub(super) enum Ask {
    Map,
    Put { offset: u64, bytes: Vec<u8> },
    Get { offset: u64, len: usize },
    Atomic { offset: u64, atomic: Atomic },
}

/// What a poll takes from a wire.
#[derive(Debug)]
pub(super) enum Taken {
    Item(Item),
    /// The wire is gone, with the requests nobody will answer.
    Closed {
        reason: CloseReason,
        unanswered: VecDeque<Ticket>,
    },
}

/// The part of a station that is looked at without the lock.
#[derive(Debug)]
pub(super) struct Bell {
    pub(super) doorbell: Doorbell,
    news: AtomicUsize,
    sleeping: AtomicBool,
}

#[derive(Debug)]
pub(super) struct World {
    options: SimOptions,
    stations: BTreeMap<LinkId, Station>,
    names: HashMap<String, LinkId>,
    next_link: u32,
    random: Seeded,
}

#[derive(Debug)]
struct Station {
    bell: Arc<Bell>,
    wires: BTreeMap<PeerNumber, Wire>,
    next_peer: u32,
    /// Polls so far.
    step: u64,
}

#[derive(Debug)]
struct Wire {
    /// The name it was reached under, if this side connected.
    name: Option<String>,
    /// The other end: which station, and as whom it knows this one.
    other: (LinkId, PeerNumber),
    /// What comes from the other end, and the step at which it is here.
    arriving: VecDeque<(u64, Item)>,
    /// Requests of this side, oldest first.
    unanswered: VecDeque<Ticket>,
    /// This side has closed; the next poll reports it.
    closing: Option<CloseReason>,
}

impl Bell {
    /// An empty one.
    pub(super) fn new() -> Result<Bell> {
        Ok(Bell { doorbell: Doorbell::new()?, news: AtomicUsize::new(0), sleeping: AtomicBool::new(false) })
    }

    /// SeqCst here and in `publish`: the sleeper announces and then looks for news, the other side publishes news and
    /// then looks for the announcement. In the one order of all four accesses at least one side sees the other.
    pub(super) fn set_sleeping(&self, sleeping: bool) {
        self.sleeping.store(sleeping, Ordering::SeqCst);
    }

    pub(super) fn has_news(&self) -> bool {
        self.news.load(Ordering::SeqCst) != 0
    }

    fn publish(&self, news: usize) {
        self.news.store(news, Ordering::SeqCst);
        if news != 0 && self.sleeping.swap(false, Ordering::SeqCst) {
            self.doorbell.ring();
        }
    }
}

impl World {
    pub(super) fn new(options: SimOptions) -> World {
        World {
            options,
            stations: BTreeMap::new(),
            names: HashMap::new(),
            next_link: 1,
            random: Seeded::new(options.seed),
        }
    }

    pub(super) fn add(&mut self, bell: Arc<Bell>) -> LinkId {
        let id = LinkId(self.next_link);
        self.next_link += 1;
        self.stations.insert(id, Station { bell, wires: BTreeMap::new(), next_peer: 1, step: 0 });
        id
    }

    pub(super) fn listen(&mut self, link: LinkId, name: &str) -> Result<()> {
        self.station(link)?;
        if self.names.contains_key(name) {
            return Err(shm::Error::NameTaken(name.to_string()).into());
        }
        self.names.insert(name.to_string(), link);
        Ok(())
    }

    pub(super) fn unlisten(&mut self, link: LinkId, name: &str) {
        if self.names.get(name) == Some(&link) {
            self.names.remove(name);
        }
    }

    pub(super) fn connect(&mut self, link: LinkId, name: &str) -> Result<PeerNumber> {
        let here = self.station(link)?;
        let known = here.wires.iter().find(|(_, wire)| wire.name.as_deref() == Some(name) && wire.closing.is_none());
        if let Some((peer, _)) = known {
            return Ok(*peer);
        }
        let there = *self.names.get(name).ok_or_else(|| Error::NobodyListens(name.to_string()))?;
        let (ours, theirs) = (self.next_peer(link)?, self.next_peer(there)?);
        self.string(link, ours, Some(name), (there, theirs))?;
        self.string(there, theirs, None, (link, ours))?;
        self.put((there, theirs), Item::Opened);
        Ok(ours)
    }

    /// Puts something on the wire to a peer.
    pub(super) fn send(&mut self, link: LinkId, peer: PeerNumber, item: Item) -> Result<()> {
        let other = self.wire(link, peer)?.other;
        // Answers and reports are never refused: nobody could ask for them again.
        if matches!(item, Item::Message(_) | Item::Ask { .. }) {
            let limit = self.options.max_in_flight;
            if self.wire(other.0, other.1).is_ok_and(|wire| wire.arriving.len() >= limit) {
                return Err(Error::Full { what: "the simulated wire", limit });
            }
        }
        if let Item::Ask { ticket, .. } = &item {
            self.wire(link, peer)?.unanswered.push_back(*ticket);
        }
        self.put(other, item);
        Ok(())
    }

    /// Ends the connection with a peer from this side.
    pub(super) fn close(&mut self, link: LinkId, peer: PeerNumber, reason: CloseReason) {
        let Ok(wire) = self.wire(link, peer) else { return };
        wire.closing = Some(reason);
        let other = wire.other;
        self.put(other, Item::Closed(CloseReason::Peer));
        self.publish(link);
    }

    /// A station vanishes, as its process would.
    pub(super) fn kill(&mut self, link: LinkId) {
        self.names.retain(|_, owner| *owner != link);
        let Some(station) = self.stations.remove(&link) else { return };
        station.bell.publish(0);
        for wire in station.wires.into_values().filter(|wire| wire.closing.is_none()) {
            self.put(wire.other, Item::Closed(CloseReason::Died));
        }
    }

    /// Begins a poll, which is one step of this station's time; whom it has wires to.
    pub(super) fn begin_step(&mut self, link: LinkId) -> Vec<PeerNumber> {
        let Ok(station) = self.station(link) else { return Vec::new() };
        station.step += 1;
        station.wires.keys().copied().collect()
    }

    /// The next thing that has arrived from a peer.
    pub(super) fn take(&mut self, link: LinkId, peer: PeerNumber) -> Option<Taken> {
        let station = self.station(link).ok()?;
        let step = station.step;
        let wire = station.wires.get_mut(&peer)?;
        let taken = match wire.closing {
            Some(reason) => Taken::Closed { reason, unanswered: std::mem::take(&mut wire.unanswered) },
            None => match wire.arrived(step)? {
                Item::Closed(reason) => Taken::Closed { reason, unanswered: std::mem::take(&mut wire.unanswered) },
                Item::Reply { ticket, outcome } => {
                    wire.unanswered.retain(|waiting| *waiting != ticket);
                    Taken::Item(Item::Reply { ticket, outcome })
                }
                item => Taken::Item(item),
            },
        };
        if matches!(taken, Taken::Closed { .. }) {
            station.wires.remove(&peer);
        }
        self.publish(link);
        Some(taken)
    }

    fn put(&mut self, to: (LinkId, PeerNumber), item: Item) {
        let delay = self.random.below(u64::from(self.options.max_delay) + 1);
        let Ok(station) = self.station(to.0) else { return };
        let due = station.step + 1 + delay;
        // An end that has closed hears nothing more.
        let Some(wire) = station.wires.get_mut(&to.1).filter(|wire| wire.closing.is_none()) else { return };
        // Nothing overtakes what was sent before.
        let due = wire.arriving.back().map_or(due, |(before, _)| due.max(*before));
        wire.arriving.push_back((due, item));
        self.publish(to.0);
    }

    fn string(
        &mut self,
        link: LinkId,
        peer: PeerNumber,
        name: Option<&str>,
        other: (LinkId, PeerNumber),
    ) -> Result<()> {
        let name = name.map(str::to_string);
        let wire = Wire { name, other, arriving: VecDeque::new(), unanswered: VecDeque::new(), closing: None };
        self.station(link)?.wires.insert(peer, wire);
        Ok(())
    }

    fn next_peer(&mut self, link: LinkId) -> Result<PeerNumber> {
        let station = self.station(link)?;
        station.next_peer += 1;
        Ok(PeerNumber(station.next_peer - 1))
    }

    fn publish(&mut self, link: LinkId) {
        if let Some(station) = self.stations.get(&link) {
            let waiting = |wire: &Wire| wire.arriving.len() + usize::from(wire.closing.is_some());
            station.bell.publish(station.wires.values().map(waiting).sum());
        }
    }

    fn station(&mut self, link: LinkId) -> Result<&mut Station> {
        self.stations.get_mut(&link).ok_or(Error::Closed(CloseReason::Here))
    }

    /// The open wire to a peer.
    fn wire(&mut self, link: LinkId, peer: PeerNumber) -> Result<&mut Wire> {
        let wire = self.station(link)?.wires.get_mut(&peer).ok_or(Error::Closed(CloseReason::Here))?;
        match wire.closing {
            Some(reason) => Err(Error::Closed(reason)),
            None => Ok(wire),
        }
    }
}

impl Wire {
    /// What is here by `step`, first come first.
    fn arrived(&mut self, step: u64) -> Option<Item> {
        let (due, _) = self.arriving.front()?;
        if *due > step {
            return None;
        }
        self.arriving.pop_front().map(|(_, item)| item)
    }
}
