//! How the engines look pages and buffers up, and tell of what is lacking.

use super::{Card, Miss, Path};
use crate::cbh::{BufferTable, CbhCache, CbhLookup, Descriptor};
use crate::id::{Cbh, Frame, Page, ProcessId};
use crate::vmh::{Engine, Entry, Lookup};

/// What the card looks buffers up in.
#[derive(Debug)]
pub(super) enum Buffers {
    Cache(CbhCache),
    Fixed(BufferTable),
}

impl Card {
    /// Locks the page for the engine. `None`: not now, because of a miss that the driver has been told of.
    pub(super) fn translate(
        &mut self,
        engine: Engine,
        path: Path,
        process: ProcessId,
        page: Page,
    ) -> Option<Result<Frame, Entry>> {
        let found = self.vmh.lock(engine, process, page);
        self.counters.count(path, &found);
        match found {
            Lookup::Hit { frame, .. } => Some(Ok(frame)),
            Lookup::Invalid(entry) => Some(Err(entry)),
            Lookup::Pending => None,
            Lookup::Miss { slot, tag } => {
                self.output.misses.push_back(Miss::Vmh { slot, tag, path });
                None
            }
        }
    }

    /// Looks a buffer up. `None`: not now.
    pub(super) fn describe(&mut self, cbh: Cbh) -> Option<Option<Descriptor>> {
        let found = match &mut self.cbh {
            Buffers::Fixed(table) => return Some(table.find(cbh)),
            Buffers::Cache(cache) => cache.lookup(cbh),
        };
        match found {
            CbhLookup::Hit(descriptor) => {
                self.counters.cbh_hits += 1;
                Some(Some(descriptor))
            }
            CbhLookup::Negative => {
                self.counters.cbh_hits += 1;
                Some(None)
            }
            CbhLookup::Pending => None,
            CbhLookup::Miss(slot) => {
                self.counters.cbh_misses += 1;
                self.output.misses.push_back(Miss::Cbh { slot, cbh });
                None
            }
        }
    }
}
