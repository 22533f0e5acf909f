//! The thread that polls a node while the program does not, so that peers are served while it computes.
//!
//! Only links need it whose peers cannot reach memory by themselves. Whoever waits for something of such a node polls it
//! and is quicker than a thread in between could be; so this thread stays away while the program *attends*: while some
//! thread of it waits, or polls often. It looks after that now and then, ever more seldom, and when nobody attends it
//! sleeps on the link's descriptors and serves what comes.

use std::{
    os::fd::AsFd,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
    },
    thread::JoinHandle,
};

use sidestep_shm::{
    self as shm,
    doorbell::{Doorbell, Sleeper, Tokens},
};
use sidestep_sys::{clock, cpu, lock::Mutex, signal::start_thread};

use crate::{
    error::Result,
    link::Link,
    node::{Links, Look, Node, NodeCore},
};

/// What the node keeps of its thread. Dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct Service {
    shared: Arc<Shared>,
    started: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    /// Threads of the program that wait.
    attending: AtomicU32,
    /// When the program polled last, by the processor's counter.
    polled: AtomicU64,
    /// This thread sleeps on the link's descriptors, or is about to: nobody looks after what the link holds back.
    serving: AtomicBool,
    /// It was told that it need not.
    dismissed: AtomicBool,
    /// It is to end.
    over: AtomicBool,
    bell: Doorbell,
}

/// A thread of the program waits as long as this lives.
#[derive(Debug)]
pub(crate) struct Attending<'a>(&'a Shared);

/// How long the thread stays away from a program that attends: at first, and at most.
const SHORT_PAUSE_NS: u64 = 100_000;
const LONG_PAUSE_NS: u64 = 4_000_000;
const BELL: u64 = 0;

impl Service {
    pub(crate) fn new() -> Result<Service> {
        let shared = Shared {
            attending: AtomicU32::new(0),
            polled: AtomicU64::new(0),
            serving: AtomicBool::new(false),
            dismissed: AtomicBool::new(false),
            over: AtomicBool::new(false),
            bell: Doorbell::new()?,
        };
        Ok(Service { shared: Arc::new(shared), started: AtomicBool::new(false), thread: Mutex::default() })
    }

    /// Starts the thread, unless it is there, or has been.
    pub(crate) fn start(&self, node: &Node) -> Result<()> {
        if self.started.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let (pause, serve) = (Sleeper::new()?, Arc::new(Sleeper::new()?));
        pause.add_doorbell(self.shared.bell.as_fd(), BELL)?;
        serve.add_doorbell(self.shared.bell.as_fd(), BELL)?;
        // Only links whose peers wait for this thread end its sleep.
        node.core().links.served().try_for_each(|link| link.watch(&serve))?;
        let (core, shared) = (Arc::downgrade(node.core()), self.shared.clone());
        let started = start_thread("sidestep-service", move || run(&core, &shared, &pause, &serve));
        let keep = |handle| *self.thread.lock().expect("no panic with a thread") = Some(handle);
        started.map(keep).map_err(|error| {
            let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::AGAIN);
            shm::Error::from_errno("start a thread", errno).into()
        })
    }

    /// Ends the thread, and waits for that.
    pub(crate) fn end(&self) {
        self.shared.over.store(true, Ordering::Release);
        self.shared.bell.ring();
        let thread = self.thread.lock().expect("no panic with a thread").take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    /// A thread of the program waits for something of this node.
    pub(crate) fn attend(&self) -> Attending<'_> {
        self.shared.attending.fetch_add(1, Ordering::Relaxed);
        Attending(&self.shared)
    }

    /// The program polls. If it does so often, the thread is told to stay away: every arrival would wake it in vain.
    #[inline]
    pub(crate) fn note_poll(&self) {
        let Shared { polled, serving, .. } = &*self.shared;
        let now = cpu::ticks();
        let before = polled.load(Ordering::Relaxed);
        polled.store(now, Ordering::Relaxed);
        if serving.load(Ordering::Relaxed) && is_often(before, now) {
            self.dismiss();
        }
    }

    #[cold]
    fn dismiss(&self) {
        if !self.shared.dismissed.swap(true, Ordering::Relaxed) {
            self.shared.bell.ring();
        }
    }

    /// After a thread of the program has told the links that it no longer sleeps: this thread still may, and nothing would ring
    /// for it. SeqCst here and in `run`: either this sees that it serves, or it tells the links after they were told otherwise.
    pub(crate) fn keep_ringing(&self, links: &Links) {
        fence(Ordering::SeqCst);
        if !self.shared.serving.load(Ordering::Relaxed) {
            return;
        }
        links.served().for_each(|link| link.set_sleeping(true));
        if links.served().any(Link::has_news) {
            self.shared.bell.ring();
        }
    }

    /// Whether the thread sleeps on the link, and was not rung for. Asked after a poll: SeqCst here and in `run`, so that what
    /// the poll held back is found there, or the sleep is seen here.
    pub(crate) fn is_serving(&self) -> bool {
        fence(Ordering::SeqCst);
        // A thread that was dismissed looks at everything again as soon as it gets a core.
        self.shared.serving.load(Ordering::Acquire) && !self.shared.dismissed.load(Ordering::Relaxed)
    }
}

impl Drop for Attending<'_> {
    fn drop(&mut self) {
        self.0.attending.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.shared.bell.ring();
    }
}

impl Shared {
    /// Whether the program looks after its node by itself.
    fn is_attended(&self) -> bool {
        self.attending.load(Ordering::Relaxed) > 0 || is_often(self.polled.load(Ordering::Relaxed), cpu::ticks())
    }
}

/// Whether a program attends that polled then and now: about once in half a millisecond or more often.
fn is_often(before: u64, now: u64) -> bool {
    !cpu::is_long(now.saturating_sub(before) / 2)
}

/// Until the node is gone.
fn run(core: &Weak<NodeCore>, shared: &Shared, pause: &Sleeper, serve: &Sleeper) {
    let mut tokens = Tokens::new();
    let mut pause_ns = SHORT_PAUSE_NS;
    loop {
        let Some(node) = core.upgrade().map(Node::from_core) else { return };
        if shared.over.load(Ordering::Acquire) {
            return;
        }
        let outcome = if shared.is_attended() {
            node.core().links.push();
            drop(node);
            // A program that polls needs nobody for long; one that waits may compute next.
            let polls = shared.dismissed.load(Ordering::Relaxed);
            pause_ns = if polls { LONG_PAUSE_NS } else { (2 * pause_ns).min(LONG_PAUSE_NS) };
            pause.sleep(Some(clock::now() + pause_ns), &mut tokens)
        } else {
            shared.dismissed.store(false, Ordering::Relaxed);
            // Release: whoever sees this one sees that it was not dismissed yet.
            shared.serving.store(true, Ordering::Release);
            fence(Ordering::SeqCst);
            node.core().links.served().for_each(|link| link.set_sleeping(true));
            node.core().links.push();
            // What came before the links were told rings for nobody. A deadline that has passed lets it sleep not at all.
            let (links, longest) = (&node.core().links, clock::now() + LONGEST_SLEEP_NS);
            let until = if links.served().any(Link::has_news) { 0 } else { links.wait_deadline().unwrap_or(longest) };
            drop(node);
            pause_ns = SHORT_PAUSE_NS;
            let slept = serve.sleep(Some(until), &mut tokens);
            shared.serving.store(false, Ordering::Relaxed);
            // Who waits or polls has seen it by now, too, and is quicker.
            if !shared.is_attended()
                && let Some(node) = core.upgrade().map(Node::from_core)
            {
                let core = node.core();
                let slept_out = until >= longest && tokens.is_empty() && clock::now() >= longest;
                core.counters.unrung.add(usize::from(slept_out && core.links.served().any(Link::has_news)));
                node.serve_once(Look::Served);
            }
            slept
        };
        if outcome.is_err() {
            return;
        }
    }
}

/// The longest the thread sleeps without a look whether the node is still there.
const LONGEST_SLEEP_NS: u64 = 10_000_000_000;
