//! The cache of buffer descriptors on the card. Its lines have one entry: ids that lie near each other have nothing in common.
//!
//! An entry is free, reserved for a fill, a descriptor, or *negative*: the host knows no such buffer, and whoever asks again is
//! told so, instead of asking for ever. One that was filled and not used yet is spared, as lines of the
//! [other cache](crate::vmh::cache) are.

use super::Descriptor;
use crate::config::CacheShape;
use crate::id::Cbh;
use crate::vmh::Slot;
use crate::vmh::cache::SPARED;

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CbhLookup {
    /// The descriptor.
    Hit(Descriptor),
    /// There is no such buffer.
    Negative,
    /// Nothing; this entry is reserved now, and must be filled.
    Miss(Slot),
    /// A fill is awaited, or every entry of the set waits for one.
    Pending,
}

/// The cache.
#[derive(Debug, Clone)]
pub struct CbhCache {
    shape: CacheShape,
    entries: Vec<Entry>,
    clock: u64,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    state: State,
    used: u64,
    /// How often it is spared until it is used.
    fresh: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    Reserved(Cbh),
    Valid(Cbh, Descriptor),
    Negative(Cbh),
}

impl State {
    fn tag(self) -> Option<Cbh> {
        match self {
            State::Free => None,
            State::Reserved(tag) | State::Valid(tag, _) | State::Negative(tag) => Some(tag),
        }
    }
}

impl CbhCache {
    /// An empty cache. The shape has been [checked](CacheShape::check).
    #[must_use]
    pub fn new(shape: CacheShape) -> CbhCache {
        CbhCache { shape, entries: vec![Entry { state: State::Free, used: 0, fresh: 0 }; shape.lines()], clock: 0 }
    }

    /// Looks a buffer up.
    pub fn lookup(&mut self, cbh: Cbh) -> CbhLookup {
        self.clock += 1;
        let set = self.set(cbh);
        if let Some(at) = set.clone().find(|at| self.entries[*at].state.tag() == Some(cbh)) {
            let entry = &mut self.entries[at];
            (entry.used, entry.fresh) = (self.clock, 0);
            return match entry.state {
                State::Valid(_, descriptor) => CbhLookup::Hit(descriptor),
                State::Negative(_) => CbhLookup::Negative,
                _ => CbhLookup::Pending,
            };
        }
        let free = |at: &usize| !matches!(self.entries[*at].state, State::Reserved(_));
        let rank = |at: &usize| match self.entries[*at] {
            Entry { state: State::Free, .. } => (0, 0),
            Entry { fresh, used, .. } => (fresh.min(1), used),
        };
        let Some(victim) = set.filter(free).min_by_key(rank) else { return CbhLookup::Pending };
        let entry = &mut self.entries[victim];
        if entry.state != State::Free && entry.fresh > 0 {
            entry.fresh -= 1;
            return CbhLookup::Pending;
        }
        *entry = Entry { state: State::Reserved(cbh), used: self.clock, fresh: 0 };
        CbhLookup::Miss(Slot(victim as u32))
    }

    /// Fills an entry that was reserved: with a descriptor, or with the word that there is none. `false` if it no longer is.
    pub fn fill(&mut self, slot: Slot, cbh: Cbh, descriptor: Option<Descriptor>) -> bool {
        let Some(entry) = self.entries.get_mut(slot.0 as usize) else { return false };
        if entry.state != State::Reserved(cbh) {
            return false;
        }
        entry.fresh = SPARED;
        entry.state = descriptor.map_or(State::Negative(cbh), |descriptor| State::Valid(cbh, descriptor));
        true
    }

    /// Forgets what is known of a buffer; a fill that is awaited is still awaited.
    pub fn invalidate(&mut self, cbh: Cbh) {
        self.forget(|tag| tag == cbh, false);
    }

    /// Forgets everything of a process, and the fills that are awaited for it.
    pub fn purge(&mut self, process: crate::id::ProcessId) {
        self.forget(|tag| tag.process == process, true);
    }

    fn forget(&mut self, which: impl Fn(Cbh) -> bool, reserved: bool) {
        for entry in &mut self.entries {
            if entry.state.tag().is_some_and(&which) && (reserved || !matches!(entry.state, State::Reserved(_))) {
                entry.state = State::Free;
            }
        }
    }

    fn set(&self, cbh: Cbh) -> std::ops::Range<usize> {
        let first = cbh.buffer.0 as usize % self.shape.sets() * self.shape.ways;
        first..first + self.shape.ways
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Address, BufferId, Key, ProcessId, Rights};

    fn cbh(process: u32, buffer: u32) -> Cbh {
        Cbh { process: ProcessId(process), buffer: BufferId(buffer) }
    }

    fn descriptor() -> Descriptor {
        Descriptor { address: Address(0), len: 1, key: Key(1), rights: Rights::ALL, notify: false }
    }

    fn small() -> CbhCache {
        CbhCache::new(CacheShape { entries: 2, line: 1, ways: 2 })
    }

    #[test]
    fn what_is_not_there_is_known_not_to_be() {
        let mut cache = small();
        let CbhLookup::Miss(slot) = cache.lookup(cbh(1, 1)) else { panic!("no miss") };
        assert_eq!(cache.lookup(cbh(1, 1)), CbhLookup::Pending);
        assert!(cache.fill(slot, cbh(1, 1), None));
        assert_eq!(cache.lookup(cbh(1, 1)), CbhLookup::Negative);
        // A buffer that is registered under this id later is found.
        cache.invalidate(cbh(1, 1));
        let CbhLookup::Miss(slot) = cache.lookup(cbh(1, 1)) else { panic!("no miss") };
        assert!(cache.fill(slot, cbh(1, 1), Some(descriptor())));
        assert_eq!(cache.lookup(cbh(1, 1)), CbhLookup::Hit(descriptor()));
        assert!(matches!(cache.lookup(cbh(2, 1)), CbhLookup::Miss(_)), "another process, the same id");
    }

    #[test]
    fn entries_that_are_awaited_are_not_replaced() {
        let mut cache = small();
        let CbhLookup::Miss(first) = cache.lookup(cbh(1, 0)) else { panic!("no miss") };
        assert!(matches!(cache.lookup(cbh(1, 2)), CbhLookup::Miss(_)));
        assert_eq!(cache.lookup(cbh(1, 4)), CbhLookup::Pending);
        cache.purge(ProcessId(1));
        assert!(!cache.fill(first, cbh(1, 0), Some(descriptor())));
        assert!(matches!(cache.lookup(cbh(1, 4)), CbhLookup::Miss(_)));
    }
}
