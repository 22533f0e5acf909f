//! The suite `rpc`: calls of ONC RPC natively over every transport, and of libtirpc plain and under `sidestep run`.
//!
//! Client and server are processes of their own ([`end`], or the C programs of the kit). Each way is measured once per
//! round, so that all take turns; what is shown is the median of the rounds.

pub mod end;
mod table;
mod way;

use anyhow::{Result, ensure};

use super::place::{Cores, Placement};
use super::record::Metric;
use super::sink::Sink;
use super::sockets::apps::kit::{self, Kit};
use super::sockets::apps::service::missing;
use super::{options, progress::Plan, show_progress};
use end::Calls;
use table::{Claim, Limit, Line, Table};
use way::{Peer, WAYS, Way};

/// What `bench list` says of the suite.
pub const ABOUT: &str = "ONC RPC natively over every transport, beside libtirpc plain and under run: null calls, sizes of \
    arguments, calls by threads, chunks of RDMA";

/// One measurement by name.
struct Bench {
    name: &'static str,
    about: &'static str,
    /// Bytes of arguments; none is the null call.
    sizes: &'static [usize],
    threads: &'static [usize],
    /// Calls of each thread that are outstanding at a time.
    outstanding: usize,
    /// The ways that are measured; without any, all that make calls.
    ways: &'static [&'static str],
    /// Where kernel paths are measured, too: both ends on one core is where they are often best.
    placements: &'static [Placement],
    metrics: &'static [Metric],
    claims: &'static [Claim],
}

const BENCHES: &[Bench] = &[
    Bench {
        name: "null",
        about: "a call without arguments and results: time, and processor time of both ends",
        sizes: &[0],
        threads: &[1],
        outstanding: 1,
        ways: &[],
        placements: &[Placement::Free, Placement::Same],
        metrics: &[Metric::CallP50, Metric::CallP99, Metric::CallP999, Metric::CpuPerCall],
        claims: &[
            Claim { ours: "shm", against: "channel", limit: Limit::AtMost(1.4) },
            // Seed 001, figure 7: 35 against 149 us, 77 % below.
            Claim { ours: "shm", against: "tirpc-tcp", limit: Limit::AtMost(0.23) },
            Claim { ours: "shm", against: "tirpc-ring", limit: Limit::AtMost(1.0) },
        ],
    },
    Bench {
        name: "sizes",
        about: "calls with opaque arguments of up to 64 KiB (figure 7 of seed 001 goes to 4 KB)",
        sizes: &[64, 1 << 10, 4 << 10, 16 << 10, 64 << 10],
        threads: &[1],
        outstanding: 1,
        ways: &[],
        placements: &[Placement::Free],
        metrics: &[Metric::CallP50, Metric::CpuPerCall],
        claims: &[],
    },
    Bench {
        name: "threads",
        about: "null calls per second by threads: natively over one connection, with libtirpc over one each",
        sizes: &[0],
        threads: &[1, 2, 4, 8],
        outstanding: 1,
        ways: &[],
        placements: &[Placement::Free],
        metrics: &[Metric::Requests, Metric::CpuPerCall],
        claims: &[],
    },
    Bench {
        name: "chunks",
        about: "arguments of 64 KiB as read chunks of RDMA, eight calls outstanding, against as many RDMA reads without RPC",
        sizes: &[64 << 10],
        threads: &[1],
        outstanding: 8,
        ways: &["rdma", "rdma-read"],
        placements: &[Placement::Free],
        metrics: &[Metric::Bandwidth, Metric::CpuPerCall],
        claims: &[Claim { ours: "rdma", against: "rdma-read", limit: Limit::AtLeast(0.8) }],
    },
];

/// How much to measure.
#[derive(Clone, Copy)]
struct Effort {
    rounds: usize,
    run_ms: u64,
    cores: Cores,
}

/// Prints the benches of the suite.
pub fn list() {
    println!("rpc: {ABOUT}");
    for bench in BENCHES {
        println!("  {:<11} {}", bench.name, bench.about);
    }
    for way in WAYS {
        println!("  {:<11} {}", way.name, way.about);
    }
}

/// Runs the suite.
pub fn run(options: &options::Bench, sink: &mut Sink) -> Result<()> {
    let is_bench = |word: &str| BENCHES.iter().any(|bench| bench.name == word);
    let is_way = |word: &str| WAYS.iter().any(|way| way.name == word);
    for word in &options.only {
        ensure!(is_bench(word) || is_way(word), "--only {word}: no such bench or way; see `sidestep bench list`");
    }
    let (benches, ways): (Vec<&String>, Vec<&String>) = options.only.iter().partition(|word| is_bench(word));
    let rounds = options.rounds_or(9, 3);
    let run_ms = if options.quick { 40 } else { 150 };
    let effort = Effort { rounds, run_ms, cores: Cores::choose(&options.cores)? };
    let mut ways: Vec<&Way> =
        WAYS.iter().filter(|way| ways.is_empty() || ways.iter().any(|word| *word == way.name)).collect();
    let kit = kit(&mut ways);
    let wanted = |bench: &&Bench| benches.is_empty() || benches.iter().any(|word| *word == bench.name);
    let wanted: Vec<&Bench> = BENCHES.iter().filter(wanted).collect();
    let steps: usize = wanted.iter().map(|bench| lines(bench, &ways).len() * effort.rounds).sum();
    let plan = Plan::of(steps as f64);
    for bench in wanted {
        let table = measure(bench, &ways, kit.as_ref(), &effort, &plan)?;
        show_progress("");
        table.report(sink);
    }
    Ok(())
}

/// The programs with libtirpc. If they cannot be had, their ways are left out, with a word.
fn kit(ways: &mut Vec<&Way>) -> Option<Kit> {
    if !ways.iter().any(|way| way.peer == Peer::Tirpc) {
        return None;
    }
    let built = missing(&["rpcgen", "cc"]).map_or_else(kit::rpc, |why| Err(anyhow::anyhow!(why)));
    match built {
        Ok(kit) => Some(kit),
        Err(error) => {
            eprintln!("sidestep: the ways with libtirpc are left out: {error:#}");
            ways.retain(|way| way.peer != Peer::Tirpc);
            None
        }
    }
}

/// The lines of a bench, without figures.
fn lines(bench: &Bench, ways: &[&Way]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let is_measured = |way: &Way| match bench.ways {
        [] => way.peer != Peer::Memory,
        ways => ways.contains(&way.name),
    };
    for way in ways.iter().filter(|way| is_measured(way)) {
        for placement in bench.placements.iter().filter(|placement| way.kernel || **placement == Placement::Free) {
            for size in bench.sizes.iter().filter(|size| **size <= way.largest) {
                for threads in bench.threads.iter().filter(|threads| **threads == 1 || way.peer != Peer::Channel) {
                    lines.push(Line::new(way.name, *placement, *size, *threads));
                }
            }
        }
    }
    lines
}

/// Whether a run has such a line.
#[cfg(test)]
pub fn has(bench: &str, path: &str, size: usize, metric: Metric) -> bool {
    let ways: Vec<&Way> = WAYS.iter().collect();
    let bench = BENCHES.iter().find(|own| own.name == bench && own.metrics.contains(&metric));
    bench.is_some_and(|bench| lines(bench, &ways).iter().any(|line| line.way == path && line.size == size))
}

fn measure(bench: &Bench, ways: &[&Way], kit: Option<&Kit>, effort: &Effort, plan: &Plan) -> Result<Table<'static>> {
    let mut lines = lines(bench, ways);
    for round in 0..effort.rounds {
        for line in &mut lines {
            plan.step(1.0, &format!("{}: round {} of {}, {}", bench.name, round + 1, effort.rounds, line.way));
            let Some(way) = ways.iter().find(|way| way.name == line.way) else { continue };
            let (size, threads, outstanding) = (line.size, line.threads, bench.outstanding);
            let calls = Calls { size, threads, outstanding, run_ms: effort.run_ms };
            line.rounds.push(way.measure(kit, calls, line.placement, effort.cores)?);
        }
    }
    Ok(Table { bench: bench.name, about: bench.about, metrics: bench.metrics, claims: bench.claims, lines })
}
