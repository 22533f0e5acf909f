//! A link that wraps another and keeps a record of everything that passes.
//!
//! What carries something is recorded: every listen, connect, post, request, report and close of this node, and every
//! delivery to it. `poll`, `has_news`, `watch` and `set_sleeping` carry nothing and leave no record.
//!
//! Stores into mapped pages pass no link and so leave no record either. With [`TracedLink::see_all`] nothing is mapped,
//! neither by the peers nor by this node, so that every store travels and is seen.

mod record;

pub use self::record::{Direction, Ended, Failure, Operation, TraceEvent, TraceRecord};

use std::{collections::VecDeque, fmt, net::IpAddr, os::fd::OwnedFd, sync::Arc};

use sidestep_shm::doorbell::Sleeper;
use sidestep_sys::{
    clock,
    lock::{Mutex, MutexGuard},
};

use crate::{
    cookie::{Cookie, RegionId},
    error::{CloseReason, Refusal, Result},
    link::{AnyLink, Atomic, Capabilities, Link, Mapping, Maps, Outcome, Pages, PeerNumber, Request, Target, Ticket},
    tripwire::Access,
};

/// Where records go: the last so many of them, and a function that sees each one.
pub struct Trace {
    capacity: usize,
    state: Mutex<State>,
    each: Option<Each>,
}

type Each = Box<dyn Fn(&TraceRecord) + Send + Sync>;

#[derive(Debug, Default)]
struct State {
    records: VecDeque<TraceRecord>,
    dropped: u64,
}

/// A link with a record of everything that passes.
#[derive(Debug)]
pub struct TracedLink {
    inner: AnyLink,
    trace: Arc<Trace>,
    sees_all: bool,
}

impl Trace {
    /// A trace that keeps the last `capacity` records.
    pub fn new(capacity: usize) -> Arc<Trace> {
        Arc::new(Trace { capacity, state: Mutex::default(), each: None })
    }

    /// A trace that also hands each record to `each`, in the thread that did what is recorded. `each` must not use the
    /// node that is traced.
    pub fn with(capacity: usize, each: impl Fn(&TraceRecord) + Send + Sync + 'static) -> Arc<Trace> {
        Arc::new(Trace { capacity, state: Mutex::default(), each: Some(Box::new(each)) })
    }

    /// The records kept, oldest first.
    pub fn records(&self) -> Vec<TraceRecord> {
        self.state().records.iter().cloned().collect()
    }

    /// Takes the records out.
    pub fn take(&self) -> Vec<TraceRecord> {
        std::mem::take(&mut self.state().records).into()
    }

    /// How many records were dropped to make room.
    pub fn dropped(&self) -> u64 {
        self.state().dropped
    }

    fn add(&self, event: TraceEvent) {
        let record = TraceRecord { time: clock::now(), event };
        if let Some(each) = &self.each {
            each(&record);
        }
        let mut state = self.state();
        state.records.push_back(record);
        if state.records.len() > self.capacity {
            state.records.pop_front();
            state.dropped += 1;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic in a trace")
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        write!(out, "Trace({} records, {} dropped)", state.records.len(), state.dropped)
    }
}

impl TracedLink {
    /// Wraps a link.
    pub fn new(inner: AnyLink, trace: Arc<Trace>) -> TracedLink {
        TracedLink { inner, trace, sees_all: false }
    }

    /// Lets nothing be mapped, so that every store is seen.
    pub fn see_all(self) -> TracedLink {
        TracedLink { sees_all: true, ..self }
    }

    /// The link underneath.
    pub fn inner(&self) -> &AnyLink {
        &self.inner
    }

    /// Where the records are.
    pub fn trace(&self) -> &Arc<Trace> {
        &self.trace
    }

    /// Records a call when it has returned.
    fn called<T>(
        &self,
        peer: Option<PeerNumber>,
        operation: Operation,
        ticket: Option<Ticket>,
        call: impl FnOnce(&dyn Link) -> Result<T>,
    ) -> Result<T> {
        let outcome = call(self.inner.as_link());
        let failure = outcome.as_ref().err().cloned().map(Failure::Link);
        self.trace.add(TraceEvent { direction: Direction::Out, peer, operation, ticket, failure });
        outcome
    }

    /// Records how an attempt to connect ended.
    fn connected(&self, name: &str, outcome: Result<PeerNumber>) -> Result<PeerNumber> {
        let peer = outcome.as_ref().ok().copied();
        let failure = outcome.as_ref().err().cloned().map(Failure::Link);
        let operation = Operation::Connect(name.to_string());
        self.trace.add(TraceEvent { direction: Direction::Out, peer, operation, ticket: None, failure });
        outcome
    }
}

impl Link for TracedLink {
    fn capabilities(&self) -> Capabilities {
        let inner = self.inner.as_link().capabilities();
        // Puts from regions come as requests, which are recorded.
        Capabilities { gathers: false, ..inner }
    }

    fn listen(&self, name: &str) -> Result<()> {
        self.called(None, Operation::Listen(name.to_string()), None, |link| link.listen(name))
    }

    fn unlisten(&self, name: &str) {
        let _ = self.called(None, Operation::Unlisten(name.to_string()), None, |link| {
            link.unlisten(name);
            Ok(())
        });
    }

    fn connect(&self, name: &str) -> Result<PeerNumber> {
        self.connected(name, self.inner.as_link().connect(name))
    }

    fn connect_from(&self, name: &str, from: IpAddr, deadline: u64) -> Result<PeerNumber> {
        self.connected(name, self.inner.as_link().connect_from(name, from, deadline))
    }

    fn adopt(&self, stream: OwnedFd, begins: bool) -> Result<PeerNumber> {
        self.connected("a stream", self.inner.as_link().adopt(stream, begins))
    }

    fn post(&self, peer: PeerNumber, bytes: &[u8]) -> Result<()> {
        self.called(Some(peer), Operation::Post(bytes.len()), None, |link| link.post(peer, bytes))
    }

    fn request(&self, peer: PeerNumber, ticket: Ticket, cookie: &Cookie, request: Request<'_>) -> Result<()> {
        let operation = Operation::of_request(cookie.region(), &request);
        self.called(Some(peer), operation, Some(ticket), |link| link.request(peer, ticket, cookie, request))
    }

    fn is_here(&self, peer: PeerNumber) -> bool {
        self.inner.as_link().is_here(peer)
    }

    fn poll(&self, target: &dyn Target, kernel: bool) -> bool {
        self.inner.as_link().poll(&TracedTarget { target, link: self }, kernel)
    }

    fn has_news(&self) -> bool {
        self.inner.as_link().has_news()
    }

    fn shares_core(&self, core: u32) -> bool {
        self.inner.as_link().shares_core(core)
    }

    fn watch(&self, sleeper: &Arc<Sleeper>) -> Result<()> {
        self.inner.as_link().watch(sleeper)
    }

    fn caller(&self, peer: PeerNumber) -> Option<u64> {
        self.inner.as_link().caller(peer)
    }

    fn user(&self, peer: PeerNumber) -> Option<u32> {
        self.inner.as_link().user(peer)
    }

    fn process(&self, peer: PeerNumber) -> Option<u32> {
        self.inner.as_link().process(peer)
    }

    fn address(&self, peer: PeerNumber) -> Option<IpAddr> {
        self.inner.as_link().address(peer)
    }

    fn local_name(&self, peer: PeerNumber, name: &str) -> Option<String> {
        self.inner.as_link().local_name(peer, name)
    }

    fn set_sleeping(&self, sleeping: bool) {
        self.inner.as_link().set_sleeping(sleeping);
    }

    fn attend(&self) -> bool {
        self.inner.as_link().attend()
    }

    fn push(&self) {
        self.inner.as_link().push();
    }

    fn maps(&self) -> Option<&dyn Maps> {
        let maps = !self.sees_all && self.inner.as_link().maps().is_some();
        maps.then_some(self as &dyn Maps)
    }

    fn close(&self, peer: PeerNumber, reason: CloseReason) {
        let _ = self.called(Some(peer), Operation::Close(reason), None, |link| {
            link.close(peer, reason);
            Ok(())
        });
    }
}

impl Maps for TracedLink {
    fn offer(&self, peer: PeerNumber, cookie: &Cookie, pages: &Pages) -> Result<()> {
        let operation = Operation::Offer(cookie.region(), pages.len);
        self.called(Some(peer), operation, None, |link| {
            link.maps().map_or(Ok(()), |maps| maps.offer(peer, cookie, pages))
        })
    }

    fn fire(&self, peer: PeerNumber, region: RegionId, offset: usize, access: Access) {
        let _ = self.called(Some(peer), Operation::Fire(region, offset, access), None, |link| {
            if let Some(maps) = link.maps() {
                maps.fire(peer, region, offset, access);
            }
            Ok(())
        });
    }
}

/// Records what is delivered on its way to the node.
struct TracedTarget<'a> {
    target: &'a dyn Target,
    link: &'a TracedLink,
}

impl TracedTarget<'_> {
    fn arrived(&self, peer: Option<PeerNumber>, operation: Operation, ticket: Option<Ticket>) {
        let event = TraceEvent { direction: Direction::In, peer, operation, ticket, failure: None };
        self.link.trace.add(event);
    }

    fn asked<T>(&self, peer: PeerNumber, operation: Operation, outcome: &Result<T, Refusal>) {
        let failure = outcome.as_ref().err().copied().map(Failure::Refusal);
        let event = TraceEvent { direction: Direction::In, peer: Some(peer), operation, ticket: None, failure };
        self.link.trace.add(event);
    }
}

impl Target for TracedTarget<'_> {
    fn opened(&self, peer: PeerNumber) {
        self.arrived(Some(peer), Operation::Opened, None);
        self.target.opened(peer);
    }

    fn message(&self, peer: PeerNumber, bytes: &[u8]) {
        self.arrived(Some(peer), Operation::Post(bytes.len()), None);
        self.target.message(peer, bytes);
    }

    fn place(&self, peer: PeerNumber, cookie: &Cookie, offset: u64, bytes: &[u8]) -> Result<(), Refusal> {
        let outcome = self.target.place(peer, cookie, offset, bytes);
        self.asked(peer, Operation::Put(cookie.region(), offset, bytes.len()), &outcome);
        outcome
    }

    fn fetch(&self, peer: PeerNumber, cookie: &Cookie, offset: u64, bytes: &mut [u8]) -> Result<(), Refusal> {
        let outcome = self.target.fetch(peer, cookie, offset, bytes);
        self.asked(peer, Operation::Get(cookie.region(), offset, bytes.len()), &outcome);
        outcome
    }

    fn atomic(&self, peer: PeerNumber, cookie: &Cookie, offset: u64, atomic: Atomic) -> Result<u64, Refusal> {
        let outcome = self.target.atomic(peer, cookie, offset, atomic);
        self.asked(peer, Operation::Atomic(cookie.region(), offset, atomic, outcome.ok()), &outcome);
        outcome
    }

    fn grant(&self, peer: PeerNumber, cookie: &Cookie) -> Result<Option<Pages>, Refusal> {
        let outcome = self.target.grant(peer, cookie).map(|memory| memory.filter(|_| !self.link.sees_all));
        let given = outcome.as_ref().ok().map(Option::is_some);
        self.asked(peer, Operation::Map(cookie.region(), given), &outcome);
        outcome
    }

    fn offered(&self, peer: PeerNumber, cookie: &Cookie, pages: Mapping) {
        self.arrived(Some(peer), Operation::Offer(cookie.region(), pages.total_len()), None);
        // Given up unused where everything is to be seen: a store into them would not be.
        if !self.link.sees_all {
            self.target.offered(peer, cookie, pages);
        }
    }

    fn fired(&self, region: RegionId, offset: usize, access: Access) {
        self.arrived(None, Operation::Fire(region, offset, access), None);
        self.target.fired(region, offset, access);
    }

    fn fired_unknown(&self) {
        self.arrived(None, Operation::FireUnknown, None);
        self.target.fired_unknown();
    }

    fn completed(&self, ticket: Ticket, outcome: Outcome) {
        // Pages that came all the same are given up unused: a store into them would not be seen.
        let outcome = match outcome {
            Outcome::Mapped(_) if self.link.sees_all => Outcome::Proxied,
            outcome => outcome,
        };
        self.arrived(None, Operation::Completed(Ended::of(&outcome)), Some(ticket));
        self.target.completed(ticket, outcome);
    }

    fn closed(&self, peer: PeerNumber, reason: CloseReason) {
        self.arrived(Some(peer), Operation::Close(reason), None);
        self.target.closed(peer, reason);
    }
}

impl From<TracedLink> for AnyLink {
    fn from(link: TracedLink) -> AnyLink {
        AnyLink::other(link)
    }
}
