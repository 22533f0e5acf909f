//! Which plots a run has: distributions, by size, and by number of connections, wherever there are enough points.

use super::plot::{Plot, Scale, Series, mark};
use super::{filters, misses};
use crate::bench::record::{Metric, Record};

/// A plot with what stands around it.
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// How to read it.
    pub note: String,
    /// The plot.
    pub plot: Plot,
}

/// Every plot of a run, in the order of the page.
pub fn figures(records: &[Record]) -> Vec<Figure> {
    let mut found = Vec::new();
    let benches = benches(records);
    found.extend(benches.iter().filter_map(|bench| distribution(bench, records)));
    found.extend(misses::figures(records));
    found.extend(filters::figures(records));
    for bench in benches.iter().filter(|bench| !misses::BY_MISSES.contains(*bench)) {
        for metric in METRICS {
            found.extend(by(bench, *metric, records, "size"));
        }
    }
    for bench in &benches {
        for metric in METRICS {
            found.extend(by(bench, *metric, records, "connections"));
        }
    }
    found
}

/// The names of the benches of a run, in order.
pub fn benches(records: &[Record]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for record in records {
        if !names.contains(&record.bench.as_str()) {
            names.push(&record.bench);
        }
    }
    names
}

/// A path as readers know it: for unmodified programs by what they run on.
pub fn path_name<'a>(bench: &str, path: &'a str) -> &'a str {
    match (bench.split('.').next(), path) {
        (Some("sockets"), "ring") => "Sidestep",
        (Some("sockets"), "via") => "Sidestep over VIA",
        (Some("sockets"), "tcp") => "kernel TCP",
        (Some("sockets"), "unix") => "UNIX sockets",
        _ => path,
    }
}

/// The mark of a line beside its name.
pub fn legend_mark(colour: usize) -> String {
    format!(
        "<svg class=\"c{colour}\" viewBox=\"0 0 26 12\" aria-hidden=\"true\"><path class=\"line\" d=\"M1 6H25\"/>\
         <path class=\"mark\" d=\"{}\"/></svg>",
        mark(colour, 13.0, 6.0)
    )
}

const METRICS: &[Metric] = &[
    Metric::OneWayP50,
    Metric::OneWayMean,
    Metric::CallP50,
    Metric::RoundTripP50,
    Metric::Bandwidth,
    Metric::Rate,
    Metric::Requests,
];

/// The times of growing shares of the messages, of each path at its best.
fn distribution(bench: &str, records: &[Record]) -> Option<Figure> {
    let own = || records.iter().filter(|record| record.bench == bench && record.extra.contains_key("distribution"));
    let sizes = || own().map(|record| record.size);
    let size = sizes().find(|size| *size == 64).or_else(|| sizes().min())?;
    let count = |record: &Record| number(record, "connections");
    let most = own().filter(|record| record.size == size).map(count).max()?;
    let of_size: Vec<&Record> = own().filter(|record| record.size == size && count(record) == most).collect();
    let mut series = Vec::new();
    for path in paths(of_size.iter().copied()) {
        let candidates = of_size.iter().filter(|record| record.path == path);
        let best = candidates.min_by(|one, two| one.value.total_cmp(&two.value))?;
        let points: Vec<(f64, f64)> = serde_json::from_value(best.extra["distribution"].clone()).ok()?;
        let points = points.into_iter().filter(|(share, time)| *share <= 0.9999 && *time > 0.0).collect();
        series.push(Series { name: path_name(bench, path).into(), colour: 0, points });
    }
    let series = coloured(series)?;
    let on = if most > 0 { format!(" on {most} connections") } else { String::new() };
    Some(Figure {
        title: format!("{bench}: distribution of the latency of {}{on}", Scale::Size.label(size as f64)),
        note: "The time within which a share of the messages arrived; the higher a line rises to the right, the longer its tail."
            .into(),
        plot: Plot {
            about: format!("Latency distribution of {bench}"),
            x: (Scale::Share, "share of the messages"),
            y: Scale::Time,
            series,
        },
    })
}

/// A metric by size or by number of connections, of each path at its best.
fn by(bench: &str, metric: Metric, records: &[Record], axis: &'static str) -> Option<Figure> {
    let connections = axis == "connections";
    // Where these suites keep a count in the place of the size.
    let counts_in_size = ["orb.clients", "vmmc.endpoints"].contains(&bench);
    let fits = |record: &&Record| {
        let counted = record.extra.contains_key("connections") || counts_in_size;
        record.bench == bench
            && record.metric == metric
            && counted == connections
            && record.value > 0.0
            && number(record, "shift") == 0
            && record.extra.get("used").is_none_or(|used| used != "one")
    };
    let own: Vec<&Record> = records.iter().filter(fits).collect();
    let at = |record: &Record| if connections && !counts_in_size { number(record, axis) } else { record.size };
    let mut series = Vec::new();
    for path in paths(own.iter().copied()) {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for record in own.iter().filter(|record| record.path == path && at(record) > 0) {
            let x = at(record) as f64;
            match points.iter_mut().find(|(known, _)| *known == x) {
                None => points.push((x, record.value)),
                Some((_, value)) if (record.value > *value) == metric.larger_is_better() => *value = record.value,
                Some(_) => {}
            }
        }
        points.sort_by(|one, two| one.0.total_cmp(&two.0));
        if points.len() >= FEWEST_POINTS {
            series.push(Series { name: path_name(bench, path).into(), colour: 0, points });
        }
    }
    let series = coloured(series)?;
    let (what, better) = described(metric);
    let (scale, name) = match connections {
        true if bench == "vmmc.endpoints" => (Scale::Count, "endpoints"),
        true => (Scale::Count, "connections"),
        false => (Scale::Size, "size of a message"),
    };
    let note = match bench {
        "vmmc.endpoints" => format!("{better} Each line is a card with so much memory; simulated."),
        _ => format!("{better} Each path where it is at its best."),
    };
    Some(Figure {
        title: format!("{bench}: {what} by {}", if connections { name } else { "size" }),
        note,
        plot: Plot { about: format!("{what} of {bench}"), x: (scale, name), y: scale_of(metric), series },
    })
}

/// The paths of some records, the most telling first.
fn paths<'a>(records: impl Iterator<Item = &'a Record>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for record in records {
        if !names.contains(&record.path.as_str()) {
            names.push(&record.path);
        }
    }
    let rank = |name: &&str| FIRST.iter().position(|first| first == name).unwrap_or(FIRST.len());
    names.sort_by_key(rank);
    names.truncate(COLOURS);
    names
}

/// Gives each line a colour; the kernel's path has the same one everywhere. One line alone compares nothing.
pub fn coloured(mut series: Vec<Series>) -> Option<Vec<Series>> {
    let mut next = [0, 2, 3, 4, 5, 6, 7, 1].into_iter();
    let has_tcp = series.iter().any(|series| is_tcp(&series.name));
    for series in &mut series {
        series.colour = match is_tcp(&series.name) {
            true => 1,
            false => next.find(|colour| *colour != 1 || !has_tcp).unwrap_or(0),
        };
    }
    (series.len() > 1).then_some(series)
}

fn is_tcp(name: &str) -> bool {
    name == "tcp" || name == "kernel TCP"
}

fn described(metric: Metric) -> (&'static str, &'static str) {
    match metric {
        Metric::OneWayP50 => ("median time one way", "Lower is better."),
        Metric::OneWayMean => ("mean time one way", "Lower is better."),
        Metric::CallP50 | Metric::RoundTripP50 => ("median time of a call", "Lower is better."),
        Metric::Bandwidth => ("bandwidth", "Higher is better."),
        Metric::Requests => ("requests per second", "Higher is better."),
        _ => ("messages per second", "Higher is better."),
    }
}

fn scale_of(metric: Metric) -> Scale {
    match metric {
        Metric::Bandwidth => Scale::Bandwidth,
        Metric::Rate | Metric::Requests => Scale::Frequency,
        _ => Scale::Time,
    }
}

fn number(record: &Record, key: &str) -> usize {
    record.extra.get(key).and_then(|value| value.as_u64()).unwrap_or(0) as usize
}

const FEWEST_POINTS: usize = 3;
/// As many lines as there are colours.
const COLOURS: usize = 8;
/// The paths that a plot shows first, where there are more of them than colours.
const FIRST: &[&str] = &[
    "ring",
    "queue",
    "shm",
    "fabric",
    "vi",
    "sovia",
    "rdma",
    "tcp",
    "unix",
    "tirpc-tcp",
    "omniorb-tcp",
    "tcp-spin",
    "pipe",
];
