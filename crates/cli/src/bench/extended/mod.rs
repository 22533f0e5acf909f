//! The suite `extended`: operations of extended sockets beside the fabric's own and TCP; plain calls on a socket with and without
//! the extension; version checks of a server that is busy; and the same between two hosts (figures 10.8, 10.9, 11.5 and 11.6 of Balaji 2006).
//!
//! The server is another process on another core. Rows take turns in short rounds; each figure is the median of all samples.

pub mod end;
mod modelled;
mod pool;
mod talk;
mod threaded;
mod traffic;

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, json};
use sidestep_fabric::{Aperture, Cookie, Node, RdmaQueue, Region};

use self::end::{Client, Job, Server, Way};
use self::talk::Talk;
use super::hosts;
use super::options;
use super::progress::within_step;
use super::record::{Metric, Record};
use super::sheet::{self, Benches, Table};
use super::sink::Sink;
use super::stats::{median, spread};

/// What `bench list` says of the suite.
pub const ABOUT: &str = "extended sockets: one-sided operations beside the fabric's read and a TCP round trip, plain calls with \
    and without the extension, checks of a busy server, and the model of memory traffic";

/// The benches, and what each is.
pub const BENCHES: Benches = &[
    ("operations", "64 bytes of another process, and what they are measured against (figure 10.8)"),
    ("sizes", "bytes a second of put and get, by size"),
    ("plain", "a plain message and its answer on a socket with the extension and on one without (figure 11.5)"),
    (
        "busy",
        "the version of a document of a busy server: read, and asked for over TCP, of a thread of its own beside others that \
         compute, and of the threads that serve (figure 10.9)",
    ),
    ("hosts", "64 bytes of another host, two network namespaces made for it: beside the connection, and in place"),
    ("threaded", "messages between those hosts: TCP, the thesis's two threads, extended sockets (figure 11.6)"),
    (
        "traffic",
        "copies, time and processor time of each byte by TCP, ring, RDMA write and read, in and out of the cache; bytes on the \
         memory bus by the model of chapter 9 (table 9.1)",
    ),
];

/// Runs the suite.
pub fn run(options: &options::Bench, sink: &mut Sink) -> Result<()> {
    let rounds = if options.quick { 40 } else { 400 };
    sheet::run("extended", BENCHES, (options, sink), weight, |name| {
        let table = match name {
            "operations" => operations(rounds),
            "sizes" => sizes(rounds),
            "plain" => plain(rounds),
            "busy" => busy(rounds),
            "hosts" => on_hosts(|holder| between(holder, rounds)),
            "threaded" => on_hosts(|holder| messages(holder, rounds)),
            _ => traffic(if options.quick { 2 } else { 50 }),
        }?;
        for record in &table.records {
            ensure!(paths(name).contains(&record.path.as_str()), "extended.{name} has no line {}", record.path);
        }
        Ok(table)
    })
}

/// The lines of each bench.
fn paths(bench: &str) -> &'static [&'static str] {
    match bench {
        "operations" => &["fabric-read", "get", "get-read-only", "put", "fetch-add", "compare-swap", "tcp"],
        "sizes" => &["put", "get", "posted-put", "posted-get"],
        "plain" => &["tcp", "tcp-extended"],
        "busy" => &["read", "asked", "read-serving", "served"],
        "hosts" => &["tcp", "get", "put", "fetch-add", "get-in-place", "put-in-place", "fetch-add-in-place"],
        "threaded" => &["tcp", "threads", "extended", "extended-in-place"],
        _ => &["tcp", "ring", "rdma-write", "rdma-read", "sockets-transmit", "sockets-receive", "rdma"],
    }
}

/// Whether a run has such a line.
#[cfg(test)]
pub fn has(bench: &str, path: &str, size: usize, metric: Metric) -> bool {
    let (sizes, of): (&[usize], Metric) = match bench {
        "busy" => (&THREADS, Metric::RoundTripP50),
        "threaded" => (&PINGED, Metric::OneWayP50),
        "traffic" => (&modelled::MESSAGES, Metric::BusBytes),
        _ => (&[BYTES], Metric::RoundTripP50),
    };
    paths(bench).contains(&path) && sizes.contains(&size) && metric == of
}

/// What each takes beside the others: about seconds of a quick run.
fn weight(bench: &str) -> f64 {
    match bench {
        "operations" => 3.0,
        "plain" | "busy" => 5.0,
        "hosts" | "threaded" => 2.0,
        _ => 0.5,
    }
}

/// Prints the benches of the suite.
pub fn list() {
    sheet::list("extended", ABOUT, BENCHES);
}

/// Something to be measured, and how often it is done for one sample.
struct Row<'a> {
    name: &'static str,
    batch: u32,
    act: Box<dyn FnMut() -> Result<()> + 'a>,
    samples: Vec<f64>,
}

impl<'a> Row<'a> {
    fn new(name: &'static str, batch: u32, act: impl FnMut() -> Result<()> + 'a) -> Row<'a> {
        Row { name, batch, act: Box::new(act), samples: Vec::new() }
    }

    /// Nanoseconds of one.
    fn median(&self) -> f64 {
        median(self.samples.iter().copied()).unwrap_or(f64::NAN)
    }

    /// How far its rounds lie from that.
    fn spread(&self) -> Option<f64> {
        let rounds: Vec<f64> = self.samples.chunks(SAMPLES).filter_map(|round| median(round.iter().copied())).collect();
        spread(&rounds)
    }

    /// What it has found.
    fn record(&self, bench: &str, size: usize, metric: Metric, value: f64) -> Record {
        record(bench, self.name, size, metric, (value, self.spread()))
    }
}

/// Measures all rows in turn, so many times; the first round is not counted. `part` is which one of how many parts of a bench it is.
fn measure(rows: &mut [Row<'_>], rounds: usize, part: (usize, usize)) -> Result<()> {
    for round in 0..=rounds {
        within_step((part.0 as f64 + round as f64 / (rounds + 1) as f64) / part.1 as f64);
        for row in rows.iter_mut() {
            for _ in 0..SAMPLES {
                let began = Instant::now();
                for _ in 0..row.batch {
                    (row.act)()?;
                }
                let each = began.elapsed().as_nanos() as f64 / f64::from(row.batch);
                if round > 0 {
                    row.samples.push(each);
                }
            }
        }
    }
    Ok(())
}

/// Samples of a row in one round.
const SAMPLES: usize = 10;
/// What is read and written: the size of a cache line.
const BYTES: usize = 64;

fn operations(rounds: usize) -> Result<Table> {
    let server = Server::start(Job::default())?;
    let client = Client::connect(&server)?;
    let (node, endpoint, aperture) = fabric_of(&server)?;
    let (queue, local) = (RdmaQueue::new(&node, 16), Region::new(&node, 4096)?);
    let into = local.slice(0, BYTES)?;
    let (mut bytes, source) = ([0; BYTES], [7; BYTES]);
    let mut rows = [
        Row::new("fabric-read", 200, || Ok(queue.wait(queue.read(&aperture, 0, &into)?, None)?)),
        Row::new("get", 200, || Ok(client.socket.get(&client.all, 0, &mut bytes)?)),
        Row::new("get-read-only", 200, || Ok(client.socket.get(&client.table, 0, &mut [0; BYTES])?)),
        Row::new("put", 200, || Ok(client.socket.put(&client.all, 128, &source)?)),
        Row::new("fetch-add", 200, || client.socket.fetch_add(&client.all, 256, 1).map(drop).map_err(Into::into)),
        Row::new("compare-swap", 200, || {
            client.socket.compare_swap(&client.all, 264, 0, 0).map(drop).map_err(Into::into)
        }),
        Row::new("tcp", 1, || client.exchange(&client.plain)),
    ];
    measure(&mut rows, rounds, (0, 1))?;
    let table = timed("extended.operations", &rows, BYTES);
    let of = |name| rows.iter().find(|row| row.name == name).map_or(f64::NAN, Row::median);
    let mut table = table;
    table.promise("get against the fabric's own read", of("get") / of("fabric-read"), 1.5);
    table.promise("get against a TCP round trip", of("get") / of("tcp"), 1.0 / 20.0);
    drop(endpoint);
    Ok(table)
}

/// The server's region, as the fabric itself reaches it.
fn fabric_of(server: &Server) -> Result<(Node, sidestep_fabric::Endpoint, Aperture)> {
    let node = Node::new()?;
    let deadline = Some(sidestep_extended::in_milliseconds(10_000));
    let endpoint = node.connect(&server.fabric, &[], deadline).context("the server on the fabric")?;
    let cookie = Cookie::from_bytes(&endpoint.private())?;
    let aperture = Aperture::open(&endpoint, &cookie, deadline)?;
    Ok((node, endpoint, aperture))
}

fn sizes(rounds: usize) -> Result<Table> {
    let server = Server::start(Job::default())?;
    let client = Client::connect(&server)?;
    let mut table = Table::new(&["GB/s by size", "put", "get", "posted put", "posted get"]);
    let local = client.register(1 << 20)?;
    let sizes = [4 << 10, 64 << 10, 1 << 20];
    for (number, size) in sizes.into_iter().enumerate() {
        let (mut bytes, source) = (vec![0; size], vec![7; size]);
        let mut rows = [
            Row::new("put", 1, || Ok(client.socket.put(&client.all, 0, &source)?)),
            Row::new("get", 1, || Ok(client.socket.get(&client.all, 0, &mut bytes)?)),
            Row::new("posted-put", 1, || {
                client.socket.post_put(&client.all, 0, vec![local.piece(0, size)?], 1)?;
                client.take_one()
            }),
            Row::new("posted-get", 1, || {
                client.socket.post_get(&client.all, 0, vec![local.piece(0, size)?], 1)?;
                client.take_one()
            }),
        ];
        measure(&mut rows, rounds / 4, (number, sizes.len()))?;
        let rates: Vec<f64> = rows.iter().map(|row| size as f64 / row.median()).collect();
        let shown = rates.iter().map(|rate| format!("{rate:.2}"));
        table.row(&std::iter::once(size.to_string()).chain(shown).collect::<Vec<_>>());
        for (row, rate) in rows.iter().zip(&rates) {
            table.records.push(row.record("extended.sizes", size, Metric::Bandwidth, rate * 1e9));
        }
    }
    Ok(table)
}

fn plain(rounds: usize) -> Result<Table> {
    let server = Server::start(Job::default())?;
    let client = Client::connect(&server)?;
    let mut rows = [
        Row::new("tcp", 1, || client.exchange(&client.plain)),
        Row::new("tcp-extended", 1, || client.exchange(&client.stream)),
    ];
    measure(&mut rows, 4 * rounds, (0, 1))?;
    let mut table = timed("extended.plain", &rows, BYTES);
    table.promise("with the extension against without", rows[1].median() / rows[0].median(), 1.02);
    Ok(table)
}

/// Threads of the server that compute, or serve.
const THREADS: [usize; 5] = [0, 1, 2, 4, 8];

fn busy(rounds: usize) -> Result<Table> {
    let mut table = Table::new(&["threads or clients", "read ns", "asked ns", "read ns", "served ns"]);
    table.text.insert(0, format!("{:24} {:>21} {:>21}", "", "threads that compute", "threads that serve"));
    let mut medians = Vec::new();
    for (number, busy) in THREADS.into_iter().enumerate() {
        let part = |second: usize| (2 * number + second, 2 * THREADS.len());
        let computing = checks(Job { computing: busy, ..Job::default() }, rounds, part(0))?;
        let serving = checks(Job { serving: Some(busy), ..Job::default() }, rounds, part(1))?;
        let all = [computing, serving].concat();
        let shown = all.iter().map(|(median, _)| format!("{median:.0}"));
        table.row(&std::iter::once(busy.to_string()).chain(shown).collect::<Vec<_>>());
        for (name, found) in ["read", "asked", "read-serving", "served"].into_iter().zip(&all) {
            table.records.push(record("extended.busy", name, busy, Metric::RoundTripP50, *found));
        }
        medians.push(all.into_iter().map(|(median, _)| median).collect::<Vec<f64>>());
    }
    let (idle, loaded) = (&medians[0], &medians[medians.len() - 1]);
    table.promise("read with 8 threads that compute against none", loaded[0] / idle[0], 2.0);
    table.promise("read with 8 threads that serve against none", loaded[2] / idle[2], 2.0);
    for (at, what) in
        [(1, "asked of a thread of its own, 8 others compute"), (3, "served by one of 8 threads that serve")]
    {
        table.promise_at_least(&format!("{what}, against none"), loaded[at] / idle[at], 5.0);
    }
    Ok(table)
}

/// Nanoseconds of a read of a version, and of a question for it, each with its spread.
fn checks(job: Job, rounds: usize, part: (usize, usize)) -> Result<Vec<(f64, Option<f64>)>> {
    let server = Server::start(job)?;
    let client = Client::connect(&server)?;
    let mut rows = [
        Row::new("read", 200, || Ok(client.socket.get(&client.table, 0, &mut [0; 8])?)),
        Row::new("asked", 1, || client.exchange(&client.plain)),
    ];
    measure(&mut rows, rounds / 4, part)?;
    Ok(rows.iter().map(|row| (row.median(), row.spread())).collect())
}

/// A table of two hosts, or of why there are none.
fn on_hosts(act: impl FnOnce(u32) -> Result<Table> + Send) -> Result<Table> {
    if !rustix::process::geteuid().is_root() {
        let mut table = Table::new(&["left out"]);
        table.text.push("two network namespaces are made for this, which takes root".to_string());
        return Ok(table);
    }
    hosts::apart(act)
}

/// Operations between two hosts.
fn between(holder: u32, rounds: usize) -> Result<Table> {
    let servers = [Way::Beside, Way::InPlace].map(|way| Server::start(Job { holder, way, ..Job::default() }));
    let [beside, in_place] = servers;
    let (beside, in_place) = (beside?, in_place?);
    let clients = [Client::connect(&beside)?, Client::connect(&in_place)?];
    let [beside, in_place] = &clients;
    let add = |client: &Client| client.socket.fetch_add(&client.all, 256, 1).map(drop).map_err(anyhow::Error::from);
    let mut rows = [
        Row::new("tcp", 1, || beside.exchange(&beside.plain)),
        Row::new("get", 1, || Ok(beside.socket.get(&beside.all, 0, &mut [0; BYTES])?)),
        Row::new("put", 1, || Ok(beside.socket.put(&beside.all, 128, &[7; BYTES])?)),
        Row::new("fetch-add", 1, || add(beside)),
        Row::new("get-in-place", 1, || Ok(in_place.socket.get(&in_place.all, 0, &mut [0; BYTES])?)),
        Row::new("put-in-place", 1, || Ok(in_place.socket.put(&in_place.all, 128, &[7; BYTES])?)),
        Row::new("fetch-add-in-place", 1, || add(in_place)),
    ];
    measure(&mut rows, rounds, (0, 1))?;
    Ok(timed("extended.hosts", &rows, BYTES))
}

/// Sizes of messages: for the time that one takes, and for how many bytes go in a second.
const PINGED: [usize; 3] = [4, 1024, 16 << 10];
const STREAMED: [usize; 3] = [1024, 16 << 10, 64 << 10];

/// Messages between two hosts, each way in turn.
fn messages(holder: u32, rounds: usize) -> Result<Table> {
    let job = |way| Server::start(Job { holder, way, ..Job::default() });
    let (beside, in_place) = (job(Way::Beside)?, job(Way::InPlace)?);
    let mut ways: [(&str, Box<dyn Talk>); 4] = [
        ("tcp", beside.tcp()?),
        ("threads", beside.threaded()?),
        ("extended", beside.messages()?),
        ("extended-in-place", in_place.messages()?),
    ];
    let columns: Vec<String> = PINGED.iter().map(|size| format!("{size} B us")).collect();
    let streamed = STREAMED.iter().map(|size| format!("{} KiB MB/s", size >> 10));
    let all: Vec<String> = std::iter::once("way".to_string()).chain(columns).chain(streamed).collect();
    let mut table = Table::new(&all.iter().map(String::as_str).collect::<Vec<_>>());
    let mut samples = vec![vec![Vec::new(); PINGED.len() + STREAMED.len()]; ways.len()];
    for round in 0..=rounds / 4 {
        within_step(round as f64 / (rounds / 4 + 1) as f64);
        for ((_, talk), samples) in ways.iter_mut().zip(&mut samples) {
            let pings = PINGED.iter().map(|size| (0..SAMPLES).map(|_| talk::ping(&mut **talk, *size)).collect());
            let mut found: Vec<Result<Vec<f64>>> = pings.collect();
            found.extend(STREAMED.iter().map(|size| Ok(vec![talk::stream(&mut **talk, *size)?])));
            for (found, samples) in found.into_iter().zip(samples) {
                samples.extend(found?.into_iter().filter(|_| round > 0));
            }
        }
    }
    for ((name, _), samples) in ways.iter().zip(&samples) {
        let medians: Vec<f64> = samples.iter().map(|all| median(all.iter().copied()).unwrap_or(f64::NAN)).collect();
        let mut cells = vec![name.to_string()];
        for (at, each) in medians.iter().enumerate() {
            let (size, metric, value) = match at.checked_sub(PINGED.len()) {
                None => (PINGED[at], Metric::OneWayP50, *each),
                Some(at) => (STREAMED[at], Metric::Bandwidth, STREAMED[at] as f64 / each * 1e9),
            };
            let shown = if metric == Metric::Bandwidth { value / 1e6 } else { value / 1e3 };
            cells.push(format!("{shown:.1}"));
            table.records.push(record("extended.threaded", name, size, metric, (value, spread(&samples[at]))));
        }
        table.row(&cells);
    }
    Ok(table)
}

/// What is measured, and then the model by itself, of the thesis's machine.
fn traffic(rounds: usize) -> Result<Table> {
    let mut table = traffic::measure(rounds)?;
    table.text.push(String::new());
    let simulated = modelled::table();
    table.text.extend(simulated.text);
    table.records.extend(simulated.records);
    Ok(table)
}

/// A table of times.
fn timed(bench: &str, rows: &[Row<'_>], size: usize) -> Table {
    let mut table = Table::new(&["operation", "ns"]);
    for row in rows {
        table.row(&[row.name.to_string(), format!("{:.0}", row.median())]);
        table.records.push(row.record(bench, size, Metric::RoundTripP50, row.median()));
    }
    table
}

fn record(bench: &str, path: &str, size: usize, metric: Metric, (value, spread): (f64, Option<f64>)) -> Record {
    let mut extra = Map::from_iter([("simulated".to_string(), json!(false))]);
    extra.extend(spread.map(|spread| ("spread".to_string(), json!(spread))));
    Record { bench: bench.into(), path: path.into(), size, metric, value, unit: metric.unit(), extra }
}
