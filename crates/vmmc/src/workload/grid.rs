//! Misses of a workload for a shape of the cache, without time: each page is looked up in turn, and filled at once.

use std::collections::HashSet;

use super::{PER_NODE, Step, Workload};
use crate::card::Path;
use crate::config::CacheShape;
use crate::id::{Frame, Page, ProcessId};
use crate::vmh::{Engine, Entry, Lookup, VmhCache};

/// The thesis's grid (Table 4.4): entries, lines, ways.
pub const GRID: ([usize; 3], [usize; 4], [usize; 3]) = ([8192, 16384, 32768], [8, 16, 64, 128], [2, 4, 8]);

/// What was counted, by [`Path`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Misses {
    /// Pages that were looked up.
    pub lookups: [u64; 2],
    /// Lines that nobody had used before.
    pub cold: [u64; 2],
    /// Lines that had been there.
    pub again: [u64; 2],
}

impl Misses {
    /// All misses of all lookups.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.part(|path| self.cold[path] + self.again[path])
    }

    /// Those of lines that nobody had used before.
    #[must_use]
    pub fn cold_ratio(&self) -> f64 {
        self.part(|path| self.cold[path])
    }

    /// Those of one path.
    #[must_use]
    pub fn path_ratio(&self, path: Path) -> f64 {
        let path = path as usize;
        (self.cold[path] + self.again[path]) as f64 / self.lookups[path].max(1) as f64
    }

    fn part(&self, of: impl Fn(usize) -> u64) -> f64 {
        (of(0) + of(1)) as f64 / (self.lookups[0] + self.lookups[1]).max(1) as f64
    }
}

/// The misses of a workload on cards of this shape.
#[must_use]
pub fn grid_point(workload: &Workload, shape: CacheShape) -> Misses {
    let mut nodes: Vec<_> = (0..workload.nodes()).map(|_| (VmhCache::new(shape), HashSet::new())).collect();
    let mut misses = Misses::default();
    let mut look = |process: usize, page: u32, path: Path| {
        let (cache, seen) = &mut nodes[process / PER_NODE];
        misses.lookups[path as usize] += 1;
        let (id, page) = (ProcessId(process as u32), Page(page.into()));
        if let Lookup::Miss { slot, tag } = cache.lock(Engine::Send, id, page) {
            match seen.insert(tag) {
                true => misses.cold[path as usize] += 1,
                false => misses.again[path as usize] += 1,
            }
            cache.fill(slot, tag, vec![Entry::Frame(Frame(0)); shape.line]);
            cache.lock(Engine::Send, id, page);
        }
        cache.unlock(Engine::Send);
    };
    // The processes take turns, and wait for each other at barriers.
    let mut at = vec![0; workload.steps.len()];
    loop {
        let mut any = false;
        for (process, (at, steps)) in at.iter_mut().zip(&workload.steps).enumerate() {
            while let Some(step) = steps.get(*at) {
                match *step {
                    Step::Barrier => break,
                    Step::Compute(_) => *at += 1,
                    Step::Fetch(page) => {
                        look(workload.homes[page as usize].into(), page, Path::Send);
                        look(process, page, Path::Receive);
                        *at += 1;
                        any = true;
                        break;
                    }
                    Step::Send(page, _) => {
                        look(process, page, Path::Send);
                        look(workload.homes[page as usize].into(), page, Path::Receive);
                        *at += 1;
                        any = true;
                        break;
                    }
                }
            }
        }
        if !any {
            if at.iter().zip(&workload.steps).all(|(at, steps)| *at >= steps.len()) {
                return misses;
            }
            at.iter_mut().for_each(|at| *at += 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_caches_miss_less_and_long_lines_load_ahead() {
        let workload = Workload::named("fft", 3).unwrap();
        let point = |entries, line| grid_point(&workload, CacheShape { entries, line, ways: 4 });
        let (small, large) = (point(256, 8), point(32768, 8));
        assert!(large.ratio() < small.ratio(), "{small:?} {large:?}");
        assert_eq!(large.again, [0, 0], "all of it fits");
        assert!(point(32768, 64).cold_ratio() < large.cold_ratio());
        assert_eq!(small.lookups, large.lookups);
        assert!((small.cold_ratio() - large.cold_ratio()).abs() < 1e-9, "cold misses do not depend on the size");
    }
}
