//! What the sockets suite found: figures, by path and placement, and what they say about the promises.

use serde_json::{Map, Value};

use super::super::place::Placement;
use super::super::record::{Metric, Record, digits};
use super::super::stats::median;
use super::pair::Via;

/// One way of measuring one thing, with the values of all rounds.
pub struct Row {
    /// Which way the bytes went.
    pub via: Via,
    /// Where the processes ran.
    pub placement: Placement,
    /// The metrics, each with a value per round.
    pub figures: Vec<(Metric, Vec<f64>)>,
    /// The share of trips with both ends on one core, if trips were counted.
    pub same_core: Vec<f64>,
}

/// One thing measured: every path and placement of it.
pub struct Outcome {
    /// The bench: `latency`, `redis`, ...
    pub bench: &'static str,
    /// What of it, in a few words.
    pub what: String,
    /// Bytes per message, where that makes sense.
    pub size: usize,
    /// The ways.
    pub rows: Vec<Row>,
    /// The way that the claims are about.
    pub ours: Via,
    /// What was promised.
    pub claims: Vec<Claim>,
    /// Why there are no figures, or not all.
    pub note: Option<String>,
}

/// A promise: our way against the better baseline of a path.
pub struct Claim {
    /// The path it is compared with.
    pub against: Via,
    /// By which metric.
    pub metric: Metric,
    /// How many times better it must be.
    pub must: f64,
    /// Which rows of the ring count.
    pub placement: Option<Placement>,
}

impl Row {
    /// The median of a metric.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        let (_, values) = self.figures.iter().find(|(own, _)| *own == metric)?;
        median(values.iter().copied())
    }
}

impl Outcome {
    /// One without figures.
    pub fn skipped(bench: &'static str, what: &str, why: String) -> Outcome {
        Outcome {
            bench,
            what: what.into(),
            size: 0,
            rows: Vec::new(),
            ours: Via::Ring,
            claims: Vec::new(),
            note: Some(why),
        }
    }

    /// The better placement of a path, by a metric.
    pub fn best(&self, via: Via, metric: Metric, placement: Option<Placement>) -> Option<f64> {
        let own = self.rows.iter().filter(|row| row.via == via && placement.is_none_or(|place| place == row.placement));
        let values = own.filter_map(|row| row.value(metric));
        values.reduce(|left, right| if metric.larger_is_better() { left.max(right) } else { left.min(right) })
    }

    /// How many times better the ring is than a claim's baseline; `None` if one of them is missing.
    pub fn ratio(&self, claim: &Claim) -> Option<f64> {
        let placement = claim.placement;
        let fallback = || self.best(Via::UnixUnder, claim.metric, placement);
        let ours = self.best(self.ours, claim.metric, placement).or_else(fallback)?;
        // A promise about one placement is about the baseline in that placement, too.
        let theirs = self.best(claim.against, claim.metric, placement.filter(|place| *place != Placement::Free))?;
        if theirs == 0.0 || ours == 0.0 {
            return None;
        }
        Some(if claim.metric.larger_is_better() { ours / theirs } else { theirs / ours })
    }

    /// The records of all of it.
    pub fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        for row in &self.rows {
            for (metric, values) in &row.figures {
                let Some(value) = row.value(*metric) else { continue };
                let mut extra = self.extra(row.placement);
                extra.insert("rounds".into(), values.len().into());
                if let Some(share) = median(row.same_core.iter().copied()) {
                    extra.insert("same_core_share".into(), share.into());
                }
                records.push(self.record(row.via.name(), *metric, value, extra));
            }
        }
        for claim in &self.claims {
            let Some(ratio) = self.ratio(claim) else { continue };
            let mut extra = self.extra(claim.placement.unwrap_or(Placement::Free));
            extra.insert("against".into(), claim.against.name().into());
            extra.insert("of".into(), serde_json::to_value(claim.metric).unwrap_or(Value::Null));
            extra.insert("must".into(), claim.must.into());
            extra.insert("met".into(), (ratio >= claim.must).into());
            records.push(self.record(self.ours.name(), Metric::Ratio, ratio, extra));
        }
        if let Some(note) = &self.note {
            let mut extra = self.extra(Placement::Free);
            extra.insert("note".into(), note.clone().into());
            records.push(self.record("ring", Metric::Ratio, 0.0, extra));
        }
        records
    }

    fn extra(&self, placement: Placement) -> Map<String, Value> {
        let mut extra = Map::new();
        extra.insert("what".into(), self.what.clone().into());
        extra.insert("placement".into(), placement_name(placement).into());
        extra
    }

    fn record(&self, path: &str, metric: Metric, value: f64, extra: Map<String, Value>) -> Record {
        let bench = format!("sockets.{}", self.bench);
        Record { bench, path: path.into(), size: self.size, metric, value, unit: metric.unit(), extra }
    }

    /// Prints it for people.
    pub fn print(&self) {
        println!("{}: {}", self.bench, self.what);
        for row in &self.rows {
            let figures = row.figures.iter().filter_map(|(metric, _)| {
                let value = row.value(*metric)?;
                Some(format!("{} {}", metric.heading(), metric.shown(value)))
            });
            let mut shown: Vec<String> = figures.collect();
            if let Some(share) = median(row.same_core.iter().copied()) {
                shown.push(format!("{:.0} % on one core", share * 100.0));
            }
            println!("  {:<14} {:<6} {}", row.via.name(), placement_name(row.placement), shown.join(", "));
        }
        for claim in &self.claims {
            let against = claim.against.name();
            match self.ratio(claim) {
                Some(ratio) => {
                    let verdict = if ratio >= claim.must { "met" } else { "MISSED" };
                    let (ratio, must) = (digits(ratio), digits(claim.must));
                    println!(
                        "  {ratio} times better than {against} by {}, {must} promised: {verdict}",
                        claim.metric.heading()
                    );
                }
                None => println!("  no figure against {against}"),
            }
        }
        if let Some(note) = &self.note {
            println!("  {note}");
        }
    }
}

/// The name of a placement.
pub fn placement_name(placement: Placement) -> &'static str {
    match placement {
        Placement::Cross => "cross",
        Placement::Same => "same",
        Placement::Free => "free",
    }
}
