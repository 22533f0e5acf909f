//! Directives: included files, conditions and simple macros.

use std::collections::HashMap;
use std::sync::Arc;

use super::lexer::{Lexer, Spanned, Token};
use crate::source::{Diagnostics, Location};

/// Where the text of files comes from.
pub trait Files {
    /// The text of the file `name` that `from` includes, and the name to show for it.
    fn read(&self, name: &str, from: &str) -> Option<(String, String)>;
}

/// How deep files may include each other.
const MAX_INCLUDES: usize = 50;

/// Every token of a file and of what it includes.
pub(super) fn tokens(file: &str, text: &str, files: &dyn Files, diagnostics: &mut Diagnostics) -> Vec<Spanned> {
    let mut preprocessor = Preprocessor { files, macros: HashMap::new(), output: Vec::new(), depth: 0 };
    preprocessor.file(file, text, diagnostics);
    preprocessor.output
}

struct Preprocessor<'a> {
    files: &'a dyn Files,
    macros: HashMap<String, Vec<Token>>,
    output: Vec<Spanned>,
    depth: usize,
}

/// An `#if` that has not been ended.
struct Condition {
    at: Location,
    /// Whether what follows is taken.
    taken: bool,
    /// Whether a branch has been taken already.
    done: bool,
}

impl Preprocessor<'_> {
    fn file(&mut self, file: &str, text: &str, diagnostics: &mut Diagnostics) {
        let mut lexer = Lexer::new(Arc::from(file), text);
        let mut conditions: Vec<Condition> = Vec::new();
        let mut ignored = Diagnostics::default();
        loop {
            let taken = conditions.iter().all(|condition| condition.taken);
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
                Token::Identifier { name, escaped: false } if taken && self.macros.contains_key(name) => {
                    for token in &self.macros[name] {
                        self.output.push(Spanned { token: token.clone(), ..spanned.clone() });
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
        let (word, rest) = line.split_once(|each: char| !each.is_ascii_alphanumeric()).unwrap_or((line, ""));
        let rest = line[word.len()..].trim().trim_end_matches(rest_of_comment(rest)).trim();
        let taken = conditions.iter().all(|condition| condition.taken);
        match word {
            "ifdef" | "ifndef" => {
                let holds = self.macros.contains_key(first_word(rest)) == (word == "ifdef");
                conditions.push(Condition { at: at.clone(), taken: holds, done: holds });
            }
            "if" => {
                let holds = self.condition(rest);
                conditions.push(Condition { at: at.clone(), taken: holds, done: holds });
            }
            "else" | "elif" => match conditions.last_mut() {
                Some(condition) => {
                    let holds = word == "else" || Self::holds(&self.macros, rest);
                    condition.taken = !condition.done && holds;
                    condition.done |= condition.taken;
                }
                None => diagnostics.error(at, format!("#{word} without a condition")),
            },
            "endif" => {
                if conditions.pop().is_none() {
                    diagnostics.error(at, "#endif without a condition");
                }
            }
            _ if !taken => {}
            "define" => {
                let name = first_word(rest);
                let mut lexer = Lexer::new(at.file.clone(), &rest[name.len()..]);
                let tokens = std::iter::from_fn(|| match lexer.next(diagnostics).token {
                    Token::End => None,
                    token => Some(token),
                });
                self.macros.insert(name.to_owned(), tokens.collect());
            }
            "undef" => drop(self.macros.remove(first_word(rest))),
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
        if self.depth == MAX_INCLUDES {
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

    fn condition(&self, text: &str) -> bool {
        Self::holds(&self.macros, text)
    }

    /// `0`, `1`, `NAME`, `defined(NAME)`, `!`, `&&` and `||`, without brackets around them.
    fn holds(macros: &HashMap<String, Vec<Token>>, text: &str) -> bool {
        text.split("||").any(|all| {
            all.split("&&").all(|term| {
                let term = term.trim();
                let (term, expected) = term.strip_prefix('!').map_or((term, true), |term| (term.trim(), false));
                let held = match term.strip_prefix("defined") {
                    Some(name) => macros.contains_key(name.trim_matches(|each| "() \t".contains(each))),
                    None => match macros.get(term) {
                        Some(tokens) => tokens.iter().any(|token| *token != Token::Integer(0)),
                        None => term.parse::<i64>().is_ok_and(|number| number != 0),
                    },
                };
                held == expected
            })
        })
    }
}

fn first_word(text: &str) -> &str {
    text.split(|each: char| !each.is_ascii_alphanumeric() && each != '_').next().unwrap_or("")
}

/// The comment at the end of a directive, or nothing.
fn rest_of_comment(text: &str) -> &str {
    text.find("//").or_else(|| text.find("/*")).map_or("", |begin| &text[begin..])
}
