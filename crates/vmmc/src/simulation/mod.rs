//! A cluster of cards under virtual time: for tests, and for measuring what a card of so much memory would do.
//!
//! Everything takes its time by [`Costs`], and the [`Weather`] loses, doubles and delays packets. The same seed gives the same run.

mod costs;
mod host;

pub use costs::{Costs, Weather};

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};

use sidestep_sys::seeded::Seeded;

use crate::card::{Card, Counters, Dma, Event, Fill, Import, Miss, NotPosted, Post};
use crate::cbh::Descriptor;
use crate::config::{Config, Mode};
use crate::driver::{Driver, Export, Marks, MissEvent, MissQueue, Timing};
use crate::error::Result;
use crate::id::{Address, Cbh, Key, NodeId, PAGE, ProcessId};
use host::Host;

/// A buffer with everything that is needed to use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capability {
    /// The card.
    pub node: NodeId,
    /// The buffer.
    pub cbh: Cbh,
    /// Its key.
    pub key: Key,
    /// How long it is.
    pub len: u64,
}

/// Cards, and the wires between all of them.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Node>,
    costs: Costs,
    weather: Weather,
    random: Seeded,
    now: u64,
    happenings: BinaryHeap<Reverse<(u64, u64)>>,
    what: HashMap<u64, What>,
    next: u64,
    /// When the wire from one node to another is free.
    wires: BTreeMap<(NodeId, NodeId), u64>,
}

#[derive(Debug)]
struct Node {
    card: Card,
    driver: Driver<Host>,
    misses: MissQueue,
    timing: Timing,
    /// Whether the thread of the driver is at work, or about to be.
    thread_busy: bool,
    /// What it does after the miss that it is at: in order with misses, since it may have read what now changes.
    after: VecDeque<What>,
    /// Until when the card copies for each engine.
    dma_free: u64,
    timer: Option<u64>,
    /// Requests that found no room in a queue of the card.
    waiting: VecDeque<(ProcessId, Post)>,
    next_process: u32,
    events: Vec<(u64, Event)>,
}

#[derive(Debug)]
enum What {
    Packet {
        from: NodeId,
        to: NodeId,
        bytes: Vec<u8>,
    },
    Copied {
        node: NodeId,
        dma: Dma,
    },
    /// The driver's thread takes a miss.
    Take(NodeId),
    Resolved {
        node: NodeId,
        fill: Fill,
        event: MissEvent,
        taken: u64,
    },
    Timer(NodeId),
    Deregister(NodeId, Cbh),
    Release(NodeId, ProcessId),
    /// Nothing but the time.
    Alarm,
}

impl Cluster {
    /// A card for each of the parameters.
    pub fn new(configs: &[Config], marks: Marks, costs: Costs, weather: Weather) -> Result<Cluster> {
        let node = |config: &Config| -> Result<Node> {
            Ok(Node {
                card: Card::new(*config)?,
                driver: Driver::new(Host::new(weather.pin_limit), config.vmh.line, marks, 1 << 20)?,
                misses: MissQueue::default(),
                timing: Timing::default(),
                thread_busy: false,
                after: VecDeque::new(),
                dma_free: 0,
                timer: None,
                waiting: VecDeque::new(),
                next_process: 1,
                events: Vec::new(),
            })
        };
        Ok(Cluster {
            nodes: configs.iter().map(node).collect::<Result<_>>()?,
            costs,
            weather,
            random: Seeded::new(weather.seed),
            now: 0,
            happenings: BinaryHeap::new(),
            what: HashMap::new(),
            next: 0,
            wires: BTreeMap::new(),
        })
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// What a card has counted.
    #[must_use]
    pub fn counters(&self, node: NodeId) -> Counters {
        self.nodes[node.0 as usize].card.counters()
    }

    /// How long the misses of a node took.
    #[must_use]
    pub fn timing(&self, node: NodeId) -> Timing {
        self.nodes[node.0 as usize].timing
    }

    /// Pages of a node that are pinned.
    #[must_use]
    pub fn pinned(&self, node: NodeId) -> usize {
        self.nodes[node.0 as usize].driver.pinned()
    }

    /// Pages of a node that were unpinned for the water marks.
    #[must_use]
    pub fn unpinned(&self, node: NodeId) -> u64 {
        self.nodes[node.0 as usize].driver.unpinned()
    }

    /// A process with so many pages.
    pub fn attach(&mut self, node: NodeId, pages: u64) -> ProcessId {
        let node = &mut self.nodes[node.0 as usize];
        let process = ProcessId(node.next_process);
        node.next_process += 1;
        node.driver.attach(process, pages * PAGE as u64);
        node.driver.pinning().attach(process, pages);
        node.card.attach(process);
        process
    }

    /// A process ends, whatever it has under way.
    pub fn detach(&mut self, node: NodeId, process: ProcessId) {
        let now = self.now;
        let at = &mut self.nodes[node.0 as usize];
        at.waiting.retain(|(own, _)| *own != process);
        at.driver.detach(process);
        at.card.detach(now, process);
        self.settle(node);
    }

    /// Exports a range.
    pub fn export(&mut self, node: NodeId, process: ProcessId, export: Export) -> Result<Capability> {
        let key = Key(u128::from(self.random.next_u64()) << 64 | u128::from(self.random.next_u64()));
        let at = &mut self.nodes[node.0 as usize];
        let (cbh, descriptor) = at.driver.register(process, export, key)?;
        at.enter(cbh, descriptor)?;
        Ok(Capability { node, cbh, key, len: export.len })
    }

    /// The baseline: makes a range of a process usable as source and destination, and a buffer of another card usable.
    pub fn prepare(&mut self, node: NodeId, process: ProcessId, len: u64, buffers: &[Capability]) -> Result<()> {
        let at = &mut self.nodes[node.0 as usize];
        at.pin(process, Address(0), len)?;
        for Capability { node, cbh, key, len } in buffers.iter().copied() {
            at.card.enter_import(process, Import { node, cbh, len, key })?;
        }
        Ok(())
    }

    /// Ends an export, as soon as the driver's thread comes to it; [`Event::Invalidated`] follows.
    pub fn deregister(&mut self, node: NodeId, cbh: Cbh) {
        self.by_thread(node, What::Deregister(node, cbh));
    }

    /// Takes a request; it waits for a queue if there is none.
    pub fn post(&mut self, node: NodeId, process: ProcessId, post: Post) {
        self.nodes[node.0 as usize].waiting.push_back((process, post));
        self.settle(node);
    }

    /// Writes into the memory of a process.
    pub fn write(&mut self, node: NodeId, process: ProcessId, address: Address, bytes: &[u8]) {
        self.nodes[node.0 as usize].driver.pinning().write(process, address, bytes);
    }

    /// Reads the memory of a process.
    pub fn read(&mut self, node: NodeId, process: ProcessId, address: Address, len: usize) -> Vec<u8> {
        self.nodes[node.0 as usize].driver.pinning().read(process, address, len)
    }

    /// What the card of a node has told since the last call, and when.
    pub fn take_events(&mut self, node: NodeId) -> Vec<(u64, Event)> {
        std::mem::take(&mut self.nodes[node.0 as usize].events)
    }

    /// Lets the next thing happen. `false` if there is none.
    pub fn step(&mut self) -> bool {
        let Some(Reverse((at, number))) = self.happenings.pop() else { return false };
        self.now = at;
        if let Some(what) = self.what.remove(&number) {
            self.happens(at, what);
        }
        true
    }

    fn happens(&mut self, at: u64, what: What) {
        match what {
            What::Packet { from, to, bytes } => {
                self.nodes[to.0 as usize].card.handle_packet(at, from, &bytes);
                self.settle(to);
            }
            What::Copied { node, dma } => {
                let Dma { engine, frame, offset, job } = dma;
                let own = &mut self.nodes[node.0 as usize];
                let bytes = own.driver.pinning().copy(frame, offset, job);
                own.card.handle_dma(at, engine, bytes);
                self.settle(node);
            }
            What::Take(node) => self.take_miss(node),
            What::Resolved { node, fill, event, taken } => {
                let own = &mut self.nodes[node.0 as usize];
                own.timing.note(&event, taken, at);
                own.card.handle_fill(at, fill);
                own.thread_busy = false;
                while let Some(what) = self.nodes[node.0 as usize].after.pop_front() {
                    self.happens(at, what);
                }
                let own = &mut self.nodes[node.0 as usize];
                if !own.misses.is_empty() && !own.thread_busy {
                    self.take_miss(node);
                }
                self.settle(node);
            }
            What::Timer(node) => {
                let own = &mut self.nodes[node.0 as usize];
                if own.timer.is_some_and(|due| due <= at) {
                    own.timer = None;
                    own.card.handle_timeout(at);
                }
                self.settle(node);
            }
            What::Deregister(node, cbh) => {
                let own = &mut self.nodes[node.0 as usize];
                // It may have gone with its process.
                let _ = own.driver.deregister(cbh);
                own.card.invalidate(at, cbh);
                self.settle(node);
            }
            What::Release(node, process) => {
                let own = &mut self.nodes[node.0 as usize];
                own.driver.release(process);
                own.driver.pinning().detach(process);
                own.events.push((at, Event::Detached(process)));
            }
            What::Alarm => {}
        }
    }

    /// Does something in the driver's thread.
    fn by_thread(&mut self, node: NodeId, what: What) {
        let own = &mut self.nodes[node.0 as usize];
        match own.thread_busy {
            true => own.after.push_back(what),
            false => self.happen(self.now, what),
        }
    }

    /// Lets time pass until this moment, and everything before it happen.
    pub fn run_until(&mut self, time: u64) {
        self.happen(time, What::Alarm);
        while self.now < time && self.step() {}
    }

    /// Lets the next thing happen, or time pass until this moment if nothing happens before.
    pub fn step_until(&mut self, time: u64) {
        if self.happenings.peek().is_none_or(|Reverse((at, _))| *at > time) {
            self.now = self.now.max(time);
        } else {
            self.step();
        }
    }

    /// Whether nothing is under way on any card.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.nodes.iter().all(|node| node.card.is_idle() && node.waiting.is_empty())
    }

    fn happen(&mut self, at: u64, what: What) {
        self.happenings.push(Reverse((at.max(self.now), self.next)));
        self.what.insert(self.next, what);
        self.next += 1;
    }

    /// Carries out what a card wants.
    fn settle(&mut self, node: NodeId) {
        let now = self.now;
        loop {
            let own = &mut self.nodes[node.0 as usize];
            own.push_waiting(now);
            if let Some(dma) = own.card.poll_dma() {
                let done = own.dma_free.max(now) + self.costs.copy(&dma);
                own.dma_free = done;
                self.happen(done, What::Copied { node, dma });
            } else if let Some(miss) = own.card.poll_miss() {
                self.interrupt(node, miss);
            } else if let Some((to, bytes)) = own.card.poll_transmit(now) {
                self.transmit(node, to, bytes);
            } else if let Some(event) = own.card.poll_event() {
                self.tell(node, event);
            } else {
                break;
            }
        }
        let own = &mut self.nodes[node.0 as usize];
        if let Some(due) = own.card.poll_timeout().filter(|due| own.timer.is_none_or(|timer| *due < timer)) {
            own.timer = Some(due);
            self.happen(due, What::Timer(node));
        }
    }

    fn tell(&mut self, node: NodeId, event: Event) {
        let (now, own) = (self.now, &mut self.nodes[node.0 as usize]);
        match event {
            Event::Detached(process) => self.by_thread(node, What::Release(node, process)),
            event => {
                if let Event::Notified { cbh, .. } = event {
                    own.card.notice_taken(cbh.process);
                }
                own.events.push((now, event));
            }
        }
    }

    fn interrupt(&mut self, node: NodeId, miss: Miss) {
        let (now, own) = (self.now, &mut self.nodes[node.0 as usize]);
        own.misses.interrupt(now, miss);
        if !std::mem::replace(&mut own.thread_busy, true) {
            self.happen(now + self.costs.interrupt_ns, What::Take(node));
        }
    }

    fn take_miss(&mut self, node: NodeId) {
        let (taken, own) = (self.now, &mut self.nodes[node.0 as usize]);
        let Some(event) = own.misses.take() else {
            own.thread_busy = false;
            return;
        };
        own.thread_busy = true;
        let before = own.driver.pinned() as u64 + own.driver.unpinned();
        let fill = own.driver.resolve(event.miss);
        let pinned = (own.driver.pinned() as u64 + own.driver.unpinned()).saturating_sub(before);
        let resolved = taken + self.costs.resolve(pinned);
        self.happen(resolved, What::Resolved { node, fill, event, taken });
    }

    fn transmit(&mut self, from: NodeId, to: NodeId, bytes: Vec<u8>) {
        let free = self.wires.get(&(from, to)).copied().unwrap_or(0).max(self.now);
        let sent = free + self.costs.wire(bytes.len());
        self.wires.insert((from, to), sent);
        if to.0 as usize >= self.nodes.len() || self.random.chance(self.weather.loss) {
            return;
        }
        let late = |random: &mut Seeded, weather: &Weather| match random.chance(weather.reorder) {
            true => random.below(weather.late_ns),
            false => 0,
        };
        let copies = 1 + usize::from(self.random.chance(self.weather.duplicate));
        for _ in 0..copies {
            let arrives = sent + self.costs.wire_ns + late(&mut self.random, &self.weather);
            self.happen(arrives, What::Packet { from, to, bytes: bytes.clone() });
        }
    }
}

impl Node {
    /// Hands requests to the card, in order for each process.
    fn push_waiting(&mut self, now: u64) {
        let mut full = Vec::new();
        for _ in 0..self.waiting.len() {
            let Some((process, post)) = self.waiting.pop_front() else { return };
            if full.contains(&process) {
                self.waiting.push_back((process, post));
                continue;
            }
            let mut posted = self.card.post(now, process, post.clone());
            if posted == Err(NotPosted::Unmapped) && self.card.map_queue(process) {
                posted = self.card.post(now, process, post.clone());
            }
            match posted {
                Err(NotPosted::Unmapped | NotPosted::Full) => {
                    full.push(process);
                    self.waiting.push_back((process, post));
                }
                Err(NotPosted::NoProcess) | Ok(()) => {}
            }
        }
    }

    fn enter(&mut self, cbh: Cbh, descriptor: Descriptor) -> Result<()> {
        self.card.enter_buffer(cbh, descriptor)?;
        self.pin(cbh.process, descriptor.address, descriptor.len)
    }

    /// The baseline pins at once.
    fn pin(&mut self, process: ProcessId, address: Address, len: u64) -> Result<()> {
        if self.card.config().mode == Mode::Static {
            for (page, frame) in self.driver.pin_range(process, address, len)? {
                self.card.enter_page(process, page, frame)?;
            }
        }
        Ok(())
    }
}
