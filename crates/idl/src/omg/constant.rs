//! Constant expressions.

use super::lexer::Token;
use super::parser::{Parse, Parser};
use super::syntax::{Kind, Type, Value};
use crate::source::Location;

/// The operators, those that bind least first.
const LEVELS: [&[&str]; 6] = [&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["*", "/", "%"]];

/// Within `<` and `>` a shift would be taken for the end.
const WITHOUT_SHIFT: usize = 4;

impl Parser<'_> {
    /// A constant of this type.
    pub(super) fn constant_of(&mut self, of: &Type) -> Parse<Value> {
        let at = self.at();
        let value = match self.enumerator_of(of) {
            Some(value) => value,
            None => self.expression(0)?,
        };
        self.check(of, value, &at)
    }

    /// A length or a bound within brackets.
    pub(super) fn bound(&mut self) -> Parse<Value> {
        let level = if self.peek() == &Token::Symbol("(") { 0 } else { WITHOUT_SHIFT };
        self.expression(level)
    }

    /// An enumerator of the type that is expected, which need not be visible here.
    fn enumerator_of(&mut self, of: &Type) -> Option<Value> {
        let Type::Named(id) = self.specification.unaliased(of) else { return None };
        let Kind::Enum { members } = &self.specification.get(*id).kind else { return None };
        let Token::Identifier { name, .. } = self.peek() else { return None };
        let found = *members.iter().find(|member| self.specification.get(**member).name == *name)?;
        self.bump();
        Some(Value::Enumerator(found))
    }

    fn expression(&mut self, level: usize) -> Parse<Value> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.expression(level + 1)?;
        loop {
            let at = self.at();
            let Token::Symbol(operator) = *self.peek() else { return Ok(left) };
            if !operators.contains(&operator) {
                return Ok(left);
            }
            self.bump();
            let right = self.expression(level + 1)?;
            left = match combine(operator, &left, &right) {
                Ok(value) => value,
                Err(message) => return self.error_at(&at, message),
            };
        }
    }

    fn unary(&mut self) -> Parse<Value> {
        let at = self.at();
        for operator in ["-", "+", "~"] {
            if self.accept(operator) {
                let value = self.nested(Self::unary)?;
                return match (operator, value) {
                    ("-", Value::Integer(number)) => match number.checked_neg() {
                        Some(number) => Ok(Value::Integer(number)),
                        None => self.error_at(&at, format!("-({number}) cannot be computed")),
                    },
                    ("-", Value::Float(number)) => Ok(Value::Float(-number)),
                    ("-", Value::Fixed(number)) => Ok(Value::Fixed(number.negated())),
                    ("~", Value::Integer(number)) => Ok(Value::Integer(!number)),
                    ("+", value @ (Value::Integer(_) | Value::Float(_) | Value::Fixed(_))) => Ok(value),
                    (_, value) => {
                        let found = self.describe(&value);
                        self.error_at(&at, format!("a number expected behind {operator:?}, {found} found"))
                    }
                };
            }
        }
        self.primary()
    }

    fn primary(&mut self) -> Parse<Value> {
        let at = self.at();
        let value = match self.peek().clone() {
            Token::Symbol("(") => {
                self.bump();
                let value = self.nested(|parser| parser.expression(0))?;
                self.symbol(")")?;
                return Ok(value);
            }
            Token::Integer(number) => Value::Integer(number),
            Token::Float(number) => Value::Float(number),
            Token::Fixed(number) => Value::Fixed(number),
            Token::Char(each) => Value::Char(each),
            Token::WideChar(each) => Value::WChar(each),
            Token::Text(_) => return self.text("a text").map(Value::Text),
            Token::WideText(mut text) => {
                self.bump();
                while let Token::WideText(more) = self.peek().clone() {
                    text.push_str(&more);
                    self.bump();
                }
                return Ok(Value::WideText(text));
            }
            Token::Identifier { name, escaped: false } if name == "TRUE" => Value::Boolean(true),
            Token::Identifier { name, escaped: false } if name == "FALSE" => Value::Boolean(false),
            Token::Identifier { .. } | Token::Symbol("::") => {
                let id = self.scoped_name("a constant")?;
                return match &self.specification.get(id).kind {
                    Kind::Const { value, .. } => Ok(value.clone()),
                    Kind::Enumerator { .. } => Ok(Value::Enumerator(id)),
                    _ => {
                        let name = self.specification.scoped_name(id);
                        self.error_at(&at, format!("{name} is not a constant"))
                    }
                };
            }
            _ => return self.expected("a constant"),
        };
        self.bump();
        Ok(value)
    }

    /// Fits a value into the type that it is for.
    fn check(&mut self, of: &Type, value: Value, at: &Location) -> Parse<Value> {
        let range = |low: i128, high: i128| (low, high);
        let integers = match self.specification.unaliased(of) {
            Type::Short => range(i16::MIN.into(), i16::MAX.into()),
            Type::UShort => range(0, u16::MAX.into()),
            Type::Long => range(i32::MIN.into(), i32::MAX.into()),
            Type::ULong => range(0, u32::MAX.into()),
            Type::LongLong => range(i64::MIN.into(), i64::MAX.into()),
            Type::ULongLong => range(0, u64::MAX.into()),
            Type::Octet => range(0, u8::MAX.into()),
            other => {
                let other = other.clone();
                return self.check_other(&other, value, at);
            }
        };
        match value {
            Value::Integer(number) if (integers.0..=integers.1).contains(&number) => Ok(value),
            // The complement of an unsigned number is meant within its width.
            Value::Integer(number) if integers.0 == 0 && (-integers.1 - 1..0).contains(&number) => {
                Ok(Value::Integer(number & integers.1))
            }
            Value::Integer(number) => {
                self.error_at(at, format!("{number} is not in the range from {} to {}", integers.0, integers.1))
            }
            other => {
                let found = self.describe(&other);
                self.error_at(at, format!("an integer expected, {found} found"))
            }
        }
    }

    fn check_other(&mut self, of: &Type, value: Value, at: &Location) -> Parse<Value> {
        let expected = match (of, &value) {
            (Type::Float | Type::Double | Type::LongDouble, Value::Integer(number)) => {
                return Ok(Value::Float(*number as f64));
            }
            (Type::Float, Value::Float(number)) if (*number as f32).is_infinite() => {
                return self.error_at(at, format!("{number:e} is not in the range of a float"));
            }
            (Type::Float | Type::Double | Type::LongDouble, Value::Float(_)) => return Ok(value),
            (Type::Boolean, Value::Boolean(_)) => return Ok(value),
            (Type::Char, Value::Char(each)) if u32::from(*each) < 256 => return Ok(value),
            (Type::WChar, Value::WChar(_)) => return Ok(value),
            (Type::WChar, Value::Char(each)) => return Ok(Value::WChar(*each)),
            (Type::WString(bound), Value::Text(text)) => {
                return self.check_other(&Type::WString(*bound), Value::WideText(text.clone()), at);
            }
            (Type::String(0), Value::Text(_)) | (Type::WString(0), Value::WideText(_)) => return Ok(value),
            (Type::String(bound), Value::Text(text)) | (Type::WString(bound), Value::WideText(text)) => {
                if text.chars().count() <= *bound as usize {
                    return Ok(value);
                }
                return self.error_at(at, format!("the text is longer than {bound} characters"));
            }
            (Type::Fixed { digits: 0, .. }, Value::Fixed(_)) => return Ok(value),
            (Type::Fixed { digits, scale }, Value::Fixed(number)) => {
                let Some(fitted) = number.fitted(*digits, *scale) else {
                    return self.error_at(at, format!("the number has more digits than fixed<{digits}, {scale}>"));
                };
                if number.scale > *scale {
                    self.diagnostics
                        .warning(at, format!("digits behind the {scale} of fixed<{digits}, {scale}> are cut off"));
                }
                return Ok(Value::Fixed(fitted));
            }
            (Type::Named(id), Value::Enumerator(found)) => match self.specification.get(*found).kind {
                Kind::Enumerator { of, .. } if of == *id => return Ok(value),
                _ => "an enumerator of this type",
            },
            (Type::Named(id), _) if matches!(self.specification.get(*id).kind, Kind::Enum { .. }) => "an enumerator",
            (Type::Float | Type::Double | Type::LongDouble, _) => "a number",
            (Type::Boolean, _) => "TRUE or FALSE",
            (Type::Char, Value::Char(_)) => "a character of ISO 8859-1",
            (Type::Char, _) => "a character",
            (Type::WChar, _) => "a wide character",
            (Type::String(_), _) => "a text",
            (Type::WString(_), _) => "a wide text",
            (Type::Fixed { .. }, _) => "a fixed-point number, such as 1.5D,",
            _ => return self.error_at(at, "there are no constants of this type"),
        };
        let found = self.describe(&value);
        self.error_at(at, format!("{expected} expected, {found} found"))
    }

    /// A value, for a message.
    fn describe(&self, value: &Value) -> String {
        match value {
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => format!("{number:?}"),
            Value::Fixed(_) => "a fixed-point number".to_owned(),
            Value::Boolean(value) => if *value { "TRUE" } else { "FALSE" }.to_owned(),
            Value::Char(each) => format!("the character {each:?}"),
            Value::WChar(each) => format!("the wide character {each:?}"),
            Value::Text(text) => format!("the text {text:?}"),
            Value::WideText(text) => format!("the wide text {text:?}"),
            Value::Enumerator(id) => self.specification.scoped_name(*id),
        }
    }
}

fn combine(operator: &str, left: &Value, right: &Value) -> Result<Value, String> {
    match (left, right) {
        (Value::Integer(left), Value::Integer(right)) => {
            let shift = u32::try_from(*right).ok().filter(|shift| *shift < 64);
            let value = match operator {
                "|" => Some(left | right),
                "^" => Some(left ^ right),
                "&" => Some(left & right),
                "<<" => shift.and_then(|shift| left.checked_mul(1 << shift)),
                ">>" => shift.map(|shift| left >> shift),
                "+" => left.checked_add(*right),
                "-" => left.checked_sub(*right),
                "*" => left.checked_mul(*right),
                "/" => left.checked_div(*right),
                _ => left.checked_rem(*right),
            };
            value.map(Value::Integer).ok_or_else(|| format!("{left} {operator} {right} cannot be computed"))
        }
        (Value::Float(_) | Value::Integer(_), Value::Float(_) | Value::Integer(_)) => {
            let float = |value: &Value| match value {
                Value::Integer(number) => *number as f64,
                Value::Float(number) => *number,
                _ => f64::NAN,
            };
            let (left, right) = (float(left), float(right));
            let value = match operator {
                "+" => left + right,
                "-" => left - right,
                "*" => left * right,
                "/" => left / right,
                _ => return Err(format!("{operator} needs integers")),
            };
            if !value.is_finite() {
                return Err(format!("{left:?} {operator} {right:?} cannot be computed"));
            }
            Ok(Value::Float(value))
        }
        (Value::Fixed(left), Value::Fixed(right)) => {
            let value = match operator {
                "+" => left.plus(*right),
                "-" => left.plus(right.negated()),
                "*" => left.times(*right),
                "/" if right.unscaled == 0 => return Err("a fixed-point number is divided by zero".to_owned()),
                "/" => left.divided_by(*right),
                _ => return Err(format!("{operator} needs integers")),
            };
            let value = value.map(Value::Fixed);
            value.ok_or_else(|| "the result has more than 31 digits in front of its point".to_owned())
        }
        _ => Err(format!("{operator} needs two numbers of one kind")),
    }
}
