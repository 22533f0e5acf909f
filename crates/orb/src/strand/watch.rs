//! Which of many strands have news. A server has one watch for each transport that it listens on.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use sidestep_fabric::event::SourceId;
use sidestep_fabric::{EventQueue, Node};
use sidestep_sys::clock;
use sidestep_vi::Cq;

use super::io_error;

/// One kind for each kind of transport.
///
/// - A strand that is attached is reported once for each time that something has come since it was reported, or more often.
/// - `wait` adds the tokens of strands that were reported, and returns at the latest when `wake` was called.
pub(crate) enum Watch {
    Sockets(Sockets),
    Fabric { events: EventQueue, woken: SourceId },
    Via(Completions),
}

pub(crate) struct Sockets {
    pub(super) set: OwnedFd,
    wake: OwnedFd,
}

pub(crate) struct Completions {
    pub(super) queue: Cq,
    node: Node,
    woken: AtomicBool,
}

/// The token of `wake`.
const WOKEN: u64 = u64::MAX;

/// How many strands are reported at once.
const MOST: usize = 64;

/// How late a wait on a completion queue sees that it was woken.
const LOOK_AGAIN_NS: u64 = 100_000_000;

impl Watch {
    pub(super) fn sockets() -> io::Result<Self> {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&set, &wake, epoll::EventData::new_u64(WOKEN), epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        Ok(Self::Sockets(Sockets { set, wake }))
    }

    pub(super) fn fabric(node: &Node) -> Self {
        let events = EventQueue::new(node);
        let woken = events.attach(WOKEN);
        Self::Fabric { events, woken }
    }

    pub(super) fn via(queue: Cq, node: Node) -> Self {
        Self::Via(Completions { queue, node, woken: AtomicBool::new(false) })
    }

    /// Waits until a strand has news. With `now` it only looks.
    pub(crate) fn wait(&self, tokens: &mut Vec<u64>, now: bool) -> io::Result<()> {
        match self {
            Watch::Sockets(sockets) => sockets.wait(tokens, now),
            Watch::Fabric { events, .. } => {
                let event = if now { events.poll() } else { Some(events.wait(None).map_err(io_error)?) };
                tokens.extend(event.map(|event| event.token).filter(|token| *token != WOKEN));
                Ok(())
            }
            Watch::Via(completions) => completions.wait(tokens, now),
        }
    }

    pub(crate) fn wake(&self) {
        match self {
            // A count that is full has woken already.
            Watch::Sockets(sockets) => drop(rustix::io::write(&sockets.wake, &1u64.to_ne_bytes())),
            Watch::Fabric { events, woken } => drop(events.deliver(*woken)),
            Watch::Via(completions) => {
                completions.woken.store(true, Ordering::SeqCst);
                completions.node.wake();
            }
        }
    }
}

impl Sockets {
    fn wait(&self, tokens: &mut Vec<u64>, now: bool) -> io::Result<()> {
        let none = epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(WOKEN) };
        let mut events = [none; MOST];
        let timeout = now.then_some(Timespec { tv_sec: 0, tv_nsec: 0 });
        let count = match epoll::wait(&self.set, &mut events, timeout.as_ref()) {
            Err(rustix::io::Errno::INTR) => 0,
            other => other?,
        };
        let reported = events.iter().take(count).map(|event| event.data.u64());
        tokens.extend(reported.filter(|token| *token != WOKEN));
        Ok(())
    }
}

impl Completions {
    /// Takes many reports at once: those of messages that were served before would pile up otherwise.
    fn wait(&self, tokens: &mut Vec<u64>, now: bool) -> io::Result<()> {
        loop {
            let found = match now {
                true => self.queue.poll(),
                false => self.queue.wait(Some(clock::now() + LOOK_AGAIN_NS)).ok(),
            };
            if let Some(first) = found {
                let more = std::iter::from_fn(|| self.queue.poll());
                tokens.extend(std::iter::once(first).chain(more).take(MOST).map(|(vi, _)| vi.user_word()));
                return Ok(());
            }
            if now || self.woken.swap(false, Ordering::SeqCst) {
                return Ok(());
            }
        }
    }
}
