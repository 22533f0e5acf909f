//! Places in source text, and messages about them.

use std::fmt;
use std::sync::Arc;

/// A place in a file. Lines and columns begin at one; a column counts characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The file.
    pub file: Arc<str>,
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Nothing is generated.
    Error,
    /// Something was ignored.
    Warning,
}

/// A message about a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The place.
    pub at: Location,
    /// What is wrong there.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{}: {severity}: {}", self.at, self.message)
    }
}

/// The messages of one run, in the order in which they were found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// Adds an error.
    pub fn error(&mut self, at: &Location, message: impl Into<String>) {
        self.0.push(Diagnostic { severity: Severity::Error, at: at.clone(), message: message.into() });
    }

    /// Adds a warning.
    pub fn warning(&mut self, at: &Location, message: impl Into<String>) {
        self.0.push(Diagnostic { severity: Severity::Warning, at: at.clone(), message: message.into() });
    }

    /// Whether there is an error.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.0.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Each message.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.0.iter()
    }
}

/// One message a line.
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|diagnostic| writeln!(f, "{diagnostic}"))
    }
}

impl std::error::Error for Diagnostics {}
