//! What a link does while its program does nothing: writes that are held go out in time, and with a handler a thread of its
//! own takes what arrives.

use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, Weak,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use sidestep_sys::{clock, process, signal::start_thread};

use super::{super::Host, Link};

/// How long a write is held at most, unless the program waits or reads, which sends it at once.
const HOLD: Duration = Duration::from_millis(1);
/// How long the handler waits before it looks whether its link is still there.
const HANDLER_NS: u64 = 10_000_000;

#[derive(Debug, Default)]
struct Timer {
    /// Links that hold something.
    links: Mutex<Watched>,
    more: Condvar,
}

#[derive(Debug, Default)]
struct Watched {
    links: Vec<Weak<Link>>,
    /// The process whose thread looks after them: a forked child has none.
    process: u32,
    thread: Option<JoinHandle<()>>,
    /// How many threads were told to end: the next one is the one with this number.
    ended: u32,
}

static TIMER: Timer = Timer {
    links: Mutex::new(Watched { links: Vec::new(), process: 0, thread: None, ended: 0 }),
    more: Condvar::new(),
};

/// Held by a thread that forks: the child would wait for ever for one that had it.
#[derive(Debug)]
pub struct Still(#[allow(dead_code)] MutexGuard<'static, Watched>);

impl Still {
    /// No link is entered or looked at meanwhile.
    pub fn hold() -> Still {
        Still(lock(&TIMER.links))
    }
}

/// The process of a line of forks in which the thread was started.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// Whether writes may be held that could go out at once: where no thread can be started, nothing is held that need not be.
#[inline]
pub fn may_hold(host: &Host) -> bool {
    STARTED.load(Ordering::Relaxed) == process::generation() || (host.may_start)()
}

/// Links that hold something, at least: those in the list and those that are gone on with.
static HOLDING: AtomicUsize = AtomicUsize::new(0);

/// Before a wait: sends what links of this process hold, as far as there is room. Who waits adds nothing to it soon, and may wait for an
/// answer to it, on whichever connection.
#[inline]
pub fn send_held() {
    if HOLDING.load(Ordering::Relaxed) > 0 {
        send_all_held();
    }
}

#[cold]
fn send_all_held() {
    let links: Vec<_> = {
        let watched = lock(&TIMER.links);
        if watched.process != process::generation() {
            // Those of a parent.
            return;
        }
        watched.links.iter().filter_map(Weak::upgrade).collect()
    };
    for link in links {
        link.absorb();
        link.go_on();
    }
}

/// A link holds something from now on.
#[inline]
pub fn watch(link: &Arc<Link>) {
    if !link.sent.watched.swap(true, Ordering::AcqRel) {
        enter(link);
    }
}

#[cold]
fn enter(link: &Arc<Link>) {
    let timer = &TIMER;
    let mut watched = lock(&timer.links);
    let process = process::generation();
    if watched.process != process {
        watched.links.clear();
        let number = watched.ended;
        let may_start = (link.host.may_start)();
        let started = may_start.then(|| start_thread("sovia-timer", move || run(timer, number)));
        let Some(Ok(thread)) = started else {
            // Without a thread nothing is held from now on; what is goes with the next call.
            link.sent.prompt.store(true, Ordering::Relaxed);
            return;
        };
        // One of a parent's is not there to be given back.
        std::mem::forget(watched.thread.replace(thread));
        watched.process = process;
        STARTED.store(process, Ordering::Relaxed);
    }
    watched.links.push(Arc::downgrade(link));
    HOLDING.store(watched.links.len(), Ordering::Relaxed);
    timer.more.notify_one();
}

/// The thread with this number, until it is told to end.
fn run(timer: &Timer, number: u32) {
    let mut watched = lock(&timer.links);
    while watched.ended == number {
        if watched.links.is_empty() {
            watched = timer.more.wait(watched).unwrap_or_else(|poison| poison.into_inner());
            continue;
        }
        drop(watched);
        thread::sleep(HOLD);
        watched = lock(&timer.links);
        let links = std::mem::take(&mut watched.links);
        drop(watched);
        let kept: Vec<_> =
            links.into_iter().filter(|link| link.upgrade().is_some_and(|link| holds_on(&link))).collect();
        watched = lock(&timer.links);
        watched.links.extend(kept);
        HOLDING.store(watched.links.len(), Ordering::Relaxed);
    }
}

/// Ends the thread of this process, if it has one, and waits for that. What links still hold then goes with their next calls.
pub fn end() {
    let thread = {
        let mut watched = lock(&TIMER.links);
        if watched.process != process::generation() {
            return;
        }
        watched.ended = watched.ended.wrapping_add(1);
        watched.process = 0;
        STARTED.store(0, Ordering::Relaxed);
        TIMER.more.notify_all();
        watched.thread.take()
    };
    // One that panicked has ended, too.
    let _ = thread.map(JoinHandle::join);
    let links = std::mem::take(&mut lock(&TIMER.links).links);
    for link in links.iter().filter_map(Weak::upgrade).filter(holds_on) {
        link.sent.prompt.store(true, Ordering::Relaxed);
    }
}

/// Sends what a link holds. `true`: it still holds something.
fn holds_on(link: &Arc<Link>) -> bool {
    link.absorb();
    if !link.go_on() && !link.is_lost() {
        return true;
    }
    // Whoever holds something from here on finds it out of the list, or is seen.
    link.sent.watched.store(false, Ordering::SeqCst);
    let holds = link.sent.holds.load(Ordering::SeqCst) || link.notes.owed.load(Ordering::SeqCst);
    holds && !link.sent.watched.swap(true, Ordering::SeqCst)
}

/// Starts the handler of a link.
pub fn handle(link: &Arc<Link>) {
    let (weak, vi, node) = (Arc::downgrade(link), link.line.vi.clone(), link.line.nic.node().clone());
    let run = move || {
        loop {
            let arrived = vi.wait_receive(Some(clock::now() + HANDLER_NS));
            let Some(link) = weak.upgrade() else { return };
            if let Ok(completion) = arrived {
                let sorted = link.sort(&mut link.inward.lock(), &completion);
                if sorted.is_none() {
                    link.lost.store(true, Ordering::Relaxed);
                }
                node.wake();
            }
            if link.is_lost() {
                return;
            }
        }
    };
    if start_thread("sovia-handler", run).is_err() {
        link.lost.store(true, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}
