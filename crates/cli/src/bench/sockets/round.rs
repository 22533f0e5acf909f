//! The rounds of the sockets suite: each way is measured once in each.

use anyhow::Result;

use super::super::place::Placement;
use super::super::record::Metric;
use super::super::stats::SHARES;
use super::Effort;
use super::job::{Report, Span};
use super::outcome::{Claim, Row};
use super::pair::{Place, Via};

/// What one measurement found.
#[derive(Default)]
pub struct Found {
    /// Its figures.
    pub figures: Vec<(Metric, f64)>,
    /// The share of trips with both ends on one core, if trips were counted.
    pub same_core: Option<f64>,
    /// The times that the shares of [`SHARES`] of its trips stayed within, if they were timed.
    pub distribution: Option<[f64; SHARES.len()]>,
}

impl Found {
    /// Figures alone.
    pub fn figures(figures: Vec<(Metric, f64)>) -> Found {
        Found { figures, ..Found::default() }
    }

    /// What both ends say of an exchange.
    pub fn exchange(client: &Report, server: &Report) -> Found {
        let [p50, p99, p999] = client.half_trip;
        let used = client.processor_time + server.processor_time;
        let figures = vec![
            (Metric::OneWayP50, p50),
            (Metric::OneWayP99, p99),
            (Metric::OneWayP999, p999),
            (Metric::CpuPerMessage, used as f64 / client.messages.max(1) as f64),
        ];
        Found { figures, same_core: Some(client.same_core), distribution: Some(client.distribution) }
    }
}

/// Measures each way once per round.
pub fn rounds(
    effort: &Effort,
    ways: &[(Via, Placement)],
    mut measure: impl FnMut(Via, Place) -> Result<Found>,
) -> Result<Vec<Row>> {
    let mut rows: Vec<Row> = ways.iter().map(|(via, placement)| Row::new(*via, *placement)).collect();
    for _ in 0..effort.rounds {
        for row in &mut rows {
            let place = Place { cores: effort.cores, placement: row.placement, pair: 0 };
            row.add(measure(row.via, place)?);
        }
    }
    Ok(rows)
}

/// How long one measurement takes.
pub fn span(effort: &Effort) -> Span {
    Span { warm_ms: 30, run_ms: effort.run_ms }
}

/// What so much done in this time is per second.
pub fn per_second(report: &Report) -> f64 {
    report.done as f64 * 1e9 / report.time.max(1) as f64
}

/// A promise.
pub fn claim(against: Via, metric: Metric, must: f64, placement: Option<Placement>) -> Claim {
    Claim { against, metric, must, placement }
}

/// Every path, each where it may be at its best.
pub const USUAL: &[(Via, Placement)] = &[
    (Via::Tcp, Placement::Free),
    (Via::Tcp, Placement::Same),
    (Via::Unix, Placement::Free),
    (Via::Unix, Placement::Same),
    (Via::Ring, Placement::Free),
];

/// TCP where it may be at its best, and Sidestep.
pub const PLAIN: &[(Via, Placement)] =
    &[(Via::Tcp, Placement::Free), (Via::Tcp, Placement::Same), (Via::Ring, Placement::Free)];
