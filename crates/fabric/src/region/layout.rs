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

#[cfg(test)]
mod tests {
    use super::*;

    /// As docs/fabric.md has it.
    #[test]
    fn armed_bits_lie_behind_the_data() {
        for len in [1, 63, 64, 65, 255, 256, 257, 4096, 100_000, 1 << 20] {
            let layout = Layout::new(len).unwrap();
            let bits = len.next_multiple_of(256) / 32;
            assert_eq!(layout.writes, len.next_multiple_of(64));
            assert_eq!(layout.reads, (layout.writes + bits).next_multiple_of(64));
            assert_eq!(layout.total, (layout.reads + bits).next_multiple_of(64));
        }
    }
}
