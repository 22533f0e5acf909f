//! The suite `sockets`: unmodified programs over kernel TCP, over UNIX sockets, and under `sidestep run`, taking turns.
//!
//! The ends are this program in its hidden role `socket-end` ([`end`]), which uses sockets through the C library as any
//! program does; the applications ([`apps`]) are whatever is installed. TCP is measured unpinned and on one core, and
//! the better one is the baseline.

pub mod apps;
mod bulk;
pub mod end;
pub mod job;
mod micro;
pub mod outcome;
pub mod pair;
mod patterns;
pub mod round;
pub mod showing;
pub mod tools;
mod wire;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::place::Cores;
use super::sink::Sink;
use super::{options, progress::Plan, show_progress};
use outcome::Outcome;

/// How much to measure.
#[derive(Clone, Copy)]
pub struct Effort {
    /// Rounds of each measurement.
    pub rounds: usize,
    /// Milliseconds of each measurement.
    pub run_ms: u64,
    /// No more than a look at each, and no applications but one.
    pub quick: bool,
    /// The two cores.
    pub cores: Cores,
    /// When a further measurement would be too late.
    pub until: Option<Instant>,
}

/// One measurement by name.
pub struct Bench {
    /// Its name in `--only` and in the records.
    pub name: &'static str,
    /// One line of what it is.
    pub about: &'static str,
    /// Whether `--quick` has it.
    pub quick: bool,
    /// Does it.
    pub run: fn(&Effort) -> Result<Vec<Outcome>>,
}

/// What `bench list` says of the suite.
pub const ABOUT: &str = "unmodified programs over kernel TCP, UNIX sockets and Sidestep: half round trips, rates, bandwidth, \
    connections, idling, crowding; and applications";

/// Every bench, in order.
pub fn benches() -> impl Iterator<Item = &'static Bench> {
    micro::BENCHES.iter().chain(tools::BENCHES).chain(patterns::BENCHES).chain(apps::BENCHES)
}

/// Runs the suite.
pub fn run(options: &options::Bench, sink: &mut Sink) -> Result<()> {
    for word in &options.only {
        ensure!(benches().any(|bench| bench.name == word), "--only {word}: no such bench; see `sidestep bench list`");
    }
    run_these(benches(), options, sink)
}

/// Runs benches of the kind of this suite.
pub fn run_these(
    benches: impl IntoIterator<Item = &'static Bench>,
    options: &options::Bench,
    sink: &mut Sink,
) -> Result<()> {
    let begin = Instant::now();
    let rounds = options.rounds_or(9, 5);
    let effort = Effort {
        rounds,
        run_ms: if options.quick { 60 } else { 150 },
        quick: options.quick,
        cores: Cores::choose(&options.cores)?,
        until: options.quick.then_some(begin + QUICK),
    };
    let named = |bench: &&Bench| options.only.iter().any(|word| word == bench.name);
    let chosen = |bench: &&Bench| if options.only.is_empty() { bench.quick || !options.quick } else { named(bench) };
    let mut failed = Vec::new();
    let chosen: Vec<&Bench> = benches.into_iter().filter(chosen).collect();
    let plan = Plan::of(chosen.iter().map(|bench| weight(bench.name)).sum());
    for (number, bench) in chosen.iter().enumerate() {
        plan.step(weight(bench.name), &format!("{}, {} of {}", bench.name, number + 1, chosen.len()));
        if effort.until.is_some_and(|until| Instant::now() > until) {
            let why = "left out: --quick is over its time".into();
            report(&Outcome::skipped(bench.name, bench.about, why), sink);
            continue;
        }
        let outcomes = (bench.run)(&effort);
        show_progress("");
        match outcomes {
            Ok(outcomes) => outcomes.iter().for_each(|outcome| report(outcome, sink)),
            Err(error) => {
                eprintln!("sidestep: {}: {error:#}", bench.name);
                failed.push(bench.name);
            }
        }
    }
    ensure!(failed.is_empty(), "not measured: {}", failed.join(", "));
    Ok(())
}

/// What each takes beside the others: about seconds of a quick run.
fn weight(bench: &str) -> f64 {
    match bench {
        "foreign" => 2.0,
        "rate" | "twoway" | "connections" => 5.0,
        "requests" => 18.0,
        _ => 10.0,
    }
}

fn report(outcome: &Outcome, sink: &mut Sink) {
    sink.take(outcome.records());
    if !sink.is_json() {
        outcome.print();
    }
}

/// What `--quick` may take before it leaves out the rest.
const QUICK: Duration = Duration::from_secs(48);
