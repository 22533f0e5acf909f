//! `sidestep bench all`: the workloads of the documents as one list, in the order of the report.

use std::time::Instant;

use anyhow::{Result, bail};

use super::sink::Sink;
use super::{measure, options, progress};

/// One workload: a part of a suite.
pub struct Workload {
    /// Its name, as the documents have it.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    suite: &'static str,
    only: &'static [&'static str],
    /// What it takes with `--quick`, in seconds; in full it takes about five times as much.
    seconds: f64,
}

const fn workload(
    name: &'static str,
    about: &'static str,
    suite: &'static str,
    only: &'static [&'static str],
    seconds: f64,
) -> Workload {
    Workload { name, about, suite, only, seconds }
}

/// The list.
pub const WORKLOADS: &[Workload] = &[
    workload("ping-pong", "a message there and back, 64 bytes and by size", "sockets", &["latency", "pingpong"], 18.0),
    workload("sleeping", "a message each millisecond to an end that sleeps", "sockets", &["sleeping"], 12.0),
    workload("rate", "64-byte messages one way", "sockets", &["rate"], 4.0),
    workload("one-way bandwidth", "streams by size of the writes", "sockets", &["bandwidth"], 9.0),
    workload("two-way bandwidth", "both ends send at the same time", "sockets", &["twoway"], 5.0),
    workload("connection rate", "connect, one request, close", "sockets", &["connections"], 6.0),
    workload("multi-stream", "several streams between two processes", "sockets", &["streams"], 10.0),
    workload("hot-spot", "one server that many processes exchange with", "sockets", &["hotspot"], 10.0),
    workload("fan-in", "several processes stream to one", "sockets", &["fanin"], 10.0),
    workload("fan-out", "one process streams to several", "sockets", &["fanout"], 10.0),
    workload("dual", "one process streams to some and from others", "sockets", &["dual"], 8.0),
    workload("request/response", "by number of connections", "sockets", &["requests"], 18.0),
    workload("nothing to accelerate", "a program over UNIX sockets, plain and under run", "sockets", &["foreign"], 2.0),
    workload("Redis", "an application", "sockets", &["redis"], 14.0),
    workload(
        "fabric",
        "messages without sockets, beside the limits of the machine",
        "fabric",
        &["latency", "rate", "bandwidth"],
        50.0,
    ),
    workload("VIA", "the VIA provider", "via", &["latency", "rate"], 25.0),
    workload("ONC RPC", "null calls by transport", "rpc", &["null"], 15.0),
    workload("CORBA", "null calls by transport", "orb", &["null"], 20.0),
];

/// What `--quick` promises for the whole list, in seconds, without what the report takes.
const PROMISED: f64 = 285.0;
/// The least part of the rounds of a workload: one of five.
const LEAST: f64 = 0.2;

/// The part of the rounds that there is time for: all of them, unless what is done took longer than planned, as on a busy
/// machine. `passed` is in seconds, `done` and `left` in seconds of the plan.
fn share(passed: f64, done: f64, left: f64) -> f64 {
    let pace = if done > 0.0 { (passed / done).max(1.0) } else { 1.0 };
    ((PROMISED - passed) / (pace * left)).clamp(LEAST, 1.0)
}

/// Runs all of them. One that fails does not keep the others away.
pub fn run(options: &options::Bench, sink: &mut Sink) -> Result<()> {
    let begin = Instant::now();
    let scale = if options.quick { 1.0 } else { 5.0 };
    let chosen = chosen(&options.only)?;
    let total: f64 = chosen.iter().map(|workload| workload.seconds * scale).sum();
    let (mut done, mut measured, mut failed) = (0.0, 0.0, Vec::new());
    for workload in chosen {
        let share = if options.quick { share(begin.elapsed().as_secs_f64(), measured, total - done) } else { 1.0 };
        progress::step(begin, done, total, workload.name);
        if !sink.is_json() {
            println!("== {}: {}", workload.name, workload.about);
        }
        let step = options::Bench {
            suite: workload.suite.into(),
            only: workload.only.iter().map(|word| word.to_string()).collect(),
            share,
            ..options.clone()
        };
        if let Err(error) = measure(&step, sink) {
            eprintln!("sidestep: {}: {error:#}", workload.name);
            failed.push(workload.name);
        }
        done += workload.seconds * scale;
        measured += workload.seconds * scale * share;
    }
    progress::end();
    match failed.is_empty() {
        true => Ok(()),
        false => bail!("not measured: {}", failed.join(", ")),
    }
}

/// The workloads that a filter leaves, by name or suite.
fn chosen(only: &[String]) -> Result<Vec<&'static Workload>> {
    for word in only {
        if !WORKLOADS.iter().any(|workload| workload.name == word || workload.suite == word) {
            bail!("--only {word}: no such workload; see `sidestep bench list`");
        }
    }
    let fits = |workload: &&Workload| {
        only.is_empty() || only.iter().any(|word| word == workload.name || word == workload.suite)
    };
    Ok(WORKLOADS.iter().filter(fits).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_run_is_planned_for_less_than_five_minutes() {
        assert!(WORKLOADS.iter().map(|workload| workload.seconds).sum::<f64>() < 270.0);
    }

    /// A machine that is half as fast gets half of the rounds for what is left, and one that is far behind one round.
    #[test]
    fn a_busy_machine_takes_fewer_rounds() {
        assert_eq!((share(0.0, 0.0, 256.0), share(50.0, 56.0, 200.0)), (1.0, 1.0));
        let half = share(100.0, 50.0, 200.0);
        assert!((0.4..0.5).contains(&half), "{half}");
        assert_eq!(share(400.0, 200.0, 50.0), LEAST);
    }

    #[test]
    fn filters_name_workloads_and_suites() {
        let count = |word: &str| chosen(&[word.to_string()]).map(|chosen| chosen.len()).ok();
        assert_eq!(count("fan-in"), Some(1));
        assert!(count("sockets") > Some(10));
        assert_eq!(count("nothing"), None);
    }

    #[test]
    fn every_workload_names_benches_that_are() {
        for workload in WORKLOADS.iter().filter(|workload| workload.suite == "sockets") {
            for word in workload.only {
                assert!(super::super::sockets::benches().any(|bench| bench.name == *word), "{word}");
            }
        }
    }
}
