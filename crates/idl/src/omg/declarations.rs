//! Modules, interfaces, structures, unions and what else is declared.

use super::lexer::Token;
use super::parser::{MAX_DEPTH, Parse, Parser};
use super::syntax::{Case, DefId, Field, Fields, Kind, Type, Union, Value};
use crate::source::Location;

const DECLARATION: &str = "a declaration (such as module, interface, struct, typedef or const)";

impl Parser<'_> {
    /// A definition, wherever it may stand.
    pub(super) fn definition(&mut self) -> Parse<()> {
        let keyword = match self.peek() {
            Token::Identifier { name, escaped: false } => name.clone(),
            _ => return self.expected(DECLARATION),
        };
        match keyword.as_str() {
            "module" => self.nested(Self::module)?,
            "interface" => drop(self.interface(false)?),
            "local" => {
                self.bump();
                if !self.is_keyword("interface") {
                    return self.expected("\"interface\"");
                }
                self.interface(true)?;
            }
            "abstract" | "valuetype" | "custom" | "component" | "home" | "eventtype" => {
                return self
                    .error(format!("{keyword:?} belongs to value types or components, which are not supported"));
            }
            "native" => return self.error("types that only the programming language knows are not supported"),
            "import" => {
                let at = self.at();
                self.diagnostics.warning(&at, "\"import\" is ignored");
                self.recover();
                return Ok(());
            }
            "typeid" | "typeprefix" => self.type_id(&keyword)?,
            _ => self.type_or_constant(&keyword)?,
        }
        self.symbol(";")
    }

    /// A definition that may stand in an interface too.
    pub(super) fn type_or_constant(&mut self, keyword: &str) -> Parse<()> {
        match keyword {
            "typedef" => self.typedef(),
            "const" => self.constant(),
            "struct" => self.structure().map(drop),
            "union" => self.union().map(drop),
            "enum" => self.enumeration().map(drop),
            "exception" => self.exception(),
            _ => self.expected(DECLARATION),
        }
    }

    fn module(&mut self) -> Parse<()> {
        let docs = self.docs();
        self.bump();
        let at = self.at();
        let name = self.identifier("the name of a module")?;
        let before = self.declared_here(&name);
        let module = match before.filter(|id| matches!(self.specification.get(*id).kind, Kind::Module)) {
            Some(module) => module,
            None => self.declare(&name, &at, docs, Kind::Module)?,
        };
        self.symbol("{")?;
        self.within(module, |parser| {
            while !matches!(parser.peek(), Token::Symbol("}") | Token::End) {
                if parser.definition().is_err() {
                    parser.recover();
                }
            }
            Ok(())
        })?;
        self.symbol("}")
    }

    fn typedef(&mut self) -> Parse<()> {
        let docs = self.docs();
        self.bump();
        let of = self.type_spec()?;
        loop {
            let (name, at, of) = self.declarator(of.clone())?;
            self.declare(&name, &at, docs.clone(), Kind::Typedef(of))?;
            if !self.accept(",") {
                return Ok(());
            }
        }
    }

    /// A name, and the type that the lengths behind it make.
    fn declarator(&mut self, of: Type) -> Parse<(String, Location, Type)> {
        let at = self.at();
        let name = self.identifier("a name")?;
        let mut lengths = Vec::new();
        while self.accept("[") {
            if lengths.len() == MAX_DEPTH {
                return self.error(format!("an array has at most {MAX_DEPTH} lengths"));
            }
            lengths.push(self.positive("the length of an array")?);
            self.symbol("]")?;
        }
        let of = lengths.into_iter().rev().fold(of, |of, length| Type::Array(Box::new(of), length));
        Ok((name, at, of))
    }

    fn constant(&mut self) -> Parse<()> {
        let docs = self.docs();
        self.bump();
        // The value of a fixed-point constant says how many digits there are.
        let digits_follow = self.is_keyword("fixed") && self.ahead(1) != Some(&Token::Symbol("<"));
        let of = if digits_follow {
            self.bump();
            Type::Fixed { digits: 0, scale: 0 }
        } else {
            self.type_spec()?
        };
        let at = self.at();
        let name = self.identifier("the name of a constant")?;
        self.symbol("=")?;
        let value = self.constant_of(&of)?;
        self.declare(&name, &at, docs, Kind::Const { of, value })?;
        Ok(())
    }

    pub(super) fn structure(&mut self) -> Parse<DefId> {
        let docs = self.docs();
        self.bump();
        let at = self.at();
        let name = self.identifier("the name of a structure")?;
        let announced = self
            .declared_here(&name)
            .filter(|id| matches!(&self.specification.get(*id).kind, Kind::Struct(fields) if !fields.complete));
        let id = match announced {
            Some(id) => id,
            None => self.declare(&name, &at, docs.clone(), Kind::Struct(Fields::default()))?,
        };
        if self.peek() == &Token::Symbol(";") {
            return Ok(id);
        }
        let fields = self.fields(id)?;
        if fields.is_empty() {
            return self.error_at(&at, format!("the structure {name:?} has no members"));
        }
        self.specification.definitions[id.0].docs = docs;
        self.specification.definitions[id.0].kind = Kind::Struct(Fields { complete: true, fields });
        Ok(id)
    }

    fn exception(&mut self) -> Parse<()> {
        let docs = self.docs();
        self.bump();
        let at = self.at();
        let name = self.identifier("the name of an exception")?;
        let id = self.declare(&name, &at, docs, Kind::Exception(Fields::default()))?;
        let fields = self.fields(id)?;
        self.specification.definitions[id.0].kind = Kind::Exception(Fields { complete: true, fields });
        Ok(())
    }

    fn fields(&mut self, id: DefId) -> Parse<Vec<Field>> {
        self.symbol("{")?;
        let fields = self.within(id, |parser| {
            let mut fields = Vec::new();
            while !matches!(parser.peek(), Token::Symbol("}") | Token::End) {
                if parser.members(&mut fields).is_err() {
                    parser.recover();
                }
            }
            Ok(fields)
        })?;
        self.symbol("}")?;
        Ok(fields)
    }

    fn members(&mut self, fields: &mut Vec<Field>) -> Parse<()> {
        let docs = self.docs();
        let at = self.at();
        let of = self.type_spec()?;
        self.check_complete(&of, &at)?;
        loop {
            let (name, at, of) = self.declarator(of.clone())?;
            self.unlike(fields.iter().map(|before| before.name.as_str()), &name, "members", &at)?;
            fields.push(Field { name, of, docs: docs.clone() });
            if !self.accept(",") {
                break;
            }
        }
        self.symbol(";")
    }

    pub(super) fn union(&mut self) -> Parse<DefId> {
        let docs = self.docs();
        self.bump();
        let at = self.at();
        let name = self.identifier("the name of a union")?;
        let announced = self
            .declared_here(&name)
            .filter(|id| matches!(&self.specification.get(*id).kind, Kind::Union(union) if !union.complete));
        let empty = || Union { complete: false, discriminator: Type::Long, cases: Vec::new() };
        let id = match announced {
            Some(id) => id,
            None => self.declare(&name, &at, docs.clone(), Kind::Union(empty()))?,
        };
        if self.peek() == &Token::Symbol(";") {
            return Ok(id);
        }
        if !self.accept_keyword("switch") {
            return self.expected("\"switch\"");
        }
        let union = self.within(id, |parser| {
            parser.symbol("(")?;
            let discriminator = parser.discriminator()?;
            parser.symbol(")")?;
            parser.symbol("{")?;
            let mut cases: Vec<Case> = Vec::new();
            while !matches!(parser.peek(), Token::Symbol("}") | Token::End) {
                if parser.case(&discriminator, &mut cases).is_err() {
                    parser.recover();
                }
            }
            parser.symbol("}")?;
            Ok(Union { complete: true, discriminator, cases })
        })?;
        if union.cases.is_empty() {
            return self.error_at(&at, format!("the union {name:?} has no members"));
        }
        let labels = || union.cases.iter().flat_map(|case| &case.labels);
        let selecting = labels().filter(|label| label.is_some()).count();
        if selecting < labels().count() && Some(selecting) == self.specification.label_count(&union.discriminator) {
            let message = format!("the union {name:?} has a member for every label, so its default is never selected");
            return self.error_at(&at, message);
        }
        self.specification.definitions[id.0].docs = docs;
        self.specification.definitions[id.0].kind = Kind::Union(union);
        Ok(id)
    }

    fn discriminator(&mut self) -> Parse<Type> {
        let at = self.at();
        let of = self.type_spec()?;
        use Type as T;
        let allowed = match self.specification.unaliased(&of) {
            T::Short | T::UShort | T::Long | T::ULong | T::LongLong | T::ULongLong => true,
            T::Boolean | T::Char | T::WChar => true,
            T::Named(id) => matches!(self.specification.get(*id).kind, Kind::Enum { .. }),
            _ => false,
        };
        if allowed {
            Ok(of)
        } else {
            self.error_at(&at, "a union is switched by an integer, boolean, character or enum")
        }
    }

    fn case(&mut self, discriminator: &Type, cases: &mut Vec<Case>) -> Parse<()> {
        let docs = self.docs();
        let mut labels: Vec<Option<Value>> = Vec::new();
        loop {
            let at = self.at();
            let label = if self.accept_keyword("default") {
                None
            } else if self.accept_keyword("case") {
                Some(self.constant_of(discriminator)?)
            } else {
                break;
            };
            self.symbol(":")?;
            if cases.iter().flat_map(|case| &case.labels).chain(&labels).any(|before| *before == label) {
                return self.error_at(&at, "this label is used already");
            }
            labels.push(label);
        }
        if labels.is_empty() {
            return self.expected("\"case\" or \"default\"");
        }
        let at = self.at();
        let of = self.type_spec()?;
        self.check_complete(&of, &at)?;
        let (name, at, of) = self.declarator(of)?;
        self.unlike(cases.iter().map(|case| case.field.name.as_str()), &name, "members", &at)?;
        cases.push(Case { labels, field: Field { name, of, docs } });
        self.symbol(";")
    }

    pub(super) fn enumeration(&mut self) -> Parse<DefId> {
        let docs = self.docs();
        self.bump();
        let at = self.at();
        let name = self.identifier("the name of an enumeration")?;
        let id = self.declare(&name, &at, docs, Kind::Enum { members: Vec::new() })?;
        self.symbol("{")?;
        let mut members = Vec::new();
        loop {
            let docs = self.docs();
            let at = self.at();
            let name = self.identifier("the name of an enumerator")?;
            let ordinal = u32::try_from(members.len()).unwrap_or(u32::MAX);
            members.push(self.declare(&name, &at, docs, Kind::Enumerator { of: id, ordinal })?);
            if !self.accept(",") {
                break;
            }
        }
        self.symbol("}")?;
        self.specification.definitions[id.0].kind = Kind::Enum { members };
        Ok(id)
    }

    pub(super) fn type_id(&mut self, keyword: &str) -> Parse<()> {
        self.bump();
        let found = self.scoped_name("the name of a type")?;
        let text = self.text("a text")?;
        let id = &mut self.specification.definitions[found.0].repository_id;
        match keyword {
            "typeid" => id.explicit = Some(text),
            _ => id.prefix = text,
        }
        Ok(())
    }
}
