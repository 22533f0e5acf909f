//! Completion queues: where operations that were posted report that they have ended, and what came from the other end.
//!
//! A queue serves any number of sockets. It is also a descriptor for `poll` and `epoll`: readable while a call of
//! [`CompletionQueue::poll`] may find something.

use std::{
    collections::{HashMap, VecDeque},
    os::fd::BorrowedFd,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use sidestep_fabric::{self as fabric, Event, EventQueue, Node, event::SourceId};
use sidestep_sys::{
    lock::{Mutex, MutexGuard},
    process,
};

use crate::{
    error::{Error, Result},
    socket::Core,
};

/// One thing that has ended, or come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// Which socket ([`Socket::number`](crate::Socket::number)).
    pub socket: u64,
    /// What.
    pub kind: Kind,
    /// What the program gave to the operation; the value of a notice; the tag of an export.
    pub token: u64,
    /// How many bytes, or why not.
    pub outcome: Result<usize>,
}

/// What a completion tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `post_put` has ended: the bytes are in the other end's memory.
    Put,
    /// `post_get` has ended: the bytes are here.
    Get,
    /// `post_send` has ended: its memory may be used again. The message is on its way.
    Send,
    /// `post_recv` has ended: a message is here.
    Receive,
    /// The other end called `notify`.
    Notice,
    /// The other end exported a region: `import` finds it.
    Export,
    /// The extension has ended; nothing follows from this socket.
    Closed,
}

/// Where completions of sockets are collected. Clones are the same queue.
#[derive(Debug, Clone)]
pub struct CompletionQueue {
    core: Arc<QueueCore>,
}

#[derive(Debug)]
struct QueueCore {
    events: EventQueue,
    /// Makes the descriptor readable for what this process itself has put in.
    own: SourceId,
    state: Mutex<State>,
    /// A socket has stopped taking in what came, since too much lies here.
    held_back: AtomicBool,
    /// The process that made it: a forked child takes nothing out of it.
    generation: u32,
}

#[derive(Debug, Default)]
struct State {
    ready: VecDeque<Completion>,
    sockets: HashMap<u64, Weak<Core>>,
}

/// The token of `QueueCore::own`; no socket has this number.
const OWN: u64 = 0;
/// Completions that may lie here before what comes from peers is left where it is.
const MOST: usize = 4096;
const EVENTS_A_POLL: usize = 64;

impl CompletionQueue {
    pub(crate) fn new(node: &Node) -> CompletionQueue {
        let events = EventQueue::new(node);
        let own = events.attach(OWN);
        CompletionQueue {
            core: Arc::new(QueueCore {
                events,
                own,
                state: Mutex::default(),
                held_back: AtomicBool::new(false),
                generation: process::generation(),
            }),
        }
    }

    fn check(&self) -> Result<()> {
        if self.core.generation == process::generation() { Ok(()) } else { Err(Error::Forked) }
    }

    /// Takes up to `most` completions, without waiting; how many. With 0, only sees to what has come. In a forked child there are none.
    pub fn poll(&self, into: &mut Vec<Completion>, most: usize) -> usize {
        if self.check().is_err() {
            return 0;
        }
        let mut events = Vec::new();
        loop {
            let taken = self.take(into, most);
            if taken > 0 {
                return taken;
            }
            events.clear();
            if self.core.events.poll_many(&mut events, EVENTS_A_POLL) == 0 {
                return self.take(into, most);
            }
            self.see_to(&events);
            if most == 0 {
                return 0;
            }
        }
    }

    /// Takes up to `most` completions, at least one; waits for it until the deadline (nanoseconds of `sys::clock::now`).
    pub fn wait(&self, into: &mut Vec<Completion>, most: usize, deadline: Option<u64>) -> Result<usize> {
        self.check()?;
        let mut events = Vec::new();
        loop {
            match self.poll(into, most) {
                0 if most > 0 => {}
                count => return Ok(count),
            }
            events.clear();
            self.core.events.wait_many(&mut events, EVENTS_A_POLL, deadline)?;
            self.see_to(&events);
        }
    }

    /// A descriptor that is readable while [`poll`](Self::poll) may find something: take completions until there are none.
    pub fn descriptor(&self) -> Result<BorrowedFd<'_>> {
        self.check()?;
        Ok(self.core.events.descriptor()?)
    }

    pub(crate) fn events(&self) -> &EventQueue {
        &self.core.events
    }

    pub(crate) fn add(&self, number: u64, socket: &Arc<Core>) {
        self.lock().sockets.insert(number, Arc::downgrade(socket));
    }

    pub(crate) fn remove(&self, number: u64) {
        self.lock().sockets.remove(&number);
    }

    /// Puts completions in, if there are any.
    pub(crate) fn push(&self, completions: impl IntoIterator<Item = Completion>) {
        let mut state = self.lock();
        let before = state.ready.len();
        state.ready.extend(completions);
        let more = state.ready.len() > before;
        drop(state);
        if more {
            self.core.events.deliver(self.core.own);
        }
    }

    /// How many completions of things that a peer decides on may be put in. A caller that stops because of that says so.
    pub(crate) fn room(&self) -> usize {
        MOST.saturating_sub(self.lock().ready.len())
    }

    pub(crate) fn hold_back(&self) {
        self.core.held_back.store(true, Ordering::Release);
    }

    fn take(&self, into: &mut Vec<Completion>, most: usize) -> usize {
        let mut state = self.lock();
        let count = most.min(state.ready.len());
        into.extend(state.ready.drain(..count));
        let left = !state.ready.is_empty();
        drop(state);
        if left {
            self.core.events.deliver(self.core.own);
        }
        if count > 0 && self.core.held_back.swap(false, Ordering::AcqRel) {
            let sockets: Vec<_> = self.lock().sockets.values().filter_map(Weak::upgrade).collect();
            sockets.iter().for_each(|socket| socket.advance());
        }
        count
    }

    fn see_to(&self, events: &[Event]) {
        let mut seen = OWN;
        for event in events {
            if event.token == OWN || event.token == seen {
                continue;
            }
            seen = event.token;
            let socket = self.lock().sockets.get(&event.token).and_then(Weak::upgrade);
            if let Some(socket) = socket {
                socket.advance();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.core.state.lock().expect("no panic in a completion queue")
    }
}

impl Completion {
    pub(crate) fn new(socket: u64, kind: Kind, token: u64, outcome: Result<usize>) -> Completion {
        Completion { socket, kind, token, outcome }
    }

    pub(crate) fn closed(socket: u64, error: fabric::Error) -> Completion {
        Completion::new(socket, Kind::Closed, 0, Err(Error::from(error)))
    }
}
