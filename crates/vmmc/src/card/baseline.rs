//! The baseline: static tables, into which the driver enters everything before it is used.

use super::lookup::Buffers;
use super::{Card, Import};
use crate::cbh::Descriptor;
use crate::config::Mode;
use crate::error::Result;
use crate::id::{Cbh, Frame, Page, ProcessId};
use crate::vmh::Translations;

impl Card {
    /// The baseline: enters a page that is pinned.
    pub fn enter_page(&mut self, process: ProcessId, page: Page, frame: Frame) -> Result<()> {
        match &mut self.vmh {
            Translations::Fixed(table) => table.insert(process, page, frame),
            Translations::Cache(_) => Ok(()),
        }
    }

    /// The baseline: takes a page out before it is unpinned.
    pub fn remove_page(&mut self, process: ProcessId, page: Page) {
        if let Translations::Fixed(table) = &mut self.vmh {
            table.remove(process, page);
        }
    }

    /// The baseline: enters a buffer.
    pub fn enter_buffer(&mut self, cbh: Cbh, descriptor: Descriptor) -> Result<()> {
        match &mut self.cbh {
            Buffers::Fixed(table) => table.insert(cbh, descriptor),
            Buffers::Cache(cache) => {
                // It may be known not to be there.
                cache.invalidate(cbh);
                Ok(())
            }
        }
    }

    /// The baseline: enters a buffer of another card, without which a process cannot use it.
    pub fn enter_import(&mut self, process: ProcessId, import: Import) -> Result<()> {
        match self.config.mode {
            Mode::Static => self.imports.insert(process, import),
            Mode::Cached => Ok(()),
        }
    }
}
