//! Virtual memory handles: which frame a page of a process is in.
//!
//! The card has a [cache](cache) of lines, or in the baseline a [table](fixed) of everything; the host has a [table](table) for
//! each process of every page that is pinned.

pub mod cache;
pub mod fixed;
pub mod table;

use crate::config::{Config, Mode};
use crate::error::Fault;
use crate::id::{Frame, Page, ProcessId};

pub use cache::{Lookup, Slot, VmhCache};

/// Who uses a line: each of them holds at most one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Engine {
    /// The one that sends what processes post.
    Send,
    /// The one that handles packets.
    Receive,
}

/// One entry of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Entry {
    /// The page is in this frame.
    Frame(Frame),
    /// The process has no such page.
    Unmapped,
    /// It could not be pinned.
    Unpinned,
}

impl Entry {
    /// Why an operation on the page cannot be.
    #[must_use]
    pub fn fault(self, remote: bool) -> Fault {
        match self {
            Entry::Unpinned => Fault::NotPinned,
            _ if remote => Fault::OutOfRange,
            _ => Fault::BadAddress,
        }
    }
}

/// What the card looks translations up in.
#[derive(Debug)]
pub enum Translations {
    /// A cache.
    Cache(VmhCache),
    /// A table of everything.
    Fixed(fixed::FixedTable),
}

impl Translations {
    /// As the parameters say.
    #[must_use]
    pub fn new(config: &Config) -> Translations {
        match config.mode {
            Mode::Cached => Translations::Cache(VmhCache::new(config.vmh)),
            Mode::Static => Translations::Fixed(fixed::FixedTable::default()),
        }
    }

    /// Looks a page up and, if it is there, locks its line for the engine.
    pub fn lock(&mut self, engine: Engine, process: ProcessId, page: Page) -> Lookup {
        match self {
            Translations::Cache(cache) => cache.lock(engine, process, page),
            Translations::Fixed(table) => table.lookup(process, page),
        }
    }

    /// Gives back the line that the engine holds.
    pub fn unlock(&mut self, engine: Engine) {
        if let Translations::Cache(cache) = self {
            cache.unlock(engine);
        }
    }

    /// Forgets everything of a process. `false` while an engine holds a line of it.
    pub fn purge(&mut self, process: ProcessId) -> bool {
        match self {
            Translations::Cache(cache) => cache.purge(process),
            Translations::Fixed(table) => table.purge(process),
        }
    }
}
