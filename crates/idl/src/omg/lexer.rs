//! Text to tokens.

use std::sync::Arc;

use crate::source::{Diagnostics, Location};

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
    /// Digits of a fixed-point literal, without the point, and how many stood behind it.
    Fixed {
        unscaled: i128,
        digits: u16,
        scale: i16,
    },
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
    at: Location,
    /// Lines of comment since the last token that was followed by another line.
    comment: Vec<String>,
    comment_ends: u32,
    last_token_line: u32,
    line_is_blank: bool,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(file: Arc<str>, text: &'a str) -> Self {
        let at = Location { file, line: 1, column: 1 };
        Self { rest: text.chars(), at, comment: Vec::new(), comment_ends: 0, last_token_line: 0, line_is_blank: true }
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
                return self.directive(at);
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
            return Some(match name.strip_prefix('_') {
                Some(name) => Token::Identifier { name: name.to_owned(), escaped: true },
                None => Token::Identifier { name, escaped: false },
            });
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

    fn directive(&mut self, at: Location) -> Spanned {
        let mut line = String::new();
        loop {
            let part = self.take_while(|each| each != '\n');
            match part.strip_suffix('\\') {
                Some(part) => {
                    line.push_str(part);
                    self.bump();
                }
                None => {
                    line.push_str(&part);
                    break;
                }
            }
        }
        self.spanned(Token::Pragma(line), at)
    }

    fn skip_blanks(&mut self, diagnostics: &mut Diagnostics) {
        loop {
            let rest = self.rest.as_str();
            if rest.starts_with("//") {
                let line = self.at.line;
                let text = self.take_while(|each| each != '\n');
                self.add_comment(line, text.trim_start_matches(['/', '!']));
            } else if rest.starts_with("/*") {
                let begin = self.at.clone();
                let Some(length) = rest.find("*/") else {
                    diagnostics.error(&begin, "this comment does not end");
                    while self.bump().is_some() {}
                    return;
                };
                let text = rest[2..length.max(2)].to_owned();
                let end = length + 2;
                for _ in rest[..end].chars() {
                    self.bump();
                }
                for line in text.lines() {
                    let line = line.trim().trim_start_matches(['*', '!']);
                    if !line.trim().is_empty() {
                        self.add_comment(begin.line, line);
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

    fn number(&mut self, at: &Location, diagnostics: &mut Diagnostics) -> Option<Token> {
        let mut text = self.take_while(|each| each.is_ascii_alphanumeric() || each == '.');
        let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
        if !hexadecimal && text.ends_with(['e', 'E']) && matches!(self.peek(), Some('+' | '-')) {
            text.extend(self.bump());
            text.push_str(&self.take_while(|each| each.is_ascii_digit()));
        }
        let value = if hexadecimal {
            i128::from_str_radix(&text[2..], 16).ok().map(Token::Integer)
        } else if let Some(digits) = text.strip_suffix(['d', 'D']) {
            fixed(digits)
        } else if text.contains(['.', 'e', 'E']) {
            text.parse().ok().map(Token::Float)
        } else if text.len() > 1 && text.starts_with('0') {
            i128::from_str_radix(&text, 8).ok().map(Token::Integer)
        } else {
            text.parse().ok().map(Token::Integer)
        };
        if value.is_none() {
            diagnostics.error(at, format!("{text:?} is not a number"));
            return Some(Token::Integer(1));
        }
        value
    }

    fn quoted(&mut self, quote: char, wide: bool, at: &Location, diagnostics: &mut Diagnostics) -> Option<Token> {
        let mut text = String::new();
        loop {
            match self.bump() {
                None | Some('\n') => {
                    diagnostics.error(at, format!("this literal does not end: {quote} expected"));
                    break;
                }
                Some('\\') => match self.escape() {
                    Some(each) => text.push(each),
                    None => diagnostics.error(&self.at, "this escape is not known"),
                },
                Some(each) if each == quote => break,
                Some(each) => text.push(each),
            }
        }
        if quote == '"' {
            return Some(if wide { Token::WideText(text) } else { Token::Text(text) });
        }
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(each), None) => Some(if wide { Token::WideChar(each) } else { Token::Char(each) }),
            _ => {
                diagnostics.error(at, "a character literal holds one character");
                Some(Token::Char(' '))
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        Some(match self.bump()? {
            'n' => '\n',
            't' => '\t',
            'v' => '\u{b}',
            'b' => '\u{8}',
            'r' => '\r',
            'f' => '\u{c}',
            'a' => '\u{7}',
            each @ ('\\' | '?' | '\'' | '"') => each,
            'x' => char::from_u32(self.digits(16, 2)?)?,
            'u' => char::from_u32(self.digits(16, 4)?)?,
            digit @ '0'..='7' => {
                let mut value = digit.to_digit(8)?;
                for _ in 0..2 {
                    let Some(digit) = self.peek().and_then(|each| each.to_digit(8)) else { break };
                    value = value * 8 + digit;
                    self.bump();
                }
                char::from_u32(value)?
            }
            _ => return None,
        })
    }

    fn digits(&mut self, radix: u32, most: usize) -> Option<u32> {
        let mut value = None;
        for _ in 0..most {
            let Some(digit) = self.peek().and_then(|each| each.to_digit(radix)) else { break };
            value = Some(value.unwrap_or(0) * radix + digit);
            self.bump();
        }
        value
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let mut text = String::new();
        while let Some(each) = self.peek().filter(|each| wanted(*each)) {
            text.push(each);
            self.bump();
        }
        text
    }

    fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    fn peek_second(&self) -> Option<char> {
        self.rest.clone().nth(1)
    }

    fn bump(&mut self) -> Option<char> {
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

/// The digits of a fixed-point literal. Zeros at its end do not count.
fn fixed(text: &str) -> Option<Token> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.trim_end_matches('0');
    let all = format!("{whole}{fraction}");
    let significant = all.trim_start_matches('0');
    let digits = u16::try_from(significant.len().max(fraction.len()).max(1)).ok()?;
    let unscaled = if significant.is_empty() { 0 } else { significant.parse().ok()? };
    Some(Token::Fixed { unscaled, digits, scale: i16::try_from(fraction.len()).ok()? })
}
