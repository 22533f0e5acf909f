//! Times in the bins of the thesis's tables 4.6 and 4.7.

/// The upper ends of all bins but the last, in microseconds.
pub const BINS: [u64; 6] = [10, 20, 50, 100, 200, 500];

/// How many times fell into each bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bins {
    /// One for each bin; the last is for everything above.
    pub counts: [u64; BINS.len() + 1],
}

impl Bins {
    /// Counts a time.
    pub fn add(&mut self, ns: u64) {
        let bin = BINS.iter().position(|end| ns < end * 1000).unwrap_or(BINS.len());
        self.counts[bin] += 1;
    }

    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The share of each bin.
    #[must_use]
    pub fn shares(&self) -> [f64; BINS.len() + 1] {
        let total = self.total().max(1) as f64;
        self.counts.map(|count| count as f64 / total)
    }

    /// The names of the bins.
    #[must_use]
    pub fn names() -> [&'static str; BINS.len() + 1] {
        ["0-10", "10-20", "20-50", "50-100", "100-200", "200-500", ">500"]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_fall_into_their_bins() {
        let mut bins = Bins::default();
        for us in [0, 9, 10, 19, 20, 99, 100, 499, 500, 10_000] {
            bins.add(us * 1000);
        }
        assert_eq!(bins.counts, [2, 2, 1, 1, 1, 1, 2]);
        assert!((bins.shares()[0] - 0.2).abs() < 1e-9);
    }
}
