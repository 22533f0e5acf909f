//! `sidestep bench`: named workloads, candidates and baselines interleaved in one run.
//!
//! A suite is a list of paths. Two processes on two cores (or one) exercise each path in short
//! rounds, every path once per round. A bare cache-line exchange before and after each measurement
//! tells whether the cores were disturbed, and the processor time whether another program had them;
//! if so, the measurement is dropped and counted.
//!
//! To add a path: write a file with a `pub const PATH: Path` (see [`path`]) and name it in its
//! suite below. To add a suite: add it to [`SUITES`].

mod all;
mod balance;
mod busy;
mod cache;
mod cacheline;
mod clock;
mod compare;
mod control;
mod cost;
mod descriptor;
mod duo;
mod events;
mod exercise;
pub mod extended;
pub mod filters;
mod floor;
mod hosts;
mod in_place;
mod iwarp;
mod machine;
mod memcpy;
pub mod orb;
mod page;
mod pair;
mod path;
mod payload;
mod peers;
mod pipe;
mod place;
mod progress;
mod promise;
mod queue;
mod queue_events;
mod rdma;
mod record;
mod report;
mod ring;
mod rounds;
pub mod rpc;
mod saved;
mod seeds;
mod shared;
mod sheet;
mod sink;
pub mod sockets;
mod sovia;
mod stats;
mod table;
mod tcp;
mod unix;
mod via;
mod via_calls;
mod via_server;
pub mod vmmc;
mod wake;
pub mod worker;

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};

use crate::options;
use hosts::Hosts;
use machine::Machine;
use path::{Bench, Part, Path};
use place::{Cores, Kept};
use progress::show as show_progress;
use rounds::Effort;
use saved::Saved;
use sink::Sink;

/// A named list of paths.
pub struct Suite {
    name: &'static str,
    about: &'static str,
    paths: &'static [Path],
}

/// Every suite.
static SUITES: &[Suite] = &[
    Suite {
        name: "fabric",
        about: "message latency, rate, bandwidth, waking, events and the cost of making things, against the limits of the \
            machine and the kernel's own paths",
        paths: &[
            cacheline::PATH,
            ring::PATH,
            queue::STREAM,
            queue::SLOTS,
            in_place::COPIED,
            in_place::IN_PLACE,
            rdma::PATH,
            memcpy::MEMCPY,
            memcpy::COPY,
            wake::EVENTFD,
            wake::YIELD,
            tcp::PATH,
            unix::PATH,
            pipe::PATH,
            events::PATH,
            queue_events::PATH,
            cost::ENDPOINT,
            cost::ENDPOINT_AGAIN,
            cost::CHANNEL_AGAIN,
            cost::REGION,
            cost::REGISTER,
            cost::APERTURE,
            cost::TRIPWIRE,
            cost::SOCKET,
        ],
    },
    Suite {
        name: "via",
        about: "the VIA provider: half round trip, rate, bandwidth, completion-queue server, calls; beside them the \
                fabric's queue and rdma, the bare ring, and kernel TCP",
        paths: &[
            cacheline::PATH,
            via::LIBRARY,
            via::TWO,
            via::SINGLE,
            via::PIO,
            via::RDMA,
            via::MALLOC,
            via::MALLOC_TWO,
            via::QUEUE,
            via::TCP,
            via_server::SERVER,
            via_server::IDLE,
            events::REQUESTS,
            events::REQUESTS_IDLE,
            via_calls::RECV_NONE,
            via_calls::SEND_NONE,
            via_calls::CLOCK,
            via_calls::LOCK,
            via_calls::POST_RECV,
            via_calls::POST_SEND,
            via_calls::RECV_DONE,
            via_calls::SEND_DONE,
            via_calls::RECV_NONE_SINGLE,
            via_calls::POST_RECV_SINGLE,
            via_calls::POST_SEND_SINGLE,
            via_calls::RECV_DONE_SINGLE,
            via_calls::SEND_DONE_SINGLE,
            via_calls::TRANSMIT_PIO,
            via_calls::TRANSMIT_RDMA,
            via_calls::WRITE,
            via_calls::WRITE_MALLOC,
            rdma::PATH,
            rdma::FOUR,
            ring::PATH,
        ],
    },
    Suite {
        name: "iwarp",
        about: "iWARP over TCP between two processes: send, RDMA write and read, by size, marker interval and checksum, \
                against plain TCP over the same path",
        paths: &[
            cacheline::PATH,
            iwarp::TCP,
            iwarp::RENO,
            iwarp::WRITE,
            iwarp::SEEN,
            iwarp::PLAIN,
            iwarp::READ,
            iwarp::SEND,
            iwarp::M512,
            iwarp::M4096,
            iwarp::M32768,
            iwarp::M512_PLAIN,
            iwarp::M4096_PLAIN,
            iwarp::M32768_PLAIN,
            busy::TCP,
            busy::IWARP,
            busy::SHM,
        ],
    },
    Suite {
        name: "sovia",
        about: "links, which carry sockets over VIA: mechanism by mechanism, beside the VI itself, the ring and TCP; then \
                FTP and ONC RPC",
        paths: &[
            cacheline::PATH,
            sovia::HANDLER,
            sovia::SINGLE,
            sovia::FLOWCTRL,
            sovia::DACKS,
            sovia::COMBINE,
            sovia::BEST,
            sovia::DS,
            sovia::DS_DA,
            sovia::DS_DA_UQ,
            sovia::DG,
            sovia::RAW,
            sovia::RAW_MALLOC,
            sovia::PACKETISED,
            sovia::BYTE_RING,
            sovia::SLOT_CREDITS,
            sovia::CREDITS,
            sovia::CREDITS_1,
            sovia::CREDITS_2,
            sovia::CREDITS_4,
            sovia::CREDITS_8,
            sovia::CREDITS_16,
            sovia::CREDITS_32,
            sovia::buffer::CREDITS,
            sovia::buffer::PACKETISED,
            sovia::buffer::SLOT_CREDITS,
            sovia::TCP,
        ],
    },
];

impl Suite {
    /// The suite of this name.
    fn named(name: &str) -> Result<&'static Suite> {
        SUITES.iter().find(|suite| suite.name == name).ok_or_else(|| {
            let names: Vec<&str> = SUITES
                .iter()
                .map(|suite| suite.name)
                .chain([
                    "sockets", "orb", "rpc", "filters", "vmmc", "extended", "cache", "balance", "all", "seeds", "peers",
                ])
                .collect();
            anyhow!("no suite {name}; there are: {}", names.join(", "))
        })
    }

    /// The parts that a filter leaves. Its words name paths, lines or benches; of each kind that is
    /// named, only the named ones are left.
    fn parts(&'static self, only: &[String]) -> Result<Vec<(&'static Path, &'static Part)>> {
        let all = || self.paths.iter().flat_map(|path| path.parts.iter().map(move |part| (path, part)));
        let names_bench =
            |word: &str, bench: Bench| word == bench.name() || word.split_once('.') == Some((self.name, bench.name()));
        let names_path = |word: &str, path: &Path, part: &Part| word == path.name || word == part.row;
        let (benches, paths): (Vec<&String>, Vec<&String>) =
            only.iter().partition(|word| Bench::ALL.iter().any(|bench| names_bench(word, *bench)));
        for word in &paths {
            ensure!(
                all().any(|(path, part)| names_path(word, path, part)),
                "--only {word}: no such path or bench; see `sidestep bench list`"
            );
        }
        let chosen: Vec<_> = all()
            .filter(|(_, part)| benches.is_empty() || benches.iter().any(|word| names_bench(word, part.bench)))
            .filter(|(path, part)| paths.is_empty() || paths.iter().any(|word| names_path(word, path, part)))
            .collect();
        ensure!(!chosen.is_empty(), "--only {} leaves nothing to measure", only.join(","));
        Ok(chosen)
    }
}

/// Runs `sidestep bench`.
pub fn run(options: &options::Bench) -> Result<()> {
    if options.suite == "list" {
        list();
        return Ok(());
    }
    if options.suite == "compare" {
        return compare::run(options);
    }
    if let Some(folder) = &options.report {
        page::prepare(folder)?;
    }
    let begin = Instant::now();
    let machine = options.report.is_some().then(Machine::describe).unwrap_or_default();
    let mut sink = Sink::new(options.json);
    let outcome = measure(options, &mut sink);
    if let Some(folder) = &options.report {
        let records = sink.into_records();
        let seconds = begin.elapsed().as_secs_f64();
        page::write(folder, &Saved { commands: commands(), seconds, machine, records })?;
        eprintln!("{}", folder.join("index.html").display());
    }
    outcome
}

/// What repeats this run.
fn commands() -> Vec<String> {
    let plain = |word: &str| word.chars().all(|c| c.is_alphanumeric() || "/._-+,=:@%".contains(c)) && !word.is_empty();
    let words = std::env::args().skip(1);
    let quoted = words.map(|word| if plain(&word) { word } else { format!("'{}'", word.replace('\'', "'\\''")) });
    let line = ["sidestep".to_owned()].into_iter().chain(quoted).collect::<Vec<String>>().join(" ");
    let given = std::env::vars().filter(|(name, _)| name.starts_with("SIDESTEP_"));
    let mut lines: Vec<String> = given.map(|(name, value)| format!("export {name}='{value}'")).collect();
    lines.sort();
    lines.push(line);
    lines
}

/// Measures a suite, or several.
fn measure(options: &options::Bench, sink: &mut Sink) -> Result<()> {
    let _cores = Kept::now()?;
    match options.suite.as_str() {
        "all" => return all::run(options, sink),
        "seeds" => return seeds::run(options, sink),
        _ => {}
    }
    ensure!(options.builds.is_empty(), "only `compare` and `seeds` take files; see `sidestep bench --help`");
    match options.suite.as_str() {
        "sockets" => return sockets::run(options, sink),
        "orb" => return orb::run(options, sink),
        "rpc" => return rpc::run(options, sink),
        "filters" => return filters::run(options, sink),
        "vmmc" => return vmmc::run(options, sink),
        "extended" => return extended::run(options, sink),
        "cache" => return cache::run(options, sink),
        "balance" => return balance::run(options, sink),
        "peers" => return peers::run(options, sink),
        _ => {}
    }
    let suite = Suite::named(&options.suite)?;
    let is_app = |word: &String| sovia::apps::BENCHES.iter().any(|bench| bench.name == word);
    if suite.name == "sovia" && !options.only.is_empty() && options.only.iter().all(is_app) {
        return sockets::run_these(sovia::apps::BENCHES, options, sink);
    }
    let mut parts = suite.parts(&options.only)?;
    let cores = Cores::choose(&options.cores)?;
    let hosts = match options.netns {
        true => {
            ensure!(
                suite.name == "iwarp",
                "--netns is for the suite iwarp: the paths of {} are on one host",
                suite.name
            );
            parts.retain(|(path, _)| path.name != busy::SHM.name);
            Some(Hosts::make()?)
        }
        false => None,
    };
    let (measured, floor) = rounds::measure(suite, &parts, cores, hosts.as_ref(), &effort(options))?;
    let lines = report::lines(&measured, floor);
    let floor = report::floor_record(suite, &measured, floor);
    sink.take(lines.iter().flat_map(|line| line.records(suite)).chain([floor.clone()]));
    if !sink.is_json() {
        table::print(suite, &lines, &floor);
    }
    if suite.name == "sovia" {
        if !sink.is_json() {
            sovia::ladder::print(&lines);
        }
        if let Some(file) = &options.plot {
            sovia::plot::draw(&lines, file)?;
        }
        if options.only.is_empty() && !options.quick {
            sockets::run_these(sovia::apps::BENCHES, options, sink)?;
        }
    }
    Ok(())
}

fn effort(options: &options::Bench) -> Effort {
    let (budget, patience) = match options.quick {
        true => (Duration::from_millis(5), Duration::from_secs(25)),
        false => (Duration::from_millis(10), Duration::from_secs(240)),
    };
    Effort { rounds: options.rounds_or(25, 9), budget, patience: patience.mul_f64(options.share) }
}

fn list() {
    for suite in SUITES {
        println!("{}: {}", suite.name, suite.about);
        for path in suite.paths {
            let mut benches: Vec<&str> = path.parts.iter().map(|part| part.bench.name()).collect();
            benches.dedup();
            println!("  {:<10} {} ({})", path.name, path.about, benches.join(", "));
        }
        if suite.name == "sovia" {
            sovia::apps::BENCHES.iter().for_each(|bench| println!("  {:<10} {}", bench.name, bench.about));
        }
    }
    println!("orb: {}", orb::ABOUT);
    orb::TABLES.iter().for_each(|(name, about)| println!("  {name:<11} {about}"));
    println!("sockets: {}", sockets::ABOUT);
    for bench in sockets::benches() {
        println!("  {:<11} {}", bench.name, bench.about);
    }
    rpc::list();
    filters::list();
    vmmc::list();
    extended::list();
    cache::list();
    balance::list();
    println!("all: the workloads of the documents as one list");
    all::WORKLOADS.iter().for_each(|workload| println!("  {:<21} {}", workload.name, workload.about));
    println!("peers: {}", peers::ABOUT);
    peers::PEERS.iter().for_each(|peer| println!("  {:<14} {}", peer.name, peer.about));
    println!("seeds: every table and figure of the documents, and what is measured here");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_name_paths_and_benches() {
        let suite = Suite::named("fabric").unwrap();
        let count = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
            suite.parts(&words).map(|parts| parts.len()).ok()
        };
        assert_eq!(count(&["cacheline"]), Some(1));
        assert_eq!(count(&["tcp-spin", "latency"]), Some(1));
        let wakes = suite.paths.iter().flat_map(|path| path.parts).filter(|part| part.bench == Bench::Wake);
        assert_eq!(count(&["fabric.wake"]), Some(wakes.count()));
        assert_eq!(count(&["nothing"]), None);
        assert_eq!(count(&["cacheline", "rate"]), None);
        assert!(count(&[]) > count(&["latency"]));
    }
}
