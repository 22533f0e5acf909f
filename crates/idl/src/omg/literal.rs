//! Numbers, characters and strings.

use super::fixed::Fixed;
use super::lexer::{Lexer, Token};
use crate::source::{Diagnostics, Location};

impl Lexer<'_> {
    pub(super) fn number(&mut self, at: &Location, diagnostics: &mut Diagnostics) -> Option<Token> {
        let mut text = self.take_while(|each| each.is_ascii_alphanumeric() || each == '.');
        let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
        if !hexadecimal && text.ends_with(['e', 'E']) && matches!(self.peek(), Some('+' | '-')) {
            text.extend(self.bump());
            text.push_str(&self.take_while(|each| each.is_ascii_digit()));
        }
        let value = if hexadecimal {
            i128::from_str_radix(&text[2..], 16).ok().map(Token::Integer)
        } else if let Some(digits) = text.strip_suffix(['d', 'D']) {
            Fixed::parse(digits).map(Token::Fixed)
        } else if text.contains(['.', 'e', 'E']) {
            text.parse().ok().filter(|number: &f64| number.is_finite()).map(Token::Float)
        } else if text.len() > 1 && text.starts_with('0') {
            i128::from_str_radix(&text, 8).ok().map(Token::Integer)
        } else {
            text.parse().ok().map(Token::Integer)
        };
        if value.is_none() {
            let why = match text.strip_suffix(['d', 'D']) {
                Some(_) if !hexadecimal => "is not a fixed-point number of at most 31 digits",
                _ if text.parse::<f64>().is_ok() => "is too large",
                _ => "is not a number",
            };
            diagnostics.error(at, format!("{text:?} {why}"));
            return Some(Token::Integer(1));
        }
        value
    }

    pub(super) fn quoted(
        &mut self,
        quote: char,
        wide: bool,
        at: &Location,
        diagnostics: &mut Diagnostics,
    ) -> Option<Token> {
        let mut text = String::new();
        loop {
            let here = self.at.clone();
            match self.bump() {
                None | Some('\n') => {
                    diagnostics.error(at, format!("this literal does not end: {quote} expected"));
                    break;
                }
                Some('\\') => match self.escape(wide) {
                    Ok('\0') if quote == '"' => diagnostics.error(&here, "a string cannot hold the character 0"),
                    Ok(each) => text.push(each),
                    Err(why) => diagnostics.error(&here, why),
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

    fn escape(&mut self, wide: bool) -> Result<char, String> {
        let Some(first) = self.bump() else { return Err("an escape expected behind \"\\\"".to_owned()) };
        Ok(match first {
            'n' => '\n',
            't' => '\t',
            'v' => '\u{b}',
            'b' => '\u{8}',
            'r' => '\r',
            'f' => '\u{c}',
            'a' => '\u{7}',
            '\\' | '?' | '\'' | '"' => first,
            'x' => self.code(16, 2, "one or two hexadecimal digits expected behind \\x")?,
            'u' if wide => {
                const EXPECTED: &str = "up to four hexadecimal digits expected behind \\u";
                let code = self.digits(16, 4).ok_or(EXPECTED)?;
                let high = code & 0xfc00 == 0xd800 && self.peek() == Some('\\');
                // A character beyond 16 bits is written as the two halves that UTF-16 makes of it.
                let halves = if high { self.low_half().map(|low| [code as u16, low]) } else { None };
                let pair = halves.and_then(|halves| char::decode_utf16(halves).next()?.ok());
                pair.or_else(|| char::from_u32(code)).ok_or(format!("\\u{code:04x} is half a character"))?
            }
            'u' => return Err("\\u is for wide characters and strings, such as L\"\\u20ac\"".to_owned()),
            '0'..='7' => {
                let mut value = first.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    let Some(digit) = self.peek().and_then(|each| each.to_digit(8)) else { break };
                    value = value * 8 + digit;
                    self.bump();
                }
                u8::try_from(value).map(char::from).map_err(|_| format!("\\{value:o} is more than \\377"))?
            }
            other => return Err(format!("the escape \\{} is not known", other.escape_debug())),
        })
    }

    /// The second half of a character, if it follows.
    fn low_half(&mut self) -> Option<u16> {
        self.bump();
        if self.peek() != Some('u') {
            return None;
        }
        self.bump();
        self.digits(16, 4).and_then(|code| u16::try_from(code).ok())
    }

    fn code(&mut self, radix: u32, most: usize, expected: &str) -> Result<char, String> {
        self.digits(radix, most).and_then(char::from_u32).ok_or_else(|| expected.to_owned())
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
}
