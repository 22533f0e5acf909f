//! Where the threads of a node sleep: in one place, whatever its links.
//!
//! One sleeper at a time, the *leader*, sleeps on the links' descriptors; the others sleep on a condition. Whoever
//! dispatches something raises the epoch and wakes both. No wake-up is lost:
//!
//! - news from a peer: the leader announces sleep and then looks at the links again (`set_sleeping`, `has_news`);
//! - news from a thread of this process: a sleeper counts itself in, and then compares the epoch and looks at its own
//!   condition; a dispatcher raises the epoch, and then looks at the count.

use std::{
    os::fd::AsFd,
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
    },
    time::Duration,
};

use sidestep_shm::doorbell::{Doorbell, Sleeper, Tokens};
use sidestep_sys::clock;

use super::{Look, Node, NodeCore};
use crate::{error::Result, link::KERNEL, service::Service};

/// The sleepers of a node, and what wakes them.
#[derive(Debug)]
pub(super) struct Sleeping {
    /// Raised by every dispatch.
    epoch: AtomicU64,
    /// Threads that sleep or are about to.
    sleepers: AtomicU32,
    /// Whether some event queue is also a descriptor, so that news must always ring.
    ringing: AtomicBool,
    leader: Mutex<Leader>,
    followers: Condvar,
    /// The descriptors of all links.
    pub(super) sleeper: Arc<Sleeper>,
    /// Wakes the leader from within the process.
    bell: Doorbell,
}

#[derive(Debug, Default)]
struct Leader {
    asleep: bool,
    followers: u32,
    /// Threads that sleep in berths.
    outside: u32,
}

/// The longest a sleeper stays away while the link is full.
pub(super) const FULL_LINK_NS: u64 = 50_000;
/// The longest a sleeper stays away from its own condition.
const LONGEST_SLEEP_NS: u64 = 10_000_000_000;
/// Token of the node's own bell in a sleeper's set.
const BELL: u64 = u64::MAX;

impl Sleeping {
    pub(super) fn new() -> Result<Sleeping> {
        let (sleeper, bell) = (Arc::new(Sleeper::new()?), Doorbell::new()?);
        sleeper.add_doorbell(bell.as_fd(), BELL)?;
        Ok(Sleeping {
            epoch: AtomicU64::new(0),
            sleepers: AtomicU32::new(0),
            ringing: AtomicBool::new(false),
            leader: Mutex::default(),
            followers: Condvar::new(),
            sleeper,
            bell,
        })
    }

    #[inline]
    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    #[inline]
    pub(super) fn is_ringing(&self) -> bool {
        self.ringing.load(Ordering::Relaxed)
    }

    fn leader(&self) -> MutexGuard<'_, Leader> {
        self.leader.lock().expect("no panic while leading")
    }
}

impl Node {
    /// When a caller that sleeps by itself must look again at the latest: while something waits for room on a full link, which
    /// does not ring when it has room again.
    pub fn wait_deadline(&self) -> Option<u64> {
        let core = self.core();
        if core.outbox.is_empty() { core.links.wait_deadline() } else { Some(clock::now() + FULL_LINK_NS) }
    }

    /// Sleeps once. An answer that was there before sleeping is returned.
    pub(crate) fn block<T>(
        &self,
        deadline: Option<u64>,
        check: &mut dyn FnMut() -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let core = &**self.core();
        let sleeping = &core.sleeping;
        let _attending = core.service.as_ref().map(Service::attend);
        sleeping.sleepers.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let epoch = sleeping.epoch();
        let outcome = check().and_then(|answer| {
            if answer.is_some() {
                return Ok(answer);
            }
            let longest = clock::now() + LONGEST_SLEEP_NS;
            let latest = self.wait_deadline().unwrap_or(longest);
            let until = deadline.map_or(latest, |deadline| deadline.min(latest));
            if self.sleep_once(until, epoch)? || until != longest {
                return Ok(None);
            }
            let has_news = core.links.has_news();
            let late = check()?;
            core.counters.unrung.add(usize::from(has_news || late.is_some()));
            Ok(late)
        });
        sleeping.sleepers.fetch_sub(1, Ordering::SeqCst);
        outcome
    }

    /// `false`: nothing ended the sleep but its time.
    fn sleep_once(&self, deadline: u64, epoch: u64) -> Result<bool> {
        let core = &**self.core();
        let sleeping = &core.sleeping;
        let mut leader = sleeping.leader();
        if leader.asleep {
            if sleeping.epoch() != epoch {
                return Ok(true);
            }
            leader.followers += 1;
            core.counters.sleeps.add(1);
            let left = Duration::from_nanos(deadline.saturating_sub(clock::now()));
            let mut woken = sleeping.followers.wait_timeout(leader, left).expect("no panic while leading");
            woken.0.followers -= 1;
            return Ok(!woken.1.timed_out());
        }
        leader.asleep = true;
        drop(leader);
        core.links.set_sleeping(true);
        let mut tokens = Tokens::new();
        let mut outcome = Ok(());
        let may_sleep = !core.links.has_news() && sleeping.epoch() == epoch;
        if may_sleep {
            core.counters.sleeps.add(1);
            outcome = sleeping.sleeper.sleep(Some(deadline), &mut tokens);
        }
        let mut leader = sleeping.leader();
        leader.asleep = false;
        if leader.outside == 0 && !sleeping.is_ringing() {
            core.cancel_sleep();
        }
        if leader.followers > 0 {
            // One of them leads on.
            sleeping.followers.notify_all();
        }
        drop(leader);
        // What memory tells is left to the caller, who may find what it waits for without it: after a sleep every line of
        // memory is far away.
        if tokens.contains(&KERNEL) {
            self.progress_kernel();
        } else if sleeping.is_ringing() {
            self.progress();
        }
        outcome?;
        Ok(!may_sleep || !tokens.is_empty() || clock::now() < deadline)
    }

    /// Sleeps without telling the peers, who ring only if they must. What comes to the descriptors all the same is seen to, and
    /// told to the threads that sleep on them.
    pub(crate) fn doze(&self, until: u64) -> Result<()> {
        let core = &**self.core();
        let mut tokens = Tokens::new();
        core.counters.sleeps.add(1);
        core.sleeping.sleeper.sleep(Some(until), &mut tokens)?;
        if tokens.contains(&KERNEL) {
            self.progress_kernel();
        }
        if !tokens.is_empty() {
            self.notify();
        }
        Ok(())
    }

    /// Raised by everything that is dispatched in this process.
    #[inline]
    pub fn epoch(&self) -> u64 {
        self.core().sleeping.epoch()
    }

    /// Whether memory tells of news that no progress has seen. A cheap guess.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.core().links.has_news()
    }

    pub(crate) fn add_outside(&self) {
        let core = self.core();
        core.sleeping.sleepers.fetch_add(1, Ordering::SeqCst);
        core.sleeping.leader().outside += 1;
        fence(Ordering::SeqCst);
        core.links.set_sleeping(true);
    }

    pub(crate) fn remove_outside(&self) {
        let core = self.core();
        let mut leader = core.sleeping.leader();
        leader.outside -= 1;
        if leader.outside == 0 && !leader.asleep && !core.sleeping.is_ringing() {
            core.cancel_sleep();
        }
        drop(leader);
        core.sleeping.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    pub(crate) fn watch(&self, sleeper: &Arc<Sleeper>) -> Result<()> {
        sleeper.add_doorbell(self.core().sleeping.bell.as_fd(), BELL)?;
        self.core().links.watch(sleeper)
    }

    /// From now on all news rings.
    pub(crate) fn set_ringing(&self) {
        self.core().sleeping.ringing.store(true, Ordering::Relaxed);
        self.core().links.set_sleeping(true);
    }
}

impl NodeCore {
    /// Says that something changed that a sleeping thread may wait for.
    pub(crate) fn notify(&self) {
        let sleeping = &self.sleeping;
        // SeqCst, both: pairs with `block`: either the sleeper sees the epoch, or this sees the sleeper. Not a fence, which
        // would cost as much again where the step itself is one.
        sleeping.epoch.fetch_add(1, Ordering::SeqCst);
        if sleeping.sleepers.load(Ordering::SeqCst) != 0 {
            let leader = sleeping.leader();
            self.counters.wakes.add(1);
            if leader.followers > 0 {
                sleeping.followers.notify_all();
            }
            if leader.asleep || leader.outside > 0 {
                sleeping.bell.ring();
            }
        }
    }

    /// No thread of the program sleeps any longer: news need not ring for one.
    fn cancel_sleep(&self) {
        self.links.set_sleeping(false);
        if let Some(service) = &self.service {
            service.keep_ringing(&self.links);
        }
    }

    /// Where a thread serves a link: lets nothing be put off that a sleeper may wait for, since it does not poll.
    pub(super) fn push_unattended(&self) {
        if self.somebody_sleeps() {
            self.links.push();
        }
    }

    /// After a poll that found something: nothing is put off that a sleeper waits for, and while nobody sleeps the kernel
    /// need not be told what this thread finds by itself.
    pub(super) fn settle(&self) {
        if self.service.is_none() {
            return;
        }
        if self.somebody_sleeps() {
            self.links.push();
        } else if !self.sleeping.is_ringing() && self.links.attend() && self.somebody_sleeps() {
            self.links.served().for_each(|link| link.set_sleeping(true));
        }
    }

    /// Whether a thread sleeps on a link that is served, or is about to; it has not polled since.
    ///
    /// SeqCst: pairs with `block` and with the service: either they find what was done before this, or this sees them.
    fn somebody_sleeps(&self) -> bool {
        let Some(service) = &self.service else { return false };
        let others_sleep = || {
            let leader = self.sleeping.leader();
            leader.asleep || leader.followers > 0 || leader.outside > 0
        };
        service.is_serving() || (self.sleeping.sleepers.load(Ordering::Relaxed) != 0 && others_sleep())
    }

    /// With an event queue that is also a descriptor: makes the next news ring. News that keeps coming while this is
    /// done rings at once, so that the program looks again.
    pub(super) fn arm_descriptors(&self) -> bool {
        let mut any = false;
        for _ in 0..4 {
            self.links.set_sleeping(true);
            if !self.links.has_news() {
                return any;
            }
            any |= self.poll_links(Look::Memory);
        }
        self.sleeping.bell.ring();
        any
    }
}
