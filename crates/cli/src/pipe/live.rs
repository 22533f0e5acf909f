//! How far a pipeline is, for a person at a terminal: a line for each filter, drawn again and again.

use std::collections::HashMap;
use std::io::{IsTerminal, Write, stderr};
use std::time::Instant;

use sidestep_filters::{Counts, Group};

use super::summary::{bytes, per_filter};

/// What is on the terminal.
pub struct Live {
    shown: bool,
    lines: usize,
    last: HashMap<usize, (Counts, Instant)>,
}

impl Live {
    /// Shows nothing where nobody looks.
    pub fn new(wanted: bool) -> Live {
        Live { shown: wanted && stderr().is_terminal(), lines: 0, last: HashMap::new() }
    }

    /// Draws the state of a group.
    pub fn show(&mut self, group: &Group, done: usize, total: usize) {
        if !self.shown {
            return;
        }
        let mut lines = vec![format!("{}: {done} of {total} units of work", group.graph().name)];
        for (index, (filter, counts)) in per_filter(group).into_iter().enumerate() {
            let now = Instant::now();
            let (before, then) = self.last.insert(index, (counts, now)).unwrap_or((counts, now));
            let seconds = (now - then).as_secs_f64().max(1e-3);
            let moved = |counts: &Counts| counts.bytes_in.max(counts.bytes_out);
            let rate = (moved(&counts).saturating_sub(moved(&before))) as f64 / seconds;
            lines.push(format!(
                "  {filter:<15} {:>10} buffers  {:>10}/s  {:>3} waiting",
                counts.buffers_in.max(counts.buffers_out),
                bytes(rate),
                counts.waiting
            ));
        }
        self.clear();
        self.lines = lines.len();
        // Nothing depends on it.
        let _ = writeln!(stderr(), "{}", lines.join("\n"));
    }

    /// Takes it away.
    pub fn clear(&mut self) {
        if self.lines > 0 {
            let _ = write!(stderr(), "\x1b[{}A\x1b[J", self.lines);
            self.lines = 0;
        }
    }
}
