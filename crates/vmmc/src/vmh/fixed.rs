//! The baseline: every registered page is in a table on the card, and pinned for as long.

use std::collections::HashMap;

use super::Entry;
use super::cache::{Lookup, Slot};
use crate::budget::STATIC_PAGES;
use crate::error::{Error, Result};
use crate::id::{Frame, Page, ProcessId};

/// All translations of all processes.
#[derive(Debug, Default)]
pub struct FixedTable {
    pages: HashMap<(ProcessId, Page), Frame>,
}

impl FixedTable {
    /// Adds a page.
    pub fn insert(&mut self, process: ProcessId, page: Page, frame: Frame) -> Result<()> {
        if self.pages.len() >= STATIC_PAGES && !self.pages.contains_key(&(process, page)) {
            let remedy = "register less, or use a card with caches";
            return Err(Error::Full { what: "the static table of pages", limit: STATIC_PAGES, remedy });
        }
        self.pages.insert((process, page), frame);
        Ok(())
    }

    /// Takes a page out.
    pub fn remove(&mut self, process: ProcessId, page: Page) {
        self.pages.remove(&(process, page));
    }

    /// Looks a page up: one that is not there was not registered.
    #[must_use]
    pub fn lookup(&self, process: ProcessId, page: Page) -> Lookup {
        match self.pages.get(&(process, page)) {
            Some(frame) => Lookup::Hit { frame: *frame, slot: Slot(0) },
            None => Lookup::Invalid(Entry::Unmapped),
        }
    }

    pub(super) fn purge(&mut self, process: ProcessId) -> bool {
        self.pages.retain(|(own, _), _| *own != process);
        true
    }
}
