//! What is promised of a figure: whether a run keeps it, as a line for people and in the record, so that a report says it, too.

use super::record::{Record, digits};

/// What a figure must be.
#[derive(Debug, Clone, Copy)]
pub enum Bound {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
}

/// Where a record has the bound, and whether it is kept.
const AT_MOST: &str = "at_most";
const AT_LEAST: &str = "at_least";
const MET: &str = "met";

impl Bound {
    /// Nothing is promised of what is no number.
    fn admits(self, found: f64) -> bool {
        match self {
            Bound::AtMost(most) => found <= most,
            Bound::AtLeast(least) => found >= least,
        }
    }

    /// The record of the figure, with the bound and the verdict.
    pub fn about(self, mut record: Record) -> Record {
        let (key, bound) = match self {
            Bound::AtMost(most) => (AT_MOST, most),
            Bound::AtLeast(least) => (AT_LEAST, least),
        };
        record.extra.insert(key.into(), bound.into());
        record.extra.insert(MET.into(), self.admits(record.value).into());
        record
    }
}

/// The bound of a record of which something is promised, in words, and whether it is kept.
pub fn verdict(record: &Record) -> Option<(String, bool)> {
    let bound = |key: &str, words: &str| Some(format!("{words} {}", record.extra.get(key)?.as_f64()?));
    let words = bound(AT_MOST, "at most").or_else(|| bound(AT_LEAST, "at least"))?;
    Some((words, record.extra.get(MET)?.as_bool()?))
}

/// The value of a record for people, and the verdict if something is promised of it.
pub fn shown(record: &Record) -> String {
    let value = digits(record.value);
    match verdict(record) {
        Some((words, true)) => format!("{value}, {words} promised: met"),
        Some((words, false)) => format!("{value}, {words} promised: MISSED"),
        None => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::bench::record::Metric;

    fn record(value: f64) -> Record {
        let metric = Metric::Ratio;
        let (bench, path) = ("suite.bench".into(), "something".into());
        Record { bench, path, size: 0, metric, value, unit: metric.unit(), extra: Map::new() }
    }

    #[test]
    fn a_promise_is_kept_up_to_its_bound() {
        for (bound, kept, broken) in
            [(Bound::AtMost(0.26), [0.0, 0.26], [0.261, f64::NAN]), (Bound::AtLeast(5.0), [5.0, 8.0], [4.9, f64::NAN])]
        {
            let is_met = |found: &f64| verdict(&bound.about(record(*found))).is_some_and(|(_, met)| met);
            assert!(kept.iter().all(is_met) && !broken.iter().any(is_met), "{bound:?}");
        }
    }

    #[test]
    fn a_verdict_is_in_the_record_and_in_words() {
        assert_eq!(shown(&record(2.0)), "2.00");
        let kept = Bound::AtLeast(0.9).about(record(0.95));
        assert_eq!(verdict(&kept), Some(("at least 0.9".into(), true)));
        assert_eq!(shown(&kept), "0.950, at least 0.9 promised: met");
        assert_eq!(shown(&Bound::AtMost(1.5).about(record(1.66))), "1.66, at most 1.5 promised: MISSED");
    }
}
