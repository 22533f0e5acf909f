//! How soon the death of a process is known to those that used it.

/// How long after deaths others learned of them, without the time for which they waited for a processor.
#[derive(Debug, Default)]
pub struct Learned(Vec<u64>);

/// By when whoever uses a process that dies has its error.
const AT_ONCE_NS: u64 = 100_000_000;

impl Learned {
    /// One more: when it died, when that was known, and how long whoever learned it had been without a processor in between
    /// ([`run_delay_ns`](super::run_delay_ns)).
    pub fn note(&mut self, dead: u64, learned: u64, waited: u64) {
        self.0.push(learned.saturating_sub(dead).saturating_sub(waited));
    }

    /// Half of them within 100 ms: a machine that stands still now and then fails no test.
    ///
    /// # Panics
    ///
    /// If they were not.
    pub fn judge(mut self, what: &str) {
        self.0.sort_unstable();
        let (Some(median), Some(longest)) = (self.0.get(self.0.len() / 2), self.0.last()) else { return };
        let ms = |ns: u64| ns as f64 / 1e6;
        let (median, longest) = (*median, ms(*longest));
        println!(
            "{what}: {} times, noticed after {:.3} ms in the median, {longest:.3} at most",
            self.0.len(),
            ms(median)
        );
        assert!(median < AT_ONCE_NS, "{what} is noticed after {:.1} ms in the median: {:?}", ms(median), self.0);
    }
}
