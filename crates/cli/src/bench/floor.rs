//! The floor: a bare cache-line exchange, measured before and after each measurement.
//!
//! Where cores are virtual, the host moves them, and everything that crosses between two of them
//! becomes several times slower for a while. The floor shows it. A measurement with a slow floor on
//! either side is dropped, and the number of dropped ones is reported.
//!
//! What is slow is told by the lower quartile of all readings of the run, not by the lowest: for a
//! moment the two cores can be threads of one core, with a floor ten times lower that no other
//! measurement sees. Such moments are dropped too, so that all that is compared saw one machine.

use anyhow::Result;

use super::cacheline;
use super::exercise::Run;
use super::pair::{EndId, Pair};
use super::path::{Operation, Wait};
use super::stats::OneWay;

/// The exchange that the floor is read from.
pub struct Floor {
    end: EndId,
    readings: Vec<f64>,
}

/// The floor before and after a measurement, in nanoseconds one way.
#[derive(Clone, Copy, Debug)]
pub struct Around {
    /// Before it.
    pub before: f64,
    /// After it.
    pub after: f64,
}

impl Floor {
    /// Opens the exchange on a pair of processes on two cores.
    pub fn open(pair: &mut Pair) -> Result<Floor> {
        let end = pair.open(&cacheline::PATH, Wait::Spin)?;
        let mut floor = Floor { end, readings: Vec::new() };
        for _ in 0..FIRST_READINGS {
            floor.read(pair)?;
        }
        Ok(floor)
    }

    /// Reads the floor now: the median of many trips.
    pub fn read(&mut self, pair: &mut Pair) -> Result<f64> {
        let run = Run { operation: Operation::PingPong, size: cacheline::LINE_BYTES, count: TRIPS, shift: 0 };
        let now = OneWay::from_trips(&pair.measure(self.end, run)?.leader.trips).quantile(0.5);
        self.readings.push(now);
        Ok(now)
    }

    /// The floor of the run: the lower quartile of the readings so far.
    pub fn of_run(&self) -> f64 {
        lower_quartile(&self.readings)
    }
}

impl Around {
    /// Whether a measurement between these counts, given the floor of the run.
    pub fn is_calm(&self, of_run: f64) -> bool {
        self.distance(of_run) <= TOLERANCE
    }

    /// By which factor the one further off is off.
    pub fn distance(&self, of_run: f64) -> f64 {
        let off = |reading: f64| (reading / of_run).max(of_run / reading);
        off(self.before).max(off(self.after))
    }
}

fn lower_quartile(readings: &[f64]) -> f64 {
    let mut sorted = readings.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 4).copied().unwrap_or(f64::INFINITY)
}

/// By which factor the floor around a measurement may differ from that of the run.
pub const TOLERANCE: f64 = 1.5;

const TRIPS: usize = 1000;
const FIRST_READINGS: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_floor_on_either_side_spoils_a_measurement() {
        assert!(Around { before: 60.0, after: 40.0 }.is_calm(40.0));
        assert!(!Around { before: 61.0, after: 40.0 }.is_calm(40.0));
        assert!(!Around { before: 40.0, after: 200.0 }.is_calm(40.0));
        assert!(!Around { before: 40.0, after: 13.0 }.is_calm(40.0));
    }

    #[test]
    fn a_short_moment_does_not_set_the_floor_of_the_run() {
        let mut readings = vec![13.5; 5];
        readings.extend([120.0; 90]);
        assert_eq!(lower_quartile(&readings), 120.0);
        readings.extend([60.0; 40]);
        assert_eq!(lower_quartile(&readings), 60.0);
    }
}
