//! The suite `orb`: calls of CORBA objects, over every transport of the broker, and by omniORB in the same run.
//!
//! A server and a client are processes of this program in its hidden role `orb-end` ([`end`]), or the programs of
//! `tests/programs/corba`. Every way is measured once in each round, with its processes where the kernel puts them and on one
//! core; the better one counts.

pub mod end;
mod way;

use anyhow::{Result, ensure};
use serde_json::Map;

use self::way::{COLD, Kits, Measured, STRAND, THREAD, WAYS, Way};
use super::place::{Cores, Placement};
use super::record::{Metric, Record, digits};
use super::sink::Sink;
use super::stats::{median, spread};
use super::{options, progress::Plan, show_progress};

/// What `bench list` says of the suite.
pub const ABOUT: &str =
    "CORBA calls by transport and thread model, beside a bare channel, omniORB, and omniORB under `run`";

/// The tables, and what they are.
pub const TABLES: &[(&str, &str)] = &[
    ("null", "round trip of a call without arguments"),
    ("bulk", "oneway calls with octets, by size; the server touches each. cost: processor time of the server"),
    ("sizes", "round trip of calls with octets, each one octet longer"),
    (
        "first",
        "the first call over a connection: both ends new, with memory of one before, and with a thread of the server",
    ),
    ("clients", "null calls per second, by the number of connections, of which all or one are used"),
];

/// How much is measured.
#[derive(Clone, Copy)]
pub struct Effort {
    rounds: usize,
    millis: u64,
    quick: bool,
    cores: Cores,
}

/// A median of the rounds, and how far they lie from it.
#[derive(Clone, Copy)]
struct Figure {
    metric: Metric,
    value: f64,
    spread: Option<f64>,
}

/// One way in one table.
struct Line {
    table: &'static str,
    way: &'static Way,
    size: usize,
    note: &'static str,
    figures: Vec<Figure>,
    /// The first figure of each placement.
    placed: [Option<f64>; 2],
}

/// Where the processes run, and what that is called.
const PLACEMENTS: [(Placement, &str); 2] =
    [(Placement::Free, "where the kernel puts them"), (Placement::Same, "on one core")];

/// Runs the suite.
pub fn run(options: &options::Bench, sink: &mut Sink) -> Result<()> {
    for word in &options.only {
        let known = TABLES.iter().any(|(name, _)| name == word) || WAYS.iter().any(|way| way.name == word);
        ensure!(known, "--only {word}: no such table or way; see `sidestep bench list`");
    }
    let effort = Effort {
        rounds: options.rounds_or(7, 3),
        millis: if options.quick { 60 } else { 200 },
        quick: options.quick,
        cores: Cores::choose(&options.cores)?,
    };
    let kits = Kits::new();
    let named = |name: &str, names: &[&str]| {
        let given: Vec<_> = options.only.iter().filter(|word| names.contains(&word.as_str())).collect();
        given.is_empty() || given.iter().any(|word| *word == name)
    };
    let tables: Vec<&str> = TABLES.iter().map(|(name, _)| *name).collect();
    let names: Vec<&str> = WAYS.iter().map(|way| way.name).collect();
    let ways: Vec<&'static Way> = WAYS.iter().filter(|way| named(way.name, &names)).collect();
    let wanted: Vec<_> = TABLES.iter().filter(|(table, _)| named(table, &tables)).collect();
    let steps = |table: &str| cases(table, effort.quick).len() * taking(table, &ways).len() * effort.rounds;
    let plan = Plan::of(wanted.iter().map(|(table, _)| steps(table)).sum::<usize>() as f64);
    for (table, about) in wanted {
        let lines = measure(table, &ways, &effort, &kits, &plan)?;
        show_progress("");
        sink.take(lines.iter().flat_map(Line::records));
        if !sink.is_json() {
            print(table, about, &lines);
        }
    }
    if let (false, Some(why)) = (sink.is_json(), &kits.missing) {
        println!("{why}");
    }
    Ok(())
}

/// What is measured for a table: sizes or counts, and what is in use of them.
fn cases(table: &str, quick: bool) -> Vec<(usize, &'static str)> {
    match (table, quick) {
        ("bulk", false) => [4, 64, 1024, 16 << 10, 64 << 10, 256 << 10, 1 << 20].map(|size| (size, "")).to_vec(),
        ("bulk", true) => vec![(64, ""), (64 << 10, "")],
        ("sizes", false) => (1020..=1030).map(|size| (size, "")).collect(),
        ("sizes", true) => vec![(1024, ""), (1025, "")],
        ("first", _) => [COLD, STRAND, THREAD].map(|note| (0, note)).to_vec(),
        ("clients", false) => [(1, "all"), (10, "all"), (100, "all"), (1000, "all"), (1000, "one")].to_vec(),
        ("clients", true) => vec![(1, "all"), (50, "all"), (50, "one")],
        _ => vec![(0, "")],
    }
}

/// The ways that are in a table.
fn taking(table: &str, ways: &[&'static Way]) -> Vec<&'static Way> {
    ways.iter().copied().filter(|way| way.takes_part(table)).collect()
}

fn measure(table: &'static str, ways: &[&'static Way], effort: &Effort, kits: &Kits, plan: &Plan) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    let taking = taking(table, ways);
    for (size, note) in cases(table, effort.quick) {
        // For each way the measurements of both placements, of all rounds.
        let mut found: Vec<[Vec<Measured>; 2]> = taking.iter().map(|_| Default::default()).collect();
        for round in 0..effort.rounds {
            for (way, found) in taking.iter().zip(&mut found) {
                plan.step(1.0, &format!("{table} {size}: round {} of {}, {}", round + 1, effort.rounds, way.name));
                for ((placement, _), found) in PLACEMENTS.into_iter().zip(found) {
                    if let Some(measured) = way.measure((table, size, note), placement, effort, kits)? {
                        found.push(measured);
                    }
                }
            }
        }
        for (way, [free, same]) in taking.iter().copied().zip(found) {
            let both = [figures(&free), figures(&same)];
            let placed = both.each_ref().map(|figures| figures.first().map(|figure| figure.value));
            let best = both.into_iter().filter(|figures| !figures.is_empty()).reduce(|one, two| {
                if (one[0].value > two[0].value) == one[0].metric.larger_is_better() { one } else { two }
            });
            lines.extend(best.map(|figures| Line { table, way, size, note, figures, placed }));
        }
    }
    Ok(lines)
}

/// The medians of each figure.
fn figures(found: &[Measured]) -> Vec<Figure> {
    let Some(first) = found.first() else { return Vec::new() };
    let of = |metric: Metric| {
        let values = found.iter().flatten().filter(move |(own, _)| *own == metric).map(|(_, value)| *value);
        let values: Vec<f64> = values.collect();
        median(values.iter().copied()).map(|value| Figure { metric, value, spread: spread(&values) })
    };
    first.iter().filter_map(|(metric, _)| of(*metric)).collect()
}

impl Line {
    fn records(&self) -> Vec<Record> {
        let record = |&Figure { metric, value, spread }: &Figure| {
            let mut extra = Map::new();
            extra.insert("used".into(), self.note.into());
            extra.extend(spread.map(|spread| ("spread".to_owned(), spread.into())));
            let (bench, path, unit) = (format!("orb.{}", self.table), self.way.name.to_owned(), metric.unit());
            Record { bench, path, size: self.size, metric, value, unit, extra }
        };
        self.figures.iter().map(record).collect()
    }
}

/// Whether a run has such a line.
#[cfg(test)]
pub fn has(table: &str, path: &str, size: usize, metric: Metric) -> bool {
    let has_size = size == super::seeds::ANY || cases(table, false).iter().any(|(own, _)| *own == size);
    has_size
        && way::metrics(table).contains(&metric)
        && WAYS.iter().any(|way| way.name == path && way.takes_part(table))
}

fn print(table: &str, about: &str, lines: &[Line]) {
    println!("{table}: {about}");
    for line in lines {
        let shown: Vec<_> = line
            .figures
            .iter()
            .map(|figure| format!("{} {}", figure.metric.heading(), figure.metric.shown(figure.value)))
            .collect();
        let size = if line.size > 0 { format!("{} {}", line.size, line.note) } else { line.note.to_owned() };
        println!("  {:<20} {size:>14}  {}", line.way.name, shown.join(", "));
    }
    if table == "null" {
        for (other, promised) in [
            ("channel", "at most 1.5 times its round trip is promised"),
            ("omniorb-tcp", "at least 15 times faster is promised"),
            ("omniorb-run", "faster is promised"),
        ] {
            compare(lines, other, promised);
        }
    }
    if table == "bulk" {
        lines.iter().filter(|line| line.way.name == "fabric").for_each(|fabric| overhead(lines, fabric));
    }
    if table == "clients" {
        lines.iter().filter(|line| line.size == 1).for_each(|one| flatness(lines, one));
    }
    println!();
}

/// Sets what the server of VIA computes for each request beside that of the fabric, which the thesis has 3 us more of.
fn overhead(lines: &[Line], fabric: &Line) {
    let server = |line: &Line| line.figures.iter().find(|found| found.metric == Metric::Cost).map(|found| found.value);
    let via = lines.iter().find(|line| line.way.name == "via" && line.size == fabric.size);
    if let (Some(ours), Some(via)) = (server(fabric), via.and_then(server)) {
        let more = Metric::Cost.shown(via - ours);
        println!("  via and fabric: {more} more of the server for each request of {} octets", fabric.size);
    }
}

/// Sets the lowest rate of a way beside its rate with one connection.
fn flatness(lines: &[Line], one: &Line) {
    let same = lines.iter().filter(|line| line.way.name == one.way.name);
    let Some(worst) = same.min_by(|left, right| left.figures[0].value.total_cmp(&right.figures[0].value)) else {
        return;
    };
    let share = digits(worst.figures[0].value / one.figures[0].value);
    let (name, size, note) = (one.way.name, worst.size, worst.note);
    println!(
        "  {name}: {share} of the rate with one connection at worst ({size}, {note} in use); at least 0.9 is promised"
    );
}

/// Sets the null call over the fabric beside another way, at its best and in each placement.
fn compare(lines: &[Line], other: &str, promised: &str) {
    let line = |name: &str| lines.iter().find(|line| line.way.name == name);
    let (Some(ours), Some(theirs)) = (line("fabric"), line(other)) else { return };
    let ratio = |ours: f64, theirs: f64| digits(if other == "channel" { ours / theirs } else { theirs / ours });
    let mut shown = vec![format!("{} at best", ratio(ours.figures[0].value, theirs.figures[0].value))];
    for ((_, place), pair) in PLACEMENTS.into_iter().zip(ours.placed.into_iter().zip(theirs.placed)) {
        if let (Some(ours), Some(theirs)) = pair {
            shown.push(format!("{} {place}", ratio(ours, theirs)));
        }
    }
    println!("  fabric and {other}: {}; {promised}", shown.join(", "));
}
