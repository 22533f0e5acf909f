//! What a suite promises of its figures: whether a run keeps it, as a line for people and as a record.

use serde_json::{Map, Value, json};

use super::record::{Metric, Record, digits};

/// What a figure must be.
#[derive(Debug, Clone, Copy)]
pub enum Bound {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
    /// This, and no further from it than that.
    About(f64, f64),
}

/// A promise, and what was found.
#[derive(Debug)]
pub struct Promise {
    /// The bench that it is of.
    pub bench: String,
    /// Its name among those of the bench.
    pub name: &'static str,
    /// What is promised, in words.
    pub what: &'static str,
    /// What must be.
    pub bound: Bound,
    /// What is.
    pub found: f64,
}

/// The member of a record that says whether a promise is kept.
pub const VERDICT: &str = "verdict";

impl Bound {
    fn admits(self, found: f64) -> bool {
        match self {
            Bound::AtMost(most) => found <= most,
            Bound::AtLeast(least) => found >= least,
            Bound::About(value, off) => (found - value).abs() <= off,
        }
    }

    /// How many times better than it must be: 1 or more where the bound admits it.
    fn margin(self, found: f64) -> f64 {
        let margin = match self {
            Bound::AtMost(most) => most / found,
            Bound::AtLeast(least) => found / least,
            Bound::About(value, off) => off / (found - value).abs(),
        };
        // Nothing needs more than that, and JSON has no infinity.
        margin.clamp(0.0, 100.0)
    }

    fn in_words(self) -> String {
        match self {
            Bound::AtMost(most) => format!("at most {most}"),
            Bound::AtLeast(least) => format!("at least {least}"),
            Bound::About(value, off) => format!("{value} give or take {off}"),
        }
    }
}

impl Promise {
    fn verdict(&self) -> &'static str {
        if self.bound.admits(self.found) { "met" } else { "missed" }
    }

    /// For people.
    pub fn line(&self) -> String {
        let Promise { what, bound, found, .. } = self;
        format!(
            "{what}: {}, {} promised: {}",
            digits(*found),
            bound.in_words(),
            self.verdict().replace("missed", "MISSED")
        )
    }

    /// For programs; its value is how many times better than promised it is.
    pub fn record(&self) -> Record {
        let extra =
            json!({"what": self.what, "found": self.found, "promised": self.bound.in_words(), VERDICT: self.verdict()});
        let extra = extra.as_object().cloned().unwrap_or_else(Map::<String, Value>::new);
        let (metric, value) = (Metric::Ratio, self.bound.margin(self.found));
        Record {
            bench: self.bench.clone(),
            path: format!("promise {}", self.name),
            size: 0,
            metric,
            value,
            unit: metric.unit(),
            extra,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promise(bound: Bound, found: f64) -> Promise {
        Promise { bench: "suite.bench".into(), name: "it", what: "something", bound, found }
    }

    #[test]
    fn a_promise_is_kept_up_to_its_bound() {
        for (bound, kept, broken) in [
            (Bound::AtMost(0.26), [0.0, 0.26], [0.261, f64::NAN]),
            (Bound::AtLeast(5.0), [5.0, 8.0], [4.9, f64::NAN]),
            (Bound::About(1.0, 0.1), [0.95, 1.0], [1.2, 0.85]),
        ] {
            assert!(kept.iter().all(|found| promise(bound, *found).verdict() == "met"), "{bound:?}");
            assert!(broken.iter().all(|found| promise(bound, *found).verdict() == "missed"), "{bound:?}");
            assert!(kept.iter().all(|found| promise(bound, *found).record().value >= 1.0), "{bound:?}");
        }
        assert_eq!(promise(Bound::AtMost(0.5), 0.25).line(), "something: 0.250, at most 0.5 promised: met");
        assert!(promise(Bound::AtMost(0.5), 1.0).line().ends_with("MISSED"));
        let record = promise(Bound::AtMost(0.5), 1.0).record();
        assert_eq!(
            (record.path.as_str(), record.value, &record.extra["verdict"]),
            ("promise it", 0.5, &json!("missed"))
        );
    }
}
