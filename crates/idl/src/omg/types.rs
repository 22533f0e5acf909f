//! Types, where they are used.

use super::lexer::Token;
use super::parser::{Parse, Parser};
use super::syntax::{Kind, Type, Value};
use crate::source::Location;

impl Parser<'_> {
    /// A type that need not have a name.
    pub(super) fn type_spec(&mut self) -> Parse<Type> {
        let keyword = match self.peek() {
            Token::Identifier { name, escaped: false } => name.clone(),
            Token::Identifier { .. } | Token::Symbol("::") => String::new(),
            _ => return self.expected("a type"),
        };
        let simple = match keyword.as_str() {
            "float" => Type::Float,
            "double" => Type::Double,
            "short" => Type::Short,
            "boolean" => Type::Boolean,
            "char" => Type::Char,
            "wchar" => Type::WChar,
            "octet" => Type::Octet,
            "any" => Type::Any,
            "Object" => Type::Object,
            "long" => return self.long(),
            "unsigned" => return self.unsigned(),
            "string" | "wstring" => return self.string(&keyword),
            "sequence" => return self.nested(Self::sequence),
            "fixed" => return self.fixed(),
            "struct" => return self.nested(Self::structure).map(Type::Named),
            "union" => return self.nested(Self::union).map(Type::Named),
            "enum" => return self.enumeration().map(Type::Named),
            "void" => return self.error("\"void\" is only the result of an operation"),
            "ValueBase" => return self.error("value types are not supported"),
            _ => return self.named_type(),
        };
        self.bump();
        Ok(simple)
    }

    /// The type of a parameter, a result or an attribute: one that has a name.
    pub(super) fn parameter_type(&mut self) -> Parse<Type> {
        let at = self.at();
        for keyword in ["struct", "union", "enum", "sequence"] {
            if self.is_keyword(keyword) {
                return self.error(format!("a {keyword} has to be given a name before it is used here"));
            }
        }
        let of = self.type_spec()?;
        self.check_complete(&of, &at)?;
        Ok(of)
    }

    /// A structure that is only announced has no size yet; a sequence of it may be used.
    pub(super) fn check_complete(&mut self, of: &Type, at: &Location) -> Parse<()> {
        let mut of = self.specification.unaliased(of);
        while let Type::Array(element, _) = of {
            of = self.specification.unaliased(element);
        }
        if let Type::Named(id) = of {
            let complete = match &self.specification.get(*id).kind {
                Kind::Struct(fields) => fields.complete,
                Kind::Union(union) => union.complete,
                _ => true,
            };
            if !complete {
                let name = self.specification.scoped_name(*id);
                return self
                    .error_at(at, format!("{name} is not declared yet; only a sequence of it may be used here"));
            }
        }
        Ok(())
    }

    fn long(&mut self) -> Parse<Type> {
        self.bump();
        Ok(if self.accept_keyword("long") {
            Type::LongLong
        } else if self.accept_keyword("double") {
            Type::LongDouble
        } else {
            Type::Long
        })
    }

    fn unsigned(&mut self) -> Parse<Type> {
        self.bump();
        if self.accept_keyword("short") {
            return Ok(Type::UShort);
        }
        if !self.accept_keyword("long") {
            return self.expected("\"short\" or \"long\"");
        }
        Ok(if self.accept_keyword("long") { Type::ULongLong } else { Type::ULong })
    }

    fn string(&mut self, keyword: &str) -> Parse<Type> {
        self.bump();
        let mut bound = 0;
        if self.accept("<") {
            bound = self.positive("the greatest length")?;
            self.symbol(">")?;
        }
        Ok(if keyword == "string" { Type::String(bound) } else { Type::WString(bound) })
    }

    fn sequence(&mut self) -> Parse<Type> {
        self.bump();
        self.symbol("<")?;
        let of = self.type_spec()?;
        let mut bound = 0;
        if self.accept(",") {
            bound = self.positive("the greatest length")?;
        }
        self.symbol(">")?;
        Ok(Type::Sequence(Box::new(of), bound))
    }

    fn fixed(&mut self) -> Parse<Type> {
        self.bump();
        self.symbol("<")?;
        let at = self.at();
        let digits = self.positive("the number of digits")?;
        self.symbol(",")?;
        let scale = match self.bound()? {
            Value::Integer(scale) => scale,
            _ => return self.error_at(&at, "the scale of a fixed-point number is an integer"),
        };
        self.symbol(">")?;
        match (u16::try_from(digits), i16::try_from(scale)) {
            (Ok(digits @ 1..=31), Ok(scale)) if i32::from(scale) <= i32::from(digits) => {
                Ok(Type::Fixed { digits, scale })
            }
            _ => self.error_at(&at, "a fixed-point number has at most 31 digits, and its scale is not larger"),
        }
    }

    fn named_type(&mut self) -> Parse<Type> {
        if let Some(built_in) = self.built_in() {
            return Ok(built_in);
        }
        let at = self.at();
        let id = self.scoped_name("a type")?;
        match &self.specification.get(id).kind {
            Kind::Struct(_) | Kind::Union(_) | Kind::Enum { .. } | Kind::Typedef(_) => Ok(Type::Named(id)),
            Kind::Interface(interface) if !interface.local => Ok(Type::Named(id)),
            Kind::Interface(_) => self.error_at(&at, "a local interface cannot be sent"),
            _ => {
                let name = self.specification.scoped_name(id);
                self.error_at(&at, format!("{name} is not a type"))
            }
        }
    }

    /// `CORBA::TypeCode` and `CORBA::Object`, which are there without a declaration. Everything else of a module of that name is
    /// what the file says it is.
    fn built_in(&mut self) -> Option<Type> {
        let absolute = usize::from(self.peek() == &Token::Symbol("::"));
        let (Some(Token::Identifier { name: module, .. }), Some(Token::Symbol("::"))) =
            (self.ahead(absolute), self.ahead(absolute + 1))
        else {
            return None;
        };
        let Some(Token::Identifier { name, .. }) = self.ahead(absolute + 2) else { return None };
        let of = match (module.as_str(), name.as_str()) {
            ("CORBA", "TypeCode") => Type::TypeCode,
            ("CORBA", "Object") => Type::Object,
            _ => return None,
        };
        for _ in 0..absolute + 3 {
            self.bump();
        }
        Some(of)
    }

    /// A length: a positive number that fits in an unsigned long.
    pub(super) fn positive(&mut self, what: &str) -> Parse<u32> {
        let at = self.at();
        match self.bound()? {
            Value::Integer(number) => match u32::try_from(number) {
                Ok(number @ 1..) => Ok(number),
                _ => self.error_at(&at, format!("{what} is at least 1 and at most {}, not {number}", u32::MAX)),
            },
            _ => self.error_at(&at, format!("{what} is a number")),
        }
    }
}
