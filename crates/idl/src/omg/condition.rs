//! The expression behind `#if` and `#elif`: integers, names, `defined`, and the operators of C.

use super::macros::Macros;

/// How deep brackets may stand in each other, and macros in macros.
const MAX_DEPTH: usize = 64;

/// How many parts an expression may have once its macros are replaced.
const MAX_PARTS: usize = 10_000;

/// Whether the condition holds, or what is wrong with it.
pub(super) fn holds(text: &str, macros: &Macros) -> Result<bool, String> {
    let mut splitter = Splitter { macros, parts: Vec::new(), words: 0 };
    splitter.split(text, 0)?;
    let mut reader = Reader { parts: splitter.parts, next: 0, depth: 0 };
    let value = reader.choice(true)?;
    match reader.peek() {
        None => Ok(value != 0),
        Some(part) => Err(format!("an operator expected, {} found", part.shown())),
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Number(i64),
    /// A name that is no macro, which counts as 0.
    Name(String),
    Operator(&'static str),
}

impl Part {
    fn shown(&self) -> String {
        match self {
            Part::Number(number) => number.to_string(),
            Part::Name(name) => format!("{name:?}"),
            Part::Operator(operator) => format!("{operator:?}"),
        }
    }
}

/// The longer ones first.
const OPERATORS: [&str; 24] = [
    "||", "&&", "==", "!=", "<=", ">=", "<<", ">>", "<", ">", "+", "-", "*", "/", "%", "!", "~", "(", ")", "&", "|",
    "^", "?", ":",
];

/// The operators of two numbers, those that bind least first.
const LEVELS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", ">", "<=", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

/// Text to parts.
struct Splitter<'a> {
    macros: &'a Macros,
    parts: Vec<Part>,
    /// How many there were, with those that became nothing.
    words: usize,
}

impl Splitter<'_> {
    /// The parts of a text, with the text of macros in their place.
    fn split(&mut self, text: &str, depth: usize) -> Result<(), String> {
        if depth == MAX_DEPTH {
            return Err("macros are replaced by each other without end".to_owned());
        }
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            self.words += 1;
            if self.words > MAX_PARTS {
                return Err(format!("the condition has more than {MAX_PARTS} parts"));
            }
            let (word, behind) = word(rest);
            if first.is_ascii_digit() {
                self.parts.push(Part::Number(number(word)?));
                rest = behind;
            } else if word == "defined" {
                rest = self.defined(behind)?;
            } else if !word.is_empty() {
                match self.macros.text(word) {
                    Some(text) => self.split(text, depth + 1)?,
                    None => self.parts.push(Part::Name(word.to_owned())),
                }
                rest = behind;
            } else if let Some(operator) = OPERATORS.into_iter().find(|each| rest.starts_with(each)) {
                self.parts.push(Part::Operator(operator));
                rest = &rest[operator.len()..];
            } else {
                return Err(format!("{first:?} means nothing in a condition"));
            }
            rest = rest.trim_start();
        }
        Ok(())
    }

    /// `defined NAME` and `defined(NAME)`; returns what stands behind.
    fn defined<'a>(&mut self, text: &'a str) -> Result<&'a str, String> {
        let text = text.trim_start();
        let (text, bracket) = text.strip_prefix('(').map_or((text, false), |text| (text.trim_start(), true));
        let (name, mut rest) = word(text);
        if name.is_empty() {
            return Err("a name expected behind \"defined\"".to_owned());
        }
        if bracket {
            rest = rest.trim_start().strip_prefix(')').ok_or("\")\" expected behind \"defined(NAME\"")?;
        }
        self.parts.push(Part::Number(self.macros.text(name).is_some().into()));
        Ok(rest)
    }
}

/// The letters and digits at the beginning of a text, and the rest.
fn word(text: &str) -> (&str, &str) {
    text.split_at(text.find(|each: char| !each.is_ascii_alphanumeric() && each != '_').unwrap_or(text.len()))
}

fn number(word: &str) -> Result<i64, String> {
    let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
    let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => i64::from_str_radix(digits, 16),
        None if digits.len() > 1 && digits.starts_with('0') => i64::from_str_radix(digits, 8),
        None => digits.parse(),
    };
    value.map_err(|_| format!("{word:?} is not an integer of 64 bits"))
}

struct Reader {
    parts: Vec<Part>,
    next: usize,
    depth: usize,
}

impl Reader {
    fn peek(&self) -> Option<&Part> {
        self.parts.get(self.next)
    }

    fn accept(&mut self, operator: &str) -> bool {
        let found = matches!(self.peek(), Some(Part::Operator(each)) if *each == operator);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, operator: &str) -> Result<(), String> {
        if self.accept(operator) {
            return Ok(());
        }
        Err(self.missing(&format!("{operator:?}")))
    }

    fn missing(&self, what: &str) -> String {
        let found = self.peek().map_or_else(|| "the end of the line".to_owned(), Part::shown);
        format!("{what} expected, {found} found")
    }

    /// `a ? b : c`. What is not `live` is read, and not computed.
    fn choice(&mut self, live: bool) -> Result<i64, String> {
        if self.depth == MAX_DEPTH {
            return Err(format!("brackets are nested more than {MAX_DEPTH} deep"));
        }
        self.depth += 1;
        let mut value = self.binary(0, live)?;
        if self.accept("?") {
            let chosen = value != 0;
            let yes = self.choice(live && chosen)?;
            self.expect(":")?;
            let no = self.choice(live && !chosen)?;
            value = if chosen { yes } else { no };
        }
        self.depth -= 1;
        Ok(value)
    }

    fn binary(&mut self, level: usize, live: bool) -> Result<i64, String> {
        let Some(operators) = LEVELS.get(level) else { return self.unary(live) };
        let mut left = self.binary(level + 1, live)?;
        loop {
            let Some(Part::Operator(operator)) = self.peek() else { return Ok(left) };
            let Some(operator) = operators.iter().find(|each| *each == operator) else { return Ok(left) };
            self.next += 1;
            let decided = (*operator == "||" && left != 0) || (*operator == "&&" && left == 0);
            let right = self.binary(level + 1, live && !decided)?;
            if live {
                left = compute(operator, left, right)?;
            }
        }
    }

    fn unary(&mut self, live: bool) -> Result<i64, String> {
        let mut signs = Vec::new();
        while let Some(sign) = ["!", "-", "+", "~"].into_iter().find(|sign| self.accept(sign)) {
            signs.push(sign);
        }
        let value = match self.peek() {
            Some(Part::Number(number)) => *number,
            Some(Part::Name(_)) => 0,
            Some(Part::Operator("(")) => {
                self.next += 1;
                let value = self.choice(live)?;
                self.expect(")")?;
                return apply(&signs, value);
            }
            _ => return Err(self.missing("a number or a name")),
        };
        self.next += 1;
        apply(&signs, value)
    }
}

fn apply(signs: &[&str], value: i64) -> Result<i64, String> {
    signs.iter().rev().try_fold(value, |value, sign| match *sign {
        "!" => Ok(i64::from(value == 0)),
        "-" => value.checked_neg().ok_or_else(|| "the condition is not computed in 64 bits".to_owned()),
        "~" => Ok(!value),
        _ => Ok(value),
    })
}

fn compute(operator: &str, left: i64, right: i64) -> Result<i64, String> {
    let shift = u32::try_from(right).ok().filter(|shift| *shift < 64);
    let value = match operator {
        "||" => Some(i64::from(left != 0 || right != 0)),
        "&&" => Some(i64::from(left != 0 && right != 0)),
        "|" => Some(left | right),
        "^" => Some(left ^ right),
        "&" => Some(left & right),
        "==" => Some(i64::from(left == right)),
        "!=" => Some(i64::from(left != right)),
        "<" => Some(i64::from(left < right)),
        ">" => Some(i64::from(left > right)),
        "<=" => Some(i64::from(left <= right)),
        ">=" => Some(i64::from(left >= right)),
        "<<" => shift.map(|shift| left << shift),
        ">>" => shift.map(|shift| left >> shift),
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" => left.checked_div(right),
        _ => left.checked_rem(right),
    };
    value.ok_or_else(|| format!("{left} {operator} {right} cannot be computed"))
}

#[cfg(test)]
mod tests {
    use super::super::macros::Macros;
    use super::holds;
    use crate::source::{Diagnostics, Location};

    fn check(text: &str) -> Result<bool, String> {
        let at = Location { file: "test".into(), line: 1, column: 1 };
        let mut macros = Macros::default();
        for line in ["ON", "THREE 3", "SUM 1 + 2", "LOOP LOOP", "ALIAS THREE"] {
            macros.define(line, &at, &mut Diagnostics::default());
        }
        holds(text, &macros)
    }

    #[test]
    fn conditions_are_those_of_c() {
        for text in [
            "1",
            "THREE",
            "THREE == 3",
            "ALIAS >= 3",
            "defined ON && defined(THREE)",
            "!defined(OFF)",
            "!OFF",
            "OFF == 0",
            "SUM * 2 == 5",
            "(SUM) * 2 == 6",
            "0x10 == 16 && 010 == 8",
            "10L == 10uL",
            "1 ? 2 : 1 / 0",
            "0 && 1 / 0 || 1",
            "~0 == -1",
            "7 % 4 == 3",
            "(1 << 4 | 1) == 17",
            "-1 < 0",
            "1 || 1 / 0",
            "!(2 < 1)",
            "5 - 3 - 2 == 0",
            "6 ^ 5",
        ] {
            assert_eq!(check(text), Ok(true), "{text}");
        }
        for text in ["0", "OFF", "defined OFF", "3 < 2", "THREE != 3", "0 ? 1 : 0", "!1", "1 && 0"] {
            assert_eq!(check(text), Ok(false), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_condition_is_refused() {
        let deep = format!("{}1", "(".repeat(200_000));
        for (text, expected) in [
            ("", "a number or a name expected, the end of the line found"),
            ("1 +", "a number or a name expected, the end of the line found"),
            ("1 2", "an operator expected, 2 found"),
            ("FOO(3)", "an operator expected, \"(\" found"),
            ("(1", "\")\" expected, the end of the line found"),
            ("defined", "a name expected behind \"defined\""),
            ("1 / 0", "1 / 0 cannot be computed"),
            ("1 << 64", "1 << 64 cannot be computed"),
            ("9223372036854775807 + 1", "9223372036854775807 + 1 cannot be computed"),
            ("99999999999999999999", "\"99999999999999999999\" is not an integer of 64 bits"),
            ("\"a\" == \"a\"", "'\"' means nothing in a condition"),
            ("1.5", "'.' means nothing in a condition"),
            ("LOOP", "macros are replaced by each other without end"),
            (deep.as_str(), "the condition has more than 10000 parts"),
            (&deep[199_800..], "brackets are nested more than 64 deep"),
        ] {
            assert_eq!(check(text), Err(expected.to_owned()), "{text}");
        }
    }
}
