//! Event queues: where any number of sources report, and one place to wait.
//!
//! A source (a tripwire, an RDMA queue, an endpoint, either side of a message queue, or the program itself) has at most
//! one entry in the queue, so the queue cannot overflow and costs the same whatever the number of sources. Clear before
//! look: when an event is handed out its source may report again, so whatever happens after that is not lost.
//!
//! A queue is also a descriptor that is readable when the queue may have events ([`EventQueue::descriptor`]), and has a
//! *polled* variant that does not make peers ring doorbells.

mod sources;

use std::{
    os::fd::{AsFd, BorrowedFd},
    sync::{Arc, OnceLock},
};

use sidestep_shm::{
    doorbell::{Doorbell, Sleeper, Tokens},
    pending::{Mark, Pending},
    wait::Waiter,
};
use sidestep_sys::{
    clock,
    lock::{Mutex, MutexGuard},
};

pub use self::sources::SourceId;
use self::sources::{Source, Sources};
use crate::{
    endpoint::{Endpoint, EndpointCore},
    error::{Error, Result},
    node::Node,
    queue::{Receiver, Sender},
    rdma::RdmaQueue,
    tripwire::Tripwire,
};

/// Collects events of many sources.
#[derive(Debug, Clone)]
pub struct EventQueue {
    core: Arc<EventQueueCore>,
    node: Node,
}

/// One event: the token its source was attached with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Which source, in the program's own words.
    pub token: u64,
    /// Which source, as the queue numbers it.
    pub source: SourceId,
}

/// A source's line to the queue.
#[derive(Debug, Clone)]
pub(crate) struct Subscription {
    queue: Arc<EventQueueCore>,
    mark: Arc<Mark>,
}

#[derive(Debug)]
struct EventQueueCore {
    pending: Pending,
    sources: Mutex<Sources>,
    /// Made when the program asks for the descriptor.
    descriptor: OnceLock<Descriptor>,
    polled: bool,
}

#[derive(Debug)]
struct Descriptor {
    /// Holds the bell, and what ends a sleep at the node: nobody else takes anything out of it.
    set: Arc<Sleeper>,
    bell: Doorbell,
}

/// Token of the bell in that set, which no link and no node uses.
const BELL: u64 = u64::MAX - 2;

/// How long a wait on a polled queue looks before it sleeps, and the longest such a sleep, which bounds how late an event is
/// found. On a loaded core the first costs others their time; the second is some thousand switches' worth of it.
const LOOK_NS: u64 = 60_000;
const POLL_NS: u64 = 1_000_000;

impl EventQueue {
    /// A queue that one can sleep on.
    pub fn new(node: &Node) -> EventQueue {
        Self::build(node, false)
    }

    /// A queue that is polled: no peer makes a system call for it. Whoever finds its own queue empty takes in the events for
    /// all queues of the node. A wait looks for a while, and then sleeps without telling the peers: it is woken when one of
    /// them has nearly filled its event ring, and looks again after a millisecond in any case.
    pub fn polled(node: &Node) -> EventQueue {
        Self::build(node, true)
    }

    fn build(node: &Node, polled: bool) -> EventQueue {
        let core =
            EventQueueCore { pending: Pending::new(), sources: Mutex::default(), descriptor: OnceLock::new(), polled };
        EventQueue { core: Arc::new(core), node: node.clone() }
    }

    /// Whether this and the other are one queue.
    pub fn is(&self, other: &EventQueue) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }

    /// Reports each firing of a tripwire, which is armed now and, if it is repeating, whenever its event is taken.
    pub fn attach_tripwire(&self, tripwire: &Tripwire, token: u64) -> SourceId {
        let (id, subscription) = self.add(token, Source::Tripwire(tripwire.core().clone()));
        tripwire.core().subscribe(subscription);
        tripwire.core().arm();
        id
    }

    /// Reports each completion of an RDMA queue.
    pub fn attach_rdma(&self, queue: &RdmaQueue, token: u64) -> SourceId {
        let (id, subscription) = self.subscribe_plain(token);
        queue.subscribe(subscription);
        id
    }

    /// Reports messages and the end of an endpoint.
    pub fn attach_endpoint(&self, endpoint: &Endpoint, token: u64) -> SourceId {
        let (id, subscription) = self.subscribe_plain(token);
        endpoint.subscribe(subscription);
        id
    }

    /// Reports that something has arrived for a receiver, or that its connection has ended; at once if that is so already.
    ///
    /// When its event is taken the source is armed again, so the program then takes everything that is there:
    ///
    /// ```
    /// # use sidestep_fabric::{Error, EventQueue, Node, Result, queue::Receiver};
    /// fn serve(node: &Node, receivers: &mut [Receiver], mut take: impl FnMut(usize, &[u8])) -> Result<()> {
    ///     let events = EventQueue::new(node);
    ///     for (token, receiver) in receivers.iter_mut().enumerate() {
    ///         events.attach_receiver(receiver, token as u64)?;
    ///     }
    ///     let mut buffer = [0; 4096];
    ///     loop {
    ///         let token = events.wait(None)?.token as usize;
    ///         while receivers[token].has_news() {
    ///             let count = receivers[token].try_receive(&mut buffer)?;
    ///             take(token, &buffer[..count]);
    ///         }
    ///         if receivers[token].is_over() {
    ///             return Ok(());
    ///         }
    ///     }
    /// }
    /// ```
    pub fn attach_receiver(&self, receiver: &mut Receiver, token: u64) -> Result<SourceId> {
        receiver.attach(self, token)
    }

    /// Reports that there is space again, after a try to send, or to reserve, that found too little; and the end of the
    /// connection. One event follows each such try at most, and none while there is space enough.
    pub fn attach_sender(&self, sender: &mut Sender, token: u64) -> Result<SourceId> {
        sender.attach(self, token)
    }

    pub(crate) fn attach_queue(&self, tripwire: &Tripwire, endpoint: &Arc<EndpointCore>, token: u64) -> SourceId {
        let (id, subscription) = self.add(token, Source::Queue(tripwire.core().clone(), endpoint.clone()));
        tripwire.core().subscribe(subscription.clone());
        endpoint.subscribe_end(subscription);
        id
    }

    /// A source of the program's own, for [`deliver`](Self::deliver).
    pub fn attach(&self, token: u64) -> SourceId {
        self.add(token, Source::Plain).0
    }

    pub(crate) fn subscribe_plain(&self, token: u64) -> (SourceId, Subscription) {
        self.add(token, Source::Plain)
    }

    /// Ends a source's reports; an event of it that was not taken is dropped.
    pub fn detach(&self, id: SourceId) {
        let removed = self.core.sources().remove(id);
        let Some((mark, source)) = removed else { return };
        match source {
            Source::Tripwire(tripwire) => tripwire.silence(),
            Source::Queue(tripwire, endpoint) => {
                tripwire.silence();
                endpoint.unsubscribe_end(&Subscription { queue: self.core.clone(), mark: mark.clone() });
            }
            Source::Plain => {}
        }
        self.core.pending.remove(&mark);
    }

    /// Posts an event of the program's own. `false` if one of this source is queued already, or it is detached.
    pub fn deliver(&self, id: SourceId) -> bool {
        let mark = self.core.sources().mark(id);
        let Some(mark) = mark else { return false };
        let posted = Subscription { queue: self.core.clone(), mark }.post();
        if posted {
            self.node.notify();
        }
        posted
    }

    /// The next event, if there is one. Never blocks.
    pub fn poll(&self) -> Option<Event> {
        if let Some(event) = self.core.take() {
            return Some(event);
        }
        if let Some(descriptor) = self.core.descriptor.get() {
            return self.poll_descriptor(descriptor);
        }
        self.node.progress();
        self.core.take()
    }

    /// The next event; waits for it until the deadline (nanoseconds of `sys::clock::now`).
    pub fn wait(&self, deadline: Option<u64>) -> Result<Event> {
        if self.core.polled {
            return self.wait_polling(deadline, &mut || self.poll());
        }
        self.wait_for(deadline, &mut || self.core.take())
    }

    /// As [`poll`](Self::poll), but takes up to `most` events at once and appends them to `events`. How many.
    pub fn poll_many(&self, events: &mut Vec<Event>, most: usize) -> usize {
        match self.core.take_many(events, most) {
            0 if most > 0 => {}
            count => return count,
        }
        let Some(first) = self.poll() else { return 0 };
        events.push(first);
        1 + self.core.take_many(events, most - 1)
    }

    /// As [`wait`](Self::wait), but takes up to `most` events at once, at least one.
    pub fn wait_many(&self, events: &mut Vec<Event>, most: usize, deadline: Option<u64>) -> Result<usize> {
        let mut look = || Some(self.core.take_many(events, most.max(1))).filter(|count| *count > 0);
        if self.core.polled {
            return self.wait_polling(deadline, &mut || {
                look().or_else(|| {
                    self.node.progress();
                    look()
                })
            });
        }
        self.wait_for(deadline, &mut look)
    }

    fn wait_for<T>(&self, deadline: Option<u64>, look: &mut dyn FnMut() -> Option<T>) -> Result<T> {
        let mut waiter = Waiter::default();
        self.node.wait_until(&mut waiter, deadline, "an event", &mut || {
            let core = self.node.core();
            // It may be the end of a transfer.
            core.links.push();
            loop {
                let found = look();
                // Work that this process does itself is no reason to give the core away, which may take a time slice.
                if found.is_some() || !core.links.maps || !core.scheduler.run() {
                    return Ok(found);
                }
            }
        })
    }

    /// A descriptor that is readable when [`poll`](Self::poll) may find an event. From now on every `poll` that finds
    /// none prepares the next ring, which costs the peers a doorbell.
    pub fn descriptor(&self) -> Result<BorrowedFd<'_>> {
        if self.core.polled {
            return Err(Error::Unsupported("a descriptor of a polled event queue"));
        }
        if self.core.descriptor.get().is_none() {
            let (set, bell) = (Arc::new(Sleeper::new()?), Doorbell::new()?);
            set.add_doorbell(bell.as_fd(), BELL)?;
            self.node.watch(&set)?;
            let _ = self.core.descriptor.set(Descriptor { set, bell });
        }
        let descriptor = self.core.descriptor.get().expect("set above, by this thread or another");
        if !self.core.pending.is_empty() {
            descriptor.bell.ring();
        }
        self.node.set_ringing();
        Ok(descriptor.set.as_fd())
    }

    /// Empties the descriptor, looks, and makes sure the next event rings.
    fn poll_descriptor(&self, descriptor: &Descriptor) -> Option<Event> {
        let mut tokens = Tokens::new();
        let _ = descriptor.set.sleep(Some(0), &mut tokens);
        self.node.set_ringing();
        self.node.progress_kernel();
        self.core.take()
    }

    /// Looks until there is an event; between looks in vain it sleeps without telling the peers.
    fn wait_polling<T>(&self, deadline: Option<u64>, look: &mut dyn FnMut() -> Option<T>) -> Result<T> {
        let began = clock::now();
        loop {
            for _ in 0..64 {
                if let Some(found) = look() {
                    return Ok(found);
                }
                std::hint::spin_loop();
            }
            let now = clock::now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Err(Error::TimedOut("an event"));
            }
            if now - began > LOOK_NS {
                let latest = now + POLL_NS;
                self.node.doze(deadline.map_or(latest, |deadline| deadline.min(latest)))?;
            }
        }
    }

    fn add(&self, token: u64, source: Source) -> (SourceId, Subscription) {
        let mut sources = self.core.sources();
        let (id, mark) = sources.add(token, source);
        let count = sources.len();
        drop(sources);
        self.core.pending.make_room(count);
        (id, Subscription { queue: self.core.clone(), mark })
    }
}

impl EventQueueCore {
    fn take(&self) -> Option<Event> {
        loop {
            let id = SourceId(self.pending.take()?);
            let sources = self.sources();
            // Detached meanwhile: its number may belong to another by now.
            if let Some(event) = sources.take(id) {
                return Some(event);
            }
        }
    }

    /// Takes several at once, under one lock each.
    fn take_many(&self, events: &mut Vec<Event>, most: usize) -> usize {
        let before = events.len();
        if most > 0 && !self.pending.is_empty() {
            let mut ids = Vec::new();
            self.pending.take_many(&mut ids, most);
            let sources = self.sources();
            events.extend(ids.into_iter().filter_map(|id| sources.take(SourceId(id))));
        }
        events.len() - before
    }

    fn sources(&self) -> MutexGuard<'_, Sources> {
        self.sources.lock().expect("no panic in event sources")
    }
}

impl Subscription {
    /// Whether this and the other are of one source.
    pub(crate) fn is(&self, other: &Subscription) -> bool {
        Arc::ptr_eq(&self.mark, &other.mark)
    }

    /// Reports. The node wakes sleepers after it has dispatched, so this only rings the queue's own descriptor.
    pub(crate) fn post(&self) -> bool {
        let posted = self.queue.pending.post(&self.mark);
        if posted && let Some(descriptor) = self.queue.descriptor.get() {
            descriptor.bell.ring();
        }
        posted
    }
}
