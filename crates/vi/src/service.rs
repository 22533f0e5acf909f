//! The service thread of a NIC: progress for programs that poll memory without calling, callbacks, errors.
//!
//! It must not disturb a program that polls through the library. So it looks at a trunk only if the program has not polled
//! it for a tick, and arms its tripwires only then: a peer's stores stay plain stores as long as someone polls.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use sidestep_fabric::Node;
use sidestep_shm::wait::{Patience, Waiter};
use sidestep_sys::{
    clock,
    lock::{Mutex, MutexGuard, Threads},
    signal::start_thread,
};

use crate::{
    code::{ErrorCode, Resource, Status},
    cq::{Cq, CqCore},
    error::{Error, Result},
    nic::NicCore,
    trunk::Trunk,
    vi::ViCore,
};

/// Something went wrong that no descriptor tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorEvent {
    /// The VI, by its number.
    pub vi: Option<u32>,
    /// The completion queue, by the number that the layer above gave it ([`Cq::set_tag`]).
    pub cq: Option<u64>,
    /// What happened.
    pub code: ErrorCode,
    /// To what kind of thing.
    pub resource: Resource,
    /// In which operation: one of the `OP_` bits.
    pub operation: Status,
    /// The descriptor, if it is about one.
    pub token: u64,
}

impl ErrorEvent {
    pub(crate) fn new(code: ErrorCode, resource: Resource, operation: Status) -> ErrorEvent {
        ErrorEvent { vi: None, cq: None, code, resource, operation, token: 0 }
    }
}

/// Hears of errors.
pub type ErrorHandler = Arc<dyn Fn(&ErrorEvent) + Send + Sync>;

#[derive(Default)]
pub(crate) struct Service {
    /// Whether it shall look at once.
    nudged: AtomicBool,
    running: AtomicBool,
    /// Whether completions are waited for by callbacks.
    callbacks: AtomicBool,
    events: Mutex<VecDeque<ErrorEvent>>,
    handler: Mutex<Option<ErrorHandler>>,
    cqs: Mutex<Vec<Weak<CqCore>>>,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Service(running: {})", self.running.load(Ordering::Relaxed))
    }
}

/// Between looks, in nanoseconds: while the program is active, and at most when nothing happens.
const TICK: u64 = 1_000_000;
const LONGEST_TICK: u64 = 16_000_000;
/// How long it goes on looking after it found something itself.
const EAGER: u64 = 100_000;
/// Errors that wait for a handler.
const MAX_EVENTS: usize = 1024;

impl Service {
    pub(crate) fn set_handler(&self, handler: Option<ErrorHandler>) {
        *self.handler.lock().expect("no panic with the handler") = handler;
    }

    /// An error that the handler will hear of. `true`: the thread is to be woken.
    fn report(&self, event: ErrorEvent) -> bool {
        let mut events = self.events();
        if self.handler.lock().expect("no panic with the handler").is_some() && events.len() < MAX_EVENTS {
            events.push_back(event);
            return true;
        }
        false
    }

    /// Whether a callback may wait for a descriptor that has completed.
    #[inline]
    pub(crate) fn has_callbacks(&self) -> bool {
        self.callbacks.load(Ordering::Relaxed)
    }

    fn events(&self) -> MutexGuard<'_, VecDeque<ErrorEvent>> {
        self.events.lock().expect("no panic with errors")
    }

    fn report_errors(&self) {
        let handler = self.handler.lock().expect("no panic with the handler").clone();
        loop {
            let event = self.events().pop_front();
            match (event, &handler) {
                (Some(event), Some(handler)) => handler(&event),
                (Some(_), None) => {}
                (None, _) => return,
            }
        }
    }
}

impl NicCore {
    pub(crate) fn start_service(self: &Arc<Self>) -> Result<()> {
        if self.threads != Threads::ANY {
            return Err(Error::Invalid("a service thread for a NIC that belongs to one thread"));
        }
        if self.service.running.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let (nic, node) = (Arc::downgrade(self), self.node.clone());
        let started = start_thread("via-service", move || run(&nic, &node));
        match started {
            Ok(_) => Ok(()),
            Err(_) => {
                self.service.running.store(false, Ordering::Release);
                Err(Error::Limit { what: "threads", limit: 0 })
            }
        }
    }

    /// A connection was made, or a callback waits: the service thread looks at once.
    pub(crate) fn wake_service(&self) {
        if self.service.running.load(Ordering::Relaxed) {
            self.service.nudged.store(true, Ordering::Release);
            self.node.wake();
        }
    }

    pub(crate) fn report(&self, event: ErrorEvent) {
        if self.service.report(event) {
            self.wake_service();
        }
    }

    pub(crate) fn watch_callbacks(self: &Arc<Self>) -> Result<()> {
        self.service.callbacks.store(true, Ordering::Relaxed);
        self.start_service()?;
        self.wake_service();
        Ok(())
    }

    pub(crate) fn watch_cq(self: &Arc<Self>, cq: &Cq) -> Result<()> {
        let mut cqs = self.service.cqs.lock().expect("no panic with callbacks");
        if !cqs.iter().any(|known| known.ptr_eq(&Arc::downgrade(&cq.core))) {
            cqs.push(Arc::downgrade(&cq.core));
        }
        drop(cqs);
        self.watch_callbacks()
    }

    /// One look at everything. (trunks that nobody looks after, whether anything came, whether callbacks wait)
    fn pass(self: &Arc<Self>) -> (Vec<Arc<Trunk>>, bool, bool) {
        self.service.report_errors();
        let touched = self.trunks.were_touched();
        let mut neglected = self.trunks.list().to_vec();
        neglected.retain(|trunk| trunk.is_neglected() && !touched);
        let any = neglected.iter().any(|trunk| trunk.has_news());
        neglected.iter().for_each(|trunk| trunk.poll(false));
        self.see_endings();
        let mut waiting = false;
        if self.service.has_callbacks() {
            for vi in self.all_vis() {
                waiting |= ViCore::run_callbacks(&vi);
            }
        }
        let cqs: Vec<_> = {
            let mut cqs = self.service.cqs.lock().expect("no panic with callbacks");
            cqs.retain(|cq| cq.strong_count() > 0);
            cqs.iter().filter_map(Weak::upgrade).collect()
        };
        for core in cqs {
            waiting |= Cq { core }.run_callbacks();
        }
        self.service.report_errors();
        (neglected, any, waiting)
    }
}

fn run(nic: &Weak<NicCore>, node: &Node) {
    let (mut tick, mut eager_until, mut failed) = (TICK, 0, false);
    let mut waiter = Waiter::with(Patience::NONE);
    loop {
        let Some(core) = nic.upgrade() else { return };
        let (neglected, any, waiting) = core.pass();
        let now = clock::now();
        if any {
            eager_until = now + EAGER;
        }
        if now < eager_until {
            tick = TICK;
            drop(core);
            thread::yield_now();
            continue;
        }
        tick = if waiting { TICK } else { (tick * 2).min(LONGEST_TICK) };
        // Nothing of the NIC is held while sleeping, so that it can go.
        drop(core);
        neglected.iter().for_each(|trunk| trunk.enter_sleep());
        let woken = node.wait_for(&mut waiter, Some(now + tick), &mut || {
            neglected.iter().for_each(|trunk| trunk.arm());
            let nudged = nic.upgrade().is_none_or(|core| core.service.nudged.swap(false, Ordering::AcqRel));
            (nudged || neglected.iter().any(|trunk| trunk.has_news())).then_some(())
        });
        neglected.iter().for_each(|trunk| trunk.leave_sleep());
        match woken {
            Ok(()) => tick = TICK,
            Err(sidestep_fabric::Error::TimedOut(_)) => {}
            Err(_) => {
                // The link is gone, and with it everything.
                if let Some(core) = nic.upgrade().filter(|_| !std::mem::replace(&mut failed, true)) {
                    core.report(ErrorEvent::new(ErrorCode::Catastrophic, Resource::Nic, Status(0)));
                }
                thread::sleep(std::time::Duration::from_nanos(tick));
            }
        }
    }
}
