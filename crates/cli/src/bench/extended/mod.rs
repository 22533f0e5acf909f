//! The suite `extended`: operations of extended sockets beside the fabric's own and TCP; plain calls on a socket with and without
//! the extension; and version checks of a server that is busy (figures 10.8, 10.9 and 11.5 of Balaji 2006).
//!
//! The server is another process on another core. Rows take turns in short rounds; each figure is the median of all samples.

pub mod end;

use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::{Map, json};
use sidestep_extended::traffic::{self, Direction, Interface, cache};
use sidestep_fabric::{Aperture, Cookie, Node, RdmaQueue, Region};

use self::end::{Client, Server};
use super::options;
use super::record::{Metric, Record};
use super::sheet::{self, Benches, Table};
use super::sink::Sink;
use super::stats::median;

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
        "the version of a document of a server with computing threads: read, and asked for over TCP (figure 10.9)",
    ),
    ("traffic", "bytes on the memory bus for each byte on the network: the model of chapter 9, nothing measured"),
];

/// Runs the suite.
pub fn run(options: &options::Bench, sink: &mut Sink) -> Result<()> {
    let rounds = if options.quick { 40 } else { 400 };
    sheet::run("extended", BENCHES, (options, sink), |name| match name {
        "operations" => operations(rounds),
        "sizes" => sizes(rounds),
        "plain" => plain(rounds),
        "busy" => busy(rounds),
        _ => Ok(model()),
    })
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
}

/// Measures all rows in turn, so many times; the first round is not counted.
fn measure(rows: &mut [Row<'_>], rounds: usize) -> Result<()> {
    for round in 0..=rounds {
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
    let server = Server::start(0)?;
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
    measure(&mut rows, rounds)?;
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
    let server = Server::start(0)?;
    let client = Client::connect(&server)?;
    let mut table = Table::new(&["size", "put GB/s", "get GB/s"]);
    for size in [4 << 10, 64 << 10, 1 << 20] {
        let (mut bytes, source) = (vec![0; size], vec![7; size]);
        let mut rows = [
            Row::new("put", 1, || Ok(client.socket.put(&client.all, 0, &source)?)),
            Row::new("get", 1, || Ok(client.socket.get(&client.all, 0, &mut bytes)?)),
        ];
        measure(&mut rows, rounds / 4)?;
        let rates: Vec<f64> = rows.iter().map(|row| size as f64 / row.median()).collect();
        table.row(&[size.to_string(), format!("{:.2}", rates[0]), format!("{:.2}", rates[1])]);
        for (row, rate) in rows.iter().zip(&rates) {
            table.records.push(record("extended.sizes", row.name, size, Metric::Bandwidth, rate * 1e9));
        }
    }
    Ok(table)
}

fn plain(rounds: usize) -> Result<Table> {
    let server = Server::start(0)?;
    let client = Client::connect(&server)?;
    let mut rows = [
        Row::new("tcp", 1, || client.exchange(&client.plain)),
        Row::new("tcp-extended", 1, || client.exchange(&client.stream)),
    ];
    measure(&mut rows, 4 * rounds)?;
    let mut table = timed("extended.plain", &rows, BYTES);
    table.promise("with the extension against without", rows[1].median() / rows[0].median(), 1.02);
    Ok(table)
}

fn busy(rounds: usize) -> Result<Table> {
    let mut table = Table::new(&["computing threads", "read ns", "asked ns"]);
    let mut medians = Vec::new();
    for threads in [0, 1, 2, 4, 8] {
        let server = Server::start(threads)?;
        let client = Client::connect(&server)?;
        let mut rows = [
            Row::new("read", 200, || Ok(client.socket.get(&client.table, 0, &mut [0; 8])?)),
            Row::new("asked", 1, || client.exchange(&client.plain)),
        ];
        measure(&mut rows, rounds / 4)?;
        let [read, asked] = [rows[0].median(), rows[1].median()];
        table.row(&[threads.to_string(), format!("{read:.0}"), format!("{asked:.0}")]);
        for row in &rows {
            table.records.push(record("extended.busy", row.name, threads, Metric::RoundTripP50, row.median()));
        }
        medians.push([read, asked]);
    }
    let (idle, loaded) = (medians[0], medians[medians.len() - 1]);
    table.promise("read with 8 threads against none", loaded[0] / idle[0], 2.0);
    let worse = loaded[1] / idle[1];
    let verdict = if worse >= 5.0 { "met" } else { "MISSED" };
    table.text.push(format!("asked with 8 threads against none: {worse:.1}, at least 5 expected: {verdict}"));
    Ok(table)
}

fn model() -> Table {
    let mut table = Table::new(&["bytes (model)", "sockets out", "sockets in", "RDMA"]);
    for message in [4 << 10, 64 << 10, 256 << 10, 10 << 20] {
        let transfer = cache::Transfer { message, socket_buffer: cache::SOCKET_BUFFER };
        let ratio = |interface, direction| cache::ratio(cache::XEON, interface, direction, transfer);
        let cells = [
            ratio(Interface::Sockets, Direction::Transmit),
            ratio(Interface::Sockets, Direction::Receive),
            ratio(Interface::Rdma, Direction::Receive),
        ];
        let shown = cells.iter().map(|cell| format!("{cell:.2}"));
        table.row(&std::iter::once(message.to_string()).chain(shown).collect::<Vec<_>>());
    }
    let most = traffic::ceiling(8.0 * 333e6, 4.0) * 8e-9;
    table.text.push(format!("a bus of 64 bits at 333 MHz, four bytes for each: {most:.2} Gbit/s at most"));
    table
}

/// A table of times.
fn timed(bench: &str, rows: &[Row<'_>], size: usize) -> Table {
    let mut table = Table::new(&["operation", "ns"]);
    for row in rows {
        table.row(&[row.name.to_string(), format!("{:.0}", row.median())]);
        table.records.push(record(bench, row.name, size, Metric::RoundTripP50, row.median()));
    }
    table
}

fn record(bench: &str, path: &str, size: usize, metric: Metric, value: f64) -> Record {
    let extra = Map::from_iter([("simulated".to_string(), json!(false))]);
    Record { bench: bench.into(), path: path.into(), size, metric, value, unit: metric.unit(), extra }
}
