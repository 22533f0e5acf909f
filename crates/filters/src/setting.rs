//! The settings that a kind of filters understands: said once by the kind, and looked at before a group starts.

use std::fmt;
use std::ops::RangeInclusive;

/// One setting of a kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Its name in descriptions.
    pub name: &'static str,
    /// What it may be.
    pub accepts: Accepts,
    /// A filter cannot be made without it.
    pub is_needed: bool,
}

/// What a setting may be.
#[derive(Debug, Clone, PartialEq)]
pub enum Accepts {
    /// Any text.
    Text,
    /// Words, one or more.
    Words,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// A whole number.
    Whole(RangeInclusive<u64>),
    /// Any number.
    Number(RangeInclusive<f64>),
}

/// A whole number of any size.
pub const ANY_WHOLE: Accepts = Accepts::Whole(0..=u64::MAX);
/// A number that is not below zero.
pub const NOT_NEGATIVE: Accepts = Accepts::Number(0.0..=f64::MAX);

impl Accepts {
    /// Whether a value, as text, is one of those.
    pub fn fits(&self, text: &str) -> bool {
        match self {
            Accepts::Text => true,
            Accepts::Words => !text.is_empty(),
            Accepts::OneOf(words) => words.contains(&text),
            Accepts::Whole(range) => text.parse().is_ok_and(|number| range.contains(&number)),
            Accepts::Number(range) => text.parse().is_ok_and(|number| range.contains(&number)),
        }
    }
}

impl fmt::Display for Accepts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Accepts::Text => out.write_str("text"),
            Accepts::Words => out.write_str("a list of words"),
            Accepts::OneOf(words) => {
                let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
                out.write_str(&quoted.join(" or "))
            }
            Accepts::Whole(range) if *range.end() == u64::MAX => write!(out, "a whole number from {}", range.start()),
            Accepts::Whole(range) => write!(out, "a whole number from {} to {}", range.start(), range.end()),
            Accepts::Number(range) if *range.end() == f64::MAX => write!(out, "a number from {}", range.start()),
            Accepts::Number(range) => write!(out, "a number from {} to {}", range.start(), range.end()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_what_is_said() {
        for (accepts, good, bad, said) in [
            (Accepts::Whole(0..=9), "9", "10", "a whole number from 0 to 9"),
            (ANY_WHOLE, "18446744073709551615", "1.5", "a whole number from 0"),
            (NOT_NEGATIVE, "0.5", "-1", "a number from 0"),
            (Accepts::Number(0.0..=1.0), "1", "NaN", "a number from 0 to 1"),
            (Accepts::OneOf(&["lines", "records"]), "lines", "line", "\"lines\" or \"records\""),
            (Accepts::Words, "cat", "", "a list of words"),
        ] {
            assert!(accepts.fits(good) && !accepts.fits(bad), "{said}");
            assert_eq!(accepts.to_string(), said);
        }
        assert!(Accepts::Text.fits(""));
    }
}
