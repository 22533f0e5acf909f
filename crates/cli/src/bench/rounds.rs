//! The rounds of a run: every path once per round, so that all see the same machine.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::clock::Stopwatch;
use super::exercise::Run;
use super::floor::{Around, Floor};
use super::hosts::Hosts;
use super::pair::{EndId, Outcome, Pair};
use super::path::{Bench, Operation, Part, Path, Solo, Wait, Work};
use super::place::{Cores, Placement, pin};
use super::record::Metric;
use super::stats::OneWay;
use super::{Suite, progress::Plan};

/// How much to measure.
pub struct Effort {
    /// Rounds to take, and more as long as too many of them had to be dropped.
    pub rounds: usize,
    /// Time of one measurement.
    pub budget: Duration,
    /// No further rounds beyond `rounds` after this time.
    pub patience: Duration,
}

/// All samples of one line at one size and placement.
pub struct Measured {
    /// The path.
    pub path: &'static Path,
    /// The part of it.
    pub part: &'static Part,
    /// Where the processes ran.
    pub placement: Placement,
    /// Bytes per message.
    pub size: usize,
    /// What was measured, round by round.
    pub samples: Vec<Sample>,
}

/// One measurement.
pub struct Sample {
    /// The round it is of.
    pub round: usize,
    /// Its figures, without those that come from `one_way`.
    pub figures: Vec<(Metric, f64)>,
    /// The times of its messages, if each was timed.
    pub one_way: Option<OneWay>,
    /// Which share of the time its processes were running, of those that never sleep.
    pub running_share: f64,
    /// The floor around it.
    pub floor: Around,
}

impl Sample {
    /// Whether it counts: with the floor of the run around it, and no other program on its cores.
    pub fn is_calm(&self, floor_of_run: f64) -> bool {
        self.floor.is_calm(floor_of_run) && self.running_share >= RUNNING_SHARE
    }

    /// How far it is from that, for choosing among those that do not count.
    pub fn distance(&self, floor_of_run: f64) -> f64 {
        self.floor.distance(floor_of_run) / self.running_share.clamp(0.01, 1.0)
    }
}

/// Measures these parts of a suite. Returns what was measured, and the floor of the run.
pub fn measure(
    suite: &Suite,
    parts: &[(&'static Path, &'static Part)],
    cores: Cores,
    hosts: Option<&Hosts>,
    effort: &Effort,
) -> Result<(Vec<Measured>, f64)> {
    let begin = Instant::now();
    let mut pairs = Pairs::start(suite, parts, cores, hosts)?;
    let mut cells = Vec::new();
    for (path, part) in parts {
        for placement in part.placements {
            cells.extend(pairs.cells(path, part, *placement)?);
        }
    }
    for cell in &mut cells {
        cell.calibrate(&mut pairs, effort.budget)?;
    }
    let mut before = pairs.floor()?;
    let plan = Plan::of(effort.rounds as f64);
    for round in 0..effort.rounds * MOST_ROUNDS_FACTOR {
        let floor = pairs.floor.of_run();
        let more = round < effort.rounds || begin.elapsed() < effort.patience;
        let lacking = |cell: &Cell| cell.calm_samples(floor) < effort.rounds.div_ceil(2);
        if !more || round >= effort.rounds && !cells.iter().any(lacking) {
            break;
        }
        plan.step(1.0, &format!("round {} of {}", round + 1, effort.rounds));
        for cell in &mut cells {
            if round >= effort.rounds && !lacking(cell) {
                continue;
            }
            let (mut sample, _) = cell.sample(&mut pairs)?;
            let after = pairs.floor()?;
            sample.floor = Around { before, after };
            sample.round = round;
            before = after;
            cell.measured.samples.push(sample);
        }
    }
    drop(plan);
    Ok((cells.into_iter().map(|cell| cell.measured).collect(), pairs.floor.of_run()))
}

/// The pairs of processes, one for each placement in use; the one on two cores always.
struct Pairs {
    cores: Cores,
    by_placement: Vec<(Placement, Pair)>,
    floor: Floor,
}

impl Pairs {
    fn start(
        suite: &Suite,
        parts: &[(&'static Path, &'static Part)],
        cores: Cores,
        hosts: Option<&Hosts>,
    ) -> Result<Pairs> {
        let mut by_placement = Vec::new();
        for placement in Placement::ALL {
            let used = parts.iter().any(|(_, part)| part.placements.contains(&placement));
            if used || placement == Placement::Cross {
                by_placement.push((placement, Pair::start(suite.name, placement, cores, hosts)?));
            }
        }
        let floor = Floor::open(&mut by_placement[0].1)?;
        Ok(Pairs { cores, by_placement, floor })
    }

    /// One cell for each size of a part, each with an end of its own: a size never inherits odd
    /// positions in a ring, or buffers grown for others, from the one before.
    fn cells(&mut self, path: &'static Path, part: &'static Part, placement: Placement) -> Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for size in part.sizes {
            let source = match path.work {
                Work::Pair { .. } => Source::Pair(self.pair(placement).open(path, part.wait)?),
                Work::Solo { make } => Source::Solo(make().with_context(|| format!("cannot make {}", path.name))?),
            };
            let measured = Measured { path, part, placement, size: *size, samples: Vec::new() };
            cells.push(Cell { measured, source, count: 1 });
        }
        Ok(cells)
    }

    fn pair(&mut self, placement: Placement) -> &mut Pair {
        let found = self.by_placement.iter_mut().find(|(own, _)| *own == placement);
        &mut found.expect("a pair for each placement in use").1
    }

    fn floor(&mut self) -> Result<f64> {
        self.floor.read(&mut self.by_placement[0].1)
    }
}

/// One line at one size and placement, ready to be measured.
struct Cell {
    measured: Measured,
    source: Source,
    count: usize,
}

enum Source {
    Pair(EndId),
    Solo(Box<dyn Solo>),
}

impl Cell {
    /// Finds the count that takes about the budget.
    fn calibrate(&mut self, pairs: &mut Pairs, budget: Duration) -> Result<()> {
        let (least, most) = match self.measured.part.operation {
            Operation::PingPong => (50, 20_000),
            Operation::Stream => (8, 2_000_000),
            Operation::Wake => (20, 400),
        };
        let budget = budget.as_nanos() as u64;
        self.count = least;
        loop {
            let (_, time) = self.sample(pairs)?;
            let fitting = self.count as u64 * budget / time.max(1);
            let tried = self.count;
            self.count = (fitting as usize).clamp(least, most);
            if time > budget / 4 || self.count <= tried {
                return Ok(());
            }
            // A first guess from few messages can be far off; approach in steps.
            self.count = self.count.min(tried * 8);
        }
    }

    /// Measures once. Also returns the nanoseconds that it took.
    fn sample(&mut self, pairs: &mut Pairs) -> Result<(Sample, u64)> {
        let Measured { path, part, placement, size, .. } = self.measured;
        let described = || format!("{} of {} at {size} bytes", part.bench.name(), part.row);
        let (figures, one_way, running_share, time) = match &mut self.source {
            Source::Pair(end) => {
                let run = Run { operation: part.operation, size, count: self.count, shift: part.shift };
                let outcome = pairs.pair(placement).measure(*end, run).with_context(described)?;
                let (figures, one_way) = evaluate(part.bench, &run, &outcome);
                let share = running_share(part.wait, placement, &outcome);
                (figures, one_way, share, outcome.leader.elapsed.time)
            }
            Source::Solo(solo) => {
                pin(&pairs.cores.leader(placement))?;
                let watch = Stopwatch::start();
                let figures = solo.measure(size, self.count).with_context(|| path.name)?;
                let elapsed = watch.elapsed();
                (figures, None, elapsed.running_share(), elapsed.time)
            }
        };
        let floor = Around { before: f64::INFINITY, after: f64::INFINITY };
        Ok((Sample { round: 0, figures, one_way, running_share, floor }, time))
    }

    fn calm_samples(&self, floor: f64) -> usize {
        self.measured.samples.iter().filter(|sample| sample.is_calm(floor)).count()
    }
}

/// The figures of one run between two processes, and the times of its messages.
fn evaluate(bench: Bench, run: &Run, outcome: &Outcome) -> (Vec<(Metric, f64)>, Option<OneWay>) {
    let (leader, worker) = (&outcome.leader, &outcome.worker);
    let (one_way, messages) = match run.operation {
        Operation::PingPong => (Some(OneWay::from_trips(&leader.trips)), 2 * run.count),
        Operation::Stream => (None, run.count),
        Operation::Wake => (Some(OneWay::from_messages(&worker.messages)), 2 * run.count),
    };
    let mut figures = Vec::new();
    let per_second = run.count as f64 * 1e9 / leader.elapsed.time.max(1) as f64;
    match bench {
        Bench::Rate => figures.push((Metric::Rate, per_second)),
        Bench::Bandwidth => figures.push((Metric::Bandwidth, per_second * run.size as f64)),
        _ => {}
    }
    // The waker of a wake keeps its core busy on purpose.
    if run.operation != Operation::Wake {
        let used = leader.elapsed.processor_time + worker.elapsed.processor_time;
        figures.push((Metric::CpuPerMessage, used as f64 / messages as f64));
    }
    (figures, one_way)
}

/// Which share of the time the measurement had the cores it was meant to have; one where that
/// cannot be told, because its processes sleep.
fn running_share(wait: Wait, placement: Placement, outcome: &Outcome) -> f64 {
    let shares = [&outcome.leader, &outcome.worker].map(|seen| seen.elapsed.running_share());
    match (placement, wait) {
        (Placement::Cross, Wait::Spin) => shares[0].min(shares[1]),
        (Placement::Same, _) => shares[0] + shares[1],
        _ => 1.0,
    }
}

const MOST_ROUNDS_FACTOR: usize = 3;

/// Below this share of the cores, another program was in the way.
const RUNNING_SHARE: f64 = 0.93;
