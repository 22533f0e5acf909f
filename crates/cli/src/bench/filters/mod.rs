//! The suite `filters`: streams between processes over every transport, and the figures of chapter 3 of Balaji 2006.
//!
//! Two processes are measured: the time of a buffer from one to the other, and buffers one behind the other. Pipelines on more
//! nodes than there are cores are simulated from that, and their records say so. What is promised is said beside what was found.

mod balance;
mod compress;
mod curves;
mod figures;
mod kinds;
mod way;

use anyhow::{Result, ensure};
use serde_json::Map;
use sidestep_filters::model::{Cost, Point};

use self::figures::Figure;
use self::way::{WAYS, Way};
use super::promise::{self, Bound};
use super::record::{Metric, Record};
use super::sink::Sink;
use super::stats::{median, spread};
use super::{options, progress::Plan, show_progress};

pub use kinds::kinds;

/// What `bench list` says of the suite.
const ABOUT: &str =
    "streams of filters over channels, VIs, sockets under run and TCP; pipelines on many nodes, simulated";

/// The tables, and what they are.
pub const TABLES: &[(&str, &str)] = &[
    ("latency", "a buffer from one process to another, by size (figure 3.5)"),
    ("stream", "buffers one behind the other, by size (figure 3.5)"),
    ("overhead", "a buffer of 2 KiB against a message of a bare channel"),
    ("stages", "1 GiB through four stages in four processes"),
    ("split", "dealing by demand against the best split beforehand, by how much slower one of three nodes is"),
    ("compress", "a folder compressed by a pipeline, a loop of the shell, and xargs -P"),
    ("update", "figure 3.8, simulated: latency of partial updates under a rate of complete ones"),
    ("rate", "figure 3.9, simulated: complete updates a second under a latency of partial ones"),
    ("mix", "figure 3.10, simulated: complete updates among the queries"),
    ("block", "figure 3.11, simulated: the block of perfect pipelining"),
    ("reaction", "figure 3.11, simulated: reaction of a balancer that takes turns"),
    ("demand", "figure 3.12, simulated: dealing by demand"),
    ("application", "figure 8.7, simulated: a virtual microscope and isosurfaces, with computing"),
];

/// Tables that do not come from what two processes cost.
const APART: [&str; 3] = ["stages", "split", "compress"];
/// Sizes that are measured.
const SIZES: [usize; 8] = [256, 512, 1 << 10, 2 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10];
/// The size that is compared with a message of a bare channel.
const COMPARED: usize = 2 << 10;

/// Prints the tables of the suite.
pub fn list() {
    println!("filters: {ABOUT}");
    TABLES.iter().for_each(|(name, about)| println!("  {name:<11} {about}"));
    WAYS.iter().for_each(|way| println!("  {:<11} {}", way.name, way.about));
}

/// Runs the suite.
pub fn run(options: &options::Bench, sink: &mut Sink) -> Result<()> {
    let is_table = |word: &str| TABLES.iter().any(|(name, _)| *name == word);
    let is_way = |word: &str| WAYS.iter().any(|way| way.name == word);
    for word in &options.only {
        ensure!(is_table(word) || is_way(word), "--only {word}: no such table or way; see `sidestep bench list`");
    }
    let (tables, names): (Vec<&String>, Vec<&String>) = options.only.iter().partition(|word| is_table(word));
    let wanted = |table: &str| tables.is_empty() || tables.iter().any(|word| *word == table);
    let ways: Vec<&Way> =
        WAYS.iter().filter(|way| names.is_empty() || names.iter().any(|word| *word == way.name)).collect();
    let rounds = options.rounds_or(5, 3);
    let effort = if options.quick { 1 } else { 4 };
    let streams = ways.iter().filter(|way| way.is_stream()).count();
    let (few, splits) = (rounds.min(3), if options.quick { 1 } else { rounds.min(3) });
    let is_measured = TABLES.iter().any(|(table, _)| !APART.contains(table) && wanted(table));
    let steps = [
        (is_measured, ways.len() * rounds * effort as usize),
        (wanted("stages"), streams * few),
        (wanted("split"), streams * balance::FACTORS.len() * splits),
        (wanted("compress"), compress::WAYS.len() * few),
    ];
    let plan = Plan::of(steps.iter().filter(|(wanted, _)| *wanted).map(|(_, steps)| *steps).sum::<usize>() as f64);
    if is_measured {
        let measured = measure(&ways, rounds, effort, &plan)?;
        let tables = [("latency", Metric::OneWayP50), ("stream", Metric::Bandwidth)];
        for (table, metric) in tables.into_iter().filter(|(table, _)| wanted(table)) {
            let records: Vec<Record> =
                measured.iter().flat_map(|(way, rounds)| points_of(table, metric, way.name, rounds)).collect();
            if !sink.is_json() {
                print_sizes(table, metric, &records);
            }
            sink.take(records);
        }
        if wanted("overhead") {
            let mut records = overhead(&measured);
            records.extend(through(&measured, rounds, effort)?);
            if !sink.is_json() {
                print_promised("overhead", &records);
            }
            sink.take(records);
        }
        let streams: Vec<_> = measured.iter().filter(|(way, _)| way.is_stream()).collect();
        let costs = |points: &dyn Fn(&[Vec<Point>]) -> Vec<Point>| -> Result<Vec<(&'static str, Cost)>> {
            streams.iter().map(|(way, rounds)| Ok((way.name, way::cost(&points(rounds))?))).collect()
        };
        // From the medians, and from each round by itself, which tells how far to trust them.
        let costs_of_all = costs(&middle)?;
        let found = figures::figures(&costs_of_all);
        let by_round: Vec<Vec<Figure>> = (0..rounds)
            .map(|round| Ok(figures::figures(&costs(&|rounds| rounds[round].clone())?)))
            .collect::<Result<_>>()?;
        let ratios = found.iter().enumerate().filter(|(_, figure)| wanted(&figure.bench["filters.".len()..]));
        let ratios: Vec<Vec<Record>> = ratios
            .map(|(at, figure)| records_of(figure, &by_round.iter().map(|round| &round[at]).collect::<Vec<_>>()))
            .collect();
        if !sink.is_json() {
            print_figures(&ratios);
        }
        sink.take(ratios.into_iter().flatten());
        let curves = curves::curves(&costs_of_all);
        sink.take(curves.into_iter().filter(|record| wanted(&record.bench["filters.".len()..])));
    }
    if wanted("stages") {
        let records = stages(&ways, few, 1 << 30, &plan)?;
        if !sink.is_json() {
            print_sizes("stages", Metric::Bandwidth, &records);
            print_empty(&records);
        }
        let ratios = against(&records, "tcp", |path| (path == "channel").then_some(Bound::AtLeast(5.0)));
        if !sink.is_json() {
            print_ratios(&ratios);
        }
        sink.take(records.into_iter().chain(ratios));
    }
    if wanted("split") {
        let records = split(&ways, splits, &plan)?;
        if !sink.is_json() {
            print_promised("split", &records);
        }
        sink.take(records);
    }
    if wanted("compress") {
        let records = compressed(few, if options.quick { 100 } else { 400 }, &plan)?;
        if !sink.is_json() {
            print_sizes("compress", Metric::Bandwidth, &records);
        }
        let ratios = against(&records, "xargs", |path| (path == "pipe").then_some(Bound::AtLeast(1.0)));
        if !sink.is_json() {
            print_ratios(&ratios);
        }
        sink.take(records.into_iter().chain(ratios));
    }
    Ok(())
}

/// A way, and what each round found for the sizes.
type Rounds<'a> = (&'a Way, Vec<Vec<Point>>);

/// The costs of each way, in rounds in which all take turns.
fn measure<'a>(ways: &[&'a Way], rounds: usize, effort: u64, plan: &Plan) -> Result<Vec<Rounds<'a>>> {
    let mut found: Vec<Vec<Vec<Point>>> = ways.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for (way, found) in ways.iter().zip(&mut found) {
            plan.step(effort as f64, &format!("streams: round {} of {rounds}, {}", round + 1, way.name));
            found.push(way.costs(&SIZES, effort)?);
        }
    }
    show_progress("");
    Ok(ways.iter().copied().zip(found).collect())
}

/// The medians of the rounds.
fn middle(rounds: &[Vec<Point>]) -> Vec<Point> {
    let of = |at: usize, of: fn(&Point) -> f64| median(rounds.iter().map(|points| of(&points[at]))).unwrap_or_default();
    let point = |(at, bytes): (usize, &usize)| Point {
        bytes: *bytes,
        latency_ns: of(at, |point| point.latency_ns),
        each_ns: of(at, |point| point.each_ns),
    };
    SIZES.iter().enumerate().map(point).collect()
}

fn record(table: &str, path: &str, size: usize, metric: Metric, value: f64) -> Record {
    Record {
        bench: format!("filters.{table}"),
        path: path.into(),
        size,
        metric,
        value,
        unit: metric.unit(),
        extra: Map::new(),
    }
}

fn points_of(table: &str, metric: Metric, path: &str, rounds: &[Vec<Point>]) -> Vec<Record> {
    let value = |point: &Point| match metric {
        Metric::Bandwidth => point.bytes as f64 * 1e9 / point.each_ns.max(1.0),
        _ => point.latency_ns,
    };
    let one = |(at, point): (usize, &Point)| {
        let each: Vec<f64> = rounds.iter().map(|points| value(&points[at])).collect();
        spreading(record(table, path, point.bytes, metric, value(point)), &each)
    };
    middle(rounds).iter().enumerate().map(one).collect()
}

/// With how far these values of the rounds lie from each other.
fn spreading(mut record: Record, rounds: &[f64]) -> Record {
    record.extra.insert("spread".into(), spread(rounds).into());
    record
}

/// What is simulated, with what the rounds by themselves gave.
fn records_of(figure: &Figure, by_round: &[&Figure]) -> Vec<Record> {
    let one = |(at, (path, ratio)): (usize, &(&'static str, f64))| {
        let table = &figure.bench["filters.".len()..];
        let each: Vec<f64> = by_round.iter().map(|round| round.ratios[at].1).collect();
        let mut record = spreading(record(table, path, 0, Metric::Ratio, *ratio), &each);
        record.extra.insert("what".into(), figure.what.clone().into());
        record.extra.insert("simulated".into(), true.into());
        match promised_of(figure.bench, &figure.what).filter(|_| *path != "tcp") {
            Some(bound) => bound.about(record),
            None => record,
        }
    };
    figure.ratios.iter().enumerate().map(one).collect()
}

/// What is promised of a figure, for every way but TCP.
fn promised_of(figure: &str, what: &str) -> Option<Bound> {
    match figure {
        "filters.block" => Some(Bound::AtLeast(4.0)),
        "filters.update" if what.starts_with("same blocks, without") => Some(Bound::AtLeast(3.5)),
        "filters.update" if what.starts_with("own blocks, without") => Some(Bound::AtLeast(10.0)),
        _ => None,
    }
}

fn stages(ways: &[&Way], rounds: usize, bytes: u64, plan: &Plan) -> Result<Vec<Record>> {
    const BUFFER: usize = 64 << 10;
    let ways: Vec<&Way> = ways.iter().copied().filter(|way| way.is_stream()).collect();
    let mut found: Vec<Vec<(f64, f64)>> = ways.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for (way, found) in ways.iter().zip(&mut found) {
            plan.step(1.0, &format!("stages: round {} of {rounds}, {}", round + 1, way.name));
            found.push(way.stages(bytes, BUFFER)?);
        }
    }
    show_progress("");
    let lines = ways.iter().zip(found).map(|(way, found)| {
        let middle = |of: fn(&(f64, f64)) -> f64| median(found.iter().map(of)).unwrap_or_default();
        let mut record = record("stages", way.name, BUFFER, Metric::Bandwidth, middle(|found| found.0));
        record.extra.insert(EMPTY.into(), middle(|found| found.1).into());
        record
    });
    Ok(lines.collect())
}

/// Where a record of the stages has the time of a unit of work without bytes.
const EMPTY: &str = "empty_ns";

fn print_empty(records: &[Record]) {
    let empty = |record: &Record| record.extra.get(EMPTY).and_then(|value| value.as_f64()).unwrap_or_default();
    let cells: Vec<String> =
        records.iter().map(|record| format!("{} {:.2} ms", record.path, empty(record) / 1e6)).collect();
    println!("  a unit of work without bytes, part of each time: {}", cells.join(", "));
}

fn print_sizes(table: &str, metric: Metric, records: &[Record]) {
    let about = TABLES.iter().find(|(name, _)| *name == table).map_or("", |(_, about)| about);
    println!("filters.{table}: {about}");
    let mut paths: Vec<&str> = records.iter().map(|record| record.path.as_str()).collect();
    paths.dedup();
    for path in paths {
        let own = records.iter().filter(|record| record.path == path);
        let cells: Vec<String> =
            own.map(|record| format!("{} B {}", record.size, metric.shown(record.value))).collect();
        println!("  {path:<9} {}", cells.join("   "));
    }
}

/// The records of what is simulated, from costs that nobody measured.
#[cfg(test)]
pub fn records() -> Vec<Record> {
    let point = |bytes: usize| Point { bytes, latency_ns: 1e4 + bytes as f64, each_ns: 1e3 + bytes as f64 };
    let cost = || way::cost(&SIZES.map(point)).expect("sizes");
    let costs: Vec<_> = WAYS.iter().filter(|way| way.is_stream()).map(|way| (way.name, cost())).collect();
    figures::figures(&costs).iter().flat_map(|figure| records_of(figure, &[])).collect()
}

fn print_figures(figures: &[Vec<Record>]) {
    if figures.iter().all(Vec::is_empty) {
        return;
    }
    println!("simulated: pipelines on nodes of their own, how many times better than TCP");
    for records in figures {
        let cells: Vec<String> =
            records.iter().map(|record| format!("{} {}", record.path, promise::shown(record))).collect();
        let Some(first) = records.first() else { continue };
        println!("  {:<17} {:<42} {}", first.bench, what_of(first), cells.join("   "));
    }
}

fn what_of(record: &Record) -> &str {
    record.extra.get("what").and_then(|what| what.as_str()).unwrap_or_default()
}

/// What a stream adds to a message of a bare channel.
fn overhead(measured: &[Rounds<'_>]) -> Vec<Record> {
    let of = |name: &str| {
        let rounds = &measured.iter().find(|(way, _)| way.name == name)?.1;
        middle(rounds).into_iter().find(|point| point.bytes == COMPARED)
    };
    let (Some(stream), Some(message)) = (of("channel"), of("message")) else { return Vec::new() };
    let ratios = [
        ("one behind the other", stream.each_ns / message.each_ns),
        ("from end to end", stream.latency_ns / message.latency_ns),
    ];
    let about = |(what, ratio)| {
        Bound::AtMost(1.5).about(told(record("overhead", "channel", COMPARED, Metric::Ratio, ratio), what))
    };
    ratios.map(about).into()
}

/// The same through an empty filter in a process of its own: two streams in place of one message. Nothing is promised of it.
fn through(measured: &[Rounds<'_>], rounds: usize, effort: u64) -> Result<Option<Record>> {
    let of = |name: &str| measured.iter().find(|(way, _)| way.name == name);
    let (Some((way, _)), Some((_, message))) = (of("channel"), of("message")) else { return Ok(None) };
    let Some(message) = middle(message).into_iter().find(|point| point.bytes == COMPARED) else { return Ok(None) };
    let found: Vec<f64> = (0..rounds).map(|_| way.through(COMPARED, effort)).collect::<Result<_>>()?;
    let ratio = median(found).unwrap_or_default() / message.latency_ns;
    let record = record("overhead", "channel", COMPARED, Metric::Ratio, ratio);
    Ok(Some(told(record, "through an empty filter")))
}

fn told(mut record: Record, what: impl Into<String>) -> Record {
    record.extra.insert("what".into(), what.into().into());
    record
}

/// How dealing by demand compares with the best split, really measured; medians of rounds.
fn split(ways: &[&Way], rounds: usize, plan: &Plan) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    for way in ways.iter().filter(|way| way.is_stream()) {
        for factor in balance::FACTORS {
            plan.step(rounds as f64, &format!("split: {}, heterogeneity {factor}", way.name));
            let found: Vec<f64> = (0..rounds).map(|_| way.balance(factor)).collect::<Result<_>>()?;
            let ratio = median(found).unwrap_or_default();
            let record = record("split", way.name, 0, Metric::Ratio, ratio);
            records.push(Bound::AtLeast(0.9).about(told(record, format!("heterogeneity {factor}"))));
        }
    }
    show_progress("");
    Ok(records)
}

/// A folder compressed in three ways, in turn; medians of rounds.
fn compressed(rounds: usize, files: usize, plan: &Plan) -> Result<Vec<Record>> {
    const FILE: usize = 16 << 10;
    let (folder, copies) = (compress::Folder::new(files, FILE)?, std::thread::available_parallelism()?.get());
    let mut found: Vec<Vec<f64>> = compress::WAYS.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for (way, found) in compress::WAYS.iter().zip(&mut found) {
            plan.step(1.0, &format!("compress: round {} of {rounds}, {way}", round + 1));
            found.push(folder.rate(way, copies)?);
        }
    }
    show_progress("");
    let value = |found: Vec<f64>| median(found).unwrap_or_default();
    let lines = compress::WAYS.iter().zip(found);
    Ok(lines.map(|(way, found)| record("compress", way, FILE, Metric::Bandwidth, value(found))).collect())
}

fn print_promised(table: &str, records: &[Record]) {
    let about = TABLES.iter().find(|(name, _)| *name == table).map_or("", |(_, about)| about);
    println!("filters.{table}: {about}");
    for record in records {
        println!("  {:<9} {:<22} {}", record.path, what_of(record), promise::shown(record));
    }
}

/// How many times as fast the others are as one of them.
fn against(records: &[Record], baseline: &str, promised: impl Fn(&str) -> Option<Bound>) -> Vec<Record> {
    let Some(base) = records.iter().find(|record| record.path == baseline) else { return Vec::new() };
    let others = records.iter().filter(|record| record.path != baseline);
    let ratio = |other: &Record| {
        let table = &other.bench["filters.".len()..];
        let ratio = told(
            record(table, &other.path, other.size, Metric::Ratio, other.value / base.value),
            format!("times {baseline}"),
        );
        match promised(&other.path) {
            Some(bound) => bound.about(ratio),
            None => ratio,
        }
    };
    others.map(ratio).collect()
}

fn print_ratios(ratios: &[Record]) {
    for record in ratios {
        println!("  {:<9} {:<22} {}", record.path, what_of(record), promise::shown(record));
    }
}
