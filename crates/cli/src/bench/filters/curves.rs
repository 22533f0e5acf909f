//! The curves of figures 3.8 to 3.12 of Balaji 2006, in virtual time like the ratios of `figures`: a value for each way at each
//! place across. Figure 3.5 is measured, by size.

use serde_json::Map;
use sidestep_filters::Schedule;
use sidestep_filters::model::{Balancer, Cost};

use super::figures::{BLOCKS, COPIES, IMAGE, finest, least_latency, limited, partial, perfect, query, rate};
use super::figures::{TCP_BLOCK, balancer, reaction};
use crate::bench::record::{Metric, Record};

/// Where a record of a curve has its place across.
pub const AT: &str = "at";

/// Shares of the complete updates that TCP can take, for which others are tried.
const LOADS: [f64; 11] = [0.1, 0.2, 0.4, 0.6, 0.8, 0.95, 1.5, 2.0, 3.0, 5.0, 8.0];
/// Parts and multiples of the least latency that TCP can promise.
const LATENCIES: [f64; 9] = [0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0];
const FACTORS: [f64; 7] = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0];
/// Steps from none to all of something.
const STEPS: u32 = 10;
/// By how much a slow block is slower.
const SLOW: f64 = 4.0;

/// Every point of every curve, for these ways; one of them is `tcp`.
pub fn curves(costs: &[(&'static str, Cost)]) -> Vec<Record> {
    let Some((_, tcp)) = costs.iter().find(|(name, _)| *name == "tcp") else { return Vec::new() };
    let compute = tcp.latency(TCP_BLOCK) / TCP_BLOCK as f64;
    let most = |cost: &Cost| BLOCKS.iter().map(|block| rate(cost, *block, 0.0)).fold(0.0, f64::max);
    let mut points = Points { costs, found: Vec::new() };
    let (tcp_most, tcp_least) = (most(tcp), least_latency(tcp, 0.0));
    for load in LOADS {
        let wanted = load * tcp_most;
        points.add("update", Metric::Cost, wanted, format!("{wanted:.0} updates a second"), &|cost| {
            // A way that cannot take so many has no point.
            (most(cost) >= wanted).then(|| partial(cost, finest(cost, 0.0, wanted), 0.0, wanted))
        });
    }
    for part in LATENCIES {
        let limit = part * tcp_least;
        points.add("rate", Metric::Requests, limit, format!("within {:.1} us", limit / 1e3), &|cost| {
            Some(limited(cost, 0.0, limit)).filter(|updates| *updates > 0.0)
        });
    }
    for step in 0..=STEPS {
        let share = f64::from(step) / f64::from(STEPS);
        let what = format!("{:.0} % complete", 100.0 * share);
        points.add("mix", Metric::Cost, share, what, &|cost| {
            Some(share * query(cost, 64) + (1.0 - share) * query(cost, 4))
        });
    }
    for factor in FACTORS {
        let what = format!("a node {factor} times slower");
        points.add("reaction", Metric::Cost, factor, what, &|cost| Some(reaction(cost, compute, factor)));
    }
    for step in 0..=STEPS {
        let share = f64::from(step) / f64::from(STEPS);
        let what = format!("{:.0} % of the blocks slow", 100.0 * share);
        points.add("demand", Metric::Cost, share, what, &|cost| Some(demand(cost, compute, share)));
    }
    points.found
}

/// How long an image takes, dealt by demand, where this share of the blocks is slow wherever it goes.
pub fn demand(cost: &Cost, compute: f64, share: f64) -> f64 {
    let block = perfect(cost, compute);
    let slow = |node: usize, number: usize| {
        let spread = (node * 31 + number * 17) % STEPS as usize;
        if (spread as f64) < share * f64::from(STEPS) { SLOW } else { 1.0 }
    };
    let balancer: Balancer = balancer(cost, block, vec![compute; COPIES], Schedule::Demand);
    balancer.run(IMAGE / block, slow)
}

struct Points<'a> {
    costs: &'a [(&'static str, Cost)],
    found: Vec<Record>,
}

impl Points<'_> {
    fn add(&mut self, table: &str, metric: Metric, at: f64, what: String, of: &dyn Fn(&Cost) -> Option<f64>) {
        for (path, cost) in self.costs {
            let Some(value) = of(cost) else { continue };
            let mut extra = Map::new();
            extra.insert("what".into(), what.clone().into());
            extra.insert(AT.into(), at.into());
            extra.insert("simulated".into(), true.into());
            let (bench, unit) = (format!("filters.{table}"), metric.unit());
            self.found.push(Record { bench, path: (*path).into(), size: 0, metric, value, unit, extra });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::figures::of_the_document, *};

    /// A way that is better everywhere is never worse on a curve, and goes on where TCP has dropped out.
    #[test]
    fn a_better_way_is_better_on_every_curve() {
        let found = curves(&of_the_document());
        for bench in ["update", "rate", "mix", "reaction", "demand"].map(|table| format!("filters.{table}")) {
            let own = |path: &str| -> Vec<(f64, f64)> {
                let own = found.iter().filter(|record| record.bench == bench && record.path == path);
                own.map(|record| (record.extra[AT].as_f64().unwrap(), record.value)).collect()
            };
            let (via, tcp) = (own("via"), own("tcp"));
            assert!(tcp.len() >= 4 && via.len() >= tcp.len(), "{bench}: {} and {}", via.len(), tcp.len());
            for (at, value) in &tcp {
                let ours = via.iter().find(|(other, _)| other == at).unwrap().1;
                let is_better = if bench == "filters.rate" { ours >= *value } else { ours <= *value * 1.05 };
                assert!(is_better, "{bench} at {at}: {ours} against {value}");
            }
            assert!(!["filters.update", "filters.rate"].contains(&bench.as_str()) || via.len() > tcp.len(), "{bench}");
        }
    }
}
