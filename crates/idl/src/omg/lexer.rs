//! Text to tokens.

use std::sync::Arc;

use super::fixed::Fixed;
use crate::source::{Diagnostics, Location, without_mark};

/// The smallest part of the language.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A name; `escaped` if it began with an underscore, so that it is no keyword.
    Identifier {
        name: String,
        escaped: bool,
    },
    Integer(i128),
    Float(f64),
    Fixed(Fixed),
    Char(char),
    WideChar(char),
    Text(String),
    WideText(String),
    /// `{`, `::`, `<<` and the like.
    Symbol(&'static str),
    /// `#pragma` and what follows it on its line.
    Pragma(String),
    /// An included file begins or ends here.
    FileBegins,
    FileEnds,
    End,
}

/// A token, where it stands, and the comment right above it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spanned {
    pub(super) token: Token,
    pub(super) at: Location,
    pub(super) comment: Vec<String>,
}

const SYMBOLS: [&str; 28] = [
    "::", "<<", ">>", "{", "}", ";", ":", ",", "=", "+", "-", "(", ")", "<", ">", "[", "]", "|", "^", "&", "*", "/",
    "%", "~", "!", "?", ".", "@",
];

/// Walks through one file.
pub(super) struct Lexer<'a> {
    rest: std::str::Chars<'a>,
    pub(super) at: Location,
    /// Lines of comment since the last token that was followed by another line.
    comment: Vec<String>,
    comment_ends: u32,
    last_token_line: u32,
    line_is_blank: bool,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(file: Arc<str>, text: &'a str) -> Self {
        let at = Location { file, line: 1, column: 1 };
        Self {
            rest: without_mark(text).chars(),
            at,
            comment: Vec::new(),
            comment_ends: 0,
            last_token_line: 0,
            line_is_blank: true,
        }
    }

    /// The next token, or the next directive as a [`Token::Pragma`] with its `#`.
    pub(super) fn next(&mut self, diagnostics: &mut Diagnostics) -> Spanned {
        loop {
            self.skip_blanks(diagnostics);
            let at = self.at.clone();
            let Some(first) = self.peek() else {
                return self.spanned(Token::End, at);
            };
            if first == '#' && self.line_is_blank {
                return self.directive(at, diagnostics);
            }
            self.line_is_blank = false;
            let token = self.token(first, &at, diagnostics);
            if let Some(token) = token {
                return self.spanned(token, at);
            }
        }
    }

    fn spanned(&mut self, token: Token, at: Location) -> Spanned {
        // A comment that an empty line separates from the declaration is about something else.
        let attached = self.comment_ends + 1 >= at.line;
        let comment = std::mem::take(&mut self.comment);
        self.last_token_line = self.at.line;
        Spanned { token, at, comment: if attached { comment } else { Vec::new() } }
    }

    fn token(&mut self, first: char, at: &Location, diagnostics: &mut Diagnostics) -> Option<Token> {
        if first.is_ascii_digit() || (first == '.' && self.peek_second().is_some_and(|next| next.is_ascii_digit())) {
            return self.number(at, diagnostics);
        }
        if first == 'L' && matches!(self.peek_second(), Some('\'' | '"')) {
            self.bump();
            let quote = self.bump()?;
            return self.quoted(quote, true, at, diagnostics);
        }
        if first == '\'' || first == '"' {
            self.bump();
            return self.quoted(first, false, at, diagnostics);
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let name = self.take_while(|each| each.is_ascii_alphanumeric() || each == '_');
            let token = match name.strip_prefix('_') {
                Some(name) => Token::Identifier { name: name.to_owned(), escaped: true },
                None => Token::Identifier { name: name.clone(), escaped: false },
            };
            if !name.trim_start_matches('_').starts_with(|first: char| first.is_ascii_alphabetic())
                || name.starts_with("__")
            {
                diagnostics.error(
                    at,
                    format!("{name:?} is not a name: a letter expected at its beginning, or behind one \"_\""),
                );
            }
            return Some(token);
        }
        for symbol in SYMBOLS {
            if self.rest.as_str().starts_with(symbol) {
                for _ in symbol.chars() {
                    self.bump();
                }
                return Some(Token::Symbol(symbol));
            }
        }
        self.bump();
        diagnostics.error(at, format!("the character {first:?} means nothing here"));
        None
    }

    /// A directive without its comments. A backslash before the end of a line goes on with the next.
    fn directive(&mut self, at: Location, diagnostics: &mut Diagnostics) -> Spanned {
        let mut line = String::new();
        let mut in_text = false;
        while let Some(each) = self.peek().filter(|each| *each != '\n') {
            let rest = self.rest.as_str();
            if let Some(end) = ["\\\n", "\\\r\n"].into_iter().find(|end| rest.starts_with(end)) {
                self.skip(end.len());
            } else if !in_text && rest.starts_with("//") {
                drop(self.take_while(|each| each != '\n'));
            } else if !in_text && rest.starts_with("/*") {
                line.push(' ');
                if self.block_comment(diagnostics).is_none() {
                    break;
                }
            } else {
                in_text ^= each == '"';
                line.extend(self.bump());
            }
        }
        self.spanned(Token::Pragma(line), at)
    }

    /// What stands in a comment that begins here. `None` if it does not end.
    fn block_comment(&mut self, diagnostics: &mut Diagnostics) -> Option<&'a str> {
        let rest: &'a str = self.rest.as_str();
        let Some(length) = rest[2..].find("*/") else {
            diagnostics.error(&self.at, "this comment does not end");
            self.skip(rest.len());
            return None;
        };
        self.skip(length + 4);
        Some(&rest[2..length + 2])
    }

    /// Goes on behind so many bytes.
    fn skip(&mut self, bytes: usize) {
        let end = self.rest.as_str().len() - bytes;
        while self.rest.as_str().len() > end {
            self.bump();
        }
    }

    fn skip_blanks(&mut self, diagnostics: &mut Diagnostics) {
        loop {
            let rest = self.rest.as_str();
            if rest.starts_with("//") {
                let line = self.at.line;
                let text = self.take_while(|each| each != '\n');
                self.add_comment(line, text.trim_start_matches(['/', '!']));
            } else if rest.starts_with("/*") {
                let begins = self.at.line;
                let Some(text) = self.block_comment(diagnostics) else { return };
                for line in text.lines() {
                    let line = line.trim().trim_start_matches(['*', '!']);
                    if !line.trim().is_empty() {
                        self.add_comment(begins, line);
                    }
                }
            } else if self.peek().is_some_and(char::is_whitespace) {
                self.bump();
            } else {
                return;
            }
        }
    }

    fn add_comment(&mut self, begins: u32, text: &str) {
        // Behind a token on its line, it is about that token.
        if begins == self.last_token_line {
            return;
        }
        if begins > self.comment_ends + 1 {
            self.comment.clear();
        }
        self.comment.push(text.trim().to_owned());
        self.comment_ends = self.at.line;
    }

    pub(super) fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let mut text = String::new();
        while let Some(each) = self.peek().filter(|each| wanted(*each)) {
            text.push(each);
            self.bump();
        }
        text
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    fn peek_second(&self) -> Option<char> {
        self.rest.clone().nth(1)
    }

    pub(super) fn bump(&mut self) -> Option<char> {
        let each = self.rest.next()?;
        if each == '\n' {
            self.at.line += 1;
            self.at.column = 1;
            self.line_is_blank = true;
        } else {
            self.at.column += 1;
        }
        Some(each)
    }
}
