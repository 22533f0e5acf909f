//! The cache of translations on the card: sets of lines, each with the frames of so many pages of one process.
//!
//! ```text
//!            miss: victim by LRU, interrupt           fill: entries, each valid or not
//!   free ──────────────────────────────▶ reserved ──────────────────────────────▶ valid ◀─┐ lock, use,
//!    ▲                                      │ ▲                                     │  └──┘ unlock
//!    │            the process is gone       │ │   victim of another miss, unless locked   │
//!    └──────────────────────────────────────┘ └─────────────────────────────────────┘
//! ```
//!
//! - A line is replaced only if nobody holds it and no fill is awaited for it.
//! - A lookup that finds its line reserved causes no second interrupt.
//! - Each engine holds at most one line, so with two ways there is always one that can be replaced or is about to be filled.
//! - The frames are read only: replacing a line tells the host nothing.
//! - A line that was filled and not used yet is *fresh*, and is spared: else packets from more nodes than a set has ways would
//!   replace each other's lines for ever, each before the other comes again. It is spared so many times and no longer, since
//!   whoever wanted it may be gone.

use super::{Engine, Entry};
use crate::config::CacheShape;
use crate::id::{Frame, Page, ProcessId};

/// A line of the cache, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// The aligned pages of a line: the first of them, divided by their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag {
    /// Whose.
    pub process: ProcessId,
    /// Which.
    pub line: u64,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// The frame. The line is locked for the engine.
    Hit {
        /// Which.
        frame: Frame,
        /// The line.
        slot: Slot,
    },
    /// The line is there, and has no frame for the page.
    Invalid(Entry),
    /// Nothing; this line is reserved now, and must be filled.
    Miss {
        /// The line.
        slot: Slot,
        /// What it is to hold.
        tag: Tag,
    },
    /// A fill is awaited, or every line of the set is in use.
    Pending,
}

/// How often a line that was not used yet is spared: more often than packets of different nodes meet in a set, and not for ever, since
/// a line that nobody comes back for must go.
pub const SPARED: u16 = 64;

/// The cache.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VmhCache {
    shape: CacheShape,
    spared: u16,
    lines: Vec<Line>,
    /// The line that each engine holds.
    held: [Option<Slot>; 2],
    clock: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Line {
    state: State,
    /// When it was used last.
    used: u64,
    locks: [bool; 2],
    /// How often it is spared until it is used.
    fresh: u16,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum State {
    Free,
    Reserved(Tag),
    Valid(Tag),
}

impl State {
    fn tag(self) -> Option<Tag> {
        match self {
            State::Free => None,
            State::Reserved(tag) | State::Valid(tag) => Some(tag),
        }
    }
}

impl VmhCache {
    /// An empty cache. The shape has been [checked](CacheShape::check).
    #[must_use]
    pub fn new(shape: CacheShape) -> VmhCache {
        VmhCache::sparing(shape, SPARED)
    }

    /// The same, where a line that was not used yet is spared so many times.
    #[must_use]
    pub fn sparing(shape: CacheShape, spared: u16) -> VmhCache {
        let line = Line { state: State::Free, used: 0, locks: [false; 2], fresh: 0, entries: Vec::new() };
        VmhCache { shape, spared, lines: vec![line; shape.lines()], held: [None; 2], clock: 0 }
    }

    /// Looks a page up and, if it is there, locks its line for the engine.
    pub fn lock(&mut self, engine: Engine, process: ProcessId, page: Page) -> Lookup {
        debug_assert!(self.held[engine as usize].is_none(), "an engine holds one line at a time");
        self.clock += 1;
        let tag = Tag { process, line: page.0 / self.shape.line as u64 };
        let set = self.set(tag);
        if let Some(at) = set.clone().find(|at| self.lines[*at].state.tag() == Some(tag)) {
            let line = &mut self.lines[at];
            if let State::Reserved(_) = line.state {
                return Lookup::Pending;
            }
            (line.used, line.fresh) = (self.clock, 0);
            let entry = line.entries[(page.0 % self.shape.line as u64) as usize];
            return match entry {
                Entry::Frame(frame) => {
                    line.locks[engine as usize] = true;
                    self.held[engine as usize] = Some(Slot(at as u32));
                    Lookup::Hit { frame, slot: Slot(at as u32) }
                }
                Entry::Unmapped => Lookup::Invalid(entry),
                Entry::Unpinned => {
                    // It may be possible later.
                    if line.locks == [false; 2] {
                        line.state = State::Free;
                    }
                    Lookup::Invalid(entry)
                }
            };
        }
        let Some(victim) = self.victim(set) else { return Lookup::Pending };
        let line = &mut self.lines[victim];
        (line.state, line.used) = (State::Reserved(tag), self.clock);
        Lookup::Miss { slot: Slot(victim as u32), tag }
    }

    /// Gives back the line that the engine holds.
    pub fn unlock(&mut self, engine: Engine) {
        if let Some(Slot(at)) = self.held[engine as usize].take() {
            self.lines[at as usize].locks[engine as usize] = false;
        }
    }

    /// Fills a line that was reserved. `false` if it no longer is.
    pub fn fill(&mut self, slot: Slot, tag: Tag, entries: Vec<Entry>) -> bool {
        let Some(line) = self.lines.get_mut(slot.0 as usize) else { return false };
        if line.state != State::Reserved(tag) || entries.len() != self.shape.line {
            return false;
        }
        (line.state, line.entries, line.fresh) = (State::Valid(tag), entries, self.spared);
        true
    }

    /// Whether a line is there or about to be.
    #[must_use]
    pub fn holds(&self, tag: Tag) -> bool {
        self.set(tag).any(|at| self.lines[at].state.tag() == Some(tag))
    }

    /// Forgets everything of a process. `false`, with nothing changed, while an engine holds a line of it.
    pub fn purge(&mut self, process: ProcessId) -> bool {
        let own = |line: &&mut Line| line.state.tag().is_some_and(|tag| tag.process == process);
        if self.lines.iter_mut().filter(own).any(|line| line.locks != [false; 2]) {
            return false;
        }
        self.lines.iter_mut().filter(own).for_each(|line| line.state = State::Free);
        true
    }

    /// Pages of a line.
    #[must_use]
    pub fn line_pages(&self) -> usize {
        self.shape.line
    }

    /// Renumbers what only its order counts of, so that equal behaviour is equal state: for exploring.
    pub fn normalise(&mut self) {
        let mut times: Vec<u64> = self.lines.iter().map(|line| line.used).collect();
        times.sort_unstable();
        times.dedup();
        for line in &mut self.lines {
            line.used = times.binary_search(&line.used).map_or(0, |at| at as u64);
            if line.state == State::Free {
                (line.used, line.fresh, line.entries) = (0, 0, Vec::new());
            }
        }
        self.clock = times.len() as u64;
    }

    fn set(&self, tag: Tag) -> std::ops::Range<usize> {
        let first = (tag.line % self.shape.sets() as u64) as usize * self.shape.ways;
        first..first + self.shape.ways
    }

    /// A free line, or the one that was used least lately; one that is fresh is spared.
    fn victim(&mut self, set: std::ops::Range<usize>) -> Option<usize> {
        let replaceable = |at: &usize| {
            let line = &self.lines[*at];
            !matches!(line.state, State::Reserved(_)) && line.locks == [false; 2]
        };
        let rank = |at: &usize| match self.lines[*at] {
            Line { state: State::Free, .. } => (0, 0),
            Line { fresh, used, .. } => (fresh.min(1), used),
        };
        let victim = set.filter(replaceable).min_by_key(rank)?;
        let line = &mut self.lines[victim];
        if line.state != State::Free && line.fresh > 0 {
            line.fresh -= 1;
            return None;
        }
        Some(victim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ProcessId = ProcessId(1);
    const TWO: ProcessId = ProcessId(2);

    /// One set of two lines of two pages.
    fn small() -> VmhCache {
        VmhCache::new(CacheShape { entries: 4, line: 2, ways: 2 })
    }

    fn fill(cache: &mut VmhCache, process: ProcessId, page: u64) -> Slot {
        let Lookup::Miss { slot, tag } = cache.lock(Engine::Send, process, Page(page)) else { panic!("no miss") };
        let first = (tag.line * 2) as u32 + process.0 * 100;
        assert!(cache.fill(slot, tag, vec![Entry::Frame(Frame(first)), Entry::Frame(Frame(first + 1))]));
        slot
    }

    fn hit(cache: &mut VmhCache, engine: Engine, process: ProcessId, page: u64) -> Option<Frame> {
        match cache.lock(engine, process, Page(page)) {
            Lookup::Hit { frame, .. } => Some(frame),
            _ => None,
        }
    }

    /// Fills the line if need be, and uses it.
    fn used(cache: &mut VmhCache, process: ProcessId, page: u64) {
        if !cache.holds(Tag { process, line: page / 2 }) {
            fill(cache, process, page);
        }
        assert!(hit(cache, Engine::Send, process, page).is_some());
        cache.unlock(Engine::Send);
    }

    #[test]
    fn a_line_that_was_not_used_is_spared_for_a_while() {
        let mut cache = VmhCache::sparing(CacheShape { entries: 4, line: 2, ways: 2 }, 3);
        fill(&mut cache, ONE, 0);
        fill(&mut cache, ONE, 2);
        // Each of the two is spared three times; whoever was to use them may be gone.
        let misses = (0..6).filter(|_| cache.lock(Engine::Receive, TWO, Page(0)) != Lookup::Pending).count();
        assert_eq!(misses, 1, "the least lately filled is spared three times, and then replaced");
    }

    #[test]
    fn a_line_is_filled_once_and_serves_its_pages_to_its_process() {
        let mut cache = small();
        fill(&mut cache, ONE, 6);
        assert_eq!(hit(&mut cache, Engine::Send, ONE, 7), Some(Frame(107)));
        cache.unlock(Engine::Send);
        assert!(matches!(cache.lock(Engine::Send, TWO, Page(7)), Lookup::Miss { .. }));
        assert_eq!(cache.lock(Engine::Receive, TWO, Page(6)), Lookup::Pending);
    }

    #[test]
    fn the_line_used_least_lately_goes_unless_it_is_held() {
        let mut cache = small();
        used(&mut cache, ONE, 0);
        used(&mut cache, ONE, 2);
        used(&mut cache, ONE, 0);
        used(&mut cache, ONE, 4);
        assert!(!cache.holds(Tag { process: ONE, line: 1 }));
        // Both are held: a third finds no room, and causes no interrupt.
        assert!(hit(&mut cache, Engine::Send, ONE, 0).is_some());
        assert!(hit(&mut cache, Engine::Receive, ONE, 4).is_some());
        cache.unlock(Engine::Send);
        assert!(matches!(cache.lock(Engine::Send, ONE, Page(8)), Lookup::Miss { .. }));
        assert!(!cache.holds(Tag { process: ONE, line: 0 }) && cache.holds(Tag { process: ONE, line: 2 }));
    }

    #[test]
    fn both_engines_hold_one_line() {
        let mut cache = small();
        fill(&mut cache, ONE, 0);
        assert!(hit(&mut cache, Engine::Send, ONE, 0).is_some());
        assert!(hit(&mut cache, Engine::Receive, ONE, 1).is_some());
        cache.unlock(Engine::Send);
        assert!(!cache.purge(ONE), "the other still holds it");
        cache.unlock(Engine::Receive);
        assert!(cache.purge(ONE));
        assert!(matches!(cache.lock(Engine::Send, ONE, Page(0)), Lookup::Miss { .. }));
    }

    #[test]
    fn a_fill_for_what_is_gone_changes_nothing() {
        let mut cache = small();
        let Lookup::Miss { slot, tag } = cache.lock(Engine::Send, ONE, Page(0)) else { panic!("no miss") };
        assert!(cache.purge(ONE));
        assert!(!cache.fill(slot, tag, vec![Entry::Frame(Frame(1)); 2]));
        assert!(!cache.fill(Slot(99), tag, vec![Entry::Frame(Frame(1)); 2]));
        assert!(!cache.holds(tag));
    }

    #[test]
    fn entries_are_valid_one_by_one() {
        let mut cache = small();
        let Lookup::Miss { slot, tag } = cache.lock(Engine::Send, ONE, Page(0)) else { panic!("no miss") };
        assert!(cache.fill(slot, tag, vec![Entry::Frame(Frame(5)), Entry::Unmapped]));
        assert_eq!(cache.lock(Engine::Send, ONE, Page(1)), Lookup::Invalid(Entry::Unmapped));
        assert_eq!(hit(&mut cache, Engine::Send, ONE, 0), Some(Frame(5)));
        cache.unlock(Engine::Send);
        let Lookup::Miss { slot, tag } = cache.lock(Engine::Send, ONE, Page(2)) else { panic!("no miss") };
        assert!(cache.fill(slot, tag, vec![Entry::Unpinned; 2]));
        assert_eq!(cache.lock(Engine::Send, ONE, Page(2)), Lookup::Invalid(Entry::Unpinned));
        assert!(matches!(cache.lock(Engine::Send, ONE, Page(2)), Lookup::Miss { .. }), "it is tried again");
    }
}
