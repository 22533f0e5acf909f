//! The few measurements that `sidestep demo` shows.

use anyhow::Result;

use super::super::place::{Cores, Placement};
use super::super::record::{Metric, digits};
use super::super::stats::median;
use super::job::{Span, Waiting, Work};
use super::pair::{self, Place, Via};

/// One line of the demonstration.
pub struct Line {
    /// What it shows.
    pub what: &'static str,
    server: Work,
    client: Work,
    metric: Metric,
}

/// What was measured, as it is shown.
pub struct Shown {
    /// Over kernel TCP.
    pub tcp: String,
    /// Over Sidestep.
    pub sidestep: String,
    /// How many times better.
    pub ratio: String,
}

/// The lines, in order.
pub fn lines() -> Vec<Line> {
    let span = Span { warm_ms: 50, run_ms: 250 };
    let exchange = |what, size| Line {
        what,
        server: Work::Echo { size, wait: Waiting::Block, connections: 1 },
        client: Work::Exchange { size, wait: Waiting::Block, pause_us: 0, span },
        metric: Metric::OneWayP50,
    };
    let stream = |what, size, metric| Line {
        what,
        server: Work::Sink { size, shift: 0 },
        client: Work::Stream { size, shift: 0, span },
        metric,
    };
    vec![
        exchange("a message of 64 bytes, one way", 64),
        exchange("a message of 4 KiB, one way", 4096),
        stream("messages of 64 bytes, one after the other", 64, Metric::Rate),
        stream("a stream in writes of 64 KiB", 64 << 10, Metric::Bandwidth),
    ]
}

impl Line {
    /// Measures both, taking turns. For TCP the better of unpinned and both on one core counts.
    pub fn measure(&self) -> Result<Shown> {
        let cores = Cores::choose(&[])?;
        let ways = [(Via::Tcp, Placement::Free), (Via::Tcp, Placement::Same), (Via::Ring, Placement::Free)];
        let mut values = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for ((via, placement), values) in ways.iter().zip(&mut values) {
                let place = Place { cores, placement: *placement, pair: 0 };
                let (client, _) = pair::run(*via, self.server.clone(), self.client.clone(), place)?;
                let per_second = client.done as f64 * 1e9 / client.time.max(1) as f64;
                values.push(match (self.metric, &self.client) {
                    (Metric::Rate, _) => per_second,
                    (Metric::Bandwidth, Work::Stream { size, .. }) => per_second * *size as f64,
                    _ => client.half_trip[0],
                });
            }
        }
        let [free, same, ring] = values.map(|values| median(values).unwrap_or(f64::NAN));
        let larger = self.metric.larger_is_better();
        let tcp = if larger { free.max(same) } else { free.min(same) };
        let ratio = if larger { ring / tcp } else { tcp / ring };
        Ok(Shown { tcp: self.metric.shown(tcp), sidestep: self.metric.shown(ring), ratio: digits(ratio) })
    }
}

const ROUNDS: usize = 3;
