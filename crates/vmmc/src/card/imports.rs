//! The baseline's table of buffers of other cards: without an entry a process cannot use one. With caches the key alone decides.

use std::collections::HashMap;

use crate::budget::STATIC_IMPORTS;
use crate::error::{Error, Fault, Result};
use crate::id::{Cbh, Key, NodeId, ProcessId};

/// A buffer of another card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Import {
    /// Which card.
    pub node: NodeId,
    /// Which buffer.
    pub cbh: Cbh,
    /// How long it is.
    pub len: u64,
    /// Its key.
    pub key: Key,
}

#[derive(Debug, Default)]
pub(super) struct Imports {
    of: HashMap<ProcessId, HashMap<(NodeId, Cbh), Import>>,
}

impl Imports {
    pub(super) fn insert(&mut self, process: ProcessId, import: Import) -> Result<()> {
        let own = self.of.entry(process).or_default();
        if own.len() >= STATIC_IMPORTS && !own.contains_key(&(import.node, import.cbh)) {
            let remedy = "import fewer buffers, or use a card with caches";
            return Err(Error::Full { what: "the table of imported buffers", limit: STATIC_IMPORTS, remedy });
        }
        own.insert((import.node, import.cbh), import);
        Ok(())
    }

    pub(super) fn forget(&mut self, process: ProcessId) {
        self.of.remove(&process);
    }

    /// Filters a bad request before it leaves the card.
    pub(super) fn check(&self, process: ProcessId, node: NodeId, cbh: Cbh, (at, len): (u64, u64)) -> Result<(), Fault> {
        let import = self.of.get(&process).and_then(|own| own.get(&(node, cbh))).ok_or(Fault::NotImported)?;
        match at.checked_add(len) {
            Some(end) if end <= import.len => Ok(()),
            _ => Err(Fault::OutOfRange),
        }
    }
}
