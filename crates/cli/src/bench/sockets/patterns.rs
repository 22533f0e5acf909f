//! The workloads of the documents that have more than one size, way or connection: each beside kernel TCP, with the processor
//! time of all processes that take part.

use anyhow::Result;

use super::super::place::Placement;
use super::super::record::Metric;
use super::job::{Flow, Span, Waiting, Work};
use super::outcome::{Outcome, Row};
use super::pair::{self, End, Place, Server, Via};
use super::round::{Found, PLAIN, claim, per_second, rounds, span};
use super::{Bench, Effort};

/// The benches of this file.
pub const BENCHES: &[Bench] = &[
    Bench { name: "pingpong", about: "half round trip by size", quick: false, run: pingpong },
    Bench { name: "twoway", about: "bandwidth with both ends sending at the same time", quick: false, run: two_way },
    Bench { name: "streams", about: "bandwidth of several streams between two processes", quick: false, run: streams },
    Bench { name: "hotspot", about: "one server that many processes exchange with", quick: false, run: hot_spot },
    Bench { name: "fanin", about: "several processes that stream to one", quick: false, run: fan_in },
    Bench { name: "fanout", about: "one process that streams to several", quick: false, run: fan_out },
    Bench {
        name: "dual",
        about: "one process that half of the others stream to, and the other half from",
        quick: false,
        run: dual,
    },
    Bench {
        name: "requests",
        about: "requests on many connections of one client, one under way on each",
        quick: false,
        run: requests,
    },
];

/// TCP and Sidestep, both where the kernel puts them: with more processes than cores that is where they are.
const FREE: &[(Via, Placement)] = &[(Via::Tcp, Placement::Free), (Via::Ring, Placement::Free)];
/// Bytes of a call in the patterns of streams, as in the documents.
const BULK: usize = 16 << 10;

fn outcome(bench: &'static str, what: String, size: usize, rows: Vec<Row>, metric: Metric) -> Outcome {
    let claims = vec![claim(Via::Tcp, metric, 1.0, None)];
    Outcome { bench, what, size, rows, parameters: Vec::new(), ours: Via::Ring, claims, note: None }
}

fn pingpong(effort: &Effort) -> Result<Vec<Outcome>> {
    let sizes: &[usize] = match effort.quick {
        true => &[1, 64, 1 << 10, 4 << 10, 16 << 10, 64 << 10],
        false => &[1, 16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20],
    };
    let few = Effort { rounds: effort.rounds.min(5), ..*effort };
    let mut outcomes = Vec::new();
    for size in sizes {
        let rows = rounds(&few, PLAIN, |via, place| {
            let echo = Work::Echo { size: *size, wait: Waiting::Block, connections: 1 };
            let exchange = Work::Exchange { size: *size, wait: Waiting::Block, pause_us: 0, span: span(effort) };
            let (client, server) = pair::run(via, echo, exchange, place)?;
            Ok(Found::exchange(&client, &server))
        })?;
        outcomes.push(outcome(
            "pingpong",
            format!("{} there and back", counted(*size, "byte")),
            *size,
            rows,
            Metric::OneWayP50,
        ));
    }
    Ok(outcomes)
}

fn two_way(effort: &Effort) -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    for size in [BULK, 64 << 10] {
        let rows = rounds(effort, PLAIN, |via, place| bulk(via, place, size, &[(1, Flow::Both)], 1, span(effort)))?;
        let what = format!("writes of {size} bytes, both ways at the same time");
        outcomes.push(outcome("twoway", what, size, rows, Metric::Bandwidth));
    }
    Ok(outcomes)
}

fn streams(effort: &Effort) -> Result<Vec<Outcome>> {
    by_connections(effort, "streams", ("stream", "between two processes"), |via, place, number| {
        bulk(via, place, BULK, &[(1, Flow::In)], number, crowded_span(effort))
    })
}

fn fan_in(effort: &Effort) -> Result<Vec<Outcome>> {
    by_connections(effort, "fanin", ("process", "streaming to one"), |via, place, number| {
        bulk(via, place, BULK, &[(number, Flow::In)], 1, crowded_span(effort))
    })
}

fn fan_out(effort: &Effort) -> Result<Vec<Outcome>> {
    by_connections(effort, "fanout", ("process", "that one streams to"), |via, place, number| {
        bulk(via, place, BULK, &[(number, Flow::Out)], 1, crowded_span(effort))
    })
}

fn dual(effort: &Effort) -> Result<Vec<Outcome>> {
    let few = fewer(effort);
    let mut outcomes = Vec::new();
    for half in [1, 2, 4] {
        let rows = rounds(&few, FREE, |via, place| {
            bulk(via, place, BULK, &[(half, Flow::In), (half, Flow::Out)], 1, crowded_span(effort))
        })?;
        let what = format!("{} streaming to one, and {half} that it streams to", counted(half, "process"));
        let mut outcome = outcome("dual", what, BULK, rows, Metric::Bandwidth);
        outcome.parameters = vec![("connections", 2 * half)];
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

fn hot_spot(effort: &Effort) -> Result<Vec<Outcome>> {
    let few = fewer(effort);
    let mut outcomes = Vec::new();
    for clients in [1, 2, 4, 8] {
        let rows = rounds(&few, FREE, |via, place| spot(via, place, clients, crowded_span(effort)))?;
        let what = format!("{} exchanging {BULK} bytes with one", counted(clients, "process"));
        let mut outcome = outcome("hotspot", what, BULK, rows, Metric::Requests);
        outcome.parameters = vec![("connections", clients)];
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

fn requests(effort: &Effort) -> Result<Vec<Outcome>> {
    let numbers: &[usize] =
        if effort.quick { &[1, 4, 16, 64, 256] } else { &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000] };
    let few = fewer(effort);
    let mut outcomes = Vec::new();
    for connections in numbers.iter().copied() {
        // Connections are promoted one after the other.
        let span = Span { warm_ms: 50 + connections as u64 * 2, run_ms: effort.run_ms };
        let rows = rounds(&few, PLAIN, |via, place| {
            let echo = Work::Echo { size: 64, wait: Waiting::Epoll, connections };
            let (client, server) = pair::run(via, echo, Work::Ask { size: 64, connections, span }, place)?;
            let rate = (Metric::Requests, per_second(&client));
            let mut found = Found { same_core: None, ..Found::exchange(&client, &server) };
            // The server counts from its first request on, the client what it measured.
            let per_request = server.processor_time as f64 / server.messages.max(1) as f64
                + client.processor_time as f64 / client.done.max(1) as f64;
            found.figures.retain(|(metric, _)| *metric != Metric::CpuPerMessage);
            found.figures.insert(0, rate);
            found.figures.push((Metric::CpuPerCall, per_request));
            Ok(found)
        })?;
        let what = format!("64-byte requests on {}, one under way on each", counted(connections, "connection"));
        let mut outcome = outcome("requests", what, 64, rows, Metric::Requests);
        outcome.parameters = vec![("connections", connections)];
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// Measures a pattern of streams by the number of its connections.
fn by_connections(
    effort: &Effort,
    bench: &'static str,
    (thing, about): (&str, &str),
    mut measure: impl FnMut(Via, Place, usize) -> Result<Found>,
) -> Result<Vec<Outcome>> {
    let few = fewer(effort);
    let mut outcomes = Vec::new();
    for number in [1, 2, 4, 8] {
        let rows = rounds(&few, FREE, |via, place| measure(via, place, number))?;
        let mut outcome = outcome(bench, format!("{} {about}", counted(number, thing)), BULK, rows, Metric::Bandwidth);
        outcome.parameters = vec![("connections", number)];
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// So many of a thing, in words.
fn counted(number: usize, thing: &str) -> String {
    match (number, thing) {
        (1, thing) => format!("1 {thing}"),
        (number, "process") => format!("{number} processes"),
        (number, thing) => format!("{number} {thing}s"),
    }
}

/// About half of the rounds, but enough to tell the noise, where there are as many.
fn fewer(effort: &Effort) -> Effort {
    Effort { rounds: effort.rounds.div_ceil(2).max(3).min(effort.rounds), ..*effort }
}

/// With more processes than cores, all of them have begun after this.
fn crowded_span(effort: &Effort) -> Span {
    Span { warm_ms: 100, run_ms: effort.run_ms * 2 }
}

/// A hub and groups of clients, each a process with so many connections: bandwidth of all, processor time of all per call.
fn bulk(
    via: Via,
    place: Place,
    size: usize,
    groups: &[(usize, Flow)],
    connections: usize,
    span: Span,
) -> Result<Found> {
    let processes: usize = groups.iter().map(|(count, _)| count).sum();
    let server = Server::start(via, Work::Hub { size, connections: processes * connections }, Some(place))?;
    let mut clients = Vec::new();
    for (count, flow) in groups {
        for _ in 0..*count {
            clients.push(server.client(via, Work::Bulk { size, flow: *flow, connections, span }, Some(place))?);
        }
    }
    let (mut bandwidth, mut used, mut messages) = (0.0, 0, 0);
    for client in clients {
        let report = client.report()?;
        bandwidth += per_second(&report) * size as f64;
        used += report.processor_time;
        messages += report.messages;
    }
    used += pair::serve_end(server)?.processor_time;
    let per_message = used as f64 / messages.max(1) as f64;
    Ok(Found::figures(vec![(Metric::Bandwidth, bandwidth), (Metric::CpuPerMessage, per_message)]))
}

/// One server, and processes that exchange with it: what all get, and the time of the one in the middle.
fn spot(via: Via, place: Place, clients: usize, span: Span) -> Result<Found> {
    let server =
        Server::start(via, Work::Echo { size: BULK, wait: Waiting::Epoll, connections: clients }, Some(place))?;
    let work = Work::Exchange { size: BULK, wait: Waiting::Block, pause_us: 0, span };
    let ends: Result<Vec<End>> = (0..clients).map(|_| server.client(via, work.clone(), Some(place))).collect();
    let (mut total, mut times, mut used, mut messages) = (0.0, Vec::new(), 0, 0);
    for end in ends? {
        let report = end.report()?;
        total += per_second(&report);
        times.push(report.half_trip);
        (used, messages) = (used + report.processor_time, messages + report.messages);
    }
    let served = pair::serve_end(server)?;
    let per_request =
        2.0 * used as f64 / messages.max(1) as f64 + served.processor_time as f64 / served.messages.max(1) as f64;
    let middle = |at: usize| super::super::stats::median(times.iter().map(|time| time[at])).unwrap_or(f64::NAN);
    Ok(Found::figures(vec![
        (Metric::Requests, total),
        (Metric::OneWayP50, middle(0)),
        (Metric::OneWayP99, middle(1)),
        (Metric::OneWayP999, middle(2)),
        (Metric::CpuPerCall, per_request),
    ]))
}
