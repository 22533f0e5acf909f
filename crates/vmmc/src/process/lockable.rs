//! How much memory a card process may lock, and what that leaves of its cache and of its water marks.
//!
//! A page that the cache holds is never unlocked. So a cache of more entries than pages may be locked fails as soon as it is full; one of as
//! many never does: a miss takes a line of the cache, whose pages can be given back for those of the new one. A cache that is chosen
//! here has half as many, so that pages which it has lost stay locked for a while, and most misses give nothing back.

use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, capabilities};

use super::CardOptions;
use crate::driver::Marks;
use crate::error::{Error, Result};
use crate::id::PAGE;

/// Bytes that this process may lock; `None` without a limit.
#[must_use]
pub fn lockable() -> Option<u64> {
    let limit = getrlimit(Resource::Memlock).current?;
    if is_exempt() { None } else { Some(limit) }
}

impl CardOptions {
    /// The same card where so many bytes may be locked.
    pub fn within_lockable(mut self, lockable: Option<u64>) -> Result<CardOptions> {
        let Some(limit) = lockable else { return Ok(self) };
        let pages = usize::try_from(limit / PAGE as u64).unwrap_or(usize::MAX);
        if pages < FEWEST_PAGES {
            return Err(Error::NoLockableMemory { limit });
        }
        let vmh = &mut self.config.vmh;
        if vmh.entries > pages && !self.may_shrink {
            return Err(Error::TooFewLockable { limit, entries: vmh.entries, most: 1 << pages.ilog2() });
        }
        while self.may_shrink && vmh.entries > pages / 2 {
            vmh.entries /= 2;
        }
        // Shorter lines before fewer ways: two engines and a miss want lines of one set.
        while vmh.line * vmh.ways > vmh.entries {
            if vmh.line > 1 { vmh.line /= 2 } else { vmh.ways /= 2 }
        }
        let high = self.marks.high.min(pages.saturating_sub(vmh.line)).max(2 * vmh.line);
        self.marks = Marks { high, low: self.marks.low.min(high - high.div_ceil(4)) };
        Ok(self)
    }
}

/// Whether the limit does not hold for this thread. The capability counts in the first user namespace alone.
fn is_exempt() -> bool {
    let may = capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::IPC_LOCK));
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    may && map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// The smallest cache has an entry for each engine, and half of the pages.
const FEWEST_PAGES: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::CacheShape;

    fn within(limit: u64) -> CardOptions {
        let options = CardOptions::default().within_lockable(Some(limit)).expect("a card");
        options.config.check().expect("a card that can be built");
        options.marks.check(options.config.vmh.line).expect("marks that can be kept");
        options
    }

    #[test]
    fn the_cache_and_the_marks_keep_within_the_limit() {
        for limit in (4..600).map(|pages| pages * PAGE as u64 + 5).chain([8 << 20, 100 << 20, 1 << 40]) {
            assert!(within(limit).config.vmh.entries as u64 * 2 * PAGE as u64 <= limit, "{limit}");
        }
        assert_eq!(within(8 << 20).config.vmh, CacheShape { entries: 1024, line: 64, ways: 4 });
        assert_eq!(within(64 << 10).config.vmh, CacheShape { entries: 8, line: 2, ways: 4 });
        assert_eq!(within(4 * PAGE as u64).config.vmh, CacheShape { entries: 2, line: 1, ways: 2 });
        assert_eq!(within(8 << 20).marks, Marks { high: 1984, low: 1488 });
        assert_eq!(within(1 << 40).marks, Marks::default());
    }

    #[test]
    fn what_cannot_be_locked_is_said_with_the_remedy() {
        for limit in [0, 3 * PAGE as u64] {
            let said = CardOptions::default().within_lockable(Some(limit)).unwrap_err().to_string();
            assert!(said.contains(&limit.to_string()) && said.contains("ulimit -l"), "{said}");
        }
        let strict = CardOptions { may_shrink: false, ..CardOptions::default() };
        let said = strict.within_lockable(Some(8 << 20)).unwrap_err().to_string();
        assert!(said.contains("16384") && said.contains("at most 2048") && said.contains("ulimit -l"), "{said}");
        strict.within_lockable(Some(64 << 20)).expect("as many pages as entries");
    }
}
