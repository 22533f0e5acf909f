//! Random operations of random processes on a cluster in bad weather, against an oracle: every operation ends once and as it
//! must, bytes are where they must be and nowhere else, notifications come once and in order, and the keys decide.

use std::collections::{BTreeMap, VecDeque};

use sidestep_sys::seeded::Seeded;
use sidestep_testkit::process::{full, seed_or};
use sidestep_vmmc::simulation::{Capability, Cluster, Costs, Weather};
use sidestep_vmmc::{
    Address, CacheShape, Config, Event, Export, Fault, Key, LinkConfig, Marks, NodeId, Operation, PAGE, Post,
    ProcessId, Rights, Source, Work,
};

const PAGES: u64 = 24;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Who(NodeId, ProcessId);

/// A buffer, as the oracle knows it.
struct Buffer {
    owner: Who,
    capability: Capability,
    at: u64,
    rights: Rights,
    alive: bool,
}

/// An operation, as the oracle knows it.
struct Pending {
    target: usize,
    /// What must come of it while the buffer lives; afterwards it may be refused, too.
    expected: Result<(), Fault>,
    may_be_refused: bool,
    effect: Effect,
}

enum Effect {
    Send {
        at: u64,
        bytes: Vec<u8>,
        notify: bool,
    },
    /// The first bytes lie in the own stripe, where only own sends go, and those in order: they must be these.
    Fetch {
        len: u64,
        destination: u64,
        expected: Vec<u8>,
    },
}

struct World {
    cluster: Cluster,
    random: Seeded,
    who: Vec<Who>,
    memory: BTreeMap<Who, Vec<u8>>,
    buffers: Vec<Buffer>,
    pending: BTreeMap<(Who, Work), Pending>,
    /// What owners must be told, in order for each pair.
    notices: BTreeMap<(Who, Who), VecDeque<(u64, u64)>>,
    /// What the stripe of a sender will hold when everything it posted is done.
    stripes: BTreeMap<(Who, usize), Vec<u8>>,
    next_work: u64,
    ended: u64,
    refused: u64,
}

/// Each process sends from, fetches to and exports pages of its own: a quarter each for sources, destinations and two for buffers.
/// Every sender has a stripe of each buffer of its own, so that the order of two senders does not matter.
impl World {
    fn new(seed: u64, config: Config, weather: Weather) -> World {
        let mut random = Seeded::new(seed);
        let nodes = 2 + random.below(2) as u16;
        let marks = Marks { high: 2 * config.vmh.line.max(8), low: config.vmh.line };
        let configs = vec![config; nodes.into()];
        let cluster = Cluster::new(&configs, marks, Costs::default(), weather).unwrap();
        let (memory, buffers, pending) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        let mut world = World {
            cluster,
            random,
            who: Vec::new(),
            memory,
            buffers,
            pending,
            notices: BTreeMap::new(),
            stripes: BTreeMap::new(),
            next_work: 1,
            ended: 0,
            refused: 0,
        };
        for node in 0..nodes {
            for _ in 0..1 + world.random.below(3) {
                world.attach(NodeId(node));
            }
        }
        world
    }

    fn attach(&mut self, node: NodeId) {
        let who = Who(node, self.cluster.attach(node, PAGES));
        let bytes: Vec<u8> = (0..PAGES * PAGE as u64).map(|_| self.random.next_u64() as u8).collect();
        self.cluster.write(node, who.1, Address(0), &bytes);
        self.memory.insert(who, bytes);
        self.who.push(who);
        self.export(who);
    }

    fn export(&mut self, who: Who) {
        // One of two places, each a quarter of the memory.
        let place = self.buffers.iter().filter(|buffer| buffer.owner == who && buffer.alive).map(|buffer| buffer.at);
        let quarter = PAGES / 4 * PAGE as u64;
        let taken: Vec<u64> = place.collect();
        let Some(at) = [2 * quarter, 3 * quarter].into_iter().find(|at| !taken.contains(at)) else { return };
        let rights = match self.random.below(6) {
            0 => Rights { send: true, fetch: false },
            1 => Rights { send: false, fetch: true },
            _ => Rights::ALL,
        };
        let export = Export { address: Address(at), len: quarter, rights, notify: true };
        let capability = self.cluster.export(who.0, who.1, export).unwrap();
        self.buffers.push(Buffer { owner: who, capability, at, rights, alive: true });
    }

    fn post(&mut self) {
        let who = self.who[self.random.below(self.who.len() as u64) as usize];
        let target = self.random.below(self.buffers.len() as u64) as usize;
        let Buffer { capability, rights, alive, owner, .. } = &self.buffers[target];
        let (capability, alive, rights, owner) = (*capability, *alive, *rights, *owner);
        let stripe = capability.len / 16;
        let mine = self.who.iter().position(|own| *own == who).unwrap() as u64 % 16;
        let fetch = self.random.chance(400);
        let len = [0, 1, 4, 32, 33, 100, 1000, stripe][self.random.below(8) as usize].min(stripe);
        let len = if fetch { [len, 5000][self.random.below(2) as usize] } else { len };
        let mut at = mine * stripe + self.random.below(stripe - len.min(stripe) + 1);
        let mut key = capability.key;
        let mut expected = Ok(());
        match self.random.below(20) {
            0 => {
                key = Key(key.0 ^ 1 << self.random.below(128));
                expected = Err(Fault::WrongKey);
            }
            1 => {
                at = capability.len - len / 2;
                if at + len > capability.len {
                    expected = Err(Fault::OutOfRange);
                }
            }
            _ => {}
        }
        if expected != Err(Fault::WrongKey) && !(if fetch { rights.fetch } else { rights.send }) {
            expected = Err(Fault::NotAllowed);
        }
        if !alive {
            expected = Err(Fault::UnknownBuffer);
        }
        let work = Work(self.next_work);
        self.next_work += 1;
        // A notice says where and how much, not who: nothing at all may lie between the stripes of two senders.
        let notify = self.random.chance(300) && (len > 0 || at / stripe == mine);
        let quarter = PAGES / 4 * PAGE as u64;
        let start = (self.buffers[target].at + mine * stripe) as usize;
        let memory = &self.memory[&owner][start..start + stripe as usize];
        let own = self.stripes.entry((who, target)).or_insert_with(|| memory.to_vec()).clone();
        let (operation, effect) = if fetch {
            // A page of its own for each fetch that is under way, as long as there are enough.
            let destination = quarter + self.next_work % 3 * 2 * PAGE as u64 + self.random.below(3000);
            let within = at.checked_sub(mine * stripe).filter(|within| *within <= stripe && expected.is_ok());
            let first = within.map_or(0, |within| len.min(stripe - within)) as usize;
            let from = within.unwrap_or(0) as usize;
            let effect = Effect::Fetch { len, destination, expected: own[from..from + first].to_vec() };
            (Operation::Fetch { destination: Address(destination) }, effect)
        } else {
            let from = self.random.below(quarter - len + 1);
            let bytes = self.memory[&who][from as usize..(from + len) as usize].to_vec();
            let source = if len <= 32 { Source::Inline(bytes.clone()) } else { Source::Memory(Address(from)) };
            (Operation::Send { source, notify }, Effect::Send { at, bytes, notify })
        };
        let overlaps = self.pending.iter().any(|((own, _), pending)| {
            let Effect::Fetch { destination, len: its, .. } = &pending.effect else { return false };
            let Effect::Fetch { destination: mine, len, .. } = &effect else { return false };
            *own == who && mine < &(destination + its) && destination < &(mine + len)
        });
        if overlaps {
            return;
        }
        if let (Effect::Send { at, bytes, notify: true }, Ok(())) = (&effect, expected) {
            let pair = self.notices.entry((who, owner)).or_default();
            pair.push_back((*at, bytes.len() as u64));
        }
        if let (Effect::Send { at, bytes, .. }, Ok(())) = (&effect, expected) {
            let within = at.saturating_sub(mine * stripe) as usize;
            if let Some(place) =
                self.stripes.get_mut(&(who, target)).and_then(|own| own.get_mut(within..within + bytes.len()))
            {
                place.copy_from_slice(bytes);
            }
        }
        let pending = Pending { target, expected, may_be_refused: false, effect };
        self.pending.insert((who, work), pending);
        let post = Post { work, node: capability.node, cbh: capability.cbh, key, at, len, operation };
        self.cluster.post(who.0, who.1, post);
    }

    fn deregister(&mut self) {
        let alive: Vec<usize> = (0..self.buffers.len()).filter(|at| self.buffers[*at].alive).collect();
        if alive.len() < 2 {
            return;
        }
        let which = alive[self.random.below(alive.len() as u64) as usize];
        let Buffer { owner, capability, .. } = &self.buffers[which];
        let (owner, cbh) = (*owner, capability.cbh);
        // Until the end of that is told, operations on it may go either way.
        self.pending.values_mut().filter(|pending| pending.target == which).for_each(|p| p.may_be_refused = true);
        self.buffers[which].alive = false;
        self.cluster.deregister(owner.0, cbh);
        while !self.collect().contains(&(owner.0, Event::Invalidated(cbh))) {
            assert!(self.cluster.step(), "a deregistration does not end");
        }
        // From now on nothing may touch it: the oracle keeps what is there, and the end compares.
        let (at, len) = (self.buffers[which].at, self.buffers[which].capability.len);
        let there = self.cluster.read(owner.0, owner.1, Address(at), len as usize);
        self.memory.get_mut(&owner).unwrap()[at as usize..(at + len) as usize].copy_from_slice(&there);
        self.export(owner);
    }

    /// Takes the events of all nodes, and checks each against the oracle.
    fn collect(&mut self) -> Vec<(NodeId, Event)> {
        let mut all = Vec::new();
        for node in 0..3 {
            if !self.who.iter().any(|who| who.0 == NodeId(node)) {
                continue;
            }
            for (_, event) in self.cluster.take_events(NodeId(node)) {
                match &event {
                    Event::Completed { process, work, outcome } => {
                        self.ended(Who(NodeId(node), *process), *work, *outcome)
                    }
                    Event::Notified { cbh, at, len } => self.notified(Who(NodeId(node), cbh.process), *at, *len),
                    _ => {}
                }
                all.push((NodeId(node), event));
            }
        }
        all
    }

    fn ended(&mut self, who: Who, work: Work, outcome: Result<(), Fault>) {
        let pending = self.pending.remove(&(who, work)).expect("an operation ended that is not under way");
        self.ended += 1;
        if pending.may_be_refused && outcome.is_err() {
            // A later buffer may have the number of an earlier one, and another key.
            assert!(matches!(outcome, Err(Fault::UnknownBuffer | Fault::WrongKey)) || outcome == pending.expected);
            self.refused += 1;
            if let Effect::Fetch { len, destination, .. } = pending.effect {
                // What came before the end of the buffer is there.
                self.note_fetched(who, destination, len);
            }
            return;
        }
        assert_eq!(outcome, pending.expected, "{who:?} {work:?}");
        let buffer = &self.buffers[pending.target];
        if outcome.is_err() {
            self.refused += 1;
            return;
        }
        match pending.effect {
            // What had come by the end of a buffer is known from then on, and the place may be another buffer's by now.
            Effect::Send { .. } if !buffer.alive => {}
            Effect::Send { at, bytes, .. } => {
                let at = (buffer.at + at) as usize;
                self.memory.get_mut(&buffer.owner).unwrap()[at..at + bytes.len()].copy_from_slice(&bytes);
            }
            Effect::Fetch { len, destination, expected } => {
                let there = self.note_fetched(who, destination, len);
                assert_eq!(there[..expected.len()], expected, "{who:?} {work:?} fetched something else");
            }
        }
    }

    fn note_fetched(&mut self, who: Who, destination: u64, len: u64) -> Vec<u8> {
        let there = self.cluster.read(who.0, who.1, Address(destination), len as usize);
        let at = destination as usize;
        self.memory.get_mut(&who).unwrap()[at..at + there.len()].copy_from_slice(&there);
        there
    }

    /// Notifications of a pair come in the order of its sends; those that were refused do not come.
    fn notified(&mut self, owner: Who, at: u64, len: u64) {
        let found = self.notices.iter_mut().filter(|((_, to), _)| *to == owner).any(|(_, waiting)| {
            match waiting.iter().position(|notice| *notice == (at, len)) {
                Some(place) => {
                    waiting.drain(..=place);
                    true
                }
                None => false,
            }
        });
        assert!(found, "a notification that nobody sent: {at} {len} to {owner:?}");
    }

    fn finish(&mut self) {
        let mut steps = 0_u64;
        while !self.pending.is_empty() || !self.cluster.is_idle() {
            assert!(self.cluster.step(), "{} operations never end", self.pending.len());
            self.collect();
            steps += 1;
            assert!(steps < 3_000_000, "no end: {} operations", self.pending.len());
        }
        for who in self.who.clone() {
            let there = self.cluster.read(who.0, who.1, Address(0), (PAGES * PAGE as u64) as usize);
            let first = there.iter().zip(&self.memory[&who]).position(|(one, two)| one != two);
            assert_eq!(first, None, "memory of {who:?} is not what the oracle says");
        }
    }
}

fn run(seed: u64, config: Config, weather: Weather, actions: u64) -> (u64, u64, Cluster) {
    let mut world = World::new(seed, config, Weather { seed, ..weather });
    for _ in 0..actions {
        match world.random.below(100) {
            0..=2 => world.deregister(),
            3..=59 => world.post(),
            _ => {
                for _ in 0..world.random.below(30) {
                    world.cluster.step();
                }
                world.collect();
            }
        }
    }
    world.finish();
    (world.ended, world.refused, world.cluster)
}

/// Small caches, so that nearly everything misses.
fn tight() -> Config {
    Config {
        vmh: CacheShape { entries: 8, line: 2, ways: 2 },
        cbh: CacheShape { entries: 2, line: 1, ways: 2 },
        queues: 2,
        queue_depth: 4,
        packets: 6,
        link: LinkConfig { window: 4, ..LinkConfig::default() },
        ..Config::default()
    }
}

fn storm() -> Weather {
    Weather { loss: 80, duplicate: 60, reorder: 80, late_ns: 400_000, ..Weather::default() }
}

#[test]
fn nothing_is_lost_or_doubled() {
    let (runs, actions) = if full() { (400, 1500) } else { (25, 400) };
    let first = seed_or(7);
    println!("SIDESTEP_SEED={first}");
    let nack = |config: Config| Config { link: LinkConfig { nack: true, ..config.link }, ..config };
    let cases = [
        ("calm, small caches", tight(), Weather::default()),
        ("storm, small caches", tight(), storm()),
        ("storm, nack", nack(tight()), storm()),
        ("storm, large caches", Config::default(), storm()),
    ];
    for (name, config, weather) in cases {
        let (mut ended, mut refused, mut misses, mut resent) = (0, 0, 0, 0);
        for seed in first..first + runs {
            let (own, no, cluster) = run(seed, config, weather, actions);
            ended += own;
            refused += no;
            let counters = cluster.counters(NodeId(0));
            misses += counters.vmh_misses.iter().sum::<u64>() + counters.cbh_misses;
            resent += counters.resent;
        }
        println!(
            "{name}, seeds {first} to {}: {ended} operations, {refused} refused, at node 0 {misses} misses, {resent} packets again",
            first + runs - 1
        );
        assert!(ended > 0 && refused > 0 && misses > 0);
    }
}

/// A host that can pin hardly anything refuses, says why, and loses nothing.
#[test]
fn pages_that_cannot_be_pinned_are_refused() {
    let weather = Weather { pin_limit: 0, ..Weather::default() };
    let mut cluster = Cluster::new(&[tight(), tight()], Marks::default(), Costs::default(), weather).unwrap();
    let (one, two) = (cluster.attach(NodeId(0), 4), cluster.attach(NodeId(1), 4));
    let export = Export { address: Address(0), len: 4096, rights: Rights::ALL, notify: false };
    let Capability { node, cbh, key, .. } = cluster.export(NodeId(1), two, export).unwrap();
    let operation = Operation::Send { source: Source::Inline(vec![1; 8]), notify: false };
    cluster.post(NodeId(0), one, Post { work: Work(1), node, cbh, key, at: 0, len: 8, operation });
    while cluster.step() && !cluster.is_idle() {}
    let ended = cluster.take_events(NodeId(0));
    let event = Event::Completed { process: one, work: Work(1), outcome: Err(Fault::NotPinned) };
    assert_eq!(ended.into_iter().map(|(_, event)| event).collect::<Vec<_>>(), [event]);
}

/// Processes come and go in the middle of everything; those that stay lose nothing, and all pages are given back.
#[test]
fn processes_that_go_leave_nothing_pinned() {
    for seed in 0..if full() { 300 } else { 30 } {
        let mut world = World::new(seed, tight(), Weather { seed, ..storm() });
        for _ in 0..200 {
            world.post();
            (0..world.random.below(6)).for_each(|_| _ = world.cluster.step());
        }
        for Who(node, process) in world.who.clone() {
            world.cluster.detach(node, process);
            (0..world.random.below(50)).for_each(|_| _ = world.cluster.step());
        }
        // Long enough for every timer; packets to processes that are gone are refused, and that is the end of them.
        world.cluster.run_until(world.cluster.now() + 1_000_000_000);
        for node in 0..2 {
            assert_eq!(world.cluster.pinned(NodeId(node)), 0, "seed {seed}");
        }
    }
}
