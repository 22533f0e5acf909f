//! Every interleaving of two processes and two engines on one set of the cache: each state of a line is reached, and in none of
//! them a line that is held or awaited is replaced, a page of one process is given to the other, or everything stands still.

use std::collections::{HashSet, VecDeque};

use sidestep_vmmc::{CacheShape, Engine, Entry, Frame, Lookup, Page, ProcessId, Slot, Tag, VmhCache};

/// What the world can do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Action {
    Lock(Engine, ProcessId, Page),
    Unlock(Engine),
    /// The driver answers one of the misses that it has been told of.
    Fill(usize),
    /// A process goes.
    Purge(ProcessId),
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    cache: VmhCache,
    /// Misses that the driver knows of.
    asked: Vec<(Slot, Tag)>,
    /// What each engine holds, and the frame that it copies to or from.
    held: [Option<(Tag, Frame)>; 2],
    /// A process that is gone has no pages.
    gone: [bool; 2],
}

const PROCESSES: [ProcessId; 2] = [ProcessId(0), ProcessId(1)];
const PAGES: u64 = 6;

fn frame(process: ProcessId, page: u64) -> Frame {
    Frame(process.0 * 100 + page as u32)
}

impl World {
    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for engine in [Engine::Send, Engine::Receive] {
            match self.held[engine as usize] {
                Some(_) => actions.push(Action::Unlock(engine)),
                None => {
                    let there = PROCESSES.into_iter().filter(|process| !self.gone[process.0 as usize]);
                    let pages = there.flat_map(|process| (0..PAGES).step_by(2).map(move |page| (process, Page(page))));
                    actions.extend(pages.map(|(process, page)| Action::Lock(engine, process, page)));
                }
            }
        }
        actions.extend((0..self.asked.len()).map(Action::Fill));
        actions.extend(PROCESSES.into_iter().filter(|process| !self.gone[process.0 as usize]).map(Action::Purge));
        actions
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Lock(engine, process, page) => match self.cache.lock(engine, process, page) {
                Lookup::Hit { frame: found, .. } => {
                    assert_eq!(found, frame(process, page.0), "the page of another");
                    self.held[engine as usize] = Some((Tag { process, line: page.0 / 2 }, found));
                }
                Lookup::Miss { slot, tag } => {
                    assert!(!self.asked.iter().any(|(own, _)| *own == slot), "an awaited line was replaced");
                    assert!(!self.asked.iter().any(|(_, own)| *own == tag), "a second interrupt for one line");
                    self.asked.push((slot, tag));
                }
                // A fill is awaited, or a line that was filled is spared for now.
                Lookup::Pending => {}
                Lookup::Invalid(entry) => panic!("{entry:?}"),
            },
            Action::Unlock(engine) => {
                self.cache.unlock(engine);
                self.held[engine as usize] = None;
            }
            Action::Fill(which) => {
                let (slot, tag) = self.asked.remove(which);
                let entries = (0..2).map(|at| Entry::Frame(frame(tag.process, tag.line * 2 + at))).collect();
                assert!(self.cache.fill(slot, tag, entries), "a fill that was awaited");
            }
            Action::Purge(process) => {
                let holds = self.held.iter().flatten().any(|(tag, _)| tag.process == process);
                assert_eq!(self.cache.purge(process), !holds, "a held line was forgotten");
                if !holds {
                    self.gone[process.0 as usize] = true;
                    // The driver's late answer finds nothing.
                    let late: Vec<_> = self.asked.iter().filter(|(_, tag)| tag.process == process).copied().collect();
                    self.asked.retain(|(_, tag)| tag.process != process);
                    for (slot, tag) in late {
                        assert!(!self.cache.fill(slot, tag, vec![Entry::Unmapped; 2]), "a late fill was taken");
                    }
                }
            }
        }
        for (tag, _) in self.held.iter().flatten() {
            assert!(self.cache.holds(*tag), "a held line was replaced");
        }
        for (_, tag) in &self.asked {
            assert!(self.cache.holds(*tag), "an awaited line was forgotten");
        }
        self.asked.sort_unstable();
        self.cache.normalise();
    }
}

fn explore(ways: usize) -> usize {
    let shape = CacheShape { entries: 2 * ways, line: 2, ways };
    shape.check("the cache").unwrap();
    let first = World { cache: VmhCache::sparing(shape, 2), asked: Vec::new(), held: [None; 2], gone: [false; 2] };
    let mut seen = HashSet::from([first.clone()]);
    let mut open = VecDeque::from([first]);
    while let Some(world) = open.pop_front() {
        for action in world.actions() {
            let mut next = world.clone();
            next.act(action);
            if seen.insert(next.clone()) {
                open.push_back(next);
            }
        }
        // Nothing stands still: an engine that waits sees its page in the end.
        if world.held == [None; 2] {
            assert!(progresses(&world), "no way leads to a hit");
        }
    }
    seen.len()
}

/// With fair engines and a driver that answers, a lookup that is repeated hits.
fn progresses(world: &World) -> bool {
    let Some(process) = PROCESSES.into_iter().find(|process| !world.gone[process.0 as usize]) else { return true };
    let mut world = world.clone();
    for _ in 0..12 {
        world.act(Action::Lock(Engine::Receive, process, Page(0)));
        if world.held[Engine::Receive as usize].is_some() {
            return true;
        }
        while !world.asked.is_empty() {
            world.act(Action::Fill(0));
        }
    }
    false
}

#[test]
fn two_ways_are_enough() {
    let states = explore(2);
    println!("two ways: {states} states");
    assert!(states > 500, "{states} states");
}
