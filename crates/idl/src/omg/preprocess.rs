//! Directives: included files, conditions and macros without parameters.

use std::sync::Arc;

use super::condition;
use super::lexer::{Lexer, Spanned, Token};
use super::macros::{Macros, first_word};
use crate::source::{Diagnostics, Location};

/// Where the text of files comes from.
pub trait Files {
    /// The text of the file `name` that `from` includes, and the name to show for it.
    fn read(&self, name: &str, from: &str) -> Option<(String, String)>;
}

/// How deep files may include each other.
const MAX_INCLUDES: usize = 50;

/// How many files a run may include: more than any collection of definitions has.
const MAX_FILES: usize = 10_000;

/// Every token of a file and of what it includes. `macros` are `NAME=TEXT`, or `NAME` for 1.
pub(super) fn tokens(
    file: &str,
    text: &str,
    files: &dyn Files,
    macros: &[String],
    diagnostics: &mut Diagnostics,
) -> Vec<Spanned> {
    let mut preprocessor =
        Preprocessor { files, macros: Macros::default(), output: Vec::new(), depth: 0, included: 0, stopped: false };
    let at = Location { file: Arc::from("given macros"), line: 1, column: 1 };
    for definition in macros {
        let (name, text) = definition.split_once('=').unwrap_or((definition, "1"));
        preprocessor.macros.define(&format!("{} {text}", name.trim()), &at, diagnostics);
    }
    preprocessor.file(file, text, diagnostics);
    preprocessor.output
}

struct Preprocessor<'a> {
    files: &'a dyn Files,
    macros: Macros,
    output: Vec<Spanned>,
    depth: usize,
    included: usize,
    /// There are too many files: nothing is included any more.
    stopped: bool,
}

/// An `#if` that has not been ended.
struct Condition {
    at: Location,
    /// Whether the conditions around it hold.
    outer: bool,
    /// Whether what follows is taken, if they do.
    taken: bool,
    /// Whether a branch has been taken already.
    done: bool,
    /// Whether `#else` was there.
    last: bool,
}

impl Preprocessor<'_> {
    fn file(&mut self, file: &str, text: &str, diagnostics: &mut Diagnostics) {
        let mut lexer = Lexer::new(Arc::from(file), text);
        let mut conditions: Vec<Condition> = Vec::new();
        let mut ignored = Diagnostics::default();
        loop {
            let taken = conditions.last().is_none_or(|condition| condition.outer && condition.taken);
            let spanned = lexer.next(if taken { &mut *diagnostics } else { &mut ignored });
            match &spanned.token {
                Token::End => {
                    for condition in conditions {
                        diagnostics.error(&condition.at, "this condition has no #endif");
                    }
                    if self.depth == 0 {
                        self.output.push(spanned);
                    }
                    return;
                }
                Token::Pragma(line) => {
                    let line = line.clone();
                    self.directive(&line, &spanned, &mut conditions, diagnostics);
                }
                Token::Identifier { name, escaped: false } if taken && self.macros.text(name).is_some() => {
                    match self.macros.tokens(name) {
                        Ok(tokens) => {
                            let there = tokens.into_iter().map(|token| Spanned { token, ..spanned.clone() });
                            self.output.extend(there);
                        }
                        Err(why) => diagnostics.error(&spanned.at, why),
                    }
                }
                _ if taken => self.output.push(spanned),
                _ => {}
            }
        }
    }

    fn directive(
        &mut self,
        line: &str,
        spanned: &Spanned,
        conditions: &mut Vec<Condition>,
        diagnostics: &mut Diagnostics,
    ) {
        let at = &spanned.at;
        let line = line.trim_start_matches('#').trim();
        let word = first_word(line);
        let rest = line[word.len()..].trim();
        let taken = conditions.last().is_none_or(|condition| condition.outer && condition.taken);
        match word {
            "if" | "ifdef" | "ifndef" => {
                // Within what is left out, conditions only have to end.
                let holds = if taken { self.holds(word, rest, at, diagnostics) } else { Some(false) };
                let (outer, taken, done) = (taken, holds == Some(true), holds != Some(false));
                conditions.push(Condition { at: at.clone(), outer, taken, done, last: false });
            }
            "else" | "elif" => {
                let Some(condition) = conditions.last_mut() else {
                    return diagnostics.error(at, format!("#{word} without a condition"));
                };
                if condition.last {
                    diagnostics.error(at, format!("#{word} behind #else"));
                }
                condition.last = word == "else";
                let wanted = condition.outer && !condition.done;
                let holds = match word {
                    "elif" if wanted => self.holds(word, rest, at, diagnostics),
                    _ => Some(word == "else"),
                };
                condition.taken = wanted && holds == Some(true);
                condition.done |= wanted && holds != Some(false);
            }
            "endif" => {
                if conditions.pop().is_none() {
                    diagnostics.error(at, "#endif without a condition");
                }
            }
            _ if !taken => {}
            "define" => self.macros.define(rest, at, diagnostics),
            "undef" => self.macros.undefine(first_word(rest)),
            "include" => self.include(rest, at, diagnostics),
            "pragma" => self.output.push(Spanned { token: Token::Pragma(rest.to_owned()), ..spanned.clone() }),
            // The null directive, and the marks that a C preprocessor leaves.
            "" | "line" => {}
            _ if word.chars().all(|each| each.is_ascii_digit()) => {}
            "error" => diagnostics.error(at, rest.to_owned()),
            "warning" => diagnostics.warning(at, rest.to_owned()),
            other => diagnostics.error(at, format!("the directive #{other} is not known")),
        }
    }

    fn include(&mut self, rest: &str, at: &Location, diagnostics: &mut Diagnostics) {
        let name = match (rest.chars().next(), rest.get(1..)) {
            (Some('"'), Some(inner)) => inner.split('"').next(),
            (Some('<'), Some(inner)) => inner.split('>').next(),
            _ => None,
        };
        let Some(name) = name else {
            return diagnostics.error(at, "#include is followed by \"a name\" or <a name>");
        };
        // What it declares is built in.
        if matches!(name, "orb.idl" | "omniORB4/orb.idl") {
            return;
        }
        if self.stopped {
            return;
        }
        self.included += 1;
        if self.depth == MAX_INCLUDES || self.included > MAX_FILES {
            self.stopped = true;
            return diagnostics.error(at, "files include each other without end");
        }
        let Some((shown, text)) = self.files.read(name, &at.file) else {
            return diagnostics.error(at, format!("the file {name:?} cannot be found"));
        };
        let mark = |token| Spanned { token, at: at.clone(), comment: Vec::new() };
        self.output.push(mark(Token::FileBegins));
        self.depth += 1;
        self.file(&shown, &text, diagnostics);
        self.depth -= 1;
        self.output.push(mark(Token::FileEnds));
    }

    /// Whether a condition holds; `None` if it is wrong.
    fn holds(&self, word: &str, rest: &str, at: &Location, diagnostics: &mut Diagnostics) -> Option<bool> {
        let holds = match word {
            "if" | "elif" => condition::holds(rest, &self.macros),
            _ if first_word(rest).is_empty() => Err("the name of a macro expected".to_owned()),
            _ => Ok(self.macros.text(first_word(rest)).is_some() == (word == "ifdef")),
        };
        holds.map_err(|why| diagnostics.error(at, format!("#{word}: {why}"))).ok()
    }
}
