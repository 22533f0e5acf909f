//! Which filter of a pipeline holds the others up.
//!
//! A pipeline is as fast as its busiest copy. That is the one with the most time in which it had a buffer to work on, space for
//! what it gives, and a processor. Time without a processor does not count: other threads took it, and a filter that hardly
//! works loses it as well. Nor does it matter how long a copy was there: a source that ends early has done what it had to.

use sidestep_filters::{CopyId, Counts};

/// The filter, and the share of the longest copy's time in which its busiest copy worked.
pub fn bottleneck(counts: &[(CopyId, Counts)]) -> Option<(usize, f64)> {
    let (busiest, own) = counts.iter().max_by_key(|(_, counts)| counts.busy_ns())?;
    let longest = counts.iter().map(|(_, counts)| counts.working_ns).max()?;
    (own.busy_ns() > 0).then(|| (busiest.filter, own.busy_ns() as f64 / longest as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(filter: usize, copy: usize, [working, starved, blocked, delayed]: [u64; 4]) -> (CopyId, Counts) {
        let counts = Counts {
            working_ns: working,
            starved_ns: starved,
            blocked_ns: blocked,
            delayed_ns: delayed,
            ..Counts::default()
        };
        (CopyId { filter, copy }, counts)
    }

    #[test]
    fn the_filter_that_others_wait_for_is_named() {
        let counts = [copy(0, 0, [100, 0, 80, 0]), copy(1, 0, [100, 5, 5, 0]), copy(2, 0, [100, 90, 0, 0])];
        assert_eq!(bottleneck(&counts), Some((1, 0.9)));
    }

    #[test]
    fn a_source_that_ends_early_is_not_named() {
        let counts = [copy(0, 0, [10, 0, 0, 0]), copy(1, 0, [100, 20, 0, 0])];
        assert_eq!(bottleneck(&counts), Some((1, 0.8)));
    }

    #[test]
    fn a_filter_that_only_lacked_a_processor_is_not_named() {
        let counts = [copy(0, 0, [100, 0, 0, 85]), copy(1, 0, [100, 10, 0, 50])];
        assert_eq!(bottleneck(&counts), Some((1, 0.4)));
    }

    #[test]
    fn one_slow_copy_is_enough_where_buffers_are_dealt_in_turn() {
        let counts = [copy(0, 0, [100, 0, 60, 0]), copy(1, 0, [100, 5, 0, 0]), copy(1, 1, [100, 90, 0, 0])];
        assert_eq!(bottleneck(&counts), Some((1, 0.95)));
    }

    #[test]
    fn nothing_is_named_where_nothing_was_done() {
        assert_eq!(bottleneck(&[]), None);
        assert_eq!(bottleneck(&[copy(0, 0, [0; 4])]), None);
    }
}
