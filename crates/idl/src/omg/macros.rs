//! Macros without parameters.

use std::collections::HashMap;
use std::sync::Arc;

use super::lexer::{Lexer, Token};
use crate::source::{Diagnostics, Location};

/// How deep macros may stand in each other.
const MAX_DEPTH: usize = 64;

/// How many tokens one use of a macro may become, or pass through on the way.
const MAX_TOKENS: usize = 100_000;

#[derive(Debug, Default)]
pub(super) struct Macros(HashMap<String, Macro>);

#[derive(Debug)]
struct Macro {
    text: String,
    tokens: Vec<Token>,
}

impl Macros {
    /// `NAME` or `NAME TEXT`, as they stand behind `#define`.
    pub(super) fn define(&mut self, definition: &str, at: &Location, diagnostics: &mut Diagnostics) {
        let name = first_word(definition);
        if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
            return diagnostics.error(at, "the name of a macro expected");
        }
        let text = &definition[name.len()..];
        if text.starts_with('(') {
            return diagnostics.error(at, format!("the macro {name:?} has parameters, which are not supported"));
        }
        // Messages are about the line, wherever in it the token stands.
        let mut own = Diagnostics::default();
        let mut lexer = Lexer::new(Arc::clone(&at.file), text);
        let tokens = std::iter::from_fn(|| match lexer.next(&mut own).token {
            Token::End => None,
            token => Some(token),
        });
        let tokens = tokens.collect();
        own.iter().for_each(|found| diagnostics.error(at, format!("{name:?}: {}", found.message)));
        self.0.insert(name.to_owned(), Macro { text: text.trim().to_owned(), tokens });
    }

    pub(super) fn undefine(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// What stands for the name, if it is a macro.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|found| found.text.as_str())
    }

    /// The tokens that stand for the name, with those of the macros in it. A name within its own macro stays.
    pub(super) fn tokens(&self, name: &str) -> Result<Vec<Token>, String> {
        let mut output = Vec::new();
        self.expand(name, &mut Vec::new(), &mut 0, &mut output)?;
        Ok(output)
    }

    fn expand<'a>(
        &'a self,
        name: &'a str,
        within: &mut Vec<&'a str>,
        passed: &mut usize,
        output: &mut Vec<Token>,
    ) -> Result<(), String> {
        within.push(name);
        for token in self.0.get(name).iter().flat_map(|found| &found.tokens) {
            *passed += 1;
            if within.len() > MAX_DEPTH || *passed > MAX_TOKENS {
                return Err(format!("the macro {:?} becomes too long", within[0]));
            }
            match token {
                Token::Identifier { name, escaped: false }
                    if self.0.contains_key(name) && !within.contains(&name.as_str()) =>
                {
                    self.expand(name, within, passed, output)?;
                }
                _ => output.push(token.clone()),
            }
        }
        within.pop();
        Ok(())
    }
}

/// The name at the beginning of a text.
pub(super) fn first_word(text: &str) -> &str {
    text.split(|each: char| !each.is_ascii_alphanumeric() && each != '_').next().unwrap_or("")
}
