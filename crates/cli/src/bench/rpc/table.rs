//! What the suite found: a table for people, or records.

use serde_json::Map;

use super::super::place::Placement;
use super::super::record::{Metric, Record, digits};
use super::super::sink::Sink;
use super::super::stats::{median, spread};
use super::way::Figures;

/// The lines of one bench.
pub struct Table<'a> {
    /// Its name.
    pub bench: &'static str,
    /// What it is.
    pub about: &'static str,
    /// What is shown of each line; the first decides which placement is the better one.
    pub metrics: &'static [Metric],
    /// What was promised.
    pub claims: &'a [Claim],
    /// What was measured.
    pub lines: Vec<Line>,
}

/// One way in one placement, with the figures of all rounds.
pub struct Line {
    /// The name of the way.
    pub way: &'static str,
    /// Where the ends ran.
    pub placement: Placement,
    /// Bytes of arguments.
    pub size: usize,
    /// Threads of the client.
    pub threads: usize,
    /// One a round.
    pub rounds: Vec<Figures>,
}

/// A promise: how one way stands to another by the first metric.
pub struct Claim {
    /// The way that it is about.
    pub ours: &'static str,
    /// The way that it is compared with, where that is at its best.
    pub against: &'static str,
    /// How many times.
    pub limit: Limit,
}

/// How far a promise goes.
#[derive(Clone, Copy)]
pub enum Limit {
    /// It takes at most so many times what the other takes.
    AtMost(f64),
    /// It reaches at least so many times what the other reaches.
    AtLeast(f64),
}

impl Limit {
    fn is_met(self, ratio: f64) -> bool {
        match self {
            Limit::AtMost(most) => ratio <= most,
            Limit::AtLeast(least) => ratio >= least,
        }
    }
}

impl Line {
    /// A line without figures.
    pub fn new(way: &'static str, placement: Placement, size: usize, threads: usize) -> Line {
        Line { way, placement, size, threads, rounds: Vec::new() }
    }

    fn value(&self, metric: Metric) -> Option<f64> {
        median(self.values(metric))
    }

    fn values(&self, metric: Metric) -> Vec<f64> {
        let value = |figures: &Figures| match metric {
            Metric::CallP99 => figures.call[1],
            Metric::CallP999 => figures.call[2],
            Metric::Requests => figures.rate,
            Metric::Bandwidth => figures.rate * self.size as f64,
            Metric::CpuPerCall => figures.cpu,
            _ => figures.call[0],
        };
        self.rounds.iter().map(value).collect()
    }
}

impl Table<'_> {
    /// Prints it.
    pub fn report(&self, sink: &mut Sink) {
        sink.take(self.records());
        if !sink.is_json() {
            self.print();
        }
    }

    /// The best of a way by the first metric.
    fn best(&self, way: &str) -> Option<f64> {
        let metric = self.metrics[0];
        let values = self.lines.iter().filter(|line| line.way == way).filter_map(|line| line.value(metric));
        values.reduce(|left, right| if metric.larger_is_better() { left.max(right) } else { left.min(right) })
    }

    fn verdicts(&self) -> impl Iterator<Item = (&Claim, f64, bool)> {
        self.claims.iter().filter_map(|claim| {
            let ratio = self.best(claim.ours)? / self.best(claim.against)?;
            Some((claim, ratio, claim.limit.is_met(ratio)))
        })
    }

    fn print(&self) {
        let rounds = self.lines.iter().map(|line| line.rounds.len()).max().unwrap_or(0);
        println!("{}: {}; medians of {rounds} rounds", self.bench, self.about);
        print!("  {:<11} {:<5} {:>7} {:>7}", "way", "place", "bytes", "threads");
        self.metrics.iter().for_each(|metric| print!(" {:>12}", metric.heading()));
        println!();
        for line in &self.lines {
            print!("  {:<11} {:<5} {:>7} {:>7}", line.way, line.placement.name(), line.size, line.threads);
            for metric in self.metrics {
                print!(" {:>12}", line.value(*metric).map_or_else(|| "-".into(), |value| metric.shown(value)));
            }
            println!();
        }
        for (claim, ratio, met) in self.verdicts() {
            let (verdict, ratio) = (if met { "met" } else { "MISSED" }, digits(ratio));
            let Claim { ours, against, limit } = claim;
            let (takes, bound, times) = match *limit {
                Limit::AtMost(most) => ("takes", "at most", digits(most)),
                Limit::AtLeast(least) => ("reaches", "at least", digits(least)),
            };
            println!("  {ours} {takes} {ratio} times what {against} {takes}, {bound} {times} promised: {verdict}");
        }
        println!();
    }

    fn records(&self) -> Vec<Record> {
        let bench = format!("rpc.{}", self.bench);
        let mut records = Vec::new();
        for line in &self.lines {
            for metric in self.metrics {
                let Some(value) = line.value(*metric) else { continue };
                let mut extra = Map::new();
                extra.insert("placement".into(), line.placement.name().into());
                extra.insert("threads".into(), line.threads.into());
                extra.insert("rounds".into(), line.rounds.len().into());
                if let Some(spread) = spread(&line.values(*metric)) {
                    extra.insert("spread".into(), spread.into());
                }
                let (bench, path) = (bench.clone(), line.way.into());
                records.push(Record {
                    bench,
                    path,
                    size: line.size,
                    metric: *metric,
                    value,
                    unit: metric.unit(),
                    extra,
                });
            }
        }
        for (claim, ratio, met) in self.verdicts() {
            let mut extra = Map::new();
            extra.insert("against".into(), claim.against.into());
            let (bound, times) = match claim.limit {
                Limit::AtMost(most) => ("at_most", most),
                Limit::AtLeast(least) => ("at_least", least),
            };
            extra.insert(bound.into(), times.into());
            extra.insert("met".into(), met.into());
            let (bench, path, metric) = (bench.clone(), claim.ours.into(), Metric::Ratio);
            records.push(Record { bench, path, size: 0, metric, value: ratio, unit: metric.unit(), extra });
        }
        records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises_are_about_the_better_placement() {
        let line = |way, placement, times: [f64; 3]| Line {
            rounds: times.map(|time| Figures { call: [time; 3], ..Figures::default() }).to_vec(),
            ..Line::new(way, placement, 0, 1)
        };
        let lines = vec![
            line("shm", Placement::Free, [1.0, 2.0, 9.0]),
            line("tcp", Placement::Free, [20.0, 20.0, 20.0]),
            line("tcp", Placement::Same, [10.0, 10.0, 10.0]),
        ];
        let claim = |against, limit| Claim { ours: "shm", against, limit };
        let claims = [
            claim("tcp", Limit::AtMost(0.2)),
            claim("tcp", Limit::AtMost(0.1)),
            claim("tcp", Limit::AtLeast(0.2)),
            claim("tcp", Limit::AtLeast(0.3)),
            claim("nobody", Limit::AtMost(1.0)),
        ];
        let table = Table { bench: "null", about: "", metrics: &[Metric::CallP50], claims: claims.as_slice(), lines };
        let verdicts: Vec<_> = table.verdicts().map(|(_, ratio, met)| (ratio, met)).collect();
        assert_eq!(verdicts, [(0.2, true), (0.2, false), (0.2, true), (0.2, false)]);
    }
}
