//! Post queues (PCH): what processes want done, in the few queues that the card has.
//!
//! A process writes into a queue of its own. There are fewer of them than processes may be: one that posts without a queue is
//! given one that is free, or whose requests have all been sent, the one used least lately first.

use std::collections::{BTreeMap, VecDeque};

use crate::error::Error;
use crate::id::{Address, Cbh, Key, NodeId, ProcessId, Work};

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    /// The caller's name for it.
    pub work: Work,
    /// The card of the buffer.
    pub node: NodeId,
    /// The buffer.
    pub cbh: Cbh,
    /// Its key.
    pub key: Key,
    /// Where in the buffer.
    pub at: u64,
    /// How much.
    pub len: u64,
    /// What.
    pub operation: Operation,
}

/// What a request wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Write into the buffer.
    Send {
        /// What.
        source: Source,
        /// Tell its owner.
        notify: bool,
    },
    /// Read from the buffer.
    Fetch {
        /// Where to.
        destination: Address,
    },
}

/// The bytes of a send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// In the request itself.
    Inline(Vec<u8>),
    /// In the memory of the process.
    Memory(Address),
}

/// The most bytes of a send whose bytes are in the request.
pub const INLINE: usize = 32;

/// Why a request was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotPosted {
    /// The process has no queue on the card: map one.
    Unmapped,
    /// Its queue is full.
    Full,
    /// The process is not attached.
    NoProcess,
}

impl From<NotPosted> for Error {
    fn from(why: NotPosted) -> Error {
        match why {
            NotPosted::NoProcess => Error::Protocol("a request of a process that is not attached"),
            NotPosted::Unmapped | NotPosted::Full => {
                let remedy = "wait until something was sent";
                Error::Full { what: "the post queue", limit: 0, remedy }
            }
        }
    }
}

/// A request with how far it is.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) post: Post,
    /// Its operation, once it has begun.
    pub(super) serial: Option<u64>,
    /// Bytes that are in packets.
    pub(super) done: u64,
}

#[derive(Debug)]
pub(super) struct PostQueues {
    depth: usize,
    free: usize,
    processes: BTreeMap<ProcessId, Queue>,
    clock: u64,
    /// Who was served last.
    last: Option<ProcessId>,
    /// When those that wait for a fill try again: their line may be one that was spared, and then no fill comes.
    retry_at: Option<u64>,
}

#[derive(Debug, Default)]
struct Queue {
    mapped: bool,
    /// It waits for a fill.
    stalled: bool,
    used: u64,
    requests: VecDeque<Queued>,
}

impl Queued {
    pub(super) fn new(post: Post) -> Queued {
        Queued { post, serial: None, done: 0 }
    }
}

impl PostQueues {
    pub(super) fn new(queues: usize, depth: usize) -> PostQueues {
        PostQueues { depth, free: queues, processes: BTreeMap::new(), clock: 0, last: None, retry_at: None }
    }

    pub(super) fn attach(&mut self, process: ProcessId) {
        self.processes.entry(process).or_default();
    }

    pub(super) fn detach(&mut self, process: ProcessId) {
        let gone = self.processes.remove(&process);
        self.free += usize::from(gone.is_some_and(|queue| queue.mapped));
    }

    pub(super) fn map(&mut self, process: ProcessId) -> bool {
        if self.processes.get(&process).is_none_or(|queue| queue.mapped) {
            return false;
        }
        if self.free > 0 {
            self.free -= 1;
        } else {
            let empty = self.processes.values_mut().filter(|queue| queue.mapped && queue.requests.is_empty());
            let Some(victim) = empty.min_by_key(|queue| queue.used) else { return false };
            victim.mapped = false;
        }
        if let Some(queue) = self.processes.get_mut(&process) {
            self.clock += 1;
            (queue.mapped, queue.used) = (true, self.clock);
        }
        true
    }

    pub(super) fn push(&mut self, process: ProcessId, request: Queued) -> Result<(), NotPosted> {
        let queue = self.processes.get_mut(&process).ok_or(NotPosted::NoProcess)?;
        if !queue.mapped {
            return Err(NotPosted::Unmapped);
        }
        if queue.requests.len() >= self.depth {
            return Err(NotPosted::Full);
        }
        self.clock += 1;
        queue.used = self.clock;
        queue.requests.push_back(request);
        Ok(())
    }

    /// The processes whose next request can be looked at, each in its turn.
    pub(super) fn ready(&self) -> Vec<ProcessId> {
        let is_ready = |(_, queue): &(&ProcessId, &Queue)| !queue.stalled && !queue.requests.is_empty();
        let ready = || self.processes.iter().filter(is_ready).map(|(process, _)| *process);
        let last = self.last.unwrap_or(ProcessId(0));
        ready().filter(|process| *process > last).chain(ready().filter(|process| *process <= last)).collect()
    }

    pub(super) fn front(&mut self, process: ProcessId) -> Option<&mut Queued> {
        self.processes.get_mut(&process)?.requests.front_mut()
    }

    pub(super) fn pop(&mut self, process: ProcessId) {
        if let Some(queue) = self.processes.get_mut(&process) {
            queue.requests.pop_front();
        }
    }

    pub(super) fn served(&mut self, process: ProcessId) {
        self.last = Some(process);
    }

    pub(super) fn stall(&mut self, process: ProcessId, retry_at: u64) {
        if let Some(queue) = self.processes.get_mut(&process) {
            queue.stalled = true;
            self.retry_at.get_or_insert(retry_at);
        }
    }

    pub(super) fn retry_at(&self) -> Option<u64> {
        self.retry_at
    }

    pub(super) fn wake(&mut self) {
        self.retry_at = None;
        self.processes.values_mut().for_each(|queue| queue.stalled = false);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.processes.values().all(|queue| queue.requests.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::BufferId;

    fn request() -> Queued {
        let cbh = Cbh { process: ProcessId(1), buffer: BufferId(1) };
        let operation = Operation::Fetch { destination: Address(0) };
        Queued::new(Post { work: Work(1), node: NodeId(0), cbh, key: Key(0), at: 0, len: 1, operation })
    }

    #[test]
    fn few_queues_serve_many_processes() {
        let mut queues = PostQueues::new(2, 1);
        let process = ProcessId;
        (1..=3).for_each(|number| queues.attach(process(number)));
        assert_eq!(queues.push(process(1), request()).unwrap_err(), NotPosted::Unmapped);
        for number in [1, 2] {
            assert!(queues.map(process(number)));
            queues.push(process(number), request()).unwrap();
        }
        assert_eq!(queues.push(process(1), request()).unwrap_err(), NotPosted::Full);
        assert!(!queues.map(process(3)), "neither queue is empty");
        queues.pop(process(2));
        assert!(queues.map(process(3)));
        assert_eq!(queues.push(process(2), request()).unwrap_err(), NotPosted::Unmapped);
        queues.detach(process(1));
        assert!(queues.map(process(2)));
        assert_eq!(queues.push(process(9), request()).unwrap_err(), NotPosted::NoProcess);
    }

    #[test]
    fn processes_take_turns() {
        let mut queues = PostQueues::new(3, 4);
        for number in 1..=3 {
            queues.attach(ProcessId(number));
            assert!(queues.map(ProcessId(number)));
            queues.push(ProcessId(number), request()).unwrap();
        }
        queues.served(ProcessId(2));
        queues.stall(ProcessId(1), 5);
        assert_eq!(queues.retry_at(), Some(5));
        assert_eq!(queues.ready(), [ProcessId(3), ProcessId(2)]);
        queues.wake();
        assert_eq!(queues.ready(), [ProcessId(3), ProcessId(1), ProcessId(2)]);
    }
}
