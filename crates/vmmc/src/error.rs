//! What can go wrong, and what to do about it.

use std::io;
use std::process::ExitStatus;

use crate::id::{BufferId, ProcessId};

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter is out of range.
    #[error("{what}: {value}; it must be {must}")]
    Parameter {
        /// Which.
        what: &'static str,
        /// What it may be.
        must: &'static str,
        /// What it was.
        value: String,
    },
    /// The card does not fit into its memory.
    #[error(
        "the card needs {need} bytes and may have {memory}: give it more, or choose smaller caches, fewer packets or queues"
    )]
    Budget {
        /// What it may have.
        memory: usize,
        /// What it needs.
        need: usize,
    },
    /// A table of the card or of its driver is full.
    #[error("{what} is full with {limit} entries: {remedy}")]
    Full {
        /// Which.
        what: &'static str,
        /// How many it holds.
        limit: usize,
        /// What to do.
        remedy: &'static str,
    },
    /// No page can be pinned.
    #[error(
        "no memory can be locked (limit of {limit} bytes): raise `ulimit -l` to 16 (KiB) or more, or give the card CAP_IPC_LOCK"
    )]
    NoLockableMemory {
        /// The limit of the card process.
        limit: u64,
    },
    /// Fewer pages can be locked than the cache of translations has entries.
    #[error(
        "a cache of {entries} translations locks as many pages, and only {limit} bytes can be locked: choose at most {most} \
         entries, raise `ulimit -l`, or give the card CAP_IPC_LOCK"
    )]
    TooFewLockable {
        /// The limit of the card process.
        limit: u64,
        /// Entries of the cache.
        entries: usize,
        /// How many it could have.
        most: usize,
    },
    /// A range lies outside the memory that the process has given to its card.
    #[error("{len} bytes at {address}: outside the {memory} bytes of memory that the card was given")]
    Range {
        /// Where it begins.
        address: u64,
        /// How long it is.
        len: u64,
        /// How much there is.
        memory: u64,
    },
    /// No such process.
    #[error("process {} is not attached to this card", .0.0)]
    NoProcess(ProcessId),
    /// No such buffer.
    #[error("buffer {} is not exported", .0.0)]
    NoBuffer(BufferId),
    /// The owner of a buffer, or the way there, refused.
    #[error("{0}")]
    Refused(#[from] Fault),
    /// The card said no, and why.
    #[error("{0}")]
    Card(String),
    /// The card process ended. What was under way has an unknown end.
    #[error("the card process is gone: attach again, which starts another")]
    CardGone,
    /// Another card is on a link that this one does not have.
    #[error(
        "the card at {card} cannot be reached from the one at {own}: start this one with an address of the same kind"
    )]
    NoWay {
        /// Where the other is.
        card: String,
        /// Where this one is.
        own: String,
    },
    /// The card process could not be started.
    #[error("cannot start the card process {program}: {source}")]
    Start {
        /// What was started.
        program: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The card process ended before processes could come.
    #[error("the card process {program} has failed ({status}): {said}")]
    CardFailed {
        /// What was started.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of what it wrote to its standard error.
        said: String,
    },
    /// There is no program that could be the card process.
    #[error(
        "there is no program `sidestep` beside {beside} or in PATH: install it with `./sidestep install`, or start `sidestep card \
         NAME` by hand"
    )]
    NoProgram {
        /// The folder of this program.
        beside: String,
    },
    /// A process that shares memory with this one is gone.
    #[error("process {0} of the shared memory is gone: start all of them again")]
    RankGone(usize),
    /// The card answered with something that is no answer.
    #[error("the card sent what this library does not understand: {0}")]
    Protocol(&'static str),
    /// Nothing happened before the deadline.
    #[error("timed out")]
    TimedOut,
    /// The kernel lacks something or forbids it.
    #[error("{what}: {source}; {remedy}")]
    Kernel {
        /// What was tried.
        what: &'static str,
        /// What to do.
        remedy: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The fabric underneath.
    #[error(transparent)]
    Fabric(#[from] sidestep_fabric::Error),
    /// Shared memory.
    #[error(transparent)]
    Memory(#[from] sidestep_shm::Error),
}

impl Error {
    /// Whether a card was not started because one of its name is there, or was just ending.
    #[must_use]
    pub fn is_name_taken(&self) -> bool {
        let is_taken = |error: &sidestep_shm::Error| matches!(error, sidestep_shm::Error::NameTaken(_));
        match self {
            Error::Memory(error) | Error::Fabric(sidestep_fabric::Error::Memory(error)) => is_taken(error),
            _ => false,
        }
    }
}

/// Why an operation was refused. The owner of the buffer decides all but the last three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Fault {
    /// There is no such buffer, or no longer.
    #[error("no such buffer, or no longer")]
    UnknownBuffer,
    /// The key is not that of the buffer.
    #[error("the key is not that of the buffer")]
    WrongKey,
    /// The range goes beyond the buffer.
    #[error("the range goes beyond the buffer")]
    OutOfRange,
    /// The buffer may not be used so.
    #[error("the buffer may not be used so")]
    NotAllowed,
    /// The card of the page cannot lock it.
    #[error("the card cannot lock the page in memory: raise `ulimit -l` of the card process and start it again")]
    NotPinned,
    /// The own memory does not reach so far.
    #[error("the local range is not within the memory that the card was given")]
    BadAddress,
    /// The buffer was not imported, which the baseline wants.
    #[error("the buffer is not imported")]
    NotImported,
    /// The other card, or the way to it, is gone.
    #[error("the other card is gone")]
    Unreachable,
}

impl Fault {
    /// Its number in a packet.
    #[must_use]
    pub fn code(self) -> u8 {
        ALL.iter().position(|fault| *fault == self).map_or(0, |at| at as u8 + 1)
    }

    /// The fault of a number.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Fault> {
        ALL.get(usize::from(code).checked_sub(1)?).copied()
    }
}

const ALL: [Fault; 8] = [
    Fault::UnknownBuffer,
    Fault::WrongKey,
    Fault::OutOfRange,
    Fault::NotAllowed,
    Fault::NotPinned,
    Fault::BadAddress,
    Fault::NotImported,
    Fault::Unreachable,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_survive_the_wire() {
        for fault in ALL {
            assert_eq!(Fault::from_code(fault.code()), Some(fault));
        }
        assert_eq!(Fault::from_code(0), None);
        assert_eq!(Fault::from_code(99), None);
    }
}
