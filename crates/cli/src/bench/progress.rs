//! How far a run is, for a person at a terminal.

use std::io::{IsTerminal, Write, stderr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A run of several steps, of which each is expected to take some seconds.
struct Whole {
    begin: Instant,
    done: f64,
    total: f64,
    name: String,
}

static WHOLE: Mutex<Option<Whole>> = Mutex::new(None);

/// Says what is done now. Nothing is left of it when the text is empty.
pub fn show(text: &str) {
    if !stderr().is_terminal() {
        return;
    }
    let whole = WHOLE.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(Whole::bar).unwrap_or_default();
    // Nothing depends on it.
    let _ = write!(stderr(), "\r\x1b[K{}", if text.is_empty() { String::new() } else { whole + text });
}

/// Begins a step of a run whose steps are expected to take `total` seconds, `done` of them until now.
pub fn step(begin: Instant, done: f64, total: f64, name: &str) {
    let whole = Whole { begin, done, total, name: name.into() };
    *WHOLE.lock().unwrap_or_else(PoisonError::into_inner) = Some(whole);
    show(" ");
}

/// There are no further steps.
pub fn end() {
    *WHOLE.lock().unwrap_or_else(PoisonError::into_inner) = None;
    show("");
}

/// The time that is left, if the rest goes as what is done, or as expected before anything is.
pub fn left(passed: Duration, done: f64, total: f64) -> Duration {
    let pace = if done > 0.0 { passed.as_secs_f64() / done } else { 1.0 };
    Duration::from_secs_f64(((total - done) * pace).max(0.0))
}

/// A time as people say it.
pub fn spoken(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds < 90 => format!("{seconds} s"),
        seconds => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

impl Whole {
    fn bar(&self) -> String {
        let filled = ((self.done / self.total * WIDTH as f64) as usize).min(WIDTH);
        let left = spoken(left(self.begin.elapsed(), self.done, self.total));
        format!("[{}{}] about {left} left, {}: ", "#".repeat(filled), "-".repeat(WIDTH - filled), self.name)
    }
}

const WIDTH: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_goes_as_what_is_done() {
        assert_eq!(left(Duration::from_secs(10), 5.0, 20.0), Duration::from_secs(30));
        assert_eq!(left(Duration::ZERO, 0.0, 20.0), Duration::from_secs(20));
        assert_eq!(spoken(Duration::from_secs(89)), "89 s");
        assert_eq!(spoken(Duration::from_secs(125)), "2 min 05 s");
    }
}
