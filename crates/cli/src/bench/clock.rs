//! Time, as the measurements see it: nanoseconds of one clock that all processes share.

use std::sync::OnceLock;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Now, in nanoseconds of `CLOCK_MONOTONIC`. Comparable between processes.
#[inline]
pub fn now() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// A deadline this many seconds from now.
pub fn in_seconds(seconds: u64) -> Option<u64> {
    Some(now() + seconds * 1_000_000_000)
}

/// Measures what passes and what this process uses of it.
pub struct Stopwatch {
    started: u64,
    used_before: u64,
}

/// What a stopwatch shows.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Elapsed {
    /// Nanoseconds that have passed.
    pub time: u64,
    /// Nanoseconds of processor time that this process has used of them.
    pub processor_time: u64,
}

impl Stopwatch {
    /// Begins.
    pub fn start() -> Stopwatch {
        let used_before = nanoseconds(ClockId::ProcessCPUTime);
        Stopwatch { started: now(), used_before }
    }

    /// What has passed since.
    pub fn elapsed(&self) -> Elapsed {
        let time = now() - self.started;
        let processor_time = nanoseconds(ClockId::ProcessCPUTime) - self.used_before;
        Elapsed { time, processor_time }
    }
}

impl Elapsed {
    /// Which share of the time this process was running.
    pub fn running_share(&self) -> f64 {
        self.processor_time as f64 / self.time.max(1) as f64
    }
}

/// What one call of [`now`] costs, in nanoseconds: the median of many. It is taken off each timed
/// trip, because a trip of a cache line is only a few times longer than the call.
pub fn reading_cost() -> u64 {
    static COST: OnceLock<u64> = OnceLock::new();
    *COST.get_or_init(|| {
        let readings: Vec<u64> = (0..READINGS).map(|_| now()).collect();
        let mut costs: Vec<u64> = readings.windows(2).map(|pair| pair[1] - pair[0]).collect();
        costs.sort_unstable();
        costs[costs.len() / 2]
    })
}

/// Keeps the core busy for a while.
pub fn spin_for(time: Duration) {
    let end = now() + time.as_nanos() as u64;
    while now() < end {
        std::hint::spin_loop();
    }
}

#[inline]
fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

const READINGS: usize = 10_001;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_forward_and_reading_it_costs_little() {
        let watch = Stopwatch::start();
        assert!(reading_cost() < 100_000);
        let elapsed = watch.elapsed();
        assert!(elapsed.time > 0 && elapsed.processor_time > 0);
        assert!(elapsed.running_share() > 0.0);
    }
}
