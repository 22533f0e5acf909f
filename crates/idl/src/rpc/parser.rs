//! Tokens to syntax. After an error the parser goes on behind the next definition, so that one run shows several.

use super::keywords::{RESERVED, begins, scalar};
use super::lexer::{Kind, Token};
use super::syntax::{
    Arm, Base, Const, Declaration, Definition, Enum, Name, Procedure, Program, Shape, Struct, Union, Value, Version,
};
use crate::source::{Diagnostics, Location};

/// The error is in the diagnostics.
struct Failed;

type Parsed<T> = Result<T, Failed>;

pub fn parse(tokens: Vec<Token>, diagnostics: &mut Diagnostics) -> Vec<Definition> {
    let mut parser = Parser { tokens, next: 0, diagnostics };
    let mut definitions = Vec::new();
    while parser.kind() != &Kind::End {
        let start = parser.next;
        match parser.definition() {
            Ok(definition) => definitions.push(definition),
            Err(Failed) => parser.skip_definition(start),
        }
    }
    for token in parser.tokens.iter().filter(|token| token.repeatable) {
        let message = "a comment `repeatable` is about the procedure behind it, and there is none";
        parser.diagnostics.warning(&token.at, message);
    }
    definitions
}

struct Parser<'a> {
    tokens: Vec<Token>,
    next: usize,
    diagnostics: &'a mut Diagnostics,
}

impl Parser<'_> {
    fn definition(&mut self) -> Parsed<Definition> {
        if self.kind() == &Kind::Define {
            self.next += 1;
            return self.constant().map(Definition::Const);
        }
        let at = self.at();
        match self.word("a definition")?.as_str() {
            "const" => self.constant().map(Definition::Const),
            "enum" => self.enumeration().map(Definition::Enum),
            "struct" => self.structure().map(Definition::Struct),
            "union" => self.union().map(|it| Definition::Union(Box::new(it))),
            "typedef" => {
                let declaration = self.declaration()?;
                self.mark(';')?;
                match declaration {
                    Some(declaration) => Ok(Definition::Typedef(declaration)),
                    None => self.fail(&at, "`typedef void` defines nothing"),
                }
            }
            "program" => self.program().map(Definition::Program),
            other => {
                let expected = "expected `const`, `enum`, `struct`, `union`, `typedef` or `program`";
                self.fail(&at, format!("{expected}, found `{other}`"))
            }
        }
    }

    /// Behind the definition that began at `start`: its `;` outside of braces.
    fn skip_definition(&mut self, start: usize) {
        self.next = start;
        let mut depth = 0usize;
        loop {
            match self.kind() {
                Kind::End => return,
                Kind::Mark('{') => depth += 1,
                Kind::Mark('}') => depth = depth.saturating_sub(1),
                Kind::Mark(';') if depth == 0 => {
                    self.next += 1;
                    return;
                }
                // A definition whose braces do not match ends where the next one begins.
                Kind::Word(word) if self.next > start && self.at().column == 1 && begins(word) => return,
                _ => {}
            }
            self.next += 1;
        }
    }

    fn constant(&mut self) -> Parsed<Const> {
        let name = self.name("the name of the constant")?;
        self.mark('=')?;
        let value = self.value()?;
        self.mark(';')?;
        Ok(Const { name, value })
    }

    fn enumeration(&mut self) -> Parsed<Enum> {
        let name = self.name("the name of the enumeration")?;
        self.mark('{')?;
        let mut members = Vec::new();
        loop {
            let member = self.name("the name of a value")?;
            let value = if self.accept('=') { Some(self.value()?) } else { None };
            members.push((member, value));
            if !self.accept(',') {
                break;
            }
            // C and rpcgen let the list end with a comma.
            if self.kind() == &Kind::Mark('}') {
                break;
            }
        }
        self.mark('}')?;
        self.mark(';')?;
        Ok(Enum { name, members })
    }

    fn structure(&mut self) -> Parsed<Struct> {
        let name = self.name("the name of the structure")?;
        self.mark('{')?;
        let mut fields = Vec::new();
        while !self.accept('}') {
            let at = self.at();
            match self.declaration()? {
                Some(field) => fields.push(field),
                None => return self.fail(&at, "a member cannot be `void`"),
            }
            self.mark(';')?;
        }
        if fields.is_empty() {
            return self.fail(&name.at, format!("structure `{}` has no member", name.text));
        }
        self.mark(';')?;
        Ok(Struct { name, fields })
    }

    fn union(&mut self) -> Parsed<Union> {
        let name = self.name("the name of the union")?;
        self.keyword("switch")?;
        self.mark('(')?;
        let at = self.at();
        let Some(discriminant) = self.declaration()? else {
            return self.fail(&at, "a discriminant cannot be `void`");
        };
        self.mark(')')?;
        self.mark('{')?;
        let (mut arms, mut default) = (Vec::new(), None);
        while !self.accept('}') {
            let at = self.at();
            match self.word("`case` or `default`")?.as_str() {
                "case" => {
                    let mut labels = vec![self.value()?];
                    self.mark(':')?;
                    while self.kind() == &Kind::Word("case".into()) {
                        self.next += 1;
                        labels.push(self.value()?);
                        self.mark(':')?;
                    }
                    arms.push(Arm { labels, declaration: self.declaration()? });
                }
                "default" => {
                    self.mark(':')?;
                    if default.replace(self.declaration()?).is_some() {
                        return self.fail(&at, "a second `default`");
                    }
                }
                other => return self.fail(&at, format!("expected `case` or `default`, found `{other}`")),
            }
            self.mark(';')?;
        }
        self.mark(';')?;
        Ok(Union { name, discriminant, arms, default })
    }

    fn program(&mut self) -> Parsed<Program> {
        let name = self.name("the name of the program")?;
        self.mark('{')?;
        let mut versions = Vec::new();
        while !self.accept('}') {
            self.keyword("version")?;
            versions.push(self.version()?);
        }
        self.mark('=')?;
        let number = self.value()?;
        self.mark(';')?;
        Ok(Program { name, versions, number })
    }

    fn version(&mut self) -> Parsed<Version> {
        let name = self.name("the name of the version")?;
        self.mark('{')?;
        let mut procedures = Vec::new();
        while !self.accept('}') {
            procedures.push(self.procedure()?);
        }
        self.mark('=')?;
        let number = self.value()?;
        self.mark(';')?;
        Ok(Version { name, procedures, number })
    }

    fn procedure(&mut self) -> Parsed<Procedure> {
        let repeatable = self.take_repeatable();
        let result = self.unnamed("result")?;
        let name = self.name("the name of the procedure")?;
        self.mark('(')?;
        let mut arguments = Vec::new();
        if !self.accept(')') {
            loop {
                let at = self.at();
                match self.unnamed("argument")? {
                    Some(argument) => arguments.push(argument),
                    None if arguments.is_empty() && self.kind() == &Kind::Mark(')') => {}
                    None => return self.fail(&at, "`void` stands alone or not at all"),
                }
                // The new style of rpcgen lets arguments have names.
                if let Kind::Word(_) = self.kind() {
                    self.next += 1;
                }
                if !self.accept(',') {
                    break;
                }
            }
            self.mark(')')?;
        }
        self.mark('=')?;
        let number = self.value()?;
        self.mark(';')?;
        Ok(Procedure { repeatable, name, result, arguments, number })
    }

    /// Whether the comment `repeatable` stands before the next token.
    fn take_repeatable(&mut self) -> bool {
        let index = self.next.min(self.tokens.len() - 1);
        std::mem::take(&mut self.tokens[index].repeatable)
    }

    /// The type of an argument or a result, `None` for `void`.
    fn unnamed(&mut self, what: &str) -> Parsed<Option<Declaration>> {
        let at = self.at();
        let Some(base) = self.base()? else {
            return Ok(None);
        };
        let name = Name { text: what.to_owned(), at: at.clone() };
        let shape = match base {
            Base::String | Base::Opaque if self.accept('<') => Shape::Variable(self.limit()?),
            Base::String => Shape::Variable(None),
            Base::Opaque => return self.fail(&at, "an opaque argument or result has a limit: `opaque<>`"),
            _ => Shape::One,
        };
        Ok(Some(Declaration { name, base, shape }))
    }

    /// A declaration without its `;`, `None` for `void`.
    fn declaration(&mut self) -> Parsed<Option<Declaration>> {
        let at = self.at();
        let Some(base) = self.base()? else {
            return Ok(None);
        };
        let optional = self.accept('*');
        let name = self.name("a name")?;
        let shape = if self.accept('[') {
            let length = self.value()?;
            self.mark(']')?;
            Shape::Fixed(length)
        } else if self.accept('<') {
            Shape::Variable(self.limit()?)
        } else if optional {
            Shape::Optional
        } else {
            Shape::One
        };
        if optional && !matches!(shape, Shape::Optional) {
            return self.fail(&at, "an array of optional values needs a `typedef` for the optional value");
        }
        match (&base, &shape) {
            (Base::String, Shape::Variable(_)) | (Base::Opaque, Shape::Fixed(_) | Shape::Variable(_)) => {}
            (Base::String, _) => return self.fail(&at, "a string has a limit: `string name<>`"),
            (Base::Opaque, _) => {
                return self.fail(&at, "opaque data have a length or a limit: `opaque name[4]`, `opaque name<>`");
            }
            _ => {}
        }
        Ok(Some(Declaration { name, base, shape }))
    }

    fn limit(&mut self) -> Parsed<Option<Value>> {
        if self.accept('>') {
            return Ok(None);
        }
        let limit = self.value()?;
        self.mark('>')?;
        Ok(Some(limit))
    }

    fn base(&mut self) -> Parsed<Option<Base>> {
        let at = self.at();
        let word = self.word("a type")?;
        Ok(Some(match word.as_str() {
            "void" => return Ok(None),
            "unsigned" => {
                let width = match self.kind() {
                    Kind::Word(word) if ["char", "short", "int", "long", "hyper"].contains(&word.as_str()) => {
                        let word = format!("u_{word}");
                        self.next += 1;
                        word
                    }
                    _ => "u_int".to_owned(),
                };
                Base::Scalar(scalar(&width).expect("one of the names above"))
            }
            "quadruple" => Base::Quadruple,
            "opaque" => Base::Opaque,
            "string" => Base::String,
            "struct" | "union" | "enum" => {
                if self.kind() == &Kind::Mark('{') || self.kind() == &Kind::Word("switch".into()) {
                    return self.fail(&at, format!("give this {word} a name and a definition of its own"));
                }
                Base::Named(self.name("the name of a type")?.text)
            }
            other => match scalar(other) {
                Some(scalar) => Base::Scalar(scalar),
                None if begins(other) => return self.fail(&at, format!("expected a type, found `{other}`")),
                None => Base::Named(word),
            },
        }))
    }

    fn value(&mut self) -> Parsed<Value> {
        let at = self.at();
        match self.kind().clone() {
            Kind::Number(number) => {
                self.next += 1;
                Ok(Value::Number(number, at))
            }
            Kind::Word(text) => {
                self.next += 1;
                Ok(Value::Name(Name { text, at }))
            }
            _ => self.unexpected("a number or the name of a constant"),
        }
    }

    fn name(&mut self, what: &str) -> Parsed<Name> {
        let at = self.at();
        let text = self.word(what)?;
        if begins(&text) || scalar(&text).is_some() || RESERVED.contains(&text.as_str()) {
            return self.fail(&at, format!("expected {what}, found the keyword `{text}`"));
        }
        Ok(Name { text, at })
    }

    fn word(&mut self, what: &str) -> Parsed<String> {
        match self.kind().clone() {
            Kind::Word(text) => {
                self.next += 1;
                Ok(text)
            }
            _ => self.unexpected(what),
        }
    }

    fn keyword(&mut self, word: &str) -> Parsed<()> {
        if self.kind() == &Kind::Word(word.to_owned()) {
            self.next += 1;
            return Ok(());
        }
        self.unexpected(&format!("`{word}`"))
    }

    fn mark(&mut self, mark: char) -> Parsed<()> {
        if self.accept(mark) { Ok(()) } else { self.unexpected(&format!("`{mark}`")) }
    }

    fn accept(&mut self, mark: char) -> bool {
        let found = self.kind() == &Kind::Mark(mark);
        self.next += usize::from(found);
        found
    }

    fn unexpected<T>(&mut self, what: &str) -> Parsed<T> {
        let found = match self.kind() {
            Kind::Word(word) => format!("`{word}`"),
            Kind::Number(number) => format!("`{number}`"),
            Kind::Mark(mark) => format!("`{mark}`"),
            Kind::Define => "`#define`".to_owned(),
            Kind::End => "the end of the file".to_owned(),
        };
        let at = self.at();
        self.fail(&at, format!("expected {what}, found {found}"))
    }

    fn fail<T>(&mut self, at: &Location, message: impl Into<String>) -> Parsed<T> {
        self.diagnostics.error(at, message);
        Err(Failed)
    }

    /// The last token is the end, and nothing moves past it.
    fn token(&self) -> &Token {
        &self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    fn kind(&self) -> &Kind {
        &self.token().kind
    }

    fn at(&self) -> Location {
        self.token().at.clone()
    }
}
