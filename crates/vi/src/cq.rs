//! Completion queues: one place for the completions of many VIs.
//!
//! Whoever polls takes what has arrived on the trunks of the NIC, for all VIs; completions of those that report here go to
//! the *staging queue*, from which they are handed out one by one. So the cost does not depend on how many VIs there are.

use std::{
    collections::VecDeque,
    os::fd::BorrowedFd,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
};

use sidestep_fabric::{EventQueue, event::SourceId};
use sidestep_shm::wait::{Patience, Waiter};
use sidestep_sys::{
    clock,
    lock::{Guard, Lock, Mutex},
};

use crate::{
    attributes::MAX_CQ_ENTRIES,
    code::{ErrorCode, Resource, Status},
    error::{Error, Result},
    nic::NicCore,
    service::ErrorEvent,
    trunk::Trunk,
    vi::Vi,
};

/// Which queue of a VI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Queue {
    /// The send queue.
    Send,
    /// The receive queue.
    Receive,
}

/// Collects completions. Clones are the same queue.
#[derive(Debug, Clone)]
pub struct Cq {
    pub(crate) core: Arc<CqCore>,
}

#[derive(Debug)]
pub(crate) struct CqCore {
    pub(crate) nic: Arc<NicCore>,
    pub(crate) events: EventQueue,
    /// A source of our own, which rings the descriptor.
    nudge: SourceId,
    has_descriptor: AtomicBool,
    idle: AtomicU32,
    /// Has room for as many as it is meant to hold, of which those at the beginning are used again and again.
    staging: Lock<VecDeque<(u32, Queue)>>,
    /// How many are staged: none is seen without a lock.
    staged: AtomicUsize,
    /// Threads that sleep or are about to; a descriptor counts as one.
    sleepers: AtomicU32,
    entries: AtomicUsize,
    /// A number of the layer above.
    tag: AtomicU64,
    overrun: AtomicBool,
    /// Queues of VIs that are attached.
    pub(crate) users: AtomicUsize,
    notify: Mutex<VecDeque<CqCallback>>,
    waiter: Mutex<Waiter>,
    /// Trunks whose arrivals ring the descriptor.
    watched: Mutex<Vec<Weak<Trunk>>>,
}

/// Called once, with the next completion.
pub type CqNotify = Box<dyn FnOnce(Vi, Queue) + Send>;

struct CqCallback(CqNotify);

impl std::fmt::Debug for CqCallback {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("callback")
    }
}

const NUDGE: u64 = u64::MAX;
/// Looks that found nothing before the process sees to other things.
const BREATH: u32 = 512;

impl Cq {
    pub(crate) fn new(nic: &Arc<NicCore>, entries: usize) -> Result<Cq> {
        check_entries(entries)?;
        let events = EventQueue::new(&nic.node);
        let nudge = events.attach(NUDGE);
        let core = CqCore {
            nic: nic.clone(),
            events,
            nudge,
            has_descriptor: AtomicBool::new(false),
            idle: AtomicU32::new(0),
            staging: Lock::within(nic.threads, VecDeque::with_capacity(entries)),
            staged: AtomicUsize::new(0),
            sleepers: AtomicU32::new(0),
            entries: AtomicUsize::new(entries),
            tag: AtomicU64::new(0),
            overrun: AtomicBool::new(false),
            users: AtomicUsize::new(0),
            notify: Mutex::default(),
            waiter: Mutex::default(),
            watched: Mutex::default(),
        };
        Ok(Cq { core: Arc::new(core) })
    }

    /// The next completion, if there is one: whose it is, and of which queue. The descriptor is then taken from the VI.
    #[inline]
    pub fn poll(&self) -> Option<(Vi, Queue)> {
        let core = &*self.core;
        if let Some(found) = core.next() {
            return Some(found);
        }
        core.nic.trunks.poll(|| core.has_staged());
        let found = core.next();
        if found.is_none() { core.look_further() } else { found }
    }

    /// The next completion; waits for it until the deadline (nanoseconds of `sys::clock::now`).
    pub fn wait(&self, deadline: Option<u64>) -> Result<(Vi, Queue)> {
        let core = &*self.core;
        loop {
            if let Some(found) = self.poll() {
                return Ok(found);
            }
            if deadline.is_some_and(|deadline| clock::now() >= deadline) {
                return Err(Error::TimedOut);
            }
            core.wait_news(deadline)?;
        }
    }

    /// Calls back once, from the service thread of the NIC, with the next completion.
    pub fn notify(&self, callback: CqNotify) -> Result<()> {
        self.core.notify.lock().expect("no panic with callbacks").push_back(CqCallback(callback));
        self.core.nic.watch_cq(self)?;
        Ok(())
    }

    /// Extension: a descriptor that is readable when [`poll`](Self::poll) may find something.
    pub fn descriptor(&self) -> Result<BorrowedFd<'_>> {
        let core = &*self.core;
        // For good: every entry that is staged must ring, and so must every arrival.
        core.sleepers.fetch_add(1, Ordering::SeqCst);
        core.has_descriptor.store(true, Ordering::Release);
        let descriptor = core.events.descriptor()?;
        core.events.deliver(core.nudge);
        Ok(descriptor)
    }

    /// How many completions it is meant to hold.
    pub fn entries(&self) -> usize {
        self.core.entries.load(Ordering::Relaxed)
    }

    /// Changes that.
    pub fn resize(&self, entries: usize) -> Result<()> {
        check_entries(entries)?;
        {
            let mut staging = self.core.lock();
            if staging.len() > entries {
                return Err(Error::InUse("the completion queue"));
            }
            let more = entries - staging.len();
            staging.reserve(more);
        }
        self.core.entries.store(entries, Ordering::Relaxed);
        self.core.overrun.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// A number of the layer above, such as its handle for this queue; errors name it.
    pub fn set_tag(&self, tag: u64) {
        self.core.tag.store(tag, Ordering::Relaxed);
    }

    /// Whether a VI is attached.
    pub fn is_in_use(&self) -> bool {
        self.core.users.load(Ordering::Acquire) > 0
    }

    /// Runs callbacks for what is there. `true` if more are waiting.
    pub(crate) fn run_callbacks(&self) -> bool {
        loop {
            let callback = self.core.notify.lock().expect("no panic with callbacks").pop_front();
            let Some(callback) = callback else { return false };
            match self.poll() {
                Some((vi, queue)) => (callback.0)(vi, queue),
                None => {
                    self.core.notify.lock().expect("no panic with callbacks").push_front(callback);
                    return true;
                }
            }
        }
    }
}

impl CqCore {
    /// A descriptor of a VI has completed.
    #[inline]
    pub(crate) fn stage(&self, vi: u32, queue: Queue) {
        let staged = {
            let mut staging = self.lock();
            staging.push_back((vi, queue));
            // Pairs with `has_staged`.
            self.staged.store(staging.len(), Ordering::Release);
            staging.len()
        };
        if staged > self.entries.load(Ordering::Relaxed) && !self.overrun.swap(true, Ordering::Relaxed) {
            // Nothing is lost here, but the program asked to be told.
            let operation = if queue == Queue::Receive { Status::OP_RECEIVE } else { Status::OP_SEND };
            let event = ErrorEvent::new(ErrorCode::Overrun, Resource::Cq, operation);
            let tag = self.tag.load(Ordering::Relaxed);
            self.nic.report(ErrorEvent { vi: Some(vi), cq: Some(tag), ..event });
        }
        // A sleeper counts itself in before it looks at the staging queue under its lock.
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            self.events.deliver(self.nudge);
            self.nic.node.wake();
        }
    }

    /// Whether something is staged, as far as can be seen without the lock.
    #[inline]
    fn has_staged(&self) -> bool {
        // Pairs with `stage`. Whoever sleeps looks under the lock.
        self.staged.load(Ordering::Acquire) > 0
    }

    /// The next that is staged.
    #[inline]
    fn next(&self) -> Option<(Vi, Queue)> {
        while self.has_staged() {
            let (id, queue) = {
                let mut staging = self.lock();
                let next = staging.pop_front()?;
                if staging.is_empty() {
                    // Begins again where it began.
                    staging.clear();
                }
                self.staged.store(staging.len(), Ordering::Release);
                next
            };
            // A VI that is gone needs no answer.
            if let Some(vi) = self.nic.vi(id) {
                return Some((vi, queue));
            }
        }
        None
    }

    /// After a look that found nothing: now and then sees to other things. With a descriptor, makes the next news ring.
    #[inline]
    fn look_further(&self) -> Option<(Vi, Queue)> {
        let idle = self.idle.load(Ordering::Relaxed) + 1;
        self.idle.store(if idle < BREATH { idle } else { 0 }, Ordering::Relaxed);
        if self.has_descriptor.load(Ordering::Relaxed) {
            return self.prepare_descriptor();
        }
        if idle < BREATH {
            return None;
        }
        self.nic.breathe();
        self.next()
    }

    #[cold]
    fn prepare_descriptor(&self) -> Option<(Vi, Queue)> {
        // Empties the descriptor, and makes news of the link ring.
        self.events.poll();
        for trunk in self.nic.trunks.list().iter() {
            if self
                .watched
                .lock()
                .expect("no panic with trunks")
                .iter()
                .all(|known| !known.ptr_eq(&Arc::downgrade(trunk)))
            {
                trunk.watch();
                self.watched.lock().expect("no panic with trunks").push(Arc::downgrade(trunk));
            }
            trunk.arm();
            trunk.poll(true);
        }
        self.nic.see_endings();
        self.next()
    }

    fn wait_news(&self, deadline: Option<u64>) -> Result<()> {
        let trunks = self.nic.trunks.list();
        let news = || trunks.iter().any(|trunk| trunk.has_news());
        let core = || trunks.first().map_or(u32::MAX, |trunk| trunk.peer_core());
        if self.waiter.lock().expect("no panic while waiting").look(deadline, core, news) {
            return Ok(());
        }
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        trunks.iter().for_each(|trunk| trunk.enter_sleep());
        let waited = self.nic.node.wait_for(&mut Waiter::with(Patience::NONE), deadline, &mut || {
            for trunk in trunks.iter() {
                trunk.arm();
                trunk.poll(true);
            }
            self.nic.see_endings();
            // A trunk that was made meanwhile is looked at by the next wait.
            (!self.lock().is_empty() || self.nic.trunks.list().len() != trunks.len()).then_some(())
        });
        trunks.iter().for_each(|trunk| trunk.leave_sleep());
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        match waited {
            Ok(()) | Err(sidestep_fabric::Error::TimedOut(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    #[inline]
    fn lock(&self) -> Guard<'_, VecDeque<(u32, Queue)>> {
        self.staging.lock()
    }
}

impl Drop for CqCore {
    fn drop(&mut self) {
        let watched = self.watched.get_mut().expect("no panic with trunks");
        watched.iter().filter_map(Weak::upgrade).for_each(|trunk| trunk.unwatch());
    }
}

fn check_entries(entries: usize) -> Result<()> {
    if entries > MAX_CQ_ENTRIES {
        return Err(Error::Limit { what: "entries of a completion queue", limit: MAX_CQ_ENTRIES });
    }
    if entries == 0 { Err(Error::Invalid("a completion queue without entries")) } else { Ok(()) }
}
