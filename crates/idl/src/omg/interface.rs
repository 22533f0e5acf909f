//! Interfaces, their operations and attributes.

use super::lexer::Token;
use super::parser::{Parse, Parser};
use super::syntax::{DefId, Direction, Interface, Kind, Operation, Parameter, Role};
use crate::source::Location;

/// How many interfaces one may inherit.
const MAX_INHERITED: usize = 1000;

impl Parser<'_> {
    pub(super) fn interface(&mut self, local: bool) -> Parse<DefId> {
        let docs = self.docs();
        self.bump();
        let at = self.at();
        let name = self.identifier("the name of an interface")?;
        let before = self.declared_here(&name).and_then(|id| match &self.specification.get(id).kind {
            Kind::Interface(interface) => Some((id, interface.complete)),
            _ => None,
        });
        let id = match before {
            Some((id, false)) => id,
            // Announced again after it was declared, which is allowed.
            Some((id, true)) if self.peek() == &Token::Symbol(";") => return Ok(id),
            _ => self.declare(&name, &at, Vec::new(), Kind::Interface(Interface { local, ..Interface::default() }))?,
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
        let mut inherited: Vec<DefId> = Vec::new();
        for base in &bases {
            let more: Vec<_> = self.specification.lineage(*base).filter(|each| !inherited.contains(each)).collect();
            inherited.extend(more);
        }
        if inherited.len() > MAX_INHERITED {
            return self.error_at(&at, format!("an interface inherits at most {MAX_INHERITED} others"));
        }
        let definition = &mut self.specification.definitions[id.0];
        definition.docs = docs;
        definition.at = at;
        self.update(id, |interface| {
            interface.bases = bases;
            interface.inherited = inherited;
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
        let lineage: Vec<_> = self.specification.lineage(id).collect();
        for each in lineage {
            let Kind::Interface(interface) = &self.specification.get(each).kind else { continue };
            for operation in interface.operations.iter().filter(|operation| operation.role != Role::Setter) {
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
            return self.expected("\"attribute\"");
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
            let operation = |role, raises| Operation {
                name: name.clone(),
                role,
                docs: docs.clone(),
                at: at.clone(),
                oneway: false,
                result: (role == Role::Getter).then(|| of.clone()),
                parameters: Vec::new(),
                raises,
                declared_in: interface,
            };
            let getter = operation(Role::Getter, get_raises);
            let mut setter = operation(Role::Setter, set_raises);
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
            let (parameter, at) = self.parameter()?;
            self.unlike(parameters.iter().map(|before| before.name.as_str()), &parameter.name, "parameters", &at)?;
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
        let role = Role::Operation;
        let operation = Operation { name, role, docs, at, oneway, result, parameters, raises, declared_in: interface };
        self.add_operation(interface, operation)
    }

    fn add_operation(&mut self, interface: DefId, operation: Operation) -> Parse<()> {
        let Kind::Interface(into) = &self.specification.get(interface).kind else { return Ok(()) };
        let same = |before: &&Operation| before.name.eq_ignore_ascii_case(&operation.name);
        // The two operations of an attribute have its name.
        let before = into.operations.iter().find(same).filter(|_| operation.role != Role::Setter);
        if let Some(before) = before {
            let message = match before.name == operation.name {
                true => format!("{:?} is declared already, at {}", operation.name, before.at),
                false => format!(
                    "{:?} differs only in case from {:?}, declared at {}, which IDL forbids",
                    operation.name, before.name, before.at
                ),
            };
            return self.error_at(&operation.at, message);
        }
        if let Some(before) = self.declared(interface, &operation.name) {
            let at = &self.specification.get(before).at;
            let message = format!("{:?} is declared already, at {at}", operation.name);
            return self.error_at(&operation.at, message);
        }
        self.update(interface, |into| into.operations.push(operation));
        Ok(())
    }

    fn parameter(&mut self) -> Parse<(Parameter, Location)> {
        let direction = if self.accept_keyword("in") {
            Direction::In
        } else if self.accept_keyword("out") {
            Direction::Out
        } else if self.accept_keyword("inout") {
            Direction::InOut
        } else {
            return self.expected("\"in\", \"out\" or \"inout\"");
        };
        let of = self.parameter_type()?;
        let at = self.at();
        Ok((Parameter { direction, of, name: self.identifier("the name of a parameter")? }, at))
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
}
