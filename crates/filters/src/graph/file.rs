//! Descriptions as files: TOML, with the line of everything that may be wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_spanned::Spanned;

use super::{
    BUFFER, FilterSpec, Graph, HostSpec, Key, OnDeath, Place, Problem, QUEUE, StreamSpec, Transport, UnitSpec,
};
use crate::filter::Settings;
use crate::schedule::Schedule;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    #[serde(default)]
    name: String,
    #[serde(default)]
    transport: Transport,
    #[serde(default)]
    filter: Vec<Spanned<Filter>>,
    #[serde(default)]
    stream: Vec<Spanned<Stream>>,
    #[serde(default)]
    host: Vec<Spanned<Host>>,
    pipelined: Option<Spanned<usize>>,
    #[serde(default, rename = "on-death")]
    on_death: OnDeath,
    patience: Option<Spanned<u64>>,
    #[serde(default)]
    unit: Vec<Named>,
    units: Option<Spanned<usize>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Filter {
    name: Spanned<String>,
    kind: Spanned<String>,
    copies: Option<Spanned<usize>>,
    place: Option<Spanned<String>>,
    host: Option<String>,
    #[serde(default)]
    settings: Named,
}

/// Settings, each with its place.
#[derive(Deserialize, Default)]
#[serde(transparent)]
struct Named(BTreeMap<String, Spanned<Value>>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Host {
    name: String,
    address: Spanned<String>,
    #[serde(default)]
    command: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stream {
    from: Spanned<String>,
    to: Spanned<String>,
    buffer: Option<usize>,
    queue: Option<usize>,
    #[serde(default)]
    schedule: Schedule,
    key: Option<Spanned<KeyTable>>,
    #[serde(default)]
    ordered: bool,
}

/// One of two forms: a field of lines, or bytes of buffers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyTable {
    field: Option<usize>,
    separator: Option<String>,
    at: Option<usize>,
    bytes: Option<usize>,
}

/// A value that a filter is told, as text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Value {
    Text(String),
    Whole(i64),
    Number(f64),
    Flag(bool),
    List(Vec<String>),
}

/// Units under way at once, at most.
const PIPELINED: usize = 64;
/// And units in all.
const UNITS: usize = 1_000_000;
/// Seconds that a process may be silent, at most: a day.
const SILENCE: u64 = 86_400;

/// Reads a description. What is wrong with its form is said with the line; [`check`](super::check()) looks at the rest.
pub fn parse(text: &str) -> Result<Graph, Vec<Problem>> {
    let line = |at: usize| 1 + text[..at.min(text.len())].bytes().filter(|byte| *byte == b'\n').count();
    let description: Description = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| line(span.start));
        vec![Problem::new(at, error.message(), "docs/filters.md shows the form of a description")]
    })?;
    let mut problems = Vec::new();
    let mut graph = Graph::new(&description.name);
    graph.transport = description.transport;
    graph.on_death = description.on_death;
    for host in description.host {
        let at = line(host.span().start);
        graph.hosts.extend(host.into_inner().spec(at, &line, &mut problems));
    }
    if let Some(patience) = description.patience {
        graph.patience = Duration::from_secs(*patience.get_ref());
        if !(1..=SILENCE).contains(patience.get_ref()) {
            let remedy = "patience is a number of seconds from 1 to 86400";
            problems.push(Problem::new(line(patience.span().start), "nobody can wait for so long", remedy));
        }
    }
    if let Some(pipelined) = description.pipelined {
        graph.pipelined = *pipelined.get_ref();
        if !(1..=PIPELINED).contains(&graph.pipelined) {
            let at = line(pipelined.span().start);
            problems.push(Problem::new(at, "so many units at once cannot be", "pipelined is a number from 1 to 64"));
        }
    }
    for filter in description.filter {
        let at = line(filter.span().start);
        graph.filters.push(filter.into_inner().spec(at, &line, &mut problems));
    }
    for stream in description.stream {
        let at = line(stream.span().start);
        if let Some(spec) = stream.into_inner().spec(at, &line, &mut problems) {
            graph.streams.push(spec);
        }
    }
    graph.units = description.unit.into_iter().map(|unit| unit.unit(&line)).collect();
    if let Some(units) = description.units {
        let (count, at) = (*units.get_ref(), line(units.span().start));
        let remedy = "units is a number from 1 to 1000000";
        if !graph.units.is_empty() {
            let remedy = "leave `units` out, or the tables";
            problems.push(Problem::new(at, "`units` is there besides [[unit]] tables", remedy));
        } else if count == 0 {
            problems.push(Problem::new(at, "without a unit of work nothing is done", remedy));
        } else if count > UNITS {
            problems.push(Problem::new(at, "there are too many units of work", remedy));
        } else {
            graph.units = vec![UnitSpec::default(); count];
        }
    }
    if graph.units.is_empty() {
        graph.units.push(UnitSpec::default());
    }
    if problems.is_empty() { Ok(graph) } else { Err(problems) }
}

impl Filter {
    fn spec(self, at: usize, line: &dyn Fn(usize) -> usize, problems: &mut Vec<Problem>) -> FilterSpec {
        let place = match self.place.as_ref().map(|place| place.get_ref().as_str()) {
            None | Some("thread") => Place::Thread,
            Some("process") => Place::Process,
            Some(text) => match text.strip_prefix("process:") {
                Some(name) => Place::Shared(name.into()),
                None => {
                    let at = self.place.as_ref().map_or(at, |place| line(place.span().start));
                    let remedy = "place is \"thread\", \"process\" (each copy in one of its own) or \"process:NAME\"";
                    problems.push(Problem::new(at, format!("`{text}` is no place"), remedy));
                    Place::Thread
                }
            },
        };
        let (settings, setting_lines) = self.settings.apart(line);
        FilterSpec {
            line: line(self.name.span().start),
            name: self.name.into_inner(),
            kind: self.kind.into_inner(),
            copies: self.copies.map_or(1, Spanned::into_inner),
            place,
            host: self.host,
            settings,
            setting_lines,
        }
    }
}

impl Stream {
    fn spec(self, at: usize, line: &dyn Fn(usize) -> usize, problems: &mut Vec<Problem>) -> Option<StreamSpec> {
        let mut end = |end: &Spanned<String>| match end.get_ref().split_once('.') {
            Some((filter, port)) => Some((filter.to_owned(), port.to_owned())),
            None => {
                let what = format!("`{}` is no port", end.get_ref());
                let remedy = "a stream goes from \"FILTER.OUTPUT\" to \"FILTER.INPUT\"";
                problems.push(Problem::new(line(end.span().start), what, remedy));
                None
            }
        };
        let (from, to) = (end(&self.from), end(&self.to));
        let key = self.key.as_ref().and_then(|table| {
            let key = table.get_ref().key();
            if key.is_none() {
                let at = line(table.span().start);
                let remedy = "write key = { field = 1 }, { field = 1, separator = \",\" } or { at = 0, bytes = 8 }";
                problems.push(Problem::new(at, "this is no key", remedy));
            }
            key
        });
        let line = line(self.from.span().start).max(at);
        let (buffer, queue) = (self.buffer.unwrap_or(BUFFER), self.queue.unwrap_or(QUEUE));
        let Stream { schedule, ordered, .. } = self;
        Some(StreamSpec { from: from?, to: to?, buffer, queue, schedule, key, ordered, line })
    }
}

impl KeyTable {
    fn key(&self) -> Option<Key> {
        match (self.field, self.separator.as_deref().map(str::as_bytes), self.at, self.bytes) {
            (Some(number), None, None, None) => Some(Key::Field { number, separator: None }),
            (Some(number), Some([separator]), None, None) => Some(Key::Field { number, separator: Some(*separator) }),
            (None, None, at, Some(bytes)) => Some(Key::Bytes { at: at.unwrap_or(0), bytes }),
            _ => None,
        }
    }
}

impl Host {
    fn spec(self, at: usize, line: &dyn Fn(usize) -> usize, problems: &mut Vec<Problem>) -> Option<HostSpec> {
        let Ok(address) = self.address.get_ref().parse() else {
            let what = format!("`{}` is no IP address", self.address.get_ref());
            let remedy = "write numbers, such as \"192.0.2.7\" or \"2001:db8::7\": names are not looked up";
            problems.push(Problem::new(line(self.address.span().start), what, remedy));
            return None;
        };
        Some(HostSpec { name: self.name, address, command: self.command, line: at })
    }
}

impl Named {
    /// The settings, and their lines.
    fn apart(self, line: &dyn Fn(usize) -> usize) -> (Settings, BTreeMap<String, usize>) {
        let (mut settings, mut lines) = (Settings::default(), BTreeMap::new());
        for (name, value) in self.0 {
            lines.insert(name.clone(), line(value.span().start));
            settings.0.insert(name, value.into_inner().text());
        }
        (settings, lines)
    }

    fn unit(self, line: &dyn Fn(usize) -> usize) -> UnitSpec {
        let (settings, setting_lines) = self.apart(line);
        UnitSpec { settings, setting_lines }
    }
}

impl Value {
    fn text(self) -> String {
        match self {
            Value::Text(text) => text,
            Value::Whole(number) => number.to_string(),
            Value::Number(number) => number.to_string(),
            Value::Flag(flag) => flag.to_string(),
            Value::List(words) => words.join("\n"),
        }
    }
}
