//! Plots of the suite `filters` that have no sizes across: figures 3.8 to 3.12 of Balaji 2006, which are simulated.

use super::charts::{Figure, coloured};
use super::plot::{Plot, Scale, Series};
use crate::bench::record::Record;

/// A curve: its bench, what it shows, and its axes.
struct Curve {
    bench: &'static str,
    title: &'static str,
    note: &'static str,
    x: (Scale, &'static str),
    y: Scale,
}

const CURVES: [Curve; 5] = [
    Curve {
        bench: "filters.update",
        title: "latency of partial updates (figure 3.8)",
        note: "While so many complete updates come, each way with its best blocks. Lower is better.",
        x: (Scale::Frequency, "complete updates"),
        y: Scale::Time,
    },
    Curve {
        bench: "filters.rate",
        title: "complete updates a second (figure 3.9)",
        note: "With blocks that keep the latency of partial ones. Higher is better.",
        x: (Scale::Time, "latency of partial updates"),
        y: Scale::Frequency,
    },
    Curve {
        bench: "filters.mix",
        title: "mean time of a query (figure 3.10)",
        note: "Complete updates among queries of four blocks of 64. Lower is better.",
        x: (Scale::Percent, "complete updates"),
        y: Scale::EvenTime,
    },
    Curve {
        bench: "filters.reaction",
        title: "reaction of a balancer that takes turns (figure 3.11)",
        note: "Until a slow node is noticed, with the blocks of perfect pipelining. Lower is better.",
        x: (Scale::Count, "times slower"),
        y: Scale::Time,
    },
    Curve {
        bench: "filters.demand",
        title: "an image dealt by demand (figure 3.12)",
        note: "A part of the blocks takes four times as long. Lower is better.",
        x: (Scale::Percent, "slow blocks"),
        y: Scale::EvenTime,
    },
];

/// The plots that a run has of it.
pub fn figures(records: &[Record]) -> impl Iterator<Item = Figure> {
    CURVES.iter().filter_map(|curve| curve.figure(records))
}

impl Curve {
    fn figure(&self, records: &[Record]) -> Option<Figure> {
        let mut series: Vec<Series> = Vec::new();
        for record in records.iter().filter(|record| record.bench == self.bench) {
            let Some(at) = record.extra.get("at").and_then(|at| at.as_f64()) else { continue };
            match series.iter_mut().find(|series| series.name == record.path) {
                Some(series) => series.points.push((at, record.value)),
                None => {
                    series.push(Series { name: record.path.clone(), colour: 0, points: vec![(at, record.value)] });
                }
            }
        }
        series.retain(|series| series.points.len() > 1);
        Some(Figure {
            title: format!("{}: {}", self.bench, self.title),
            note: format!("{} Simulated from what two processes cost.", self.note),
            plot: Plot { about: self.title.into(), x: self.x, y: self.y, series: coloured(series)? },
        })
    }
}
