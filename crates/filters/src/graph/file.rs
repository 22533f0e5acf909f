//! Descriptions as files: TOML, with the line of everything that may be wrong.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_spanned::Spanned;

use super::{BUFFER, FilterSpec, Graph, HostSpec, OnDeath, Place, Problem, QUEUE, StreamSpec, Transport};
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
    host: Vec<HostSpec>,
    pipelined: Option<Spanned<usize>>,
    #[serde(default, rename = "on-death")]
    on_death: OnDeath,
    #[serde(default)]
    unit: Vec<BTreeMap<String, Value>>,
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
    settings: BTreeMap<String, Value>,
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
    #[serde(default)]
    ordered: bool,
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
    graph.hosts = description.host;
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
    graph.units = description.unit.into_iter().map(settings).collect();
    if let Some(units) = description.units {
        let (count, at) = (*units.get_ref(), line(units.span().start));
        if count == 0 || count > UNITS || !graph.units.is_empty() {
            let remedy = "units is a number from 1 to 1000000, in place of [[unit]] tables";
            problems.push(Problem::new(at, "so many units of work cannot be", remedy));
        } else {
            graph.units = vec![Settings::default(); count];
        }
    }
    if graph.units.is_empty() {
        graph.units.push(Settings::default());
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
        FilterSpec {
            line: line(self.name.span().start),
            name: self.name.into_inner(),
            kind: self.kind.into_inner(),
            copies: self.copies.map_or(1, Spanned::into_inner),
            place,
            host: self.host,
            settings: settings(self.settings),
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
        let line = line(self.from.span().start).max(at);
        let (buffer, queue) = (self.buffer.unwrap_or(BUFFER), self.queue.unwrap_or(QUEUE));
        let Stream { schedule, ordered, .. } = self;
        Some(StreamSpec { from: from?, to: to?, buffer, queue, schedule, ordered, line })
    }
}

fn settings(values: BTreeMap<String, Value>) -> Settings {
    let text = |value| match value {
        Value::Text(text) => text,
        Value::Whole(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Flag(flag) => flag.to_string(),
        Value::List(words) => words.join("\n"),
    };
    Settings(values.into_iter().map(|(name, value)| (name, text(value))).collect())
}
