//! Modules, interfaces, structures, unions and what else is declared.

use super::lexer::Token;
use super::parser::{Parse, Parser};
use super::syntax::{Case, DefId, Direction, Field, Fields, Interface, Kind, Operation, Parameter, Type, Union, Value};
use crate::source::Location;

impl Parser<'_> {
    /// A definition, wherever it may stand.
    pub(super) fn definition(&mut self) -> Parse<()> {
        let keyword = match self.peek() {
            Token::Identifier { name, escaped: false } => name.clone(),
            _ => return self.unexpected("a declaration"),
        };
        match keyword.as_str() {
            "module" => self.module()?,
            "interface" => drop(self.interface(false)?),
            "local" => {
                self.bump();
                self.interface(true)?;
            }
            "abstract" | "valuetype" | "custom" | "component" | "home" | "eventtype" | "native" => {
                return self
                    .error(format!("{keyword:?} belongs to value types or components, which are not supported"));
            }
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
    fn type_or_constant(&mut self, keyword: &str) -> Parse<()> {
        match keyword {
            "typedef" => self.typedef(),
            "const" => self.constant(),
            "struct" => self.structure().map(drop),
            "union" => self.union().map(drop),
            "enum" => self.enumeration().map(drop),
            "exception" => self.exception(),
            _ => self.unexpected("a declaration"),
        }
    }

    fn module(&mut self) -> Parse<()> {
        let docs = self.docs();
        self.bump();
        let at = self.at();
        let name = self.identifier("the name of a module")?;
        let before = self.declared(self.scope, &name);
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

    fn interface(&mut self, local: bool) -> Parse<DefId> {
        let docs = self.docs();
        self.bump();
        let at = self.at();
        let name = self.identifier("the name of an interface")?;
        let announced = self.declared(self.scope, &name).filter(
            |id| matches!(&self.specification.get(*id).kind, Kind::Interface(interface) if !interface.complete),
        );
        let id = match announced {
            Some(id) => id,
            None if self.peek() == &Token::Symbol(";") && self.declared(self.scope, &name).is_some() => {
                // Announced again after it was declared, which is allowed.
                return Ok(self.declared(self.scope, &name).unwrap_or(self.scope));
            }
            None => {
                self.declare(&name, &at, Vec::new(), Kind::Interface(Interface { local, ..Interface::default() }))?
            }
        };
        if self.peek() == &Token::Symbol(";") {
            return Ok(id);
        }
        let mut bases = Vec::new();
        if self.accept(":") {
            loop {
                let at = self.at();
                let base = self.scoped_name("the name of a base interface")?;
                match &self.specification.get(base).kind {
                    Kind::Interface(interface) if interface.complete => {
                        if bases.contains(&base) {
                            return self.error_at(&at, "this base is named twice");
                        }
                        bases.push(base);
                    }
                    Kind::Interface(_) => return self.error_at(&at, "a base interface has to be declared before"),
                    _ => return self.error_at(&at, "a base has to be an interface"),
                }
                if !self.accept(",") {
                    break;
                }
            }
        }
        let definition = &mut self.specification.definitions[id.0];
        definition.docs = docs;
        definition.at = at;
        self.update(id, |interface| {
            interface.bases = bases;
            interface.complete = true;
        });
        self.symbol("{")?;
        self.within(id, |parser| {
            while !matches!(parser.peek(), Token::Symbol("}") | Token::End) {
                if parser.export(id).is_err() {
                    parser.recover();
                }
            }
            Ok(())
        })?;
        self.symbol("}")?;
        self.check_inherited(id);
        Ok(id)
    }

    fn update(&mut self, id: DefId, change: impl FnOnce(&mut Interface)) {
        if let Kind::Interface(interface) = &mut self.specification.definitions[id.0].kind {
            change(interface);
        }
    }

    /// An interface may not inherit two operations of one name.
    fn check_inherited(&mut self, id: DefId) {
        let mut seen: Vec<(String, DefId)> = Vec::new();
        for each in self.specification.lineage(id) {
            let Kind::Interface(interface) = &self.specification.get(each).kind else { continue };
            for operation in &interface.operations {
                let name = operation.name.to_lowercase();
                match seen.iter().find(|(seen, from)| *seen == name && *from != each) {
                    Some((_, from)) => {
                        let from = self.specification.scoped_name(*from);
                        let at = if each == id { operation.at.clone() } else { self.specification.get(id).at.clone() };
                        self.diagnostics.error(&at, format!("{:?} is inherited from {from} already", operation.name));
                    }
                    None => seen.push((name, each)),
                }
            }
        }
    }

    /// Something within an interface.
    fn export(&mut self, interface: DefId) -> Parse<()> {
        let docs = self.docs();
        let keyword = match self.peek() {
            Token::Identifier { name, escaped: false } => name.clone(),
            _ => String::new(),
        };
        match keyword.as_str() {
            "typedef" | "const" | "struct" | "union" | "enum" | "exception" => self.type_or_constant(&keyword)?,
            "typeid" | "typeprefix" => self.type_id(&keyword)?,
            "readonly" | "attribute" => self.attribute(interface, docs)?,
            _ => self.operation(interface, docs)?,
        }
        self.symbol(";")
    }

    fn attribute(&mut self, interface: DefId, docs: Vec<String>) -> Parse<()> {
        let readonly = self.accept_keyword("readonly");
        if !self.accept_keyword("attribute") {
            return self.unexpected("\"attribute\"");
        }
        let of = self.parameter_type()?;
        loop {
            let at = self.at();
            let name = self.identifier("the name of an attribute")?;
            let mut get_raises = Vec::new();
            let mut set_raises = Vec::new();
            if readonly && self.is_keyword("raises") {
                get_raises = self.raises("raises")?;
            } else if !readonly {
                get_raises = self.raises("getraises")?;
                set_raises = self.raises("setraises")?;
            }
            let operation = |prefix: &str, raises| Operation {
                name: if prefix == "_get_" { name.clone() } else { format!("set_{name}") },
                wire_name: format!("{prefix}{name}"),
                docs: docs.clone(),
                at: at.clone(),
                oneway: false,
                result: (prefix == "_get_").then(|| of.clone()),
                parameters: Vec::new(),
                raises,
                declared_in: interface,
            };
            let getter = operation("_get_", get_raises);
            let mut setter = operation("_set_", set_raises);
            setter.parameters = vec![Parameter { direction: Direction::In, name: "value".to_owned(), of: of.clone() }];
            self.add_operation(interface, getter)?;
            if !readonly {
                self.add_operation(interface, setter)?;
            }
            if !self.accept(",") {
                return Ok(());
            }
        }
    }

    fn operation(&mut self, interface: DefId, docs: Vec<String>) -> Parse<()> {
        let oneway = self.accept_keyword("oneway");
        let result = if self.accept_keyword("void") { None } else { Some(self.parameter_type()?) };
        let at = self.at();
        let name = self.identifier("the name of an operation")?;
        self.symbol("(")?;
        let mut parameters: Vec<Parameter> = Vec::new();
        while self.peek() != &Token::Symbol(")") {
            if !parameters.is_empty() {
                self.symbol(",")?;
            }
            let parameter = self.parameter()?;
            if parameters.iter().any(|before| before.name.eq_ignore_ascii_case(&parameter.name)) {
                return self.error(format!("there are two parameters {:?}", parameter.name));
            }
            parameters.push(parameter);
        }
        self.symbol(")")?;
        let raises = self.raises("raises")?;
        if self.is_keyword("context") {
            let at = self.at();
            self.diagnostics.warning(&at, "\"context\" is ignored: nothing is sent with the request");
            self.bump();
            self.symbol("(")?;
            while !matches!(self.peek(), Token::Symbol(")" | ";") | Token::End) {
                self.bump();
            }
            self.symbol(")")?;
        }
        let answers = result.is_some() || !raises.is_empty();
        if oneway && (answers || parameters.iter().any(|parameter| parameter.direction != Direction::In)) {
            return self.error_at(&at, "a oneway operation returns nothing, has only in parameters and raises nothing");
        }
        let wire_name = name.clone();
        let operation =
            Operation { name, wire_name, docs, at, oneway, result, parameters, raises, declared_in: interface };
        self.add_operation(interface, operation)
    }

    fn add_operation(&mut self, interface: DefId, operation: Operation) -> Parse<()> {
        let Kind::Interface(into) = &mut self.specification.definitions[interface.0].kind else { return Ok(()) };
        if let Some(before) = into.operations.iter().find(|before| before.name.eq_ignore_ascii_case(&operation.name)) {
            let message = format!("{:?} is declared already, at {}", operation.name, before.at);
            return self.error_at(&operation.at, message);
        }
        into.operations.push(operation);
        Ok(())
    }

    fn parameter(&mut self) -> Parse<Parameter> {
        let direction = if self.accept_keyword("in") {
            Direction::In
        } else if self.accept_keyword("out") {
            Direction::Out
        } else if self.accept_keyword("inout") {
            Direction::InOut
        } else {
            return self.unexpected("\"in\", \"out\" or \"inout\"");
        };
        let of = self.parameter_type()?;
        Ok(Parameter { direction, of, name: self.identifier("the name of a parameter")? })
    }

    fn raises(&mut self, keyword: &str) -> Parse<Vec<DefId>> {
        let mut raises = Vec::new();
        if !self.accept_keyword(keyword) {
            return Ok(raises);
        }
        self.symbol("(")?;
        loop {
            let at = self.at();
            let exception = self.scoped_name("the name of an exception")?;
            if !matches!(self.specification.get(exception).kind, Kind::Exception(_)) {
                return self.error_at(&at, "only exceptions can be raised");
            }
            if !raises.contains(&exception) {
                raises.push(exception);
            }
            if !self.accept(",") {
                break;
            }
        }
        self.symbol(")")?;
        Ok(raises)
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
            lengths.push(self.positive("the length of an array")?);
            self.symbol("]")?;
        }
        let of = lengths.into_iter().rev().fold(of, |of, length| Type::Array(Box::new(of), length));
        Ok((name, at, of))
    }

    fn constant(&mut self) -> Parse<()> {
        let docs = self.docs();
        self.bump();
        let of = self.type_spec()?;
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
            .declared(self.scope, &name)
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
            if fields.iter().any(|before| before.name.eq_ignore_ascii_case(&name)) {
                return self.error_at(&at, format!("there are two members {name:?}"));
            }
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
            .declared(self.scope, &name)
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
            return self.unexpected("\"switch\"");
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
            return self.unexpected("\"case\" or \"default\"");
        }
        let at = self.at();
        let of = self.type_spec()?;
        self.check_complete(&of, &at)?;
        let (name, at, of) = self.declarator(of)?;
        if cases.iter().any(|case| case.field.name.eq_ignore_ascii_case(&name)) {
            return self.error_at(&at, format!("there are two members {name:?}"));
        }
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

    fn type_id(&mut self, keyword: &str) -> Parse<()> {
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
