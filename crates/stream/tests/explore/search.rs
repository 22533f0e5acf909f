//! Breadth-first search over all states, with the shortest way to a fault.

use std::{
    collections::HashMap,
    env,
    hash::{DefaultHasher, Hash, Hasher},
};

use crate::world::{Action, Setup, World};

/// States beyond which a search is not bounded enough to be useful.
const MOST_STATES: usize = 20_000_000;

struct Graph {
    /// Hashes of the states found, with their numbers.
    numbers: HashMap<u128, u32>,
    /// How each state was found first: from which one, by what.
    found_by: Vec<(u32, Action)>,
    /// Every step, backwards: to, from.
    steps: Vec<(u32, u32)>,
    finals: Vec<u32>,
}

/// Explores everything that a setup allows; panics with the shortest way to a fault.
pub fn explore(setup: &Setup) {
    let first = World::new(setup);
    let mut graph = Graph {
        numbers: HashMap::from([(hash(&first), 0)]),
        found_by: vec![(0, Action::Go(0))],
        steps: Vec::new(),
        finals: Vec::new(),
    };
    let mut frontier = vec![(0, first)];
    while !frontier.is_empty() {
        let mut next = Vec::new();
        for (number, world) in frontier {
            if world.is_final() {
                graph.finals.push(number);
                if let Err(fault) = world.check_final() {
                    graph.fail(setup, number, &fault);
                }
            }
            for action in world.actions(setup) {
                let mut then = world.clone();
                let outcome = then.act(setup, action);
                let fresh = graph.numbers.len() as u32;
                let found = *graph.numbers.entry(hash(&then)).or_insert(fresh);
                if found == fresh {
                    graph.found_by.push((number, action));
                }
                graph.steps.push((found, number));
                if let Err(fault) = outcome {
                    graph.fail(setup, found, &fault);
                }
                if found == fresh {
                    next.push((fresh, then));
                }
            }
        }
        assert!(graph.numbers.len() < MOST_STATES, "{}: too many states", setup.name);
        frontier = next;
    }
    graph.check_ends(setup);
    println!(
        "{}: {} states, {} steps, {} ends",
        setup.name,
        graph.numbers.len(),
        graph.steps.len(),
        graph.finals.len()
    );
}

impl Graph {
    /// From every state an end can be reached.
    fn check_ends(&mut self, setup: &Setup) {
        self.steps.sort_unstable();
        let mut reached = vec![false; self.numbers.len()];
        let mut open = self.finals.clone();
        while let Some(state) = open.pop() {
            if std::mem::replace(&mut reached[state as usize], true) {
                continue;
            }
            let begin = self.steps.partition_point(|(to, _)| *to < state);
            let into = self.steps[begin..].iter().take_while(|(to, _)| *to == state);
            open.extend(into.map(|(_, from)| *from).filter(|from| !reached[*from as usize]));
        }
        if let Some(dead) = reached.iter().position(|reached| !reached) {
            self.fail(setup, dead as u32, "no way leads from here to an end");
        }
    }

    fn fail(&self, setup: &Setup, state: u32, fault: &str) -> ! {
        let mut way = Vec::new();
        let mut at = state;
        while at != 0 {
            let (from, action) = self.found_by[at as usize];
            way.push(action);
            at = from;
        }
        way.reverse();
        if env::var_os("SIDESTEP_SHOW").is_some() {
            let mut world = World::new(setup);
            for action in &way {
                let _ = world.act(setup, *action);
                println!("{action:?}: {world:?}\n");
            }
        }
        panic!("{}: {fault}, after {} steps: {way:?}", setup.name, way.len());
    }
}

fn hash(world: &World) -> u128 {
    let half = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        salt.hash(&mut hasher);
        world.hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(1) << 64 | half(2)
}
