//! Which engine this process has: none yet, one, or none for good.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use sidestep_sys::lock::{Mutex, MutexGuard};

use super::{Engine, via};
use crate::{
    kernel::{self, signal::Inside},
    promotion::orders,
    registry::{self, Registry, reason::Reason},
    streams::lock,
};

/// The engine of this process as it is now: a change of user ends it, and what uses it keeps it until then.
#[derive(Debug)]
enum Current {
    /// Nobody has needed one yet.
    Unmade,
    /// This process cannot have one, and has left word of it there.
    Failed(#[allow(dead_code)] Option<Arc<Registry>>),
    /// Here it is.
    Running(Arc<Engine>),
}

/// A process uses one of them; a forked child the next one whose lock is free, since a thread that is not there may have
/// that of its parent for ever.
static SLOTS: [Mutex<Current>; FORKS] = [const { Mutex::new(Current::Unmade) }; FORKS];
static SLOT: AtomicUsize = AtomicUsize::new(0);
/// Whether there is an engine: most calls of programs without one ask no further.
static RUNS: AtomicBool = AtomicBool::new(false);
/// The node of the engine has a link that needs a thread, which has not been started.
static UNSERVED: AtomicBool = AtomicBool::new(false);
static DISABLED: AtomicBool = AtomicBool::new(false);
const FORKS: usize = 16;

/// The engine of this process; made when first needed. `None`: this process cannot have one.
pub fn engine() -> Option<Arc<Engine>> {
    if DISABLED.load(Ordering::Relaxed) {
        return None;
    }
    let _inside = Inside::enter();
    let mut current = current();
    // A thread that opens files as someone else would make them that one's: another thread, or a later call, makes it.
    if matches!(*current, Current::Unmade) && kernel::opens_files_as_itself() {
        *current = match kernel::stack::on_own(Engine::start) {
            Some(engine) => {
                RUNS.store(true, Ordering::Relaxed);
                UNSERVED.store(via::other_link().is_some(), Ordering::Relaxed);
                Current::Running(Arc::new(engine))
            }
            None => Current::Failed(registry::file::excuse(Reason::Resources)),
        };
    }
    match &*current {
        Current::Running(engine) => Some(engine.clone()),
        Current::Unmade | Current::Failed(_) => None,
    }
}

/// The engine, if there is one already.
pub fn running() -> Option<Arc<Engine>> {
    if !RUNS.load(Ordering::Relaxed) {
        return None;
    }
    let _inside = Inside::enter();
    match &*current() {
        Current::Running(engine) => Some(engine.clone()),
        Current::Unmade | Current::Failed(_) => None,
    }
}

/// Starts the thread that a link of the engine's node needs. Holds no lock: that takes memory of the program's allocator, in which
/// another thread may have been interrupted by a handler that waits for that lock. Nor is it started in such a handler.
#[inline]
pub fn see_to_service() {
    if UNSERVED.load(Ordering::Relaxed) && via::may_start() {
        begin_service();
    }
}

#[cold]
fn begin_service() {
    if let Some(engine) = running().filter(|_| UNSERVED.swap(false, Ordering::Relaxed)) {
        // Without one, its peers are served by the program's calls.
        let _ = kernel::stack::on_own(|| engine.node.begin_service());
    }
}

/// The process has told a peer something by way of the kernel: a peer that reads from a ring afterwards must not miss it.
#[inline]
pub fn told_kernel() {
    if RUNS.load(Ordering::Relaxed) {
        count_news();
    }
}

fn count_news() {
    let _inside = Inside::enter();
    if let Current::Running(engine) = &*current() {
        engine.kernel_news.fetch_add(1, Ordering::Release);
    }
}

/// Before a sleep that was announced: carries out what was ordered by hand, takes up answers about links on their way, and sends what links
/// hold. Holds no lock.
pub fn see_to_links() {
    let Some(engine) = running() else { return };
    see_to_service();
    orders::look(&engine);
    if let Some(via) = &engine.via {
        kernel::stack::on_own(|| {
            via.see_to_pending(&engine);
            via::send_held();
        });
    }
}

/// What this process has.
fn current() -> MutexGuard<'static, Current> {
    lock(&SLOTS[SLOT.load(Ordering::Acquire)])
}

/// In a forked child: the parent's engine is not ours. It is left as it is, since threads of the parent may have been
/// anywhere in it.
pub fn after_fork() {
    RUNS.store(false, Ordering::Relaxed);
    UNSERVED.store(false, Ordering::Relaxed);
    let former = SLOT.load(Ordering::Relaxed);
    let others = (1..FORKS).map(|step| (former + step) % FORKS);
    match others.filter_map(|slot| Some((slot, SLOTS[slot].try_lock().ok()?))).next() {
        Some((slot, mut current)) => {
            std::mem::forget(std::mem::replace(&mut *current, Current::Unmade));
            SLOT.store(slot, Ordering::Release);
        }
        None => disable(),
    }
}

/// Before a change of user: nobody finds this engine any more, and the next stream makes one under the new user. What the
/// engine has, its name and its connections with other processes, goes with the last stream that needs it.
pub fn renew() {
    let ended = std::mem::replace(&mut *current(), Current::Unmade);
    RUNS.store(false, Ordering::Relaxed);
    if let Current::Running(engine) = ended {
        engine.registry.withdraw(engine.process);
    }
}

/// No stream of this process is offered from now on.
pub fn disable() {
    DISABLED.store(true, Ordering::Relaxed);
}

/// Whether that is so: the process may have shut itself in, and a call of the engine's may end it.
pub fn is_disabled() -> bool {
    DISABLED.load(Ordering::Relaxed)
}
