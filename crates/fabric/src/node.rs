//! A node: one process's attachment to a link. It owns the tables that what arrives is looked up in, makes progress,
//! and is where every thread of the process sleeps.
//!
//! # Sleeping
//!
//! One sleeper at a time, the *leader*, sleeps on the link's descriptors; the others sleep on a condition. Whoever
//! dispatches something raises the epoch and wakes both. No wake-up is lost:
//!
//! - news from a peer: the leader announces sleep and then looks at the link again (`set_sleeping`, `has_news`);
//! - news from a thread of this process: a sleeper counts itself in, and then compares the epoch and looks at its own
//!   condition; a dispatcher raises the epoch, and then looks at the count.

mod arrival;

use std::{
    os::fd::{AsFd, BorrowedFd},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
    },
    time::Duration,
};

use sidestep_shm::{
    doorbell::{Doorbell, Sleeper, Tokens},
    wait::Waiter,
};
use sidestep_sys::{clock, cpu};

use crate::{
    aperture::{ApertureCore, Apertures},
    arena::Arenas,
    cookie::{Cookie, RegionId},
    endpoint::Endpoints,
    error::{CloseReason, Error, Refusal, Result},
    link::{
        AnyLink, KERNEL, Link, PeerId, Request, Target, Ticket,
        iwarp::{IwarpLink, IwarpOptions},
        shm::ShmLink,
    },
    outbox::{Held, Outbox},
    protocol::Message,
    region::{RegionCore, RegionSlice, RegionTable},
    scheduler::Scheduler,
    service::Service,
    ticket::{Completion, Tickets},
};

/// A process's attachment to a link. Clones are the same node.
#[derive(Debug, Clone)]
pub struct Node {
    core: Arc<NodeCore>,
}

#[derive(Debug)]
pub(crate) struct NodeCore {
    link: AnyLink,
    /// Whether the link maps memory.
    maps: bool,
    regions: RegionTable,
    pub(crate) endpoints: Endpoints,
    pub(crate) apertures: Apertures,
    pub(crate) arenas: Arenas,
    tickets: Tickets,
    outbox: Outbox,
    pub(crate) scheduler: Scheduler,
    poller: Mutex<Poller>,
    /// Polls that another thread was in the way of.
    contended: AtomicU32,
    /// Raised by every dispatch.
    epoch: AtomicU64,
    /// Threads that sleep or are about to.
    sleepers: AtomicU32,
    /// Whether some event queue is also a descriptor, so that news must always ring.
    ringing: AtomicBool,
    leader: Mutex<Leader>,
    followers: Condvar,
    sleeper: Arc<Sleeper>,
    /// Wakes the leader from within the process.
    bell: Doorbell,
    /// A thread that polls while the program does not, for links that need one.
    service: Option<Service>,
    /// Another node whose news ends sleeps in berths of this one.
    companion: OnceLock<Node>,
}

#[derive(Debug, Default)]
struct Leader {
    asleep: bool,
    followers: u32,
    /// Threads that sleep in berths.
    outside: u32,
}

#[derive(Debug, Default)]
struct Poller {
    idle: u32,
    last_kernel_look: u64,
}

/// Polls without news before the clock is looked at, and time between looks at the kernel's descriptors.
const IDLE_POLLS: u32 = 64;
const KERNEL_LOOK_NS: u64 = 1_000_000;
/// Polls in vain because of another thread before the core is given away.
const YIELD_AFTER: u32 = 16;
/// The longest a sleeper stays away while the link is full.
const FULL_LINK_NS: u64 = 50_000;
/// The longest a sleeper stays away from its own condition.
const LONGEST_SLEEP_NS: u64 = 10_000_000_000;

impl Node {
    /// A node on shared memory, for processes of this user on this host.
    pub fn new() -> Result<Node> {
        Self::with_link(AnyLink::Shm(ShmLink::new()?))
    }

    /// A node on iWARP over TCP, for processes of other hosts too. Its names are `iwarp:HOST:PORT`.
    pub fn iwarp(options: IwarpOptions) -> Result<Node> {
        Self::with_link(AnyLink::Iwarp(IwarpLink::new(options)?))
    }

    /// A node on a given link.
    pub fn with_link(link: AnyLink) -> Result<Node> {
        let (sleeper, bell) = (Arc::new(Sleeper::new()?), Doorbell::new()?);
        sleeper.add_doorbell(bell.as_fd(), u64::MAX)?;
        link.as_link().watch(&sleeper)?;
        let service = if link.as_link().needs_service() { Some(Service::new()?) } else { None };
        let core = NodeCore {
            maps: link.as_link().capabilities().maps,
            link,
            regions: RegionTable::default(),
            endpoints: Endpoints::default(),
            apertures: Apertures::default(),
            arenas: Arenas::default(),
            tickets: Tickets::default(),
            outbox: Outbox::default(),
            scheduler: Scheduler::default(),
            poller: Mutex::default(),
            contended: AtomicU32::new(0),
            epoch: AtomicU64::new(0),
            sleepers: AtomicU32::new(0),
            ringing: AtomicBool::new(false),
            leader: Mutex::default(),
            followers: Condvar::new(),
            sleeper,
            bell,
            service,
            companion: OnceLock::new(),
        };
        let node = Node { core: Arc::new(core) };
        if let Some(service) = &node.core.service {
            service.start(&node)?;
        }
        Ok(node)
    }

    pub(crate) fn from_core(core: Arc<NodeCore>) -> Node {
        Node { core }
    }

    /// The link underneath.
    pub fn link(&self) -> &AnyLink {
        &self.core.link
    }

    /// Carries out what has arrived and what was asked for. Never blocks. Every call that polls or waits does this too;
    /// a program that computes for long calls it now and then, or keeps a thread in [`serve`](Self::serve).
    pub fn progress(&self) -> bool {
        self.make_progress(false)
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

    /// Ends the thread that polls while the program does not, if the link has one: peers are served by calls alone from now
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
        self.make_progress(true)
    }

    fn make_progress(&self, kernel: bool) -> bool {
        if let Some(service) = &self.core.service {
            service.note_poll();
        }
        self.serve_once(kernel)
    }

    /// As `make_progress`, by the thread that stays away while the program polls.
    pub(crate) fn serve_once(&self, kernel: bool) -> bool {
        let core = &*self.core;
        let mut any = false;
        if let Ok(mut poller) = core.poller.try_lock() {
            let kernel = kernel || poller.kernel_is_due();
            any = core.link().poll(core, kernel);
            // A poll that found nothing has put off nothing.
            if any {
                core.settle();
            }
            if core.ringing.load(Ordering::Relaxed) {
                any |= core.arm_descriptors();
            }
            if any {
                poller.idle = 0;
            }
        } else if core.service.is_some() && core.contended.fetch_add(1, Ordering::Relaxed) % YIELD_AFTER == 0 {
            // The thread that serves may be in the midst of it, and wait for this very core.
            std::thread::yield_now();
        }
        if !core.outbox.is_empty() {
            any |= core.outbox.flush(core.link(), |ticket, outcome| core.completed(ticket, outcome));
        }
        // Where nothing is mapped, transfers go on with what has come for them, or with room on the link.
        if core.maps || core.scheduler.is_due(any) {
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
        let mut looked = deadline.is_none() && self.is_served() && core.link().shares_core(cpu::current_core());
        loop {
            let epoch = core.epoch.load(Ordering::Acquire);
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
                looked || core.link().has_news() || core.epoch.load(Ordering::Relaxed) != epoch
            };
            // A peer on this core runs only if this thread gives the core away.
            let peer_core = || {
                let own = cpu::current_core();
                if core.link().shares_core(own) { own } else { u32::MAX }
            };
            if !waiter.look(deadline, peer_core, news)
                && let Some(answer) = self.block(deadline, check)?
            {
                return Ok(answer);
            }
        }
    }

    /// Sleeps once. An answer that was there before sleeping is returned.
    pub(crate) fn block<T>(
        &self,
        deadline: Option<u64>,
        check: &mut dyn FnMut() -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let core = &*self.core;
        let _attending = core.service.as_ref().map(Service::attend);
        core.sleepers.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let epoch = core.epoch.load(Ordering::Acquire);
        let outcome = check().and_then(|answer| {
            if answer.is_none() {
                // A full link does not ring when it has room again.
                let longest = if core.outbox.is_empty() { LONGEST_SLEEP_NS } else { FULL_LINK_NS };
                let latest = clock::now() + longest;
                self.sleep_once(deadline.map_or(latest, |deadline| deadline.min(latest)), epoch)?;
            }
            Ok(answer)
        });
        core.sleepers.fetch_sub(1, Ordering::SeqCst);
        outcome
    }

    fn sleep_once(&self, deadline: u64, epoch: u64) -> Result<()> {
        let core = &*self.core;
        let mut leader = core.leader();
        if leader.asleep {
            if core.epoch.load(Ordering::Acquire) == epoch {
                leader.followers += 1;
                let left = Duration::from_nanos(deadline.saturating_sub(clock::now()));
                let mut woken = core.followers.wait_timeout(leader, left).expect("no panic while leading");
                woken.0.followers -= 1;
            }
            return Ok(());
        }
        leader.asleep = true;
        drop(leader);
        core.link().set_sleeping(true);
        let mut tokens = Tokens::new();
        let mut outcome = Ok(());
        if !core.link().has_news() && core.epoch.load(Ordering::Acquire) == epoch {
            outcome = core.sleeper.sleep(Some(deadline), &mut tokens);
        }
        let mut leader = core.leader();
        leader.asleep = false;
        if leader.outside == 0 && !core.ringing.load(Ordering::Relaxed) {
            core.link().set_sleeping(false);
        }
        if leader.followers > 0 {
            // One of them leads on.
            core.followers.notify_all();
        }
        drop(leader);
        // What memory tells is left to the caller, who may find what it waits for without it: after a sleep every line of
        // memory is far away.
        if tokens.contains(&KERNEL) {
            self.progress_kernel();
        } else if core.ringing.load(Ordering::Relaxed) {
            self.progress();
        }
        Ok(outcome?)
    }

    /// The number that names the line to a peer, where lines have one: see [`Link::caller`].
    pub fn caller(&self, peer: PeerId) -> Option<u64> {
        self.core.link().caller(peer)
    }

    /// Whether this and the other are one node.
    pub fn is(&self, other: &Node) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }

    /// From now on whoever sleeps in a berth of this node is woken by news of the other one, too, and sees to it; and the
    /// epoch and the news of this node are those of both. Once, and before the first berth is made.
    pub fn accompany(&self, other: &Node) {
        let _ = self.core.companion.set(other.clone());
    }

    pub(crate) fn companion(&self) -> Option<&Node> {
        self.core.companion.get()
    }

    /// Whether peers of this node are served by its polls.
    pub(crate) fn is_served(&self) -> bool {
        self.core.service.is_some()
    }

    /// Raised by everything that is dispatched in this process.
    #[inline]
    pub fn epoch(&self) -> u64 {
        let own = self.core.epoch.load(Ordering::Acquire);
        self.companion().map_or(own, |other| own.wrapping_add(other.epoch()))
    }

    /// Whether memory tells of news that no progress has seen. A cheap guess.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.core.link().has_news() || self.companion().is_some_and(Node::has_news)
    }

    pub(crate) fn add_outside(&self) {
        self.core.sleepers.fetch_add(1, Ordering::SeqCst);
        self.core.leader().outside += 1;
        fence(Ordering::SeqCst);
        self.core.link().set_sleeping(true);
        if let Some(other) = self.companion() {
            other.add_outside();
        }
    }

    pub(crate) fn remove_outside(&self) {
        let mut leader = self.core.leader();
        leader.outside -= 1;
        if leader.outside == 0 && !leader.asleep && !self.core.ringing.load(Ordering::Relaxed) {
            self.core.link().set_sleeping(false);
        }
        drop(leader);
        self.core.sleepers.fetch_sub(1, Ordering::SeqCst);
        if let Some(other) = self.companion() {
            other.remove_outside();
        }
    }

    pub(crate) fn watch(&self, sleeper: &Arc<Sleeper>) -> Result<()> {
        sleeper.add_doorbell(self.core.bell.as_fd(), u64::MAX)?;
        self.core.link().watch(sleeper)?;
        self.companion().map_or(Ok(()), |other| other.watch(sleeper))
    }

    pub(crate) fn sleep_descriptor(&self) -> BorrowedFd<'_> {
        self.core.sleeper.as_fd()
    }

    pub(crate) fn drain_sleep_descriptor(&self) {
        let mut tokens = Tokens::new();
        let _ = self.core.sleeper.sleep(Some(0), &mut tokens);
    }

    /// The next news rings. `true` if there is some already.
    pub(crate) fn set_ringing_once(&self) -> bool {
        if let Some(service) = &self.core.service {
            service.sleeps_outside();
        }
        self.core.link().set_sleeping(true);
        self.core.link().has_news()
    }

    /// After a sleep on the descriptor outside this node: empties it and sees to what came.
    pub(crate) fn finish_ringing(&self) {
        self.drain_sleep_descriptor();
        if !self.core.ringing.load(Ordering::Relaxed) {
            self.core.link().set_sleeping(false);
        }
        self.progress_kernel();
    }

    /// From now on all news rings.
    pub(crate) fn set_ringing(&self) {
        self.core.ringing.store(true, Ordering::Relaxed);
        self.core.link().set_sleeping(true);
    }

    /// Starts a request; `completion` learns how it ends.
    pub(crate) fn request(
        &self,
        peer: PeerId,
        cookie: &Cookie,
        request: Request<'_>,
        completion: Completion,
    ) -> Result<()> {
        self.start(completion, |link, ticket| link.request(peer, ticket, cookie, request))
    }

    /// Starts a put of bytes that lie in a region; `completion` learns how it ends.
    pub(crate) fn put(
        &self,
        peer: PeerId,
        cookie: &Cookie,
        offset: u64,
        source: &RegionSlice,
        completion: Completion,
    ) -> Result<()> {
        self.start(completion, |link, ticket| link.put(peer, ticket, cookie, offset, source))
    }

    fn start(&self, completion: Completion, ask: impl FnOnce(&dyn Link, Ticket) -> Result<()>) -> Result<()> {
        let ticket = self.core.tickets.issue(completion);
        let started = ask(self.core.link(), ticket);
        if started.is_err() {
            self.core.tickets.redeem(ticket);
        }
        self.core.push_unattended();
        started
    }

    /// Sends a message that must arrive, as soon as the link takes it.
    pub(crate) fn post(&self, peer: PeerId, message: Message<'_>) -> Result<()> {
        self.core.post(peer, message)
    }

    /// Sends a message of the program's own; an error if the link is full.
    pub(crate) fn try_post(&self, peer: PeerId, message: Message<'_>) -> Result<()> {
        if !self.core.outbox.is_clear(peer) {
            return Err(Error::Full { what: "the link", limit: 0 });
        }
        self.core.link().post(peer, &message.to_bytes())
    }

    /// Whether the link has taken everything that was meant for a peer.
    pub(crate) fn has_sent_all(&self, peer: PeerId) -> bool {
        self.core.outbox.is_clear(peer)
    }

    /// Starts a store that must arrive, as soon as the link takes it.
    pub(crate) fn store(
        &self,
        peer: PeerId,
        cookie: &Cookie,
        offset: u64,
        bytes: &[u8],
        completion: Completion,
    ) -> Result<()> {
        let ticket = self.core.tickets.issue(completion);
        let held = Held::Store { ticket, cookie: *cookie, offset, bytes: bytes.to_vec() };
        let sent = self.core.send(peer, held, true);
        if sent.is_err() {
            self.core.tickets.redeem(ticket);
        }
        sent
    }

    /// Sends the pages of a region ahead, if the cookie lets a peer map them.
    pub(crate) fn offer(&self, peer: PeerId, region: &RegionCore, cookie: &Cookie) -> Result<()> {
        if !self.core.link().capabilities().maps {
            let here = self.core.link().is_here(peer);
            return if here { Ok(()) } else { Err(Error::Closed(CloseReason::Died)) };
        }
        match region.grant(peer, cookie, true)? {
            Some(pages) => self.core.link().offer(peer, cookie, &pages),
            None => Ok(()),
        }
    }

    /// Tells those who have pages of a region that its cookies before `generation` are void. The others find out when
    /// they use one.
    pub(crate) fn announce_revoked(&self, mapped_by: &[PeerId], region: RegionId, generation: u32) {
        for peer in mapped_by {
            // A peer that cannot be told is closing; its apertures end with it.
            let _ = self.post(*peer, Message::Revoked { region, generation });
        }
    }
}

impl NodeCore {
    /// Says that something changed that a sleeping thread may wait for.
    pub(crate) fn notify(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        // SeqCst: pairs with `block`: either the sleeper sees the epoch, or this sees the sleeper.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) != 0 {
            let leader = self.leader();
            if leader.followers > 0 {
                self.followers.notify_all();
            }
            if leader.asleep || leader.outside > 0 {
                self.bell.ring();
            }
        }
    }

    /// Tells the owner of a region that is mapped for reading that words of a line that it watches were read.
    pub(crate) fn report_read(&self, aperture: &Arc<ApertureCore>, line: usize, words: (usize, usize)) {
        let (peer, cookie) = aperture.names();
        let ticket = self.tickets.issue(Completion::Report(Arc::downgrade(aperture), line, words));
        let held = Held::Fetch { ticket, cookie, offset: words.0 as u64, len: words.1 };
        if self.send(peer, held, false).is_err() {
            // The peer is gone, and what it watched with it.
            self.tickets.redeem(ticket);
        }
    }

    /// Keeps or sends what must arrive. If it is kept, sleepers must look after it from now on.
    fn send(&self, peer: PeerId, held: Held, bound: bool) -> Result<()> {
        let sent = self.outbox.send(self.link(), peer, held, bound);
        self.push_unattended();
        if !self.outbox.is_empty() {
            self.notify();
        }
        sent
    }

    /// Where a thread serves the link: lets nothing be put off that a sleeper may wait for, since it does not poll.
    fn push_unattended(&self) {
        if self.somebody_sleeps() {
            self.link().push();
        }
    }

    /// After a poll that found something: nothing is put off that a sleeper waits for, and while nobody sleeps the kernel
    /// need not be told what this thread finds by itself.
    fn settle(&self) {
        let Some(service) = &self.service else { return };
        if self.somebody_sleeps() {
            self.link().push();
        } else if !self.ringing.load(Ordering::Relaxed)
            && !service.has_outside()
            && self.link().attend()
            && self.somebody_sleeps()
        {
            self.link().set_sleeping(true);
        }
    }

    /// Whether a thread sleeps on a link that is served, or is about to; it has not polled since.
    ///
    /// SeqCst: pairs with `block` and with the service: either they find what was done before this, or this sees them.
    fn somebody_sleeps(&self) -> bool {
        let Some(service) = &self.service else { return false };
        let others_sleep = || {
            let leader = self.leader();
            leader.asleep || leader.followers > 0 || leader.outside > 0
        };
        service.is_serving() || (self.sleepers.load(Ordering::Relaxed) != 0 && others_sleep())
    }

    fn leader(&self) -> MutexGuard<'_, Leader> {
        self.leader.lock().expect("no panic while leading")
    }

    pub(crate) fn link(&self) -> &dyn Link {
        self.link.as_link()
    }

    pub(crate) fn post(&self, peer: PeerId, message: Message<'_>) -> Result<()> {
        self.send(peer, Held::Post(message.to_bytes()), false)
    }

    /// With an event queue that is also a descriptor: makes the next news ring. News that keeps coming while this is
    /// done rings at once, so that the program looks again.
    fn arm_descriptors(&self) -> bool {
        let mut any = false;
        for _ in 0..4 {
            self.link().set_sleeping(true);
            if !self.link().has_news() {
                return any;
            }
            any |= self.link().poll(self, false);
        }
        self.bell.ring();
        any
    }

    /// Wakes whoever sleeps on the node's descriptor by itself.
    pub(crate) fn ring(&self) {
        self.bell.ring();
    }

    fn region(&self, cookie: &Cookie) -> Result<Arc<RegionCore>, Refusal> {
        self.regions.find(cookie.region()).ok_or(Refusal::Unknown)
    }
}

impl Poller {
    fn kernel_is_due(&mut self) -> bool {
        self.idle += 1;
        if self.idle < IDLE_POLLS {
            return false;
        }
        self.idle = 0;
        let now = clock::now();
        if now - self.last_kernel_look < KERNEL_LOOK_NS {
            return false;
        }
        self.last_kernel_look = now;
        true
    }
}
