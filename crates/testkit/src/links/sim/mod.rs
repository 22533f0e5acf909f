//! A simulated link: nodes of one process, joined by wires on which everything takes its time.
//!
//! Every message, request, answer, report and close is put on the wire of its direction and delivered when the receiver
//! polls; a wire keeps its order. A delivery takes a number of steps drawn from a seeded generator, one step per poll of
//! the receiver, so a program that runs in one thread sees the same timing for the same seed.
//!
//! ```text
//!   SimNet ── station of link 1 ── wire from link 2: message, answer, ...   (delivered by polls of link 1)
//!         └── station of link 2 ── wire from link 1: request, close, ...    (delivered by polls of link 2)
//! ```
//!
//! With [`SimOptions::maps`] a region's pages are mapped a second time for the peer, as another process would have
//! them: revoking moves the owner away from them. A link that is dropped dies, as its process would.

mod world;

use std::{os::fd::AsFd, sync::Arc};

use sidestep_shm::{self as shm, doorbell::Sleeper};
use sidestep_sys::lock::{Mutex, MutexGuard};

use self::world::{Ask, Bell, Item, Taken, World};
use sidestep_fabric::{
    cookie::{Cookie, RegionId},
    error::{CloseReason, Error, Result},
    link::{Capabilities, Link, Mapping, Maps, Outcome, Pages, PeerNumber, Request, Target, Ticket},
    protocol::MAX_PRIVATE,
    tripwire::Access,
};

/// How a simulated network behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimOptions {
    /// The first part of its names: a node can be on several networks, if each has another.
    pub scheme: &'static str,
    /// Whether regions can be mapped.
    pub maps: bool,
    /// Where the generator of delays starts.
    pub seed: u64,
    /// The most steps a delivery takes beyond the next poll.
    pub max_delay: u32,
    /// Things on one wire before messages and requests are turned away with [`Error::Full`].
    pub max_in_flight: usize,
}

/// The network that the simulated links of a process share.
#[derive(Debug)]
pub struct SimNet {
    scheme: &'static str,
    maps: bool,
    world: Mutex<World>,
}

/// Names a link of a [`SimNet`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkId(u32);

/// One node's attachment to a [`SimNet`].
#[derive(Debug)]
pub struct SimLink {
    id: LinkId,
    net: Arc<SimNet>,
    bell: Arc<Bell>,
    /// Held by the thread that polls: what a peer sent is handled in order.
    polling: Mutex<()>,
}

/// The most bytes of one put or get.
const MAX_TRANSFER: usize = 16 * 1024;
const MAX_MESSAGE: usize = MAX_PRIVATE + 128;
/// Things taken from one wire in one poll, so that no peer holds up the others.
const ITEMS_A_POLL: usize = 32;
/// Token of the doorbell in a sleeper's set.
const BELL: u64 = 0;

impl Default for SimOptions {
    fn default() -> Self {
        SimOptions { scheme: "sim", maps: false, seed: 1, max_delay: 0, max_in_flight: 4096 }
    }
}

impl SimNet {
    /// A network without links.
    pub fn new(options: SimOptions) -> Arc<SimNet> {
        Arc::new(SimNet { scheme: options.scheme, maps: options.maps, world: Mutex::new(World::new(options)) })
    }

    /// A new link on this network.
    pub fn link(self: &Arc<Self>) -> Result<SimLink> {
        let bell = Arc::new(Bell::new()?);
        let id = self.world().add(bell.clone());
        Ok(SimLink { id, net: self.clone(), bell, polling: Mutex::new(()) })
    }

    /// The process of a link dies: its peers are told [`CloseReason::Died`] after everything it sent before, and the
    /// link itself does nothing more.
    pub fn kill(&self, link: LinkId) {
        self.world().kill(link);
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("no panic in a simulated network")
    }
}

impl SimLink {
    /// Names this link for [`SimNet::kill`].
    pub fn id(&self) -> LinkId {
        self.id
    }

    fn send(&self, peer: PeerNumber, item: Item) -> Result<()> {
        self.net.world().send(self.id, peer, item)
    }

    fn deliver(&self, peer: PeerNumber, item: Item, target: &dyn Target) {
        match item {
            Item::Opened => target.opened(peer),
            Item::Message(bytes) => target.message(peer, &bytes),
            Item::Ask { ticket, cookie, ask } => {
                let outcome = self.carry_out(peer, &cookie, ask, target);
                // A wire that was cut meanwhile needs no answer.
                let _ = self.send(peer, Item::Reply { ticket, outcome });
            }
            Item::Reply { ticket, outcome } => target.completed(ticket, outcome),
            Item::Fired { region, offset, access } => target.fired(region, offset, access),
            Item::Pages(cookie, pages) => target.offered(peer, &cookie, pages),
            // This is for the link itself; `World::take` keeps it.
            Item::Closed(_) => {}
        }
    }

    fn carry_out(&self, peer: PeerNumber, cookie: &Cookie, ask: Ask, target: &dyn Target) -> Outcome {
        let outcome = match ask {
            Ask::Map => target.grant(peer, cookie).map(|pages| self.map(pages, cookie)),
            Ask::Put { offset, bytes } => target.place(peer, cookie, offset, &bytes).map(|()| Outcome::Done),
            Ask::Get { offset, len } => {
                let mut bytes = vec![0; len];
                target.fetch(peer, cookie, offset, &mut bytes).map(|()| Outcome::Bytes(bytes))
            }
            Ask::Atomic { offset, atomic } => target.atomic(peer, cookie, offset, atomic).map(Outcome::Value),
        };
        outcome.unwrap_or_else(Outcome::Refused)
    }

    fn map(&self, pages: Option<Pages>, cookie: &Cookie) -> Outcome {
        match pages.filter(|_| self.net.maps).map(|pages| map_pages(&pages, cookie)) {
            Some(Ok(memory)) => Outcome::Mapped(memory),
            Some(Err(error)) => Outcome::Failed(error),
            None => Outcome::Proxied,
        }
    }
}

impl Drop for SimLink {
    fn drop(&mut self) {
        self.net.kill(self.id);
    }
}

impl Link for SimLink {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            scheme: self.net.scheme,
            distant: false,
            served: false,
            gathers: false,
            max_transfer: MAX_TRANSFER,
            max_message: MAX_MESSAGE,
        }
    }

    fn listen(&self, name: &str) -> Result<()> {
        self.net.world().listen(self.id, name)
    }

    fn unlisten(&self, name: &str) {
        self.net.world().unlisten(self.id, name);
    }

    fn connect(&self, name: &str) -> Result<PeerNumber> {
        self.net.world().connect(self.id, name)
    }

    fn post(&self, peer: PeerNumber, bytes: &[u8]) -> Result<()> {
        check("message", "at most 4224 bytes", bytes.len(), MAX_MESSAGE)?;
        self.send(peer, Item::Message(bytes.to_vec()))
    }

    fn request(&self, peer: PeerNumber, ticket: Ticket, cookie: &Cookie, request: Request<'_>) -> Result<()> {
        let ask = match request {
            Request::Map => Ask::Map,
            Request::Put { offset, bytes } => {
                check("transfer", "at most 16384 bytes", bytes.len(), MAX_TRANSFER)?;
                Ask::Put { offset, bytes: bytes.to_vec() }
            }
            Request::Get { offset, len } => {
                check("transfer", "at most 16384 bytes", len, MAX_TRANSFER)?;
                Ask::Get { offset, len }
            }
            Request::Atomic { offset, atomic } => Ask::Atomic { offset, atomic },
        };
        self.send(peer, Item::Ask { ticket, cookie: *cookie, ask })
    }

    fn poll(&self, target: &dyn Target, _kernel: bool) -> bool {
        let Ok(_polling) = self.polling.try_lock() else { return false };
        let mut any = false;
        let peers = self.net.world().begin_step(self.id);
        for peer in peers {
            for _ in 0..ITEMS_A_POLL {
                // The lock is given back before the target is called, which may post.
                let taken = self.net.world().take(self.id, peer);
                any |= taken.is_some();
                match taken {
                    Some(Taken::Item(item)) => self.deliver(peer, item, target),
                    Some(Taken::Closed { reason, unanswered }) => {
                        for ticket in unanswered {
                            target.completed(ticket, Outcome::Closed(reason));
                        }
                        target.closed(peer, reason);
                        break;
                    }
                    None => break,
                }
            }
        }
        any
    }

    fn has_news(&self) -> bool {
        self.bell.has_news()
    }

    fn watch(&self, sleeper: &Arc<Sleeper>) -> Result<()> {
        Ok(sleeper.add_doorbell(self.bell.doorbell.as_fd(), BELL)?)
    }

    fn set_sleeping(&self, sleeping: bool) {
        self.bell.set_sleeping(sleeping);
    }

    fn maps(&self) -> Option<&dyn Maps> {
        self.net.maps.then_some(self as &dyn Maps)
    }

    fn close(&self, peer: PeerNumber, reason: CloseReason) {
        self.net.world().close(self.id, peer, reason);
    }
}

impl Maps for SimLink {
    fn offer(&self, peer: PeerNumber, cookie: &Cookie, pages: &Pages) -> Result<()> {
        self.send(peer, Item::Pages(*cookie, map_pages(pages, cookie)?))
    }

    fn fire(&self, peer: PeerNumber, region: RegionId, offset: usize, access: Access) {
        // A peer that is gone watches nothing.
        let _ = self.send(peer, Item::Fired { region, offset, access });
    }
}

/// Maps pages as another process would.
fn map_pages(pages: &Pages, cookie: &Cookie) -> Result<Mapping> {
    let copy = rustix::io::fcntl_dupfd_cloexec(pages.descriptor.as_fd(), 3)
        .map_err(|errno| shm::Error::from_errno("duplicate a descriptor", errno))?;
    Mapping::attach(copy, pages.len, cookie.rights())
}

fn check(what: &'static str, must: &'static str, value: usize, limit: usize) -> Result<()> {
    if value > limit {
        return Err(Error::Size { what, must, value });
    }
    Ok(())
}
