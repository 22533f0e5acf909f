//! A process: one thread that reads, one that carries its script out.

#[path = "reads.rs"]
mod reads;
#[path = "writes.rs"]
mod writes;

use std::collections::VecDeque;

use sidestep_stream::{
    path::{Answer, Ask, End as Ending, GiveBack, Reader, Writer},
    record::Direction,
};

use crate::{script::Op, world::World};

/// One process.
#[derive(Debug)]
pub struct Process {
    pub life: Life,
    /// It knows only TCP.
    pub plain: bool,
    read: Task,
    write: Task,
    ops: VecDeque<Op>,
    /// The memory of its receiving call.
    pub buffer: Vec<u8>,
    /// What is left of its sending call, and bytes that it has made so far.
    pub data: Vec<u8>,
    made: u64,
    /// Bytes that were taken back from a ring.
    pub taken: Vec<u8>,
    /// Changes that were made by others before the present calls looked.
    seen: [u64; 2],
    giving: Option<Giving>,
    /// Its carrier has been left, for what comes first in the script.
    has_left: bool,
    has_read: bool,
    pub has_written: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    Absent,
    Alive,
    Stopped(u64),
    Gone,
}

impl Life {
    /// Whether the process has the socket.
    pub fn holds(self) -> bool {
        matches!(self, Life::Alive | Life::Stopped(_))
    }
}

/// What a thread is at.
#[derive(Debug)]
enum Task {
    Idle,
    Call(Machine, Ask),
    /// Until something has changed since, or until this time.
    Asleep(u64, Option<u64>),
}

#[derive(Debug)]
enum Machine {
    /// With whether the anchor was looked at.
    Read(Reader, bool),
    GiveBack(GiveBack),
    Write(Writer),
    Close(Writer),
    Part(Writer),
}

/// A carrier is being given back.
#[derive(Debug, Clone, Copy)]
struct Giving {
    until: u64,
    why: Why,
    /// Something is to be read first.
    reads: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Exec,
    Fork,
    Demotion,
}

/// How long the peer is waited for when a carrier is given back.
const PATIENCE: u64 = 200;
const READ: usize = Direction::Read as usize;
const WRITE: usize = Direction::Write as usize;

impl Process {
    pub fn new(life: Life, ops: &[Op]) -> Process {
        Process {
            life,
            plain: false,
            read: Task::Idle,
            write: Task::Idle,
            ops: ops.iter().copied().collect(),
            buffer: Vec::new(),
            data: Vec::new(),
            made: 0,
            taken: Vec::new(),
            seen: [0; 2],
            giving: None,
            has_left: false,
            has_read: false,
            has_written: false,
        }
    }

    /// The reader gives its carrier back when it can.
    pub fn demote(&mut self, now: u64) {
        if !self.has_read {
            self.giving.get_or_insert(Giving { until: now + PATIENCE, why: Why::Demotion, reads: false });
        }
    }

    /// The next thing that its script says is a fork.
    pub fn fork_next(&mut self) {
        if !self.has_written && self.data.is_empty() {
            self.ops.push_front(Op::Fork);
        }
    }

    /// A thread that reads may open a carrier between two calls.
    pub fn may_open(&self) -> bool {
        self.giving.is_none() && !self.has_left && !self.has_read && !matches!(self.read, Task::Call(..))
    }

    /// What it is at, for reports.
    pub fn state(&self) -> String {
        format!(
            "reads {:?}, writes {:?}, gives back {:?}, still to do {:?}",
            self.read, self.write, self.giving, self.ops
        )
    }

    pub fn next_event(&self) -> Option<u64> {
        let task = |task: &Task| if let Task::Asleep(_, until) = task { *until } else { None };
        match self.life {
            Life::Alive => task(&self.read).into_iter().chain(task(&self.write)).min(),
            Life::Stopped(until) => Some(until),
            _ => None,
        }
    }
}

impl World {
    pub fn may_run(&self, end: usize, at: usize, direction: Direction) -> bool {
        let process = &self.ends[end].processes[at];
        let (task, done) = match direction {
            Direction::Read => (&process.read, process.has_read),
            Direction::Write => (&process.write, process.has_written),
        };
        let awake = match task {
            Task::Asleep(changes, until) => *changes < self.changes || until.is_some_and(|until| until <= self.now),
            _ => true,
        };
        process.life == Life::Alive && !done && awake
    }

    /// Whoever waits looks again after anything that others can see.
    fn is_change(&mut self, direction: usize, ask: Ask, answer: Answer) -> bool {
        match (ask, answer) {
            (Ask::Freeze(ring), Answer::Tail(tail)) => {
                tail.end != Ending::Open && self.frozen.insert((direction, ring))
            }
            (Ask::Lock | Ask::Owner | Ask::Opened | Ask::Entered | Ask::Head(_) | Ask::Pending | Ask::Done(_), _) => {
                false
            }
            (Ask::Start | Ask::Tail(_) | Ask::Position(_) | Ask::TcpTaken | Ask::CopyOut { .. }, _) => false,
            (Ask::CopyIn { .. }, _) => false,
            (_, Answer::No | Answer::Count(0)) => false,
            _ => true,
        }
    }
}
