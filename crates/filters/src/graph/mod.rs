//! A group as it is described: filters, streams between them, and where their copies run.

mod check;
mod file;
mod key;
mod known;
mod picture;
mod problem;

pub use check::check;
pub use file::parse;
pub use key::Key;
pub use picture::draw;
pub use problem::Problem;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::filter::Settings;
use crate::schedule::Schedule;

/// A group of filters. Made by [`parse`] from a file, or by the methods here.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Graph {
    /// What it is called.
    pub name: String,
    /// How copies in different processes of one host are joined.
    pub transport: Transport,
    /// The filters.
    pub filters: Vec<FilterSpec>,
    /// The streams between them.
    pub streams: Vec<StreamSpec>,
    /// Other hosts.
    pub hosts: Vec<HostSpec>,
    /// Units of work that are under way at the same time.
    pub pipelined: usize,
    /// What becomes of a unit of work when a copy dies that is working on it.
    pub on_death: OnDeath,
    /// A process that says nothing for so long is given up, as one that died.
    pub patience: Duration,
    /// The units of work that the description asks for. Workers get them one by one.
    #[serde(skip)]
    pub units: Vec<UnitSpec>,
}

/// What carries streams between processes. Copies in one process are always joined in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Channels of the fabric: shared memory on one host, iWARP between hosts.
    #[default]
    Channel,
    /// Plain TCP sockets, which `sidestep run` can accelerate.
    Tcp,
    /// VIs.
    Vi,
}

/// What becomes of a unit of work when a copy dies that is working on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnDeath {
    /// It fails, with the name of the copy.
    #[default]
    Fail,
    /// It is done again, a few times at most.
    Repeat,
}

/// A filter of a group.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FilterSpec {
    /// Its name in the group.
    pub name: String,
    /// Which kind it is.
    pub kind: String,
    /// How many copies share its streams.
    pub copies: usize,
    /// Where they run.
    pub place: Place,
    /// The host, if it is not this one.
    pub host: Option<String>,
    /// What its kind is told.
    pub settings: Settings,
    /// The line of the description.
    pub line: usize,
    /// The lines of its settings.
    #[serde(skip)]
    pub setting_lines: BTreeMap<String, usize>,
}

/// A unit of work that a description asks for.
#[derive(Debug, Clone, Default)]
pub struct UnitSpec {
    /// What it asks of the filters.
    pub settings: Settings,
    /// The lines of its settings.
    pub setting_lines: BTreeMap<String, usize>,
}

/// Where the copies of a filter run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// Threads of the process that runs the group.
    #[default]
    Thread,
    /// Each in a process of its own.
    Process,
    /// All of them, and those of other filters that say the same, in the process of this name.
    Shared(String),
}

/// A stream of a group.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StreamSpec {
    /// The filter and the output that it comes from.
    pub from: (String, String),
    /// The filter and the input that it goes to.
    pub to: (String, String),
    /// Bytes of a buffer.
    pub buffer: usize,
    /// Buffers that may wait at a copy.
    pub queue: usize,
    /// How they are dealt to copies.
    pub schedule: Schedule,
    /// Where the key of a buffer lies in it, if the filter does not say the key.
    pub key: Option<Key>,
    /// The consumer gets them in the order in which a filter with one copy gave the first.
    pub ordered: bool,
    /// The line of the description.
    pub line: usize,
}

/// Another host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSpec {
    /// Its name in the description.
    pub name: String,
    /// The address that its streams are reached at. A number, so that nothing waits for a resolver.
    pub address: IpAddr,
    /// What starts a worker there, with its standard input and output here: `["ssh", "b", "sidestep", "pipe-worker"]`. This
    /// host, which is named `here`, needs none.
    pub command: Vec<String>,
    /// The line of the description.
    pub line: usize,
}

/// A copy of a filter, by the places in the description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CopyId {
    /// Which filter.
    pub filter: usize,
    /// Which copy of it.
    pub copy: usize,
}

/// The process that runs the group.
pub(crate) const MAIN: &str = "main";
/// The name of this host in descriptions with others.
pub(crate) const HERE: &str = "here";

impl Graph {
    /// A group without filters.
    pub fn new(name: &str) -> Graph {
        let (transport, filters, streams, hosts, on_death, units) = Default::default();
        Graph {
            name: name.into(),
            transport,
            filters,
            streams,
            hosts,
            pipelined: 2,
            on_death,
            patience: PATIENCE,
            units,
        }
    }

    /// Adds a filter.
    pub fn filter(mut self, name: &str, kind: &str, copies: usize, place: Place) -> Graph {
        let (settings, setting_lines) = Default::default();
        let (name, kind) = (name.into(), kind.into());
        self.filters.push(FilterSpec { name, kind, copies, place, host: None, settings, line: 0, setting_lines });
        self
    }

    /// A setting of the filter that was added last.
    pub fn set(mut self, name: &str, value: impl std::fmt::Display) -> Graph {
        if let Some(filter) = self.filters.last_mut() {
            filter.settings = std::mem::take(&mut filter.settings).with(name, value);
        }
        self
    }

    /// Puts the filter that was added last on another host.
    pub fn on_host(mut self, host: &str) -> Graph {
        if let Some(filter) = self.filters.last_mut() {
            filter.host = Some(host.into());
        }
        self
    }

    /// Adds a stream, `filter.port` to `filter.port`, with buffers of so many bytes.
    pub fn stream(mut self, from: &str, to: &str, buffer: usize) -> Graph {
        let split = |text: &str| match text.split_once('.') {
            Some((filter, port)) => (filter.to_owned(), port.to_owned()),
            None => (text.to_owned(), String::new()),
        };
        let ((from, to), schedule) = ((split(from), split(to)), Schedule::default());
        let spec = StreamSpec { from, to, buffer, queue: QUEUE, schedule, key: None, ordered: false, line: 0 };
        self.streams.push(spec);
        self
    }

    /// How the stream that was added last is dealt.
    pub fn dealt(mut self, schedule: Schedule) -> Graph {
        if let Some(stream) = self.streams.last_mut() {
            stream.schedule = schedule;
        }
        self
    }

    /// The stream that was added last is dealt by key, and this is where the key lies.
    pub fn keyed(mut self, key: Key) -> Graph {
        if let Some(stream) = self.streams.last_mut() {
            (stream.schedule, stream.key) = (Schedule::Keyed, Some(key));
        }
        self
    }

    /// How many buffers of the stream that was added last may wait at a copy.
    pub fn queued(mut self, queue: usize) -> Graph {
        if let Some(stream) = self.streams.last_mut() {
            stream.queue = queue;
        }
        self
    }

    /// The stream that was added last is ordered.
    pub fn in_order(mut self) -> Graph {
        if let Some(stream) = self.streams.last_mut() {
            stream.ordered = true;
        }
        self
    }

    /// Joins processes by this.
    pub fn over(mut self, transport: Transport) -> Graph {
        self.transport = transport;
        self
    }

    /// Where a filter stands.
    pub fn filter_index(&self, name: &str) -> Option<usize> {
        self.filters.iter().position(|filter| filter.name == name)
    }

    /// Every copy.
    pub fn copies(&self) -> impl Iterator<Item = CopyId> {
        let filters = self.filters.iter().enumerate();
        filters.flat_map(|(filter, spec)| (0..spec.copies).map(move |copy| CopyId { filter, copy }))
    }

    /// Whether there is such a copy.
    pub(crate) fn has(&self, id: CopyId) -> bool {
        self.filters.get(id.filter).is_some_and(|filter| id.copy < filter.copies)
    }

    /// What a copy is called: `clip` if there is one, else `clip[2]`.
    pub fn copy_name(&self, id: CopyId) -> String {
        match self.filters.get(id.filter) {
            Some(filter) if filter.copies == 1 => filter.name.clone(),
            Some(filter) => format!("{}[{}]", filter.name, id.copy),
            None => format!("filter {} copy {}", id.filter, id.copy),
        }
    }

    /// The process that a copy runs in.
    pub fn process_of(&self, id: CopyId) -> String {
        let filter = &self.filters[id.filter];
        let at = filter.host.as_ref().map_or_else(String::new, |host| format!("@{host}"));
        match &filter.place {
            Place::Thread if filter.host.is_none() => MAIN.into(),
            Place::Thread => format!("worker{at}"),
            Place::Process => format!("{}.{}{at}", filter.name, id.copy),
            Place::Shared(name) => format!("{name}{at}"),
        }
    }

    /// All processes but this one, and their hosts.
    pub(crate) fn processes(&self) -> BTreeSet<(String, Option<String>)> {
        let all = self.copies().map(|id| (self.process_of(id), self.filters[id.filter].host.clone()));
        all.filter(|(process, _)| process != MAIN).collect()
    }

    /// Streams whose buffers keep the numbers of what they were made from: ordered ones of filters with copies.
    pub(crate) fn tagged(&self) -> Vec<bool> {
        let copies = |name: &str| self.filter_index(name).map_or(0, |index| self.filters[index].copies);
        self.streams.iter().map(|stream| stream.ordered && copies(&stream.from.0) > 1).collect()
    }
}

/// Buffers that wait at a copy, if nothing else is said.
pub const QUEUE: usize = 4;
/// Bytes of a buffer, if nothing else is said.
pub const BUFFER: usize = 64 << 10;
/// How long a process may say nothing, if nothing else is said: as long as a link between hosts waits for a peer.
pub const PATIENCE: Duration = Duration::from_secs(20);
