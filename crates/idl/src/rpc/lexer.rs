//! Text to tokens.

use std::sync::Arc;

use crate::source::{Diagnostics, Location};

#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Word(String),
    Number(i128),
    /// `#define NAME NUMBER`: the rest follows as the tokens of a constant.
    Define,
    Mark(char),
    End,
}

#[derive(Debug, Clone)]
pub struct Token {
    pub kind: Kind,
    pub at: Location,
}

pub fn tokens(file: &str, text: &str, diagnostics: &mut Diagnostics) -> Vec<Token> {
    let mut lexer = Lexer {
        rest: text.chars().peekable(),
        at: Location { file: Arc::from(file), line: 1, column: 1 },
        tokens: Vec::new(),
        line_start: true,
        diagnostics,
    };
    lexer.run();
    lexer.tokens
}

struct Lexer<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    at: Location,
    tokens: Vec<Token>,
    /// Nothing but blanks has come on this line.
    line_start: bool,
    diagnostics: &'a mut Diagnostics,
}

impl Lexer<'_> {
    fn run(&mut self) {
        while let Some(&next) = self.rest.peek() {
            let at = self.at.clone();
            let first = std::mem::replace(&mut self.line_start, false);
            match next {
                '\n' => {
                    self.next();
                    self.line_start = true;
                }
                _ if next.is_whitespace() => {
                    self.next();
                    self.line_start = first;
                }
                '%' if first => {
                    self.line();
                    self.diagnostics.warning(&at, "a line of C is ignored");
                }
                '#' if first => self.directive(&at),
                '/' => self.comment(&at),
                '-' | '0'..='9' => self.number(&at),
                _ if next.is_alphabetic() || next == '_' => {
                    let word = self.take_while(|c| c.is_alphanumeric() || c == '_');
                    if word.is_ascii() {
                        self.push(Kind::Word(word), at);
                    } else {
                        self.diagnostics.error(&at, format!("`{word}`: names have letters, digits and `_` only"));
                    }
                }
                '{' | '}' | '(' | ')' | '[' | ']' | '<' | '>' | '*' | '=' | ';' | ':' | ',' => {
                    self.next();
                    self.push(Kind::Mark(next), at);
                }
                _ => {
                    self.next();
                    self.diagnostics.error(&at, format!("`{}` means nothing here", next.escape_default()));
                }
            }
        }
        self.push(Kind::End, self.at.clone());
    }

    fn comment(&mut self, at: &Location) {
        self.next();
        match self.rest.peek() {
            Some('/') => {
                self.line();
            }
            Some('*') => {
                self.next();
                let mut star = false;
                loop {
                    match self.next() {
                        Some('/') if star => break,
                        Some(next) => star = next == '*',
                        None => return self.diagnostics.error(at, "this comment does not end"),
                    }
                }
            }
            _ => self.diagnostics.error(at, "`/` means nothing here"),
        }
    }

    fn number(&mut self, at: &Location) {
        let sign = if self.rest.peek() == Some(&'-') {
            self.next();
            -1
        } else {
            1
        };
        let word = self.take_while(|c| c.is_alphanumeric() || c == '_');
        // A leading zero means octal, as in C.
        let value = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
            Some(digits) => i128::from_str_radix(digits, 16),
            None if word.len() > 1 && word.starts_with('0') => i128::from_str_radix(&word, 8),
            None => word.parse(),
        };
        match value {
            Ok(value) if value <= i128::from(u64::MAX) => self.push(Kind::Number(sign * value), at.clone()),
            _ => self.diagnostics.error(at, format!("`{word}` is not a number of at most 64 bits")),
        }
    }

    fn directive(&mut self, at: &Location) {
        let line = self.line();
        let words: Vec<&str> = line[1..].split_whitespace().collect();
        match words.as_slice() {
            [] | ["pragma" | "ident", ..] => {}
            ["define", name, value] if value.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
                self.push(Kind::Define, at.clone());
                let mut inner =
                    tokens(&at.file, &format!("{name} = {value};"), self.diagnostics).into_iter().collect::<Vec<_>>();
                inner.pop();
                self.tokens.extend(inner.into_iter().map(|token| Token { at: at.clone(), ..token }));
            }
            ["define", ..] => {
                self.diagnostics.error(at, "only `#define NAME NUMBER` is understood: run `cpp -P` first")
            }
            ["include", what, ..] => self
                .diagnostics
                .error(at, format!("`#include {what}` is not followed: run `cpp -P` first, or compile that file, too")),
            // The mark of `cpp`: the next line is line NUMBER of FILE.
            [number, rest @ ..] if number.parse::<u32>().is_ok() => {
                self.mark(number, rest);
            }
            ["line", number, rest @ ..] if number.parse::<u32>().is_ok() => {
                self.mark(number, rest);
            }
            [word, ..] => self.diagnostics.error(at, format!("`#{word}` is not understood: run `cpp -P` first")),
        }
    }

    fn mark(&mut self, number: &str, rest: &[&str]) {
        if let Some(file) = rest.first().map(|file| file.trim_matches('"')) {
            self.at.file = Arc::from(file);
        }
        // The end of this line counts, too.
        self.at.line = number.parse::<u32>().unwrap_or(1).saturating_sub(1);
    }

    fn line(&mut self) -> String {
        self.take_while(|c| c != '\n')
    }

    fn take_while(&mut self, mut take: impl FnMut(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(&next) = self.rest.peek() {
            if !take(next) {
                break;
            }
            taken.push(next);
            self.next();
        }
        taken
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest.next()?;
        if next == '\n' {
            self.at.line += 1;
            self.at.column = 1;
        } else {
            self.at.column += 1;
        }
        Some(next)
    }

    fn push(&mut self, kind: Kind, at: Location) {
        self.tokens.push(Token { kind, at });
    }
}
