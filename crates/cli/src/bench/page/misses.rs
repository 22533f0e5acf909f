//! Plots of the suite `vmmc`: what misses cost, and how many there are (figures 4.1, 4.2 and 4.4 of Azimi 2002).

use super::charts::{Figure, coloured};
use super::plot::{Plot, Scale, Series};
use crate::bench::record::Record;

/// Benches whose lines are sizes, by the share of misses; other plots of them say the same worse.
pub const BY_MISSES: [&str; 2] = ["vmmc.vmh", "vmmc.cbh"];
const GRID: &str = "vmmc.grid";
/// The shape that is shown of the grid, but for its lines: that which the thesis chose.
const SHOWN: (u64, u64) = (16 * 1024, 4);

/// The plots that a run has of it.
pub fn figures(records: &[Record]) -> impl Iterator<Item = Figure> {
    BY_MISSES.into_iter().filter_map(|bench| latency(bench, records)).chain(grid(records))
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

fn grid(records: &[Record]) -> Option<Figure> {
    let number = |record: &Record, key: &str| record.extra.get(key).and_then(|value| value.as_u64());
    let is_shown = |record: &&Record| {
        record.bench == GRID && (number(record, "entries"), number(record, "ways")) == (Some(SHOWN.0), Some(SHOWN.1))
    };
    let mut series: Vec<Series> = Vec::new();
    for record in records.iter().filter(is_shown) {
        let (Some(name), Some(line)) =
            (record.extra.get("what").and_then(|name| name.as_str()), number(record, "line"))
        else {
            continue;
        };
        let point = (line as f64, record.value);
        match series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(point),
            None => series.push(Series { name: name.into(), colour: 0, points: vec![point] }),
        }
    }
    let series = coloured(series)?;
    Some(Figure {
        title: format!("{GRID}: misses by the length of a line"),
        note: format!("{}K entries, {} ways; pages that were not found. Lower is better.", SHOWN.0 / 1024, SHOWN.1),
        plot: Plot {
            about: "Miss ratios of eight programs".into(),
            x: (Scale::Count, "pages of a line"),
            y: Scale::Percent,
            series,
        },
    })
}
