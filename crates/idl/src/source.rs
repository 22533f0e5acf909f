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

/// The text of a file: UTF-8, UTF-16 that begins with its mark, or else ISO 8859-1, in which IDL was written first.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    let wide = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        char::decode_utf16(units).map(|each| each.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => without_mark(text).to_owned(),
            Err(_) => bytes.iter().copied().map(char::from).collect(),
        },
    }
}

/// The text behind the mark of its encoding, which some editors write.
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
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

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn files_are_read_in_every_encoding() {
        assert_eq!(text("gr\u{fc}n".as_bytes()), "gr\u{fc}n");
        assert_eq!(text(b"\xef\xbb\xbfgreen"), "green");
        assert_eq!(text(b"gr\xfcn"), "gr\u{fc}n");
        assert_eq!(text(b"\xff\xfea\0\xac\x20"), "a\u{20ac}");
        assert_eq!(text(b"\xfe\xff\0a\x20\xac"), "a\u{20ac}");
    }
}
