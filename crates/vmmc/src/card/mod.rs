//! The card: what a network card would do, without I/O and without a clock.

mod baseline;
mod counters;
mod dma;
mod event;
mod imports;
mod lookup;
mod miss;
mod post;
mod receive;
mod send;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use crate::cbh::{BufferTable, CbhCache};
use crate::config::{Config, Mode};
use crate::data_link::DataLink;
use crate::error::{Fault, Result};
use crate::id::{Address, Cbh, NodeId, ProcessId, Work};
use crate::packet::Body;
use crate::vmh::{Engine, Translations};

pub use counters::{Counters, Path};
pub use dma::{Dma, Job};
pub use event::Event;
pub use imports::Import;
pub use miss::{Fill, Miss};
pub use post::{INLINE, NotPosted, Operation, Post, Source};

use imports::Imports;
use lookup::Buffers;
use post::{PostQueues, Queued};
use receive::Receiving;
use send::Sending;

/// One network card, without I/O.
///
/// `now` is the time in nanoseconds since some moment that the driver chooses and keeps.
///
/// **Input from processes**: [`post`](Self::post), after [`attach`](Self::attach); a process that has no queue on the card gets
/// one by [`map_queue`](Self::map_queue). [`notice_taken`](Self::notice_taken) makes room for another notification.
///
/// **Input from the wire and the clock**: [`handle_packet`](Self::handle_packet), [`handle_timeout`](Self::handle_timeout),
/// [`reset`](Self::reset) when the way to a node has ended.
///
/// **Input from the driver**: [`handle_fill`](Self::handle_fill), the answer to a miss; [`handle_dma`](Self::handle_dma), when the
/// copying is done; [`invalidate`](Self::invalidate) and [`detach`](Self::detach), each of which ends in an event.
///
/// **Output to carry out**, after every input, until each returns `None`: [`poll_dma`](Self::poll_dma), bytes to copy into or out
/// of frames; [`poll_miss`](Self::poll_miss), interrupts for the driver; [`poll_transmit`](Self::poll_transmit), packets;
/// [`poll_event`](Self::poll_event); and [`poll_timeout`](Self::poll_timeout), the time of the next `handle_timeout`.
#[derive(Debug)]
pub struct Card {
    config: Config,
    vmh: Translations,
    cbh: Buffers,
    imports: Imports,
    posts: PostQueues,
    links: BTreeMap<NodeId, Line>,
    /// Nodes that are gone; their numbers are not used again.
    gone: BTreeSet<NodeId>,
    open: HashMap<u64, Open>,
    sending: Option<Sending>,
    receiving: Receiving,
    leaving: Leaving,
    /// Notifications of each process that nobody has taken.
    notices: HashMap<ProcessId, usize>,
    output: Output,
    next_serial: u64,
    counters: Counters,
}

/// A node as this card knows it.
#[derive(Debug)]
struct Line {
    link: DataLink,
    /// Packets there that wait for an answer of the other card.
    awaiting: usize,
    /// A packet from there was dropped for a miss.
    dropped: bool,
}

/// An operation whose end is not known.
#[derive(Debug)]
struct Open {
    process: ProcessId,
    work: Work,
    node: NodeId,
    len: u64,
    /// Where fetched bytes go; none is a send.
    destination: Option<Address>,
    /// Answers that are missing.
    answers: u64,
}

#[derive(Debug, Default)]
struct Leaving {
    processes: Vec<ProcessId>,
    buffers: Vec<Cbh>,
}

#[derive(Debug, Default)]
struct Output {
    dmas: VecDeque<Dma>,
    misses: VecDeque<Miss>,
    events: VecDeque<Event>,
}

/// Notifications of a process that may wait to be taken.
pub const MAX_NOTICES: usize = 64;

impl Card {
    /// A card as the parameters say.
    pub fn new(config: Config) -> Result<Card> {
        config.check()?;
        Ok(Card {
            config,
            vmh: Translations::new(&config),
            cbh: match config.mode {
                Mode::Cached => Buffers::Cache(CbhCache::new(config.cbh)),
                Mode::Static => Buffers::Fixed(BufferTable::new(crate::budget::STATIC_BUFFERS)),
            },
            imports: Imports::default(),
            posts: PostQueues::new(config.queues, config.queue_depth),
            links: BTreeMap::new(),
            gone: BTreeSet::new(),
            open: HashMap::new(),
            sending: None,
            receiving: Receiving::default(),
            leaving: Leaving::default(),
            notices: HashMap::new(),
            output: Output::default(),
            next_serial: 1,
            counters: Counters::default(),
        })
    }

    /// Its parameters.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What it has counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let sum = |of: fn(&DataLink) -> u64| self.links.values().map(|line| of(&line.link)).sum::<u64>();
        let resent = self.counters.resent + sum(DataLink::resent);
        let went_back = self.counters.went_back + sum(DataLink::went_back);
        Counters { resent, went_back, ..self.counters }
    }

    /// A process comes.
    pub fn attach(&mut self, process: ProcessId) {
        self.posts.attach(process);
    }

    /// Gives a process a queue on the card, if one is free or empty. `false`: none is, try again after something was sent.
    pub fn map_queue(&mut self, process: ProcessId) -> bool {
        let mapped = self.posts.map(process);
        self.counters.queues_mapped += u64::from(mapped);
        mapped
    }

    /// Takes a request.
    pub fn post(&mut self, now: u64, process: ProcessId, post: Post) -> Result<(), NotPosted> {
        self.posts.push(process, Queued::new(post))?;
        self.advance(now);
        Ok(())
    }

    /// A process goes. What it has under way is forgotten; [`Event::Detached`] follows when nothing of it is in use.
    pub fn detach(&mut self, now: u64, process: ProcessId) {
        self.posts.detach(process);
        self.imports.forget(process);
        self.open.retain(|_, open| open.process != process);
        self.notices.remove(&process);
        match &mut self.cbh {
            Buffers::Cache(cache) => cache.purge(process),
            Buffers::Fixed(table) => table.purge(process),
        }
        self.leaving.processes.push(process);
        self.advance(now);
    }

    /// A buffer has been deregistered. [`Event::Invalidated`] follows when nothing of it is in use.
    pub fn invalidate(&mut self, now: u64, cbh: Cbh) {
        match &mut self.cbh {
            Buffers::Cache(cache) => cache.invalidate(cbh),
            Buffers::Fixed(table) => drop(table.remove(cbh)),
        }
        self.leaving.buffers.push(cbh);
        self.advance(now);
    }

    /// A notification was handed to its process.
    pub fn notice_taken(&mut self, process: ProcessId) {
        if let Some(count) = self.notices.get_mut(&process) {
            *count = count.saturating_sub(1);
        }
    }

    /// A packet has come from a node.
    pub fn handle_packet(&mut self, now: u64, node: NodeId, bytes: &[u8]) {
        if !self.gone.contains(&node) {
            self.receiving.arrive(node, bytes, self.config.packets, &mut self.counters);
            self.advance(now);
        }
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) has come.
    pub fn handle_timeout(&mut self, now: u64) {
        self.links.values_mut().for_each(|line| line.link.handle_timeout(now));
        if self.posts.retry_at().is_some_and(|at| at <= now) {
            self.posts.wake();
        }
        self.advance(now);
    }

    /// The driver has resolved a miss.
    pub fn handle_fill(&mut self, now: u64, fill: Fill) {
        match fill {
            Fill::Vmh { slot, tag, entries } => {
                if let Translations::Cache(cache) = &mut self.vmh {
                    cache.fill(slot, tag, entries);
                }
            }
            Fill::Cbh { slot, cbh, descriptor } => {
                if let Buffers::Cache(cache) = &mut self.cbh {
                    cache.fill(slot, cbh, descriptor);
                }
            }
        }
        self.posts.wake();
        for line in self.links.values_mut().filter(|line| line.dropped) {
            line.dropped = false;
            line.link.want_again();
        }
        self.advance(now);
    }

    /// Bytes were copied; with those that were read.
    pub fn handle_dma(&mut self, now: u64, engine: Engine, bytes: Option<Vec<u8>>) {
        self.vmh.unlock(engine);
        match engine {
            Engine::Send => self.sent_piece(bytes.unwrap_or_default()),
            Engine::Receive => self.received_piece(bytes),
        }
        self.advance(now);
    }

    /// The way to a node is gone, or the card there is another: everything under way has an unknown end, and nothing goes there
    /// under this number any more.
    pub fn reset(&mut self, now: u64, node: NodeId) {
        self.gone.insert(node);
        if let Some(line) = self.links.remove(&node) {
            self.counters.resent += line.link.resent();
            self.counters.went_back += line.link.went_back();
        }
        self.receiving.forget(node);
        let gone: Vec<u64> =
            self.open.iter().filter(|(_, open)| open.node == node).map(|(serial, _)| *serial).collect();
        gone.into_iter().for_each(|serial| self.complete(serial, Err(Fault::Unreachable)));
        self.posts.wake();
        self.advance(now);
    }

    /// Sends bytes to whoever stands above another card.
    pub fn send_message(&mut self, node: NodeId, bytes: Vec<u8>) {
        self.line(node).link.send(&Body::Message(bytes));
    }

    /// Packets to a node that are not acknowledged.
    #[must_use]
    pub fn unacknowledged(&self, node: NodeId) -> usize {
        self.links.get(&node).map_or(0, |line| line.link.kept())
    }

    /// Operations whose end is not known.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.open.is_empty() && self.posts.is_empty() && self.links.values().all(|line| line.link.kept() == 0)
    }

    /// The next bytes to copy.
    pub fn poll_dma(&mut self) -> Option<Dma> {
        self.output.dmas.pop_front()
    }

    /// The next interrupt.
    pub fn poll_miss(&mut self) -> Option<Miss> {
        self.output.misses.pop_front()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.output.events.pop_front()
    }

    /// The next packet, and where to.
    pub fn poll_transmit(&mut self, now: u64) -> Option<(NodeId, Vec<u8>)> {
        let (node, bytes) =
            self.links.iter_mut().find_map(|(node, line)| Some((*node, line.link.poll_transmit(now)?)))?;
        self.counters.packets_sent += 1;
        Some((node, bytes))
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), if at all.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        let links = self.links.values().filter_map(|line| line.link.poll_timeout());
        links.chain(self.posts.retry_at()).min()
    }

    /// Does what can be done.
    fn advance(&mut self, now: u64) {
        while self.advance_receiving(now) || self.advance_sending(now) {}
        self.leave();
    }

    /// Tells of buffers and processes that are no longer in use.
    fn leave(&mut self) {
        let used = self.receiving.buffer();
        let (events, leaving) = (&mut self.output.events, &mut self.leaving);
        leaving.buffers.retain(|cbh| {
            let stays = used == Some(*cbh);
            if !stays {
                events.push_back(Event::Invalidated(*cbh));
            }
            stays
        });
        let (sending, receiving) = (self.sending.as_ref().map(Sending::process), self.receiving.process());
        let vmh = &mut self.vmh;
        let mut gone = false;
        leaving.processes.retain(|process| {
            let stays = sending == Some(*process) || receiving == Some(*process) || !vmh.purge(*process);
            if !stays {
                events.push_back(Event::Detached(*process));
                gone = true;
            }
            stays
        });
        if gone {
            self.posts.wake();
        }
    }

    fn line(&mut self, node: NodeId) -> &mut Line {
        let config = self.config.link;
        self.links.entry(node).or_insert_with(|| Line { link: DataLink::new(config), awaiting: 0, dropped: false })
    }

    /// Ends an operation, if it has not ended.
    fn complete(&mut self, serial: u64, outcome: Result<(), Fault>) {
        if let Some(Open { process, work, .. }) = self.open.remove(&serial) {
            self.counters.completed += 1;
            self.output.events.push_back(Event::Completed { process, work, outcome });
        }
    }
}

#[cfg(test)]
mod tests;
