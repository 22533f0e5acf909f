//! Where the parts of a region's memory lie.

use sidestep_shm::{
    Memory,
    watch::{Watch, watch_len},
};

use crate::{
    error::{Error, Result},
    tripwire::Access,
};

/// Where the parts of a region's memory lie, computed alike by owner and peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) len: usize,
    pub(crate) writes: usize,
    pub(crate) reads: usize,
    pub(crate) total: usize,
}

impl Layout {
    pub(crate) fn new(len: usize) -> Result<Layout> {
        let bad = Error::Size { what: "region", must: "between 1 byte and 1 TiB", value: len };
        if len == 0 || len > 1 << 40 {
            return Err(bad);
        }
        let writes = len.next_multiple_of(64);
        let reads = (writes + watch_len(len)).next_multiple_of(64);
        Ok(Layout { len, writes, reads, total: (reads + watch_len(len)).next_multiple_of(64) })
    }

    pub(crate) fn watch(&self, memory: &Memory, access: Access) -> Result<Watch> {
        let offset = match access {
            Access::Write => self.writes,
            Access::Read => self.reads,
        };
        Ok(Watch::new(memory, offset, self.len)?)
    }
}
