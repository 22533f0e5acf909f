//! What the sockets suite found: figures, by path and placement, and what they say about the promises.

use serde_json::{Map, Value};

use super::super::place::Placement;
use super::super::record::{Metric, Record, digits};
use super::super::stats::{SHARES, differs, median, noise, spread};
use super::pair::Via;
use super::round::Found;

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
    /// The times that the shares of [`SHARES`] of the trips stayed within, if they were timed: one a round.
    pub distributions: Vec<[f64; SHARES.len()]>,
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
    /// What else was chosen: numbers of connections, and the like.
    pub parameters: Vec<(&'static str, usize)>,
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
    /// One without values.
    pub fn new(via: Via, placement: Placement) -> Row {
        Row { via, placement, figures: Vec::new(), same_core: Vec::new(), distributions: Vec::new() }
    }

    /// Adds what a round found.
    pub fn add(&mut self, found: Found) {
        self.same_core.extend(found.same_core);
        self.distributions.extend(found.distribution);
        for (metric, value) in found.figures {
            match self.figures.iter_mut().find(|(own, _)| *own == metric) {
                Some((_, values)) => values.push(value),
                None => self.figures.push((metric, vec![value])),
            }
        }
    }

    fn values(&self, metric: Metric) -> Option<&[f64]> {
        self.figures.iter().find(|(own, _)| *own == metric).map(|(_, values)| values.as_slice())
    }

    /// The distribution of its trips: for each share the median of the rounds.
    fn distribution(&self) -> Vec<Value> {
        let at = |number: usize| median(self.distributions.iter().map(|times| times[number]));
        SHARES.iter().enumerate().map(|(number, share)| serde_json::json!([share, at(number)])).collect()
    }

    /// The median of a metric.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        median(self.values(metric)?.iter().copied())
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
            parameters: Vec::new(),
            ours: Via::Ring,
            claims: Vec::new(),
            note: Some(why),
        }
    }

    /// The row of a path in its better placement, by a metric, and its value.
    fn best(&self, via: Via, metric: Metric, placement: Option<Placement>) -> Option<(f64, &Row)> {
        let own = self.rows.iter().filter(|row| row.via == via && placement.is_none_or(|place| place == row.placement));
        let values = own.filter_map(|row| Some((row.value(metric)?, row)));
        values.reduce(|one, two| if (one.0 > two.0) == metric.larger_is_better() { one } else { two })
    }

    /// How many times better the ring is than a claim's baseline, and what of that may be noise; `None` if one of them is missing.
    fn ratio(&self, claim: &Claim) -> Option<(f64, Option<f64>)> {
        let placement = claim.placement;
        let fallback = || self.best(Via::UnixUnder, claim.metric, placement);
        let (ours, our_row) = self.best(self.ours, claim.metric, placement).or_else(fallback)?;
        // A promise about one placement is about the baseline in that placement, too.
        let (theirs, their_row) =
            self.best(claim.against, claim.metric, placement.filter(|place| *place != Placement::Free))?;
        if theirs == 0.0 || ours == 0.0 {
            return None;
        }
        let ratio = if claim.metric.larger_is_better() { ours / theirs } else { theirs / ours };
        Some((ratio, noise([our_row, their_row].map(|row| spread(row.values(claim.metric)?)))))
    }

    /// The records of all of it.
    pub fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        for row in &self.rows {
            for (metric, values) in &row.figures {
                let Some(value) = row.value(*metric) else { continue };
                let mut extra = self.extra(row.placement);
                extra.insert("rounds".into(), values.len().into());
                if let Some(spread) = spread(values) {
                    extra.insert("spread".into(), spread.into());
                }
                if *metric == Metric::OneWayP50 && !row.distributions.is_empty() {
                    extra.insert("distribution".into(), row.distribution().into());
                }
                if let Some(share) = median(row.same_core.iter().copied()) {
                    extra.insert("same_core_share".into(), share.into());
                }
                records.push(self.record(row.via.name(), *metric, value, extra));
            }
        }
        for claim in &self.claims {
            let Some((ratio, noise)) = self.ratio(claim) else { continue };
            let mut extra = self.extra(claim.placement.unwrap_or(Placement::Free));
            extra.insert("against".into(), claim.against.name().into());
            extra.insert("of".into(), serde_json::to_value(claim.metric).unwrap_or(Value::Null));
            extra.insert("must".into(), claim.must.into());
            extra.insert("met".into(), (ratio >= claim.must).into());
            extra.insert("noise".into(), noise.into());
            extra.insert("differs".into(), differs(ratio, noise).into());
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
        for (name, value) in &self.parameters {
            extra.insert((*name).into(), (*value).into());
        }
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
            if let Some(spread) = row.figures.first().and_then(|(_, values)| spread(values)) {
                shown.push(format!("spread {:.1} %", spread * 100.0));
            }
            if let Some(share) = median(row.same_core.iter().copied()) {
                shown.push(format!("{:.0} % on one core", share * 100.0));
            }
            println!("  {:<14} {:<6} {}", row.via.name(), placement_name(row.placement), shown.join(", "));
        }
        for claim in &self.claims {
            let against = claim.against.name();
            match self.ratio(claim) {
                Some((ratio, noise)) => {
                    let verdict = if ratio >= claim.must { "met" } else { "MISSED" };
                    let beyond = match (differs(ratio, noise), noise) {
                        (true, _) => String::new(),
                        (false, Some(noise)) => format!(" (no difference beyond the noise of {:.0} %)", noise * 100.0),
                        (false, None) => " (too few rounds to tell it from noise)".into(),
                    };
                    let (ratio, must) = (digits(ratio), digits(claim.must));
                    println!(
                        "  {ratio} times better than {against} by {}{beyond}, {must} promised: {verdict}",
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
