//! Text to tokens.

use std::sync::Arc;

use crate::source::{Diagnostics, Location, without_mark};

#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Word(String),
    Number(i128),
    /// `#define NAME NUMBER`: the name and the number follow as the tokens of a constant.
    Define,
    Mark(char),
    End,
}

#[derive(Debug, Clone)]
pub struct Token {
    pub kind: Kind,
    pub at: Location,
    /// Right before it stands a comment that says nothing but `repeatable`.
    pub repeatable: bool,
}

pub fn tokens(file: &str, text: &str, diagnostics: &mut Diagnostics) -> Vec<Token> {
    let mut lexer = Lexer {
        rest: without_mark(text).chars().peekable(),
        at: Location { file: Arc::from(file), line: 1, column: 1 },
        tokens: Vec::new(),
        line_start: true,
        repeatable: false,
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
    /// The comment `repeatable` has come since the last token.
    repeatable: bool,
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
                _ => self.token(next, at),
            }
        }
        self.push(Kind::End, self.at.clone());
    }

    /// A token or a comment.
    fn token(&mut self, first: char, at: Location) {
        match first {
            '/' => self.comment(&at),
            '-' | '0'..='9' => self.number(&at),
            _ if first.is_alphabetic() || first == '_' => {
                let word = self.take_while(|c| c.is_alphanumeric() || c == '_');
                if word.is_ascii() {
                    self.push(Kind::Word(word), at);
                } else {
                    self.diagnostics.error(&at, format!("`{word}`: names have letters, digits and `_` only"));
                }
            }
            '{' | '}' | '(' | ')' | '[' | ']' | '<' | '>' | '*' | '=' | ';' | ':' | ',' => {
                self.next();
                self.push(Kind::Mark(first), at);
            }
            '"' | '\'' => {
                self.next();
                self.take_while(|c| c != first && c != '\n');
                self.next();
                self.diagnostics
                    .error(&at, "texts and characters are not supported: the value of a constant is a number");
                self.push(Kind::Number(0), at);
            }
            _ => {
                self.next();
                self.diagnostics.error(&at, format!("`{}` means nothing here", first.escape_default()));
            }
        }
    }

    fn comment(&mut self, at: &Location) {
        self.next();
        let mut text = String::new();
        match self.rest.peek() {
            Some('/') => text = self.line(),
            Some('*') => {
                self.next();
                while !text.ends_with("*/") {
                    match self.next() {
                        Some(next) => text.push(next),
                        None => return self.diagnostics.error(at, "this comment does not end: expected `*/`"),
                    }
                }
                text.truncate(text.len() - 2);
            }
            _ => self.diagnostics.error(at, "`/` means nothing here: a comment begins with `/*` or `//`"),
        }
        self.repeatable |= text.trim_start_matches('/').trim() == "repeatable";
    }

    fn number(&mut self, at: &Location) {
        let sign = if self.rest.peek() == Some(&'-') {
            self.next();
            -1
        } else {
            1
        };
        if !self.rest.peek().is_some_and(char::is_ascii_digit) {
            self.diagnostics.error(at, "expected a digit right behind `-`");
            self.take_while(|c| c == ' ' || c == '\t');
        }
        let word = self.take_while(|c| c.is_alphanumeric() || c == '_');
        // A leading zero means octal, as in C.
        let value = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
            Some(digits) => i128::from_str_radix(digits, 16),
            None if word.len() > 1 && word.starts_with('0') => i128::from_str_radix(&word, 8),
            None => word.parse(),
        };
        match value {
            Ok(value) if value <= i128::from(u64::MAX) => self.push(Kind::Number(sign * value), at.clone()),
            _ if word.is_empty() => {}
            _ => {
                self.diagnostics.error(at, format!("`{word}` is not a number of at most 64 bits"));
                // So that the parser has no fault to find.
                self.push(Kind::Number(0), at.clone());
            }
        }
    }

    fn directive(&mut self, at: &Location) {
        self.next();
        self.blanks();
        let word = self.take_while(|c| c.is_alphanumeric() || c == '_');
        if word == "define" {
            return self.define(at);
        }
        let line = self.line();
        let rest: Vec<&str> = line.split_whitespace().collect();
        match (word.as_str(), rest.as_slice()) {
            ("" | "pragma" | "ident", _) => {}
            ("include", [what, ..]) => self
                .diagnostics
                .error(at, format!("`#include {what}` is not followed: run `cpp -C` first, or compile that file, too")),
            // The mark of `cpp`: the next line is line NUMBER of FILE.
            ("line", [number, rest @ ..]) if number.parse::<u32>().is_ok() => self.mark(number, rest),
            (number, rest) if number.parse::<u32>().is_ok() => self.mark(number, rest),
            _ => self.diagnostics.error(at, format!("`#{word}` is not understood: run `cpp -C` first")),
        }
    }

    /// `#define NAME NUMBER` as the tokens of a constant.
    fn define(&mut self, at: &Location) {
        let begin = self.tokens.len();
        self.push(Kind::Define, at.clone());
        self.blanks();
        while let Some(&next) = self.rest.peek().filter(|next| **next != '\n') {
            self.token(next, self.at.clone());
            self.blanks();
        }
        let end = Token { kind: Kind::Mark(';'), at: self.at.clone(), repeatable: false };
        let defined: Vec<Token> = self.tokens.drain(begin..).collect();
        let kinds: Vec<&Kind> = defined.iter().map(|token| &token.kind).collect();
        let number = match kinds.as_slice() {
            [_, Kind::Word(_), Kind::Number(_)] => 2,
            [_, Kind::Word(_), Kind::Mark('('), Kind::Number(_), Kind::Mark(')')] => 3,
            _ => return self.diagnostics.error(at, "only `#define NAME NUMBER` is understood: run `cpp -C` first"),
        };
        let equals = Token { kind: Kind::Mark('='), ..end.clone() };
        let tokens = [&defined[0], &defined[1], &equals, &defined[number], &end];
        self.tokens.extend(tokens.into_iter().cloned());
    }

    /// Blanks within a line, and a backslash that goes on with the next.
    fn blanks(&mut self) {
        loop {
            self.take_while(|c| c != '\n' && c.is_whitespace());
            let mut ahead = self.rest.clone();
            if ahead.next() != Some('\\') || ahead.find(|c| *c != '\r') != Some('\n') {
                return;
            }
            self.take_while(|c| c != '\n');
            self.next();
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
        let repeatable = std::mem::take(&mut self.repeatable);
        self.tokens.push(Token { kind, at, repeatable });
    }
}
