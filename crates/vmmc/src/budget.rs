//! What the memory of a card is used for: one table, which the thesis has as Table 1.1.
//!
//! Sizes are those of the structures as a card would lay them out, not of the Rust values that stand for them here.

use crate::config::{Config, Mode};
use crate::packet;

/// Bytes of each region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Program and static data.
    pub code: usize,
    /// Packets on their way.
    pub buffers: usize,
    /// Translations.
    pub vmh: usize,
    /// Buffer descriptors.
    pub cbh: usize,
    /// Descriptors of the buffers of others.
    pub imported: usize,
    /// Post queues.
    pub pch: usize,
}

/// Pages that the static table holds.
pub const STATIC_PAGES: usize = 64 * 1024;
/// Descriptors that the static table holds.
pub const STATIC_BUFFERS: usize = 4096;
/// Buffers of others that a process can import in the baseline.
pub const STATIC_IMPORTS: usize = 4096;

impl Budget {
    /// Of a card with these parameters.
    #[must_use]
    pub fn of(config: &Config) -> Budget {
        let buffers = 2 * config.packets * packet::MAX_LEN;
        let pch = config.queues * config.queue_depth * DESCRIPTOR;
        let (vmh, cbh) = (config.vmh, config.cbh);
        match config.mode {
            Mode::Cached => Budget {
                code: CODE_CACHED,
                buffers,
                vmh: vmh.entries * FRAME + vmh.lines() * LINE,
                cbh: cbh.entries * CBH_ENTRY,
                imported: 0,
                pch,
            },
            Mode::Static => Budget {
                code: CODE_STATIC,
                buffers,
                vmh: STATIC_PAGES * FRAME + STATIC_PAGES / STATIC_BLOCK * LINE,
                cbh: STATIC_BUFFERS * CBH_ENTRY,
                imported: STATIC_IMPORTS * IMPORT,
                pch,
            },
        }
    }

    /// What looking up takes.
    #[must_use]
    pub fn lookup(&self) -> usize {
        self.vmh + self.cbh + self.imported + self.pch
    }

    /// All of it.
    #[must_use]
    pub fn total(&self) -> usize {
        self.code + self.buffers + self.lookup()
    }

    /// Its rows, in the order of the thesis.
    #[must_use]
    pub fn rows(&self) -> [(&'static str, usize); 8] {
        [
            ("code and static data", self.code),
            ("packets", self.buffers),
            ("VMH", self.vmh),
            ("CBH", self.cbh),
            ("imported CBH", self.imported),
            ("PCH", self.pch),
            ("lookup in all", self.lookup()),
            ("total", self.total()),
        ]
    }
}

/// The program of the thesis's card, whose Table 1.1 has 74 KB for the baseline and 87 KB with caches. A program for a card
/// cannot be measured here.
const CODE_STATIC: usize = 74 * 1024;
const CODE_CACHED: usize = 87 * 1024;
/// A physical page number.
const FRAME: usize = 4;
/// What a line has besides its entries: process (4), first page (5), state and locks (1), rank (2).
const LINE: usize = 12;
/// Pages that share a tag in the static table.
const STATIC_BLOCK: usize = 64;
/// Process (4), buffer (4), address (6), length (6), key (16), rights and state (1), rank (2).
const CBH_ENTRY: usize = 39;
/// Location, length and key of a buffer elsewhere, as the thesis has it.
const IMPORT: usize = 16;
/// A request: operation, node, process, buffer, key, offset, length, local address, number; or 32 bytes inline.
const DESCRIPTOR: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 1.1 has 0.25 and 0.53.
    #[test]
    fn caches_take_a_quarter_of_the_tables() {
        let (cached, fixed) = (Budget::of(&Config::default()), Budget::of(&Config::baseline()));
        let ratio = |part: fn(&Budget) -> usize| part(&cached) as f64 / part(&fixed) as f64;
        assert!(ratio(Budget::lookup) <= 0.26, "lookup {}", ratio(Budget::lookup));
        assert!(ratio(Budget::total) <= 0.55, "total {}", ratio(Budget::total));
        assert_eq!(cached.rows()[7].1, cached.code + cached.buffers + cached.lookup());
        println!("{cached:?}\n{fixed:?}");
    }
}
