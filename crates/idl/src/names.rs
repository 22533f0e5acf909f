//! The names of generated code: one [`Scope`] for each scope of Rust gives every name in it.
//!
//! A name that the scope has already gets underscores at its end. What comes first in the file keeps its name, so what is
//! added behind it never changes the names before.

use std::collections::HashSet;

/// The names of one scope.
#[derive(Debug, Default)]
pub(crate) struct Scope(HashSet<String>);

impl Scope {
    /// A scope in which the generated code itself uses these names.
    pub(crate) fn reserving(names: &[&str]) -> Self {
        Self(names.iter().map(|name| (*name).to_owned()).collect())
    }

    /// Gives a name, as it is written in Rust.
    pub(crate) fn give(&mut self, wanted: impl Into<String>) -> String {
        let mut name = wanted.into();
        while NEVER.contains(&name.as_str()) || !self.0.insert(name.clone()) {
            name.push('_');
        }
        if KEYWORDS.contains(&name.as_str()) { format!("r#{name}") } else { name }
    }
}

/// A name without the mark that makes a keyword a name.
pub(crate) fn plain(name: &str) -> &str {
    name.trim_start_matches("r#")
}

/// What cannot be a name even with that mark.
const NEVER: [&str; 5] = ["Self", "_", "crate", "self", "super"];

/// The keywords of Rust that become names by that mark.
const KEYWORDS: [&str; 48] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else", "enum",
    "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move",
    "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_given_once() {
        let mut scope = Scope::reserving(&["encoder"]);
        assert_eq!(["a", "a", "a", "a_"].map(|name| scope.give(name)), ["a", "a_", "a__", "a___"]);
        assert_eq!(
            ["encoder", "type", "type", "self", "_"].map(|name| scope.give(name)),
            ["encoder_", "r#type", "type_", "self_", "__"]
        );
    }
}
