//! Every interleaving of two controllers, with a death at any step and locks that expire at any moment.

use std::collections::{BTreeMap, HashSet};

use sidestep_balance::protocol::{
    Conversion, Next, Operation, Outcome, Setting, Word, lock_word, server_word, site_of,
};

/// Shared memory and two controllers at work on it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    words: BTreeMap<Word, u64>,
    controllers: [Conversion; 2],
    dead: [bool; 2],
    /// Deaths and leases over that may still happen.
    deaths: u8,
    leases: u8,
}

/// What a scenario begins with: the site of each server, and of each controller its site, donor and wanted server.
struct Scenario {
    servers: &'static [u16],
    controllers: [(u16, u16, u16); 2],
    deaths: u8,
    leases: u8,
}

impl World {
    fn new(scenario: &Scenario) -> World {
        let mut words = BTreeMap::new();
        for (at, site) in scenario.servers.iter().enumerate() {
            words.insert(Word::Server(at as u16), server_word(*site, 0));
        }
        for site in 0..3 {
            words.insert(Word::Lock(site), 0);
        }
        let same_site = scenario.controllers[0].0 == scenario.controllers[1].0;
        let controller = |at: u16| {
            let others = if same_site { vec![1 - at] } else { vec![] };
            let setting = Setting { servers: scenario.servers.len() as u16, others };
            Conversion::new(setting, at, scenario.controllers[usize::from(at)], 1, 0)
        };
        words.insert(Word::Counter(0), 0);
        words.insert(Word::Counter(1), 0);
        World {
            words,
            controllers: [controller(0), controller(1)],
            dead: [false; 2],
            deaths: scenario.deaths,
            leases: scenario.leases,
        }
    }

    fn perform(&mut self, operation: Operation) -> u64 {
        let (word, change): (Word, Box<dyn Fn(u64) -> u64>) = match operation {
            Operation::Load(word) => (word, Box::new(|held| held)),
            Operation::CompareSwap { word, expected, new } => {
                (word, Box::new(move |held| if held == expected { new } else { held }))
            }
            Operation::FetchAdd { word, value } => (word, Box::new(move |held| held + value)),
        };
        let held = self.words.get_mut(&word).expect("a word of the scenario");
        let before = *held;
        *held = change(before);
        before
    }

    /// Every world that one step of anybody leads to.
    fn steps(&self) -> Vec<World> {
        let mut worlds = Vec::new();
        for at in 0..2 {
            if self.dead[at] {
                continue;
            }
            if self.deaths > 0 && !matches!(self.controllers[at].next(), Next::End(_)) {
                let mut world = self.clone();
                (world.dead[at], world.deaths) = (true, self.deaths - 1);
                worlds.push(world);
            }
            match self.controllers[at].next() {
                Next::End(_) => {}
                Next::Do(operation) => {
                    let mut world = self.clone();
                    let held = world.perform(operation);
                    world.controllers[at].done(held);
                    worlds.push(world);
                }
                Next::Wait(by) => {
                    // It is free again, or it is tried in vain, which changes nothing.
                    let mut world = self.clone();
                    world.controllers[at].try_again();
                    worlds.push(world);
                    // A dead holder's lease is over for certain; a slow one's, if the scenario lets it.
                    let dead = self.dead[1 - at] && by == lock_word(1 - at as u16, 1);
                    if dead || self.leases > 0 {
                        let mut world = self.clone();
                        world.leases -= u8::from(!dead);
                        let operation = world.controllers[at].lease_is_over().expect("a lock is held");
                        let held = world.perform(operation);
                        world.controllers[at].taken_over(held);
                        worlds.push(world);
                    }
                }
            }
        }
        worlds
    }

    fn servers_of(&self, site: u16) -> usize {
        self.words.iter().filter(|(word, held)| matches!(word, Word::Server(_)) && site_of(**held) == site).count()
    }

    fn outcomes(&self) -> Vec<Outcome> {
        let outcome = |controller: &Conversion| match controller.next() {
            Next::End(outcome) => Some(outcome),
            _ => None,
        };
        self.controllers.iter().filter_map(outcome).collect()
    }

    /// Whether everybody who lives has ended.
    fn is_over(&self) -> bool {
        (0..2).all(|at| self.dead[at] || matches!(self.controllers[at].next(), Next::End(_)))
    }
}

/// Visits every world; `check` sees each of them. Returns how many there were, and every one in which nothing more happens.
fn explore(scenario: &Scenario, mut check: impl FnMut(&World)) -> (usize, Vec<World>) {
    let first = World::new(scenario);
    let (mut seen, mut open, mut ends) = (HashSet::from([first.clone()]), vec![first], Vec::new());
    while let Some(world) = open.pop() {
        check(&world);
        if world.is_over() {
            ends.push(world.clone());
        }
        for next in world.steps() {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    // From every world there is a way to the end: nobody waits in a circle, or for the dead.
    assert!(!ends.is_empty());
    (seen.len(), ends)
}

/// Whether an end can be reached from every world of a scenario.
fn always_ends(scenario: &Scenario) {
    let first = World::new(scenario);
    let mut worlds = vec![first.clone()];
    let mut number = std::collections::HashMap::from([(first, 0usize)]);
    let mut before: Vec<Vec<usize>> = vec![vec![]];
    let mut at = 0;
    while at < worlds.len() {
        for next in worlds[at].steps() {
            let known = *number.entry(next.clone()).or_insert_with(|| {
                worlds.push(next);
                before.push(vec![]);
                worlds.len() - 1
            });
            before[known].push(at);
        }
        at += 1;
    }
    let mut reaches = vec![false; worlds.len()];
    let mut open: Vec<usize> = (0..worlds.len()).filter(|at| worlds[*at].is_over()).collect();
    while let Some(at) = open.pop() {
        if !std::mem::replace(&mut reaches[at], true) {
            open.extend(&before[at]);
        }
    }
    assert!(reaches.iter().all(|reaches| *reaches), "some world has no way on");
}

/// Two controllers of one site have seen the same load: one of them converts, the other is told.
#[test]
fn one_load_is_answered_once() {
    let scenario = Scenario { servers: &[0, 1, 1, 1], controllers: [(0, 1, 2), (0, 1, 3)], deaths: 0, leases: 0 };
    let (count, ends) = explore(&scenario, |world| assert!(world.servers_of(0) <= 2));
    for end in &ends {
        let outcomes = end.outcomes();
        let converted = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Converted(_))).count();
        assert_eq!(converted, 1, "{outcomes:?}");
        assert!(outcomes.contains(&Outcome::ToldOfAnother), "{outcomes:?}");
        assert_eq!((end.words[&Word::Lock(0)], end.words[&Word::Lock(1)]), (0, 0));
    }
    assert!(count > 50, "{count}");
    always_ends(&scenario);
}

/// Controllers of two sites want the two servers of a third one: it keeps one of them, also where locks expire while their
/// holders are at work, and where one dies.
#[test]
fn a_site_keeps_its_last_server() {
    for (deaths, leases) in [(0, 0), (1, 0), (0, 2), (1, 2)] {
        let scenario = Scenario { servers: &[0, 1, 2, 2], controllers: [(0, 2, 2), (1, 2, 3)], deaths, leases };
        let (count, ends) = explore(&scenario, |world| assert!(world.servers_of(2) >= 1, "the last server was taken"));
        if (deaths, leases) == (0, 0) {
            assert!(ends.iter().all(|end| end.servers_of(2) == 1));
        }
        always_ends(&scenario);
        println!("{deaths} deaths, {leases} leases: {count} worlds");
    }
}

/// Both want the same server: one gets it.
#[test]
fn a_server_is_converted_once() {
    let scenario = Scenario { servers: &[0, 1, 2, 2, 2], controllers: [(0, 2, 3), (1, 2, 3)], deaths: 0, leases: 2 };
    let (_, ends) = explore(&scenario, |_| {});
    for end in &ends {
        let outcomes = end.outcomes();
        let converted = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Converted(3))).count();
        assert!(converted <= 1, "{outcomes:?}");
        if converted == 1 {
            assert_ne!(site_of(end.words[&Word::Server(3)]), 2);
        }
    }
}

/// Two that want servers of each other's sites lock in one order.
#[test]
fn nobody_waits_in_a_circle() {
    for (deaths, leases) in [(0, 0), (1, 0), (0, 1)] {
        let scenario = Scenario { servers: &[0, 0, 1, 1], controllers: [(0, 1, 2), (1, 0, 0)], deaths, leases };
        explore(&scenario, |world| assert!(world.servers_of(0) >= 1 && world.servers_of(1) >= 1));
        always_ends(&scenario);
    }
}

/// Whoever dies between two steps, the other one comes to its end, and no lock stays with the dead.
#[test]
fn a_death_between_two_steps_holds_nobody_up() {
    let scenario = Scenario { servers: &[0, 1, 1, 1], controllers: [(0, 1, 2), (0, 1, 3)], deaths: 1, leases: 0 };
    let (_, ends) = explore(&scenario, |world| assert!(world.servers_of(1) >= 1));
    let by_survivor = ends
        .iter()
        .filter(|end| end.dead.contains(&true))
        .filter(|end| end.outcomes().iter().any(|outcome| matches!(outcome, Outcome::Converted(_))));
    assert!(by_survivor.count() > 0, "the one that is left converts");
    always_ends(&scenario);
}
