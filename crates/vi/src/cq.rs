//! Completion queues: one place for the completions of many VIs, on an event queue of the fabric.
//!
//! The event queue holds one event per VI however many messages came, so when one is taken the VI is drained and the
//! completions go to the *staging queue*, from which they are handed out one by one.

use std::{
    collections::VecDeque,
    os::fd::BorrowedFd,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence},
    },
};

use sidestep_fabric::{
    EventQueue,
    event::{Event, SourceId},
};
use sidestep_shm::clock;

use crate::{
    attributes::MAX_CQ_ENTRIES,
    code::{ErrorCode, Resource},
    error::{Error, Result},
    nic::NicCore,
    service::ErrorEvent,
    vi::{Vi, state::ENDED},
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
    /// A source of our own, to wake who sleeps on the events.
    nudge: SourceId,
    staging: Mutex<VecDeque<(u32, Queue)>>,
    /// Threads that sleep or are about to; a descriptor counts as one.
    sleepers: AtomicU32,
    entries: AtomicUsize,
    overrun: AtomicBool,
    /// Queues of VIs that are attached.
    pub(crate) users: AtomicUsize,
    notify: Mutex<VecDeque<CqCallback>>,
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

impl Cq {
    pub(crate) fn new(nic: &Arc<NicCore>, entries: usize) -> Result<Cq> {
        check_entries(entries)?;
        let events = EventQueue::new(&nic.node);
        let nudge = events.attach(NUDGE);
        let core = CqCore {
            nic: nic.clone(),
            events,
            nudge,
            staging: Mutex::new(VecDeque::with_capacity(entries.min(1024))),
            sleepers: AtomicU32::new(0),
            entries: AtomicUsize::new(entries),
            overrun: AtomicBool::new(false),
            users: AtomicUsize::new(0),
            notify: Mutex::default(),
        };
        Ok(Cq { core: Arc::new(core) })
    }

    /// The next completion, if there is one: whose it is, and of which queue. The descriptor is then taken from the VI.
    pub fn poll(&self) -> Option<(Vi, Queue)> {
        loop {
            while let Some((id, queue)) = self.core.staged() {
                // A VI that is gone needs no answer.
                if let Some(vi) = self.core.nic.vi(id) {
                    return Some((vi, queue));
                }
            }
            let event = self.core.events.poll()?;
            self.core.take(event);
        }
    }

    /// The next completion; waits for it until the deadline (nanoseconds of `shm::clock::now`).
    pub fn wait(&self, deadline: Option<u64>) -> Result<(Vi, Queue)> {
        let core = &*self.core;
        loop {
            if let Some(found) = self.poll() {
                return Ok(found);
            }
            if deadline.is_some_and(|deadline| clock::now() >= deadline) {
                return Err(Error::TimedOut);
            }
            core.sleepers.fetch_add(1, Ordering::SeqCst);
            // SeqCst: with `stage`: either it sees this sleeper, or the sleeper sees its entry.
            fence(Ordering::SeqCst);
            let event = match core.lock().is_empty() {
                true => core.events.wait(deadline).map(Some),
                false => Ok(None),
            };
            core.sleepers.fetch_sub(1, Ordering::SeqCst);
            match event {
                Ok(Some(event)) => core.take(event),
                Ok(None) | Err(sidestep_fabric::Error::TimedOut(_)) => {}
                Err(error) => return Err(error.into()),
            }
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
        // For good: every entry that is staged must ring.
        self.core.sleepers.fetch_add(1, Ordering::SeqCst);
        if !self.core.lock().is_empty() {
            self.core.events.deliver(self.core.nudge);
        }
        Ok(self.core.events.descriptor()?)
    }

    /// How many completions it is meant to hold.
    pub fn entries(&self) -> usize {
        self.core.entries.load(Ordering::Relaxed)
    }

    /// Changes that.
    pub fn resize(&self, entries: usize) -> Result<()> {
        check_entries(entries)?;
        if self.core.lock().len() > entries {
            return Err(Error::InUse("the completion queue"));
        }
        self.core.entries.store(entries, Ordering::Relaxed);
        self.core.overrun.store(false, Ordering::Relaxed);
        Ok(())
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
    pub(crate) fn stage(&self, vi: u32, queue: Queue) {
        let staged = {
            let mut staging = self.lock();
            staging.push_back((vi, queue));
            staging.len()
        };
        if staged > self.entries.load(Ordering::Relaxed) && !self.overrun.swap(true, Ordering::Relaxed) {
            // Nothing is lost here, but the program asked to be told.
            let code = ErrorCode::Overrun;
            self.nic.report(ErrorEvent { vi: Some(vi), cq: None, code, resource: Resource::Cq, token: 0 });
        }
        // SeqCst: pairs with `Cq::wait`.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.events.deliver(self.nudge);
        }
    }

    fn staged(&self) -> Option<(u32, Queue)> {
        self.lock().pop_front()
    }

    /// Something happened to a VI: drains it.
    fn take(&self, event: Event) {
        if event.token == NUDGE {
            return;
        }
        if let Some(vi) = self.nic.vi(event.token as u32) {
            vi.core.woken(event.token & ENDED != 0);
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(u32, Queue)>> {
        self.staging.lock().expect("no panic in a staging queue")
    }
}

fn check_entries(entries: usize) -> Result<()> {
    if entries > MAX_CQ_ENTRIES {
        return Err(Error::Limit { what: "entries of a completion queue", limit: MAX_CQ_ENTRIES });
    }
    if entries == 0 { Err(Error::Invalid("a completion queue without entries")) } else { Ok(()) }
}
