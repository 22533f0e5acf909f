//! Whether a description can be run, and what is wrong if not. Everything that is wrong is said at once.

use super::{Graph, HERE, Key, Place, Problem, StreamSpec, Transport, known};
use crate::filter::{ANY, Kinds, Port};
use crate::schedule::Schedule;

/// Bytes of a buffer: a VI carries no more, and a header is no smaller.
const BUFFERS: std::ops::RangeInclusive<usize> = 16..=(8 << 20);
const QUEUES: std::ops::RangeInclusive<usize> = 1..=256;
/// Bytes of all buffers of a connection.
const MEMORY: usize = 64 << 20;
const COPIES: std::ops::RangeInclusive<usize> = 1..=256;

/// Everything that is wrong with a description.
pub fn check(graph: &Graph, kinds: &Kinds) -> Vec<Problem> {
    let mut problems = Vec::new();
    if graph.filters.is_empty() {
        problems.push(Problem::new(1, "there are no filters", "add a [[filter]] with a name and a kind"));
    }
    filters(graph, kinds, &mut problems);
    hosts(graph, &mut problems);
    known::settings(graph, kinds, &mut problems);
    for stream in &graph.streams {
        ends(graph, kinds, stream, &mut problems);
        key(graph, kinds, stream, &mut problems);
    }
    ports(graph, kinds, &mut problems);
    if problems.is_empty() {
        cycle(graph, &mut problems);
    }
    if problems.is_empty() {
        order(graph, &mut problems);
    }
    problems.sort_by_key(|problem| problem.line);
    problems
}

fn filters(graph: &Graph, kinds: &Kinds, problems: &mut Vec<Problem>) {
    for (at, filter) in graph.filters.iter().enumerate() {
        let name = &filter.name;
        let mut wrong = |what: String, remedy: String| problems.push(Problem::new(filter.line, what, remedy));
        if let Some(first) = graph.filters[..at].iter().find(|other| other.name == *name) {
            wrong(format!("filter `{name}` is there twice"), format!("line {} has the first; rename one", first.line));
        }
        if name.is_empty() || name.contains(['.', ' ', '@', '[']) {
            wrong(format!("`{name}` is no name of a filter"), "use letters, digits, `-` and `_`".into());
        }
        if kinds.kind(&filter.kind).is_none() {
            let known: Vec<&str> = kinds.iter().map(|(name, _)| name).collect();
            wrong(format!("there is no kind `{}`", filter.kind), format!("there are: {}", known.join(", ")));
        }
        if !COPIES.contains(&filter.copies) {
            let what = format!("`{name}` has {} copies, of which none can be reached or too many", filter.copies);
            wrong(what, "copies is a number from 1 to 256".into());
        }
        if let Some(host) = &filter.host {
            if !graph.hosts.iter().any(|known| known.name == *host) {
                let what = format!("the copies of `{name}` cannot be reached: there is no host `{host}`");
                wrong(
                    what,
                    format!(
                        "add a [[host]] with name = \"{host}\", its address and the command that starts a worker there"
                    ),
                );
            }
            if !graph.hosts.iter().any(|known| known.name == HERE) {
                let what = format!("the copies of `{name}` cannot reach this host, which has no address");
                wrong(what, "add a [[host]] with name = \"here\" and its address".into());
            }
            let commanded = graph.hosts.iter().filter(|known| known.name == *host);
            if commanded.clone().any(|known| known.name != HERE && known.command.is_empty()) {
                let what = format!("nothing starts a worker on `{host}`");
                wrong(
                    what,
                    "give the [[host]] a command, such as [\"ssh\", \"b\", \"sidestep\", \"pipe-worker\"]".into(),
                );
            }
            if graph.transport == Transport::Vi {
                let what = format!("the copies of `{name}` cannot be reached: VIs join processes of one host");
                wrong(what, "use transport = \"channel\" or \"tcp\"".into());
            }
        }
        if matches!(&filter.place, Place::Shared(process) if process.is_empty() || process.contains(['@', ' '])) {
            wrong(format!("`{name}` names no process"), "write place = \"process:NAME\"".into());
        }
    }
}

fn hosts(graph: &Graph, problems: &mut Vec<Problem>) {
    for (at, host) in graph.hosts.iter().enumerate() {
        if let Some(first) = graph.hosts[..at].iter().find(|other| other.name == host.name) {
            let what = format!("host `{}` is there twice", host.name);
            problems.push(Problem::new(host.line, what, format!("line {} has the first; rename one", first.line)));
        }
    }
}

/// A stream that is dealt by key has one, from the description or from the filter.
fn key(graph: &Graph, kinds: &Kinds, stream: &StreamSpec, problems: &mut Vec<Problem>) {
    let mut wrong = |what: String, remedy: &str| problems.push(Problem::new(stream.line, what, remedy));
    let form = "write key = { field = 1 } (of each line) or key = { at = 0, bytes = 8 } (of each buffer)";
    match (stream.schedule, stream.key) {
        (Schedule::Keyed, None) => {
            let kind = graph.filter_index(&stream.from.0).and_then(|index| kinds.kind(&graph.filters[index].kind));
            let port = kind.and_then(|kind| kind.outputs().iter().find(|port| port.name == stream.from.1));
            if port.is_some_and(|port| !port.gives_keys) {
                wrong(
                    format!("`{}.{}` says no keys, and the stream is dealt by key", stream.from.0, stream.from.1),
                    form,
                );
            }
        }
        (Schedule::Keyed, Some(Key::Field { number: 0, .. } | Key::Bytes { bytes: 0, .. })) => {
            wrong("the key is empty".into(), "fields are counted from 1, and a key has at least one byte");
        }
        (Schedule::Keyed, Some(Key::Bytes { at, .. })) if at >= stream.buffer => {
            wrong(format!("the key begins at byte {at} of buffers of {}", stream.buffer), "let it begin within them");
        }
        (Schedule::Keyed, Some(_)) | (_, None) => {}
        (_, Some(_)) => wrong("the stream has a key and is not dealt by it".into(), "add schedule = \"keyed\""),
    }
}

fn ends(graph: &Graph, kinds: &Kinds, stream: &StreamSpec, problems: &mut Vec<Problem>) {
    let mut wrong = |what: String, remedy: String| problems.push(Problem::new(stream.line, what, remedy));
    if !BUFFERS.contains(&stream.buffer) {
        wrong(format!("a buffer of {} bytes", stream.buffer), "buffer is a number from 16 to 8388608".into());
    }
    if !QUEUES.contains(&stream.queue) {
        wrong(format!("a queue of {} buffers", stream.queue), "queue is a number from 1 to 256".into());
    }
    if stream.buffer.saturating_mul(stream.queue + 1) > MEMORY {
        let what = format!("{} buffers of {} bytes take too much memory", stream.queue, stream.buffer);
        wrong(what, "let fewer wait, or make them smaller: 64 MiB for each connection is the most".into());
    }
    let mut types = Vec::new();
    for ((name, port), outward) in [(&stream.from, true), (&stream.to, false)] {
        let Some(index) = graph.filter_index(name) else {
            let known: Vec<&str> = graph.filters.iter().map(|filter| filter.name.as_str()).collect();
            wrong(format!("there is no filter `{name}`"), format!("there are: {}", known.join(", ")));
            continue;
        };
        let Some(kind) = kinds.kind(&graph.filters[index].kind) else { continue };
        let (ports, word) = if outward { (kind.outputs(), "output") } else { (kind.inputs(), "input") };
        match ports.iter().find(|own| own.name == port) {
            Some(port) => types.push(port.holds),
            None => wrong(format!("filter `{name}` has no {word} `{port}`"), listed(name, word, ports)),
        }
    }
    if let [from, to] = types[..]
        && from != to
        && from != ANY
        && to != ANY
    {
        let (a, b) = (&stream.from, &stream.to);
        wrong(
            format!("`{}.{}` gives {from}, and `{}.{}` takes {to}", a.0, a.1, b.0, b.1),
            "put a filter between them that makes one of the other".into(),
        );
    }
}

fn listed(filter: &str, word: &str, ports: &[Port]) -> String {
    match ports.is_empty() {
        true => format!("it has no {word}s"),
        false => {
            let names: Vec<String> = ports.iter().map(|port| format!("`{filter}.{}`", port.name)).collect();
            format!("it has {}", names.join(", "))
        }
    }
}

/// Every port has one stream.
fn ports(graph: &Graph, kinds: &Kinds, problems: &mut Vec<Problem>) {
    for filter in &graph.filters {
        let Some(kind) = kinds.kind(&filter.kind) else { continue };
        for (ports, outward) in [(kind.inputs(), false), (kind.outputs(), true)] {
            for port in ports {
                let ends = graph.streams.iter().map(|stream| (if outward { &stream.from } else { &stream.to }, stream));
                let own: Vec<&StreamSpec> = ends
                    .filter(|(end, _)| end.0 == filter.name && end.1 == port.name)
                    .map(|(_, stream)| stream)
                    .collect();
                let name = format!("{}.{}", filter.name, port.name);
                match (own.len(), outward) {
                    (1, _) => {}
                    (0, true) => problems.push(Problem::new(
                        filter.line,
                        format!("nothing takes what `{name}` gives"),
                        format!("add a [[stream]] with from = \"{name}\", to a filter such as `null`"),
                    )),
                    (0, false) => problems.push(Problem::new(
                        filter.line,
                        format!("`{name}` is not joined, so no buffer reaches `{}`", filter.name),
                        format!("add a [[stream]] with to = \"{name}\""),
                    )),
                    (count, _) => problems.push(Problem::new(
                        own[1].line,
                        format!("`{name}` has {count} streams"),
                        "a port has one: take another port, or put a filter between them",
                    )),
                }
            }
        }
    }
}

fn cycle(graph: &Graph, problems: &mut Vec<Problem>) {
    // Filters that nothing leads to are taken away until none is left, or a cycle.
    let mut left: Vec<&StreamSpec> = graph.streams.iter().collect();
    loop {
        let before = left.len();
        let targets: Vec<&str> = left.iter().map(|stream| stream.to.0.as_str()).collect();
        left.retain(|stream| targets.contains(&stream.from.0.as_str()));
        if left.len() == before {
            break;
        }
    }
    let Some(first) = left.first() else { return };
    // Backwards one always stays within what is left, and meets a filter again.
    let mut path = vec![first.from.0.as_str()];
    while let Some(before) = left.iter().find(|stream| stream.to.0 == path[path.len() - 1]) {
        let name = before.from.0.as_str();
        if let Some(at) = path.iter().position(|known| *known == name) {
            path.drain(..at);
            path.push(name);
            break;
        }
        path.push(name);
    }
    path.reverse();
    let line = left.iter().filter(|stream| path.contains(&stream.from.0.as_str())).map(|stream| stream.line).max();
    problems.push(Problem::new(
        line.unwrap_or(0),
        format!("the streams go in a circle: {}", path.join(" -> ")),
        "a unit of work would never end; take one of them away",
    ));
}

fn order(graph: &Graph, problems: &mut Vec<Problem>) {
    for stream in graph.streams.iter().filter(|stream| stream.ordered) {
        let copies = |name: &str| graph.filter_index(name).map_or(0, |index| graph.filters[index].copies);
        let mut wrong = |what: String, remedy: &str| problems.push(Problem::new(stream.line, what, remedy));
        if copies(&stream.to.0) != 1 {
            wrong(
                format!("an ordered stream to {} copies of `{}`", copies(&stream.to.0), stream.to.0),
                "give it one copy, or leave `ordered` out",
            );
        }
        let from = stream.from.0.as_str();
        let mut before = graph.streams.iter().filter(|stream| stream.to.0 == from);
        let only = before.next().filter(|_| before.next().is_none());
        if copies(from) > 1 && only.is_none_or(|only| copies(&only.from.0) != 1) {
            wrong(
                format!("the copies of `{from}` have no order that could be kept"),
                "give them one input, from a filter with one copy; one that joins copies takes an ordered stream itself",
            );
        }
    }
}
