//! Medians and tails.

use hdrhistogram::Histogram;

/// One-way times. Kept in half nanoseconds, so that halving a round trip loses nothing.
pub struct OneWay {
    half_nanoseconds: Histogram<u32>,
}

impl OneWay {
    /// From the times of round trips, in nanoseconds.
    pub fn from_trips(trips: &[u32]) -> OneWay {
        OneWay::from_half_nanoseconds(trips.iter().map(|trip| u64::from(*trip)))
    }

    /// From the times of single messages, in nanoseconds.
    pub fn from_messages(messages: &[u64]) -> OneWay {
        OneWay::from_half_nanoseconds(messages.iter().map(|time| time * 2))
    }

    /// All the times of several.
    pub fn merged<'a>(parts: impl IntoIterator<Item = &'a OneWay>) -> OneWay {
        let mut whole = OneWay::from_half_nanoseconds(std::iter::empty());
        for part in parts {
            whole.half_nanoseconds.add(&part.half_nanoseconds).expect("it grows as needed");
        }
        whole
    }

    /// The time that this share of the messages stayed within, in nanoseconds.
    pub fn quantile(&self, share: f64) -> f64 {
        self.half_nanoseconds.value_at_quantile(share) as f64 / 2.0
    }

    fn from_half_nanoseconds(times: impl Iterator<Item = u64>) -> OneWay {
        let mut half_nanoseconds = Histogram::new(SIGNIFICANT_DIGITS).expect("three digits are allowed");
        for time in times {
            half_nanoseconds.record(time.max(1)).expect("it grows as needed");
        }
        OneWay { half_nanoseconds }
    }
}

/// The median; of an even number of values the mean of the middle two. `None` of nothing.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        len if len % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

const SIGNIFICANT_DIGITS: u8 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median([]), None);
        assert_eq!(median([3.0]), Some(3.0));
        assert_eq!(median([9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median([4.0, 1.0, 2.0, 9.0]), Some(3.0));
    }

    #[test]
    fn a_round_trip_counts_half_and_tails_are_found() {
        let mut trips = vec![101; 990];
        trips.extend([5000; 10]);
        let few = OneWay::from_trips(&trips);
        assert_eq!(few.quantile(0.5), 50.5);
        assert_eq!(few.quantile(0.98), 50.5);
        assert!((few.quantile(0.999) - 2500.0).abs() < 5.0);
        let many = OneWay::from_messages(&[50; 100_000]);
        assert_eq!(OneWay::merged([&few, &many]).quantile(0.999), 50.5);
    }
}
