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

    /// The times that growing shares of the messages stayed within, as pairs of a share and nanoseconds.
    pub fn distribution(&self) -> Vec<(f64, f64)> {
        SHARES.iter().map(|share| (*share, self.quantile(*share))).collect()
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

/// How far values lie from their median, as a share of it: half of them lie nearer. `None` of fewer than three values, of which
/// nothing can be said.
pub fn spread(values: &[f64]) -> Option<f64> {
    let middle = median(values.iter().copied()).filter(|middle| *middle != 0.0 && values.len() >= 3)?;
    median(values.iter().map(|value| (value / middle - 1.0).abs()))
}

/// What two medians may differ by without meaning anything, as a share: twice what the rounds of both differ among themselves, and
/// never less than a hundredth.
pub fn noise(spreads: [Option<f64>; 2]) -> Option<f64> {
    let [one, other] = spreads;
    Some((2.0 * (one? + other?)).max(LEAST_NOISE))
}

/// Whether a ratio is a difference, and not noise. Without a known noise it is none.
pub fn differs(ratio: f64, noise: Option<f64>) -> bool {
    noise.is_some_and(|noise| ratio.ln().abs() > noise.ln_1p())
}

/// The shares of a distribution, as it is kept of a run.
pub const SHARES: [f64; 14] = [0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999, 0.99999];

const LEAST_NOISE: f64 = 0.01;

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
    fn a_difference_within_the_noise_is_none() {
        assert_eq!(spread(&[1.0, 2.0]), None);
        assert_eq!(spread(&[75.0, 100.0, 125.0, 100.0, 150.0]), Some(0.25));
        let noise = noise([Some(0.1), Some(0.05)]);
        assert!(differs(1.5, noise) && differs(0.6, noise));
        assert!(!differs(1.2, noise) && !differs(0.8, noise));
        assert!(!differs(9.0, super::noise([None, Some(0.1)])));
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
