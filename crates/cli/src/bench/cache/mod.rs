//! The suite `cache`: requests a second of `sidestep cache` by how hits are checked, beside no cache and nginx's own, while the
//! application computes (figure 10.10 of Balaji 2006).
//!
//! What would be another host is another core: the origin, the module and the computing threads are on the first, the proxies
//! on the second, whichever way is measured. One document is changed every second. The ways take turns in short rounds.
//!
//! Where nothing is kept the origin's core works for the answer, too, and the client takes a core's time that its own host would give it.
//! So the client is measured in two places, and the processor time of the proxies and of all servers is told beside, in which the client
//! has no part.

use std::{process::Command, thread};

use anyhow::Result;
use serde_json::Map;

use self::site::{Measured, Site};
use super::progress::within_step;
use super::record::{Metric, Record};
use super::sheet::{self, Benches, Table};
use super::sink::Sink;
use super::stats::{median, spread};
use super::{options, show_progress};

mod paired;
mod site;

/// What `bench list` says of the suite.
pub const ABOUT: &str = "a coherent web cache: requests a second by how hits are checked, beside no cache and nginx, while the \
    application has 0 to 8 computing threads (needs nginx and wrk)";

/// The benches, and what each is.
pub const BENCHES: Benches = &[
    (
        "small",
        "requests a second for five files of 1 to 16 KiB, evenly, over one proxy; the client on the proxy's core",
    ),
    (
        "apart",
        "the same with 64 connections from a core of the client's own; of two cores from the origin's, and then without computing threads",
    ),
    ("rings", "the same as small, with client, proxies, origin and module under sidestep run"),
    (
        "zipf",
        "requests a second for 20 files of 200 bytes to 1 MB, by Zipf's law, over three proxies; the client on their core",
    ),
];

/// What a bench asks for, and from where.
struct Workload {
    name: &'static str,
    /// Bytes of the files, the most wanted first.
    sizes: fn() -> Vec<usize>,
    /// Of Zipf's law.
    exponent: f64,
    proxies: usize,
    client: Client,
    /// Of the client.
    connections: usize,
    /// Whether all programs are under `sidestep run`.
    is_accelerated: bool,
    /// Whether hits must be worth their promise.
    is_promised: bool,
}

/// Where wrk runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    /// On the core of the proxies.
    WithProxies,
    /// On a third core, or on that of the origin if there is none.
    Apart,
}

static WORKLOADS: [Workload; 4] = [
    // Figure 10.10 has nine clients.
    Workload {
        name: "small",
        sizes: small,
        exponent: 0.0,
        proxies: 1,
        client: Client::WithProxies,
        connections: 9,
        is_accelerated: false,
        is_promised: true,
    },
    Workload {
        name: "rings",
        sizes: small,
        exponent: 0.0,
        proxies: 1,
        client: Client::WithProxies,
        connections: 9,
        is_accelerated: true,
        is_promised: true,
    },
    // So many that the proxy finds a request when it has answered one: to wake a core takes longer than to answer.
    Workload {
        name: "apart",
        sizes: small,
        exponent: 0.0,
        proxies: 1,
        client: Client::Apart,
        connections: 64,
        is_accelerated: false,
        is_promised: true,
    },
    Workload {
        name: "zipf",
        sizes: uneven,
        exponent: 0.75,
        proxies: 3,
        client: Client::WithProxies,
        connections: 9,
        is_accelerated: false,
        is_promised: false,
    },
];

fn small() -> Vec<usize> {
    (0..5).map(|at| 1024 << at).collect()
}

fn uneven() -> Vec<usize> {
    (0..20).map(|at| (200.0 * 5000f64.powf(f64::from(at) / 19.0)) as usize).collect()
}

impl Workload {
    /// The origin has the first core, the proxies have the second.
    fn client_core(&self) -> usize {
        match self.client {
            Client::WithProxies => 1,
            Client::Apart if cores() > 2 => 2,
            Client::Apart => 0,
        }
    }

    /// Whether computing threads would take the client's time, too.
    fn is_with_origin(&self) -> bool {
        self.client_core() == 0
    }
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Computing threads of a quick run.
const QUICK_LOADS: [usize; 2] = [0, 8];
/// The ways to serve, the baseline first.
const WAYS: [&str; 5] = ["no-cache", "two-sided", "one-sided", "unchecked", "nginx"];

/// Runs the suite.
pub fn run(options: &options::Bench, sink: &mut Sink) -> Result<()> {
    if site::nginx().is_none() || Command::new("wrk").arg("-v").output().is_err() {
        eprintln!("cache: left out, since nginx or wrk is not installed");
        return Ok(());
    }
    let (rounds, seconds) = if options.quick { (1, 2) } else { (3, 3) };
    let loads: &[usize] = if options.quick { &QUICK_LOADS } else { &[0, 1, 2, 4, 8] };
    let weight = |name: &str| loads_of(workload_of(name), loads).count() as f64;
    sheet::run("cache", BENCHES, (options, sink), weight, |name| workload(workload_of(name), loads, rounds, seconds))
}

/// Prints the benches of the suite.
pub fn list() {
    sheet::list("cache", ABOUT, BENCHES);
}

fn workload_of(name: &str) -> &'static Workload {
    WORKLOADS.iter().find(|workload| workload.name == name).expect("each bench has one")
}

/// The numbers of computing threads that a workload is measured with.
fn loads_of<'a>(workload: &'a Workload, loads: &'a [usize]) -> impl Iterator<Item = &'a usize> {
    loads.iter().filter(|load| **load == 0 || !workload.is_with_origin())
}

fn workload(workload: &'static Workload, loads: &[usize], rounds: usize, seconds: u64) -> Result<Table> {
    let name = workload.name;
    let steps = (loads_of(workload, loads).count() * rounds * WAYS.len()) as f64;
    let mut done = 0.0;
    let mut table = Table::new(&["computing threads", WAYS[0], WAYS[1], WAYS[2], WAYS[3], WAYS[4]]);
    for load in loads_of(workload, loads) {
        show_progress(&format!("cache.{name}, {load} computing threads"));
        let site = Site::start(workload, *load)?;
        let mut measured = vec![Vec::new(); WAYS.len()];
        for _ in 0..rounds {
            for (way, measured) in WAYS.iter().zip(&mut measured) {
                measured.push(site.measure(way, seconds)?);
                done += 1.0;
                within_step(done / steps);
            }
        }
        show_progress("");
        let of = |part: fn(&Measured) -> f64| -> Vec<f64> {
            measured.iter().map(|all| median(all.iter().map(part)).unwrap_or(f64::NAN)).collect()
        };
        let (rates, proxies, servers) = (of(|way| way.rate), of(|way| way.proxies), of(|way| way.servers));
        let mut row = |what: String, values: &[f64], digits: usize| {
            let shown = values.iter().map(|value| format!("{value:.digits$}"));
            table.row(&std::iter::once(what).chain(shown).collect::<Vec<_>>());
        };
        row(load.to_string(), &rates, 0);
        if *load == 0 {
            row("  proxy's us a request".to_string(), &proxies, 1);
            row("  servers' us a request".to_string(), &servers, 1);
        }
        for ((way, rate), measured) in WAYS.iter().zip(&rates).zip(&measured) {
            let (metric, mut extra) = (Metric::Requests, Map::new());
            let spread = spread(&measured.iter().map(|way| way.rate).collect::<Vec<f64>>());
            extra.extend(spread.map(|spread| ("spread".to_string(), spread.into())));
            let (bench, path) = (format!("cache.{name}"), (*way).to_string());
            table.records.push(Record { bench, path, size: *load, metric, value: *rate, unit: metric.unit(), extra });
        }
        if workload.is_promised && [0, 8].contains(load) {
            let unchecked = paired::ratio(&site, ["one-sided", "unchecked"], PAIRS)?;
            judge(&mut table, *load, [&rates, &proxies, &servers], unchecked);
        }
    }
    Ok(table)
}

/// Whether a quick run has such a line.
#[cfg(test)]
pub fn has(bench: &str, path: &str, size: usize, metric: Metric) -> bool {
    let workload = WORKLOADS.iter().find(|workload| workload.name == bench);
    let has_load = |workload: &Workload| loads_of(workload, &QUICK_LOADS).any(|load| *load == size);
    workload.is_some_and(has_load) && WAYS.contains(&path) && metric == Metric::Requests
}

/// Pairs of pieces by which checked and unchecked hits are compared.
const PAIRS: usize = 12;

/// Says whether hits are worth what is promised: three times no cache, ten times where the application computes, and nine tenths of what
/// hits without a check are.
fn judge(table: &mut Table, load: usize, [rates, proxies, servers]: [&[f64]; 3], unchecked: f64) {
    let [none, _, one_sided, _, _] = rates else { return };
    let least = if load == 8 { 10.0 } else { 3.0 };
    table.promise_at_least(&format!("one-sided against no cache, {load} threads"), one_sided / none, least);
    table.promise(&format!("unchecked against one-sided in turns of half a second, {load} threads"), unchecked, 1.1);
    if load == 0 {
        let (of_proxy, of_all) = (proxies[0] / proxies[2], servers[0] / servers[2]);
        let what = "one-sided against no cache";
        table.text.push(format!("{what}, in the proxy's time: {of_proxy:.1}; in that of all servers: {of_all:.1}"));
    }
}
