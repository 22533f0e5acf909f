//! A link that wraps another and fails on demand, in the ways a real one could: see [`FaultPlan`].
//!
//! Held-back deliveries of one peer stay in order, and its close comes after them; what peers ask of this node's regions
//! is answered at once. While anything is held back the link says that it has news, so that nobody sleeps over it. With
//! an empty plan the link is transparent.

mod plan;

pub use self::plan::{FaultPlan, When};

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    net::IpAddr,
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use rustix::io::Errno;
use sidestep_shm::{
    self as shm,
    doorbell::{Doorbell, Sleeper},
};
use sidestep_sys::lock::{Mutex, MutexGuard};

use self::plan::Trigger;
use sidestep_fabric::{
    cookie::{Cookie, RegionId},
    error::{CloseReason, Error, Refusal, Result},
    link::{AnyLink, Atomic, Capabilities, Link, Mapping, Maps, Outcome, Pages, PeerNumber, Request, Target, Ticket},
    tripwire::Access,
};

/// How a connection that the plan breaks is reported.
pub const INJECTED: CloseReason = CloseReason::Link("injected");

/// A link with failures on demand.
#[derive(Debug)]
pub struct FaultyLink {
    inner: AnyLink,
    plan: FaultPlan,
    refuse_connect: Trigger,
    full_post: Trigger,
    limit_post: Trigger,
    full_request: Trigger,
    limit_request: Trigger,
    spurious_news: Trigger,
    spurious_wakes: Trigger,
    bell: Doorbell,
    /// Messages and requests so far, by peer.
    operations: Mutex<HashMap<PeerNumber, u64>>,
    late: Mutex<Late>,
    held: AtomicUsize,
    /// Held by the thread that polls: what a peer sent is handled in order.
    polling: Mutex<()>,
}

/// What is held back, by peer.
#[derive(Debug, Default)]
struct Late {
    poll: u64,
    /// Whose answer a ticket waits for.
    asked: HashMap<Ticket, PeerNumber>,
    held: BTreeMap<PeerNumber, VecDeque<(u64, Delivery)>>,
}

#[derive(Debug)]
enum Delivery {
    Opened,
    Message(Vec<u8>),
    Completed(Ticket, Outcome),
    Closed(CloseReason),
}

/// Token of the bell for spurious wake-ups in a sleeper's set.
const BELL: u64 = u64::MAX - 2;

impl FaultyLink {
    /// Wraps a link.
    pub fn new(inner: AnyLink, plan: FaultPlan) -> Result<FaultyLink> {
        // Each kind of fault has numbers of its own, so that one more of these does not move the others.
        let trigger = |when, kind: u64| Trigger::new(when, plan.seed.wrapping_mul(31).wrapping_add(kind));
        Ok(FaultyLink {
            inner,
            plan,
            refuse_connect: trigger(plan.refuse_connect, 1),
            full_post: trigger(plan.full_post, 2),
            limit_post: trigger(plan.limit_post, 3),
            full_request: trigger(plan.full_request, 4),
            limit_request: trigger(plan.limit_request, 5),
            spurious_news: trigger(plan.spurious_news, 6),
            spurious_wakes: trigger(plan.spurious_wakes, 7),
            bell: Doorbell::new()?,
            operations: Mutex::default(),
            late: Mutex::default(),
            held: AtomicUsize::new(0),
            polling: Mutex::new(()),
        })
    }

    /// The link underneath.
    pub fn inner(&self) -> &AnyLink {
        &self.inner
    }

    fn link(&self) -> &dyn Link {
        self.inner.as_link()
    }

    fn late(&self) -> MutexGuard<'_, Late> {
        self.late.lock().expect("no panic in a faulty link")
    }

    fn delays(&self) -> bool {
        self.plan.delay_polls != 0
    }

    /// Counts an operation that the link took, and breaks the connection after the last one the plan allows.
    fn count(&self, peer: PeerNumber) {
        let Some(limit) = self.plan.close_after else { return };
        let mut operations = self.operations.lock().expect("no panic in a faulty link");
        let count = operations.entry(peer).or_default();
        *count += 1;
        if *count == limit {
            self.link().close(peer, INJECTED);
        }
    }

    /// Holds a delivery back.
    fn hold(&self, peer: PeerNumber, delivery: Delivery) {
        let mut late = self.late();
        let due = late.poll + self.plan.delay_polls;
        late.held.entry(peer).or_default().push_back((due, delivery));
        self.held.fetch_add(1, Ordering::Release);
    }

    /// The next delivery that is due, of any peer.
    fn next_due(&self) -> Option<(PeerNumber, Delivery)> {
        let mut late = self.late();
        let now = late.poll;
        let due =
            |(_, queue): &(&PeerNumber, &VecDeque<(u64, Delivery)>)| queue.front().is_some_and(|(due, _)| *due <= now);
        let peer = *late.held.iter().find(due)?.0;
        let queue = late.held.get_mut(&peer)?;
        let (_, delivery) = queue.pop_front()?;
        if queue.is_empty() {
            late.held.remove(&peer);
        }
        self.held.fetch_sub(1, Ordering::Release);
        Some((peer, delivery))
    }
}

impl Link for FaultyLink {
    fn capabilities(&self) -> Capabilities {
        Capabilities { gathers: false, ..self.link().capabilities() }
    }

    fn listen(&self, name: &str) -> Result<()> {
        self.link().listen(name)
    }

    fn unlisten(&self, name: &str) {
        self.link().unlisten(name);
    }

    fn connect(&self, name: &str) -> Result<PeerNumber> {
        if self.refuse_connect.pull() {
            return Err(Error::NobodyListens(name.to_string()));
        }
        self.link().connect(name)
    }

    fn connect_from(&self, name: &str, from: IpAddr, deadline: u64) -> Result<PeerNumber> {
        if self.refuse_connect.pull() {
            return Err(Error::NobodyListens(name.to_string()));
        }
        self.link().connect_from(name, from, deadline)
    }

    fn adopt(&self, stream: OwnedFd, begins: bool) -> Result<PeerNumber> {
        if self.refuse_connect.pull() {
            return Err(Error::NobodyListens("a stream".to_string()));
        }
        self.link().adopt(stream, begins)
    }

    fn post(&self, peer: PeerNumber, bytes: &[u8]) -> Result<()> {
        if self.full_post.pull() {
            return Err(full());
        }
        if self.limit_post.pull() {
            return Err(limit());
        }
        self.link().post(peer, bytes)?;
        self.count(peer);
        Ok(())
    }

    fn request(&self, peer: PeerNumber, ticket: Ticket, cookie: &Cookie, request: Request<'_>) -> Result<()> {
        if self.full_request.pull() {
            return Err(full());
        }
        if self.limit_request.pull() {
            return Err(limit());
        }
        if self.delays() {
            // Before the call: another thread may take the answer while it lasts.
            self.late().asked.insert(ticket, peer);
        }
        let started = self.link().request(peer, ticket, cookie, request);
        match &started {
            Ok(()) => self.count(peer),
            Err(_) => drop(self.late().asked.remove(&ticket)),
        }
        started
    }

    fn is_here(&self, peer: PeerNumber) -> bool {
        self.link().is_here(peer)
    }

    fn poll(&self, target: &dyn Target, kernel: bool) -> bool {
        if !self.delays() {
            return self.link().poll(target, kernel);
        }
        let Ok(_polling) = self.polling.try_lock() else { return false };
        self.late().poll += 1;
        let mut any = self.link().poll(&LateTarget { target, link: self }, kernel);
        while let Some((peer, delivery)) = self.next_due() {
            any = true;
            match delivery {
                Delivery::Opened => target.opened(peer),
                Delivery::Message(bytes) => target.message(peer, &bytes),
                Delivery::Completed(ticket, outcome) => target.completed(ticket, outcome),
                Delivery::Closed(reason) => target.closed(peer, reason),
            }
        }
        any
    }

    fn has_news(&self) -> bool {
        self.link().has_news() || self.held.load(Ordering::Acquire) != 0 || self.spurious_news.pull()
    }

    fn shares_core(&self, core: u32) -> bool {
        self.link().shares_core(core)
    }

    fn watch(&self, sleeper: &Arc<Sleeper>) -> Result<()> {
        sleeper.add_doorbell(self.bell.as_fd(), BELL)?;
        self.link().watch(sleeper)
    }

    fn caller(&self, peer: PeerNumber) -> Option<u64> {
        self.link().caller(peer)
    }

    fn process(&self, peer: PeerNumber) -> Option<u32> {
        self.link().process(peer)
    }

    fn address(&self, peer: PeerNumber) -> Option<IpAddr> {
        self.link().address(peer)
    }

    fn local_name(&self, peer: PeerNumber, name: &str) -> Option<String> {
        self.link().local_name(peer, name)
    }

    fn set_sleeping(&self, sleeping: bool) {
        self.link().set_sleeping(sleeping);
        if sleeping && self.spurious_wakes.pull() {
            self.bell.ring();
        }
    }

    fn attend(&self) -> bool {
        self.link().attend()
    }

    fn push(&self) {
        self.link().push();
    }

    fn maps(&self) -> Option<&dyn Maps> {
        self.link().maps().map(|_| self as &dyn Maps)
    }

    fn close(&self, peer: PeerNumber, reason: CloseReason) {
        self.link().close(peer, reason);
    }
}

impl Maps for FaultyLink {
    fn offer(&self, peer: PeerNumber, cookie: &Cookie, pages: &Pages) -> Result<()> {
        self.link().maps().map_or(Ok(()), |maps| maps.offer(peer, cookie, pages))
    }

    fn fire(&self, peer: PeerNumber, region: RegionId, offset: usize, access: Access) {
        if let Some(maps) = self.link().maps() {
            maps.fire(peer, region, offset, access);
        }
    }
}

/// Holds back what may be late on its way to the node.
struct LateTarget<'a> {
    target: &'a dyn Target,
    link: &'a FaultyLink,
}

impl Target for LateTarget<'_> {
    fn opened(&self, peer: PeerNumber) {
        self.link.hold(peer, Delivery::Opened);
    }

    fn message(&self, peer: PeerNumber, bytes: &[u8]) {
        self.link.hold(peer, Delivery::Message(bytes.to_vec()));
    }

    fn place(&self, peer: PeerNumber, cookie: &Cookie, offset: u64, bytes: &[u8]) -> Result<(), Refusal> {
        self.target.place(peer, cookie, offset, bytes)
    }

    fn fetch(&self, peer: PeerNumber, cookie: &Cookie, offset: u64, bytes: &mut [u8]) -> Result<(), Refusal> {
        self.target.fetch(peer, cookie, offset, bytes)
    }

    fn atomic(&self, peer: PeerNumber, cookie: &Cookie, offset: u64, atomic: Atomic) -> Result<u64, Refusal> {
        self.target.atomic(peer, cookie, offset, atomic)
    }

    fn grant(&self, peer: PeerNumber, cookie: &Cookie) -> Result<Option<Pages>, Refusal> {
        self.target.grant(peer, cookie)
    }

    fn offered(&self, peer: PeerNumber, cookie: &Cookie, pages: Mapping) {
        self.target.offered(peer, cookie, pages);
    }

    fn fired(&self, region: RegionId, offset: usize, access: Access) {
        self.target.fired(region, offset, access);
    }

    fn fired_unknown(&self) {
        self.target.fired_unknown();
    }

    fn completed(&self, ticket: Ticket, outcome: Outcome) {
        let peer = self.link.late().asked.remove(&ticket);
        match peer {
            Some(peer) => self.link.hold(peer, Delivery::Completed(ticket, outcome)),
            None => self.target.completed(ticket, outcome),
        }
    }

    fn closed(&self, peer: PeerNumber, reason: CloseReason) {
        self.link.hold(peer, Delivery::Closed(reason));
    }
}

impl From<FaultyLink> for AnyLink {
    fn from(link: FaultyLink) -> AnyLink {
        AnyLink::other(link)
    }
}

fn full() -> Error {
    Error::Full { what: "the link, by a fault that was asked for,", limit: 0 }
}

fn limit() -> Error {
    let limit = "a limit that a fault was asked for";
    shm::Error::Limit { what: "use a faulty link", limit, source: Errno::NOBUFS }.into()
}
