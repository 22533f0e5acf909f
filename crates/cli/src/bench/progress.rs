//! How far a run is, for a person at a terminal.

use std::io::{IsTerminal, Write, stderr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::termios::tcgetwinsize;

/// What is under way.
struct State {
    whole: Option<Whole>,
    suite: Option<Suite>,
    /// What was said last, and when.
    said: (String, Option<Instant>),
}

/// A run of several suites, of which each is expected to take some seconds.
struct Whole {
    done: Done,
    name: String,
}

/// A suite of several steps.
struct Suite {
    /// Without the present step.
    before: Done,
    /// What the present step weighs, and which share of it is done.
    step: (f64, f64),
}

/// How much of something is done, in any unit.
#[derive(Clone, Copy)]
struct Done {
    begin: Instant,
    done: f64,
    total: f64,
}

static STATE: Mutex<State> = Mutex::new(State { whole: None, suite: None, said: (String::new(), None) });

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says what is done now, and how long the rest takes as far as that is known. Nothing is left of it when the text is empty.
pub fn show(text: &str) {
    let mut state = state();
    state.said = (text.to_owned(), Some(Instant::now()));
    state.draw();
}

/// Begins a step of a run whose steps are expected to take `total` seconds, `done` of them until now.
pub fn step(begin: Instant, done: f64, total: f64, name: &str) {
    state().whole = Some(Whole { done: Done { begin, done, total }, name: name.into() });
    show(" ");
}

/// There are no further steps.
pub fn end() {
    state().whole = None;
    show("");
}

/// What a suite is going to do, until this is dropped.
pub struct Plan;

impl Plan {
    /// Steps that weigh so much together, in any unit.
    pub fn of(total: f64) -> Plan {
        state().suite = Some(Suite { before: Done { begin: Instant::now(), done: 0.0, total }, step: (0.0, 0.0) });
        Plan
    }

    /// Begins a step that weighs so much; the one before it is done.
    pub fn step(&self, weight: f64, text: &str) {
        if let Some(suite) = &mut state().suite {
            suite.before.done += suite.step.0;
            suite.step = (weight, 0.0);
        }
        show(text);
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        state().suite = None;
        show("");
    }
}

/// This share of the present step is done.
pub fn within_step(share: f64) {
    let mut state = state();
    if let Some(suite) = &mut state.suite {
        suite.step.1 = share.clamp(0.0, 1.0);
    }
    if state.said.1.is_none_or(|when| when.elapsed() >= PAUSE) {
        state.said.1 = Some(Instant::now());
        state.draw();
    }
}

impl State {
    fn draw(&self) {
        if !stderr().is_terminal() {
            return;
        }
        let columns = tcgetwinsize(stderr()).map_or(0, |size| usize::from(size.ws_col));
        let line = self.line();
        // A longer line would go on in the next one, which nobody takes away. Nothing depends on it.
        let most = if columns > 1 { columns - 1 } else { line.len() };
        let _ = write!(stderr(), "\r\x1b[K{}", line.chars().take(most).collect::<String>());
    }

    /// Of a run of several suites the rest of the run counts, of one alone that of the suite.
    fn line(&self) -> String {
        let text = &self.said.0;
        let suite = self.suite.as_ref().map(Suite::done).filter(|suite| suite.done > 0.0 && suite.done < suite.total);
        match (&self.whole, suite) {
            _ if text.is_empty() => String::new(),
            (Some(whole), _) => whole.bar() + text,
            (None, Some(suite)) => format!("{text}, about {} left", spoken(suite.left())),
            (None, None) => text.clone(),
        }
    }
}

impl Suite {
    fn done(&self) -> Done {
        let (weight, share) = self.step;
        Done { done: self.before.done + weight * share, ..self.before }
    }
}

impl Done {
    fn left(&self) -> Duration {
        left(self.begin.elapsed(), self.done, self.total)
    }
}

/// Between two drawings of the same text.
const PAUSE: Duration = Duration::from_millis(500);

/// The time that is left, if the rest goes as what is done, or as expected before anything is.
fn left(passed: Duration, done: f64, total: f64) -> Duration {
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
        let filled = ((self.done.done / self.done.total * WIDTH as f64) as usize).min(WIDTH);
        let (bar, rest) = ("#".repeat(filled), "-".repeat(WIDTH - filled));
        format!("[{bar}{rest}] about {} left, {}: ", spoken(self.done.left()), self.name)
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

    #[test]
    fn the_rest_is_said_as_soon_as_it_is_known() {
        let done = |seconds: u64, done: f64| {
            let begin =
                Instant::now().checked_sub(Duration::from_secs(seconds)).expect("a machine that is up for so long");
            Done { begin, done, total: 4.0 }
        };
        let line = |whole: Option<Whole>, suite: Option<Done>, step: (f64, f64)| {
            let suite = suite.map(|before| Suite { before, step });
            State { whole, suite, said: ("null, tcp".into(), None) }.line()
        };
        assert_eq!(line(None, None, (0.0, 0.0)), "null, tcp");
        assert_eq!(line(None, Some(done(0, 0.0)), (1.0, 0.0)), "null, tcp");
        assert_eq!(line(None, Some(done(5, 1.0)), (1.0, 0.0)), "null, tcp, about 15 s left");
        assert_eq!(line(None, Some(done(5, 0.0)), (2.0, 0.5)), "null, tcp, about 15 s left");
        assert_eq!(line(None, Some(done(5, 4.0)), (0.0, 0.0)), "null, tcp");
        let whole = Whole { done: done(5, 1.0), name: "CORBA".into() };
        let bar = format!("[{}{}] about 15 s left, CORBA: null, tcp", "#".repeat(5), "-".repeat(15));
        assert_eq!(line(Some(whole), Some(done(5, 2.0)), (1.0, 0.0)), bar);
    }
}
