//! A node: one process's attachment to one link or several. It owns the tables that what arrives is looked up in, makes
//! progress, and is where every thread of the process sleeps (`sleeping`).
//!
//! # Contract
//!
//! Each line is one test of the conformance suite (`testkit::conformance::node`).
//!
//! - The scheme of a name picks the link; the same name on two links is two names, and no id is of two peers.
//! - A scheme that no link of the node has is an error that says which there are.
//! - Peers of all links report to one event queue.
//! - All links carry messages at once.
//! - A thread that sleeps is woken by every link.
//! - The death of a peer on one link ends nothing on the others.
//! - A link that has news at every poll does not hide the death of a peer on another.

mod arrival;
mod links;
mod sending;
mod sleeping;

pub(crate) use self::{
    arrival::Arrivals,
    links::{Attached, LinkIndex, Links, Look},
};

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};

use sidestep_shm::wait::Waiter;
use sidestep_sys::{clock, cpu};

use self::sleeping::Sleeping;
use crate::{
    aperture::Apertures,
    arena::Arenas,
    cookie::Cookie,
    counters::{CounterSet, Counters},
    endpoint::Endpoints,
    error::{Error, Refusal, Result},
    link::{AnyLink, Capabilities, LinkOptions, Maps, Outcome, Ticket},
    outbox::Outbox,
    region::{RegionCore, RegionTable},
    scheduler::Scheduler,
    service::Service,
    ticket::Tickets,
};

/// A process's attachment to the links that it uses. Clones are the same node.
#[derive(Debug, Clone)]
pub struct Node {
    core: Arc<NodeCore>,
}

#[derive(Debug)]
pub(crate) struct NodeCore {
    pub(crate) links: Links,
    regions: RegionTable,
    pub(crate) endpoints: Endpoints,
    pub(crate) apertures: Apertures,
    pub(crate) arenas: Arenas,
    tickets: Tickets,
    outbox: Outbox,
    pub(crate) scheduler: Scheduler,
    pub(crate) counters: CounterSet,
    /// Peers that are gone.
    departures: AtomicU64,
    poller: Mutex<Poller>,
    /// Polls that another thread was in the way of.
    contended: AtomicU32,
    sleeping: Sleeping,
    /// A thread that polls while the program does not, for links that need one.
    service: Option<Service>,
}

#[derive(Debug, Default)]
struct Poller {
    /// Polls since the clock was looked at, with news or without: a peer that always has some hides no other's death.
    polls: u32,
    last_kernel_look: u64,
}

/// Polls before the clock is looked at, and time between looks at the kernel's descriptors.
const CLOCK_POLLS: u32 = 64;
const KERNEL_LOOK_NS: u64 = 1_000_000;
/// Polls in vain because of another thread before the core is given away.
const YIELD_AFTER: u32 = 16;
impl Node {
    /// A node on shared memory, for processes of this user on this host.
    pub fn new() -> Result<Node> {
        Self::open(&["shm"], &LinkOptions::default())
    }

    /// A node on the links of these schemes ([`crate::link::SCHEMES`]): `shm`, for processes of this user on this host; `iwarp`,
    /// over TCP, for processes of other hosts too, with names as `iwarp:HOST:PORT`. The scheme of a name picks the link.
    pub fn open(schemes: &[&str], options: &LinkOptions) -> Result<Node> {
        Self::with_links(schemes.iter().map(|scheme| AnyLink::open(scheme, options)).collect::<Result<_>>()?)
    }

    /// As [`open`](Self::open), but the thread that polls while the program does not is not there before
    /// [`begin_service`](Self::begin_service). For programs in which a thread cannot be started anywhere.
    pub fn open_unserved(schemes: &[&str], options: &LinkOptions) -> Result<Node> {
        Self::unserved(schemes.iter().map(|scheme| AnyLink::open(scheme, options)).collect::<Result<_>>()?)
    }

    /// A node on a link that is not of this crate.
    pub fn with_link(link: impl crate::link::Link + 'static) -> Result<Node> {
        Self::with_links(vec![AnyLink::other(link)])
    }

    /// A node on given links, each of another scheme.
    pub fn with_links(links: Vec<AnyLink>) -> Result<Node> {
        let node = Self::unserved(links)?;
        node.begin_service()?;
        Ok(node)
    }

    fn unserved(links: Vec<AnyLink>) -> Result<Node> {
        let (links, sleeping) = (Links::new(links)?, Sleeping::new()?);
        links.watch(&sleeping.sleeper)?;
        let service = if links.served { Some(Service::new()?) } else { None };
        let core = NodeCore {
            links,
            regions: RegionTable::default(),
            endpoints: Endpoints::default(),
            apertures: Apertures::default(),
            arenas: Arenas::default(),
            tickets: Tickets::default(),
            outbox: Outbox::default(),
            scheduler: Scheduler::default(),
            counters: CounterSet::default(),
            departures: AtomicU64::new(0),
            poller: Mutex::default(),
            contended: AtomicU32::new(0),
            sleeping,
            service,
        };
        Ok(Node { core: Arc::new(core) })
    }

    pub(crate) fn from_core(core: Arc<NodeCore>) -> Node {
        Node { core }
    }

    /// The schemes of its links, the first one first.
    pub fn schemes(&self) -> impl Iterator<Item = &'static str> {
        self.core.links.iter().map(|attached| attached.capabilities.scheme)
    }

    /// What the link of a scheme can do.
    pub fn capabilities(&self, scheme: &str) -> Result<Capabilities> {
        Ok(self.core.links.of_scheme(scheme)?.capabilities)
    }

    /// Carries out what has arrived and what was asked for. Never blocks. Every call that polls or waits does this too;
    /// a program that computes for long calls it now and then, or keeps a thread in [`serve`](Self::serve).
    pub fn progress(&self) -> bool {
        self.make_progress(Look::Memory)
    }

    /// Makes progress until `stop` is true: the body of a progress thread, for one-sided service while the program is
    /// busy elsewhere. Looks at `stop` whenever anything happens, and every 10 ms.
    pub fn serve(&self, stop: &AtomicBool) -> Result<()> {
        let mut waiter = Waiter::default();
        while !stop.load(Ordering::Acquire) {
            let deadline = clock::now() + 10_000_000;
            let outcome = self.wait_until(&mut waiter, Some(deadline), "a request", &mut || {
                Ok(stop.load(Ordering::Acquire).then_some(()))
            });
            match outcome {
                Ok(()) | Err(Error::TimedOut(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Starts the thread that polls while the program does not, if a link needs one and it is not there.
    pub fn begin_service(&self) -> Result<()> {
        self.core.service.as_ref().map_or(Ok(()), |service| service.start(self))
    }

    /// Ends the thread that polls while the program does not, if a link needs one: peers are served by calls alone from now
    /// on. For a process that must have no threads but its own.
    pub fn end_service(&self) {
        if let Some(service) = &self.core.service {
            service.end();
        }
    }

    pub(crate) fn regions(&self) -> &RegionTable {
        &self.core.regions
    }

    pub(crate) fn core(&self) -> &Arc<NodeCore> {
        &self.core
    }

    /// As `progress`, and looks at the kernel's descriptors in any case.
    pub fn progress_kernel(&self) -> bool {
        self.make_progress(Look::Kernel)
    }

    /// As `progress`, and looks at the kernel's descriptors of those links on which memory tells nothing.
    pub fn progress_served(&self) -> bool {
        self.make_progress(Look::Served)
    }

    fn make_progress(&self, look: Look) -> bool {
        if let Some(service) = &self.core.service {
            service.note_poll();
        }
        self.serve_once(look)
    }

    /// As `make_progress`, by the thread that stays away while the program polls.
    pub(crate) fn serve_once(&self, look: Look) -> bool {
        let core = &*self.core;
        let mut any = false;
        if let Ok(mut poller) = core.poller.try_lock() {
            let look = if look != Look::Kernel && poller.kernel_is_due() { Look::Kernel } else { look };
            any = core.poll_links(look);
            // A poll that found nothing has put off nothing.
            if any {
                core.settle();
            }
            if core.sleeping.is_ringing() {
                any |= core.arm_descriptors();
            }
        } else if core.service.is_some() && core.contended.fetch_add(1, Ordering::Relaxed) % YIELD_AFTER == 0 {
            // The thread that serves may be in the midst of it, and wait for this very core.
            std::thread::yield_now();
        }
        if !core.outbox.is_empty() {
            any |= core.outbox.flush(&core.links, |ticket, outcome| core.completed(ticket, outcome));
        }
        // Where nothing is mapped, transfers go on with what has come for them, or with room on the link.
        if core.links.maps || core.scheduler.is_due(any) {
            any |= core.scheduler.run();
        }
        if any {
            self.notify();
        }
        any
    }

    pub(crate) fn notify(&self) {
        self.core.notify();
    }

    /// Waits until `check` has an answer, or the deadline: for layers above that arm several tripwires. `check` arms, and
    /// then looks; it is called again whenever anything happened in this process.
    pub fn wait_for<T>(
        &self,
        waiter: &mut Waiter,
        deadline: Option<u64>,
        check: &mut dyn FnMut() -> Option<T>,
    ) -> Result<T> {
        self.wait_until(waiter, deadline, "something to happen", &mut || Ok(check()))
    }

    /// Tells sleeping threads of this process to look again.
    pub fn wake(&self) {
        self.notify();
    }

    /// Waits until `check` has an answer: looks for a while, then sleeps.
    pub(crate) fn wait_until<T>(
        &self,
        waiter: &mut Waiter,
        deadline: Option<u64>,
        what: &'static str,
        check: &mut dyn FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        let core = &*self.core;
        let _attending = core.service.as_ref().map(Service::attend);
        // Where memory tells nothing, a poll is the only look, and a dear one. A peer on this core runs only if this thread
        // gives the core away: before that it is in vain.
        let mut looked = deadline.is_none() && self.is_served() && core.links.shares_core(cpu::current_core());
        loop {
            let epoch = core.sleeping.epoch();
            if !std::mem::take(&mut looked) {
                self.progress();
            }
            if let Some(answer) = check()? {
                return Ok(answer);
            }
            if deadline.is_some_and(|deadline| clock::now() >= deadline) {
                return Err(Error::TimedOut(what));
            }
            // Where memory tells nothing, a poll is the only look.
            let news = || {
                looked = self.is_served() && self.progress();
                looked || core.links.has_news() || core.sleeping.epoch() != epoch
            };
            // A peer on this core runs only if this thread gives the core away.
            let peer_core = || {
                let own = cpu::current_core();
                if core.links.shares_core(own) { own } else { u32::MAX }
            };
            if !waiter.look(deadline, peer_core, news)
                && let Some(answer) = self.block(deadline, check)?
            {
                return Ok(answer);
            }
        }
    }

    /// What has been counted since the node was made.
    pub fn counters(&self) -> Counters {
        let CounterSet { served_bytes, sleeps, wakes, unrung } = &self.core.counters;
        let doorbells = self.core.links.iter().filter_map(|link| link.as_link().maps()).map(Maps::doorbells).sum();
        Counters {
            served_bytes: served_bytes.value(),
            sleeps: sleeps.value(),
            wakes: wakes.value(),
            unrung: unrung.value(),
            doorbells,
        }
    }

    /// How many peers have gone, each after its connections were ended and its memory was closed. A thread that waits looks at
    /// its condition again when one goes.
    #[inline]
    pub fn departures(&self) -> u64 {
        self.core.departures.load(Ordering::SeqCst)
    }

    /// Whether this and the other are one node.
    pub fn is(&self, other: &Node) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }

    /// Whether peers of some link are served by its polls.
    pub(crate) fn is_served(&self) -> bool {
        self.core.links.served
    }
}

impl NodeCore {
    fn poll_links(&self, look: Look) -> bool {
        self.links.poll(look, |link| Arrivals::new(self, link))
    }

    fn completed(&self, ticket: Ticket, outcome: Outcome) {
        self.scheduler.note_news();
        if let Some(completion) = self.tickets.redeem(ticket) {
            completion.complete(self, outcome);
        }
    }

    fn region(&self, cookie: &Cookie) -> Result<Arc<RegionCore>, Refusal> {
        self.regions.find(cookie.region()).ok_or(Refusal::Unknown)
    }
}

impl Poller {
    fn kernel_is_due(&mut self) -> bool {
        self.polls += 1;
        if self.polls < CLOCK_POLLS {
            return false;
        }
        self.polls = 0;
        let now = clock::now();
        if now - self.last_kernel_look < KERNEL_LOOK_NS {
            return false;
        }
        self.last_kernel_look = now;
        true
    }
}
