//! Plots of the suite `vmmc`: what misses cost, and how many there are (figures 4.1, 4.2 and 4.4 of Azimi 2002).

use std::fmt::Write;

use super::charts::{Figure, coloured};
use super::escape;
use super::plot::{Plot, Scale, Series};
use crate::bench::record::Record;

/// Benches whose lines are sizes, by the share of misses; other plots of them say the same worse.
pub const BY_MISSES: [&str; 2] = ["vmmc.vmh", "vmmc.cbh"];
const GRID: &str = "vmmc.grid";
/// The shape that is shown of the grid, but for its lines: that which the thesis chose.
const SHOWN: (u64, u64) = (16 * 1024, 4);

/// Which misses of the grid a plot or a column shows.
struct Part {
    title: &'static str,
    /// What it is of.
    note: &'static str,
    value: fn(&Record) -> Option<f64>,
}

/// All parts of figure 4.2.
const PARTS: [Part; 5] = [
    Part { title: "misses", note: "pages that were not found", value: |record| Some(record.value) },
    Part { title: "cold misses", note: "lines that nobody had used before", value: |record| share(record, "cold") },
    Part {
        title: "misses that are not cold",
        note: "lines that were there and had to go",
        value: |record| Some((record.value - share(record, "cold")?).max(0.0)),
    },
    Part {
        title: "misses on the way out",
        note: "of the pages of sends and of what others fetch",
        value: |record| share(record, "send"),
    },
    Part {
        title: "misses on the way in",
        note: "of the pages that are sent into and fetched into",
        value: |record| share(record, "receive"),
    },
];

fn share(record: &Record, key: &str) -> Option<f64> {
    record.extra.get(key)?.as_f64()
}

/// The plots that a run has of it.
pub fn figures(records: &[Record]) -> impl Iterator<Item = Figure> {
    let latencies = BY_MISSES.into_iter().filter_map(|bench| latency(bench, records));
    latencies.chain(PARTS.iter().filter_map(|part| grid(part, records)))
}

fn latency(bench: &str, records: &[Record]) -> Option<Figure> {
    let own = || records.iter().filter(|record| record.bench == bench);
    let mut sizes: Vec<usize> = own().map(|record| record.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let line = |size: &usize| {
        let of_size = own().filter(|record| record.size == *size);
        let points = of_size.filter_map(|record| Some((record.extra.get("misses")?.as_f64()?, record.value)));
        Series { name: Scale::Size.label(*size as f64), colour: 0, points: points.collect() }
    };
    let series = coloured(sizes.iter().map(line).collect())?;
    Some(Figure {
        title: format!("{bench}: mean time one way by misses"),
        note: "Each message that misses is dropped and sent again: a straight line. Lower is better.".into(),
        plot: Plot {
            about: format!("Latency of {bench} by miss ratio"),
            x: (Scale::Percent, "misses of messages to one side"),
            y: Scale::EvenTime,
            series,
        },
    })
}

fn grid(part: &Part, records: &[Record]) -> Option<Figure> {
    let is_shown = |record: &&Record| {
        record.bench == GRID && (number(record, "entries"), number(record, "ways")) == (Some(SHOWN.0), Some(SHOWN.1))
    };
    let mut series: Vec<Series> = Vec::new();
    for record in records.iter().filter(is_shown) {
        let (Some(name), Some(line), Some(value)) = (program(record), number(record, "line"), (part.value)(record))
        else {
            continue;
        };
        let point = (line as f64, value);
        match series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(point),
            None => series.push(Series { name: name.into(), colour: 0, points: vec![point] }),
        }
    }
    let series = coloured(series)?;
    Some(Figure {
        title: format!("{GRID}: {} by the length of a line", part.title),
        note: format!("{}K entries, {} ways; {}. Lower is better.", SHOWN.0 / 1024, SHOWN.1, part.note),
        plot: Plot {
            about: format!("The {} of eight programs", part.title),
            x: (Scale::Count, "pages of a line"),
            y: Scale::Percent,
            series,
        },
    })
}

/// Every point of the grid, with all its parts.
pub fn grid_table(records: &[Record]) -> String {
    let own: Vec<&Record> = records.iter().filter(|record| record.bench == GRID).collect();
    if own.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<h2>Misses by entries, line and ways</h2>\n<details><summary>vmmc.grid: every point, in percent of the pages that were \
         looked up</summary><div class=\"scroll\"><table><tr><th class=\"t\">program</th><th>C</th><th>L</th><th>A</th>",
    );
    for part in &PARTS {
        let _ = write!(out, "<th>{}</th>", part.title);
    }
    out += "</tr>\n";
    for record in own {
        let shape = ["entries", "line", "ways"].map(|key| number(record, key).unwrap_or(0));
        let _ = write!(out, "<tr><td class=\"t n\">{}</td>", escape(program(record).unwrap_or_default()));
        for value in shape {
            let _ = write!(out, "<td>{value}</td>");
        }
        for part in &PARTS {
            let shown = (part.value)(record).map(|value| format!("{:.2}", value * 100.0));
            let _ = write!(out, "<td>{}</td>", shown.unwrap_or_default());
        }
        out += "</tr>\n";
    }
    out + "</table></div></details>\n"
}

fn program(record: &Record) -> Option<&str> {
    record.extra.get("what")?.as_str()
}

fn number(record: &Record, key: &str) -> Option<u64> {
    record.extra.get(key)?.as_u64()
}
