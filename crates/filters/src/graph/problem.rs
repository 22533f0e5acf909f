//! What is wrong with a description, where, and what to do about it.

use std::fmt;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1; 0 if it was not read from a file.
    pub line: usize,
    /// What is wrong.
    pub what: String,
    /// What mends it.
    pub remedy: String,
}

impl Problem {
    pub(crate) fn new(line: usize, what: impl fmt::Display, remedy: impl fmt::Display) -> Problem {
        Problem { line, what: what.to_string(), remedy: remedy.to_string() }
    }

    /// Several, a line each.
    pub(crate) fn list(problems: &[Problem]) -> String {
        problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(out, "line {}: ", self.line)?;
        }
        write!(out, "{}; {}", self.what, self.remedy)
    }
}
