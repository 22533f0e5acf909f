//! What a pipeline did, and which filter held the others up.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};
use sidestep_filters::{Counts, Group, Outcome};

use super::bottleneck::bottleneck;

/// A filter that works for less of the time holds nobody up by its work: a faster one would change little.
const BOUND: f64 = 0.5;

/// A run that is over.
pub struct Summary<'a> {
    group: &'a Group,
    outcomes: &'a [Outcome],
    elapsed: Duration,
}

/// The counts of each filter, over its copies.
pub fn per_filter(group: &Group) -> Vec<(String, Counts)> {
    let graph = group.graph();
    let counts = group.counts();
    let of = |index: usize| {
        let own = counts.iter().filter(|(id, _)| id.filter == index);
        own.fold(Counts::default(), |mut sum, (_, counts)| {
            let waiting = sum.waiting + counts.waiting;
            sum.add(counts);
            sum.waiting = waiting;
            sum
        })
    };
    let name = |index: usize| match graph.filters[index].copies {
        1 => graph.filters[index].name.clone(),
        copies => format!("{} x {copies}", graph.filters[index].name),
    };
    (0..graph.filters.len()).map(|index| (name(index), of(index))).collect()
}

/// A number of bytes as people say it.
pub fn bytes(count: f64) -> String {
    match count {
        small if small < 1e3 => format!("{small:.0} B"),
        kilo if kilo < 1e6 => format!("{:.1} kB", kilo / 1e3),
        mega if mega < 1e9 => format!("{:.1} MB", mega / 1e6),
        giga => format!("{:.2} GB", giga / 1e9),
    }
}

impl<'a> Summary<'a> {
    pub fn new(group: &'a Group, outcomes: &'a [Outcome], elapsed: Duration) -> Summary<'a> {
        Summary { group, outcomes, elapsed }
    }

    /// The filter that held the others up, and its share of the time.
    fn bottleneck(&self) -> Option<(&'a str, f64)> {
        let (filter, share) = bottleneck(&self.group.counts())?;
        Some((&self.group.graph().filters[filter].name, share))
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let failed: Vec<&Outcome> = self.outcomes.iter().filter(|outcome| outcome.result.is_err()).collect();
        let seconds = self.elapsed.as_secs_f64();
        let _ = writeln!(
            out,
            "{}: {} {} of work in {seconds:.2} s, {} failed",
            self.group.graph().name,
            self.outcomes.len(),
            if self.outcomes.len() == 1 { "unit" } else { "units" },
            failed.len()
        );
        let _ = writeln!(
            out,
            "  {:<15} {:>10} {:>10} {:>12} {:>6} {:>9} {:>9} {:>8}",
            "filter", "taken", "given", "rate", "worked", "no input", "no space", "no core"
        );
        for (name, counts) in per_filter(self.group) {
            // Two threads of a copy may wait at the same time: one for input and the other for space.
            let share = |ns: u64| (100.0 * ns as f64 / counts.working_ns.max(1) as f64).min(100.0);
            let rate = bytes(counts.bytes_in.max(counts.bytes_out) as f64 / seconds.max(1e-9));
            let _ = writeln!(
                out,
                "  {name:<15} {:>10} {:>10} {rate:>10}/s {:>4.0} % {:>7.0} % {:>7.0} % {:>6.0} %",
                bytes(counts.bytes_in as f64),
                bytes(counts.bytes_out as f64),
                share(counts.busy_ns()),
                share(counts.starved_ns),
                share(counts.blocked_ns),
                share(counts.delayed_ns)
            );
        }
        if let Some((name, share)) = self.bottleneck() {
            let percent = 100.0 * share;
            let _ = match share >= BOUND {
                true => {
                    writeln!(out, "  the bottleneck is {name}: its busiest copy worked for {percent:.0} % of the time")
                }
                false => writeln!(
                    out,
                    "  no filter is the bottleneck: the busiest, {name}, worked for {percent:.0} % of the time, and waited or had no core for the rest"
                ),
            };
        }
        for outcome in failed {
            if let Err(error) = &outcome.result {
                let _ = writeln!(out, "  unit {} failed: {error}", outcome.unit);
            }
        }
        out
    }

    /// For programs.
    pub fn json(&self) -> String {
        let filters: Vec<Value> = per_filter(self.group)
            .into_iter()
            .zip(&self.group.graph().filters)
            .map(|((_, counts), filter)| {
                let busy = counts.busy_ns() as f64 / counts.working_ns.max(1) as f64;
                json!({"filter": filter.name, "kind": filter.kind, "copies": filter.copies, "busy": busy,
                       "counts": counts})
            })
            .collect();
        let units: Vec<Value> = self
            .outcomes
            .iter()
            .map(|outcome| match &outcome.result {
                Ok(()) => json!({"unit": outcome.unit, "ok": true}),
                Err(error) => json!({"unit": outcome.unit, "ok": false, "copy": error.copy, "what": error.what}),
            })
            .collect();
        json!({"name": self.group.graph().name, "seconds": self.elapsed.as_secs_f64(), "units": units,
               "filters": filters, "bottleneck": self.bottleneck().map(|(name, _)| name)})
        .to_string()
    }
}
