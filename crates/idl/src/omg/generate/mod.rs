//! Definitions to Rust.

mod interface;
mod names;
mod operation;
mod types;
mod union;

use super::syntax::{DefId, GLOBAL, Kind, Specification, Type, Value};
use crate::markdown;
use names::Names;

/// The Rust code of everything that was declared.
pub(super) fn generate(specification: &Specification, source: &str) -> String {
    let names = Names::of(specification);
    let mut generator = Generator { specification, names: &names, output: String::new(), indent: 0 };
    generator.line(&format!("// Made by `sidestep idl` from {source}. Changes belong there."));
    generator.scope(GLOBAL);
    generator.output
}

struct Generator<'a> {
    specification: &'a Specification,
    names: &'a Names,
    output: String,
    indent: usize,
}

/// Where the generated code finds its runtime.
const ORB: &str = "::sidestep_orb";
const CDR: &str = "::sidestep_orb::cdr";

/// Nobody uses all of an interface, and what IDL says need not be what clippy likes.
const ALLOWED: &str = "#[allow(dead_code, clippy::all)]";

impl<'a> Generator<'a> {
    /// Writes the first line of a type, a trait, a constant or what is implemented.
    fn item(&mut self, text: &str) {
        // Within modules, the outermost one says it.
        if self.indent == 0 {
            self.line(ALLOWED);
        }
        self.line(text);
    }

    /// Writes a line; brackets at its end and beginning move those that follow.
    fn line(&mut self, text: &str) {
        let closes = text.starts_with(['}', ')', ']']);
        if closes {
            self.indent -= 1;
        }
        if !text.is_empty() {
            self.output.extend(std::iter::repeat_n("    ", self.indent));
            self.output.push_str(text);
        }
        self.output.push('\n');
        if text.ends_with(['{', '(', '[']) {
            self.indent += 1;
        }
    }

    /// Everything in a scope, and the scopes within it as modules.
    fn scope(&mut self, scope: DefId) {
        for id in self.specification.members(scope) {
            match &self.specification.get(id).kind {
                Kind::Module => {}
                Kind::Interface(interface) if interface.local => {}
                Kind::Interface(_) => self.interface(id),
                Kind::Struct(fields) => self.structure(id, &fields.fields),
                Kind::Exception(fields) => self.exception(id, &fields.fields),
                Kind::Union(union) => self.union(id, union),
                Kind::Enum { members } => self.enumeration(id, members),
                Kind::Enumerator { .. } => continue,
                Kind::Typedef(of) => self.typedef(id, of),
                Kind::Const { of, value } => self.constant(id, of, value),
            }
            if let Some(name) = self.names.module(id) {
                self.module(id, name);
            }
        }
    }

    fn module(&mut self, id: DefId, name: &str) {
        self.line("");
        match self.specification.get(id).kind {
            Kind::Module => self.docs(id),
            _ => self.line(&format!("/// What `{}` declares.", self.specification.scoped_name(id))),
        }
        if self.specification.get(id).parent == GLOBAL {
            self.line("#[forbid(unsafe_code)]");
            self.line(ALLOWED);
        }
        self.line(&format!("pub mod {name} {{"));
        self.scope(id);
        self.line("}");
    }

    /// The comment of the definition as documentation, or its name.
    fn docs(&mut self, id: DefId) {
        let definition = self.specification.get(id);
        let name = self.specification.scoped_name(id);
        self.doc_lines(&definition.docs.clone(), &format!("`{name}`"));
    }

    fn doc_lines(&mut self, docs: &[String], otherwise: &str) {
        if docs.is_empty() {
            self.line(&format!("/// {otherwise}"));
        }
        for line in markdown::shown(docs) {
            self.line(format!("/// {line}").trim_end());
        }
    }

    /// The name of a definition.
    fn name(&self, id: DefId) -> &'a str {
        self.names.definition(id)
    }

    /// The path from a scope to a definition.
    fn path(&self, id: DefId, from: DefId) -> String {
        self.path_to(id, self.name(id), from)
    }

    /// The path from a scope to a name that stands beside a definition.
    fn path_to(&self, beside: DefId, name: &str, from: DefId) -> String {
        let to = self.specification.scopes(self.specification.get(beside).parent);
        let from = self.specification.scopes(from);
        let common = to.iter().zip(&from).take_while(|(a, b)| a == b).count();
        let mut path = "super::".repeat(from.len() - common);
        for scope in &to[common..] {
            path.push_str(self.names.module(*scope).unwrap_or_default());
            path.push_str("::");
        }
        path.push_str(name);
        path
    }

    /// A type, as it is named within a scope.
    fn rust(&self, of: &Type, from: DefId) -> String {
        match of {
            Type::Short => "i16".to_owned(),
            Type::UShort => "u16".to_owned(),
            Type::Long => "i32".to_owned(),
            Type::ULong => "u32".to_owned(),
            Type::LongLong => "i64".to_owned(),
            Type::ULongLong => "u64".to_owned(),
            Type::Float => "f32".to_owned(),
            Type::Double => "f64".to_owned(),
            Type::LongDouble => format!("{CDR}::LongDouble"),
            Type::Boolean => "bool".to_owned(),
            Type::Char => "char".to_owned(),
            Type::WChar => format!("{CDR}::WChar"),
            Type::Octet => "u8".to_owned(),
            Type::Any => format!("{CDR}::Any"),
            Type::TypeCode => format!("{CDR}::TypeCode"),
            Type::Object => format!("Option<{ORB}::Object>"),
            Type::String(0) => "String".to_owned(),
            Type::String(bound) => format!("{CDR}::BoundedString<{bound}>"),
            Type::WString(0) => format!("{CDR}::WString"),
            Type::WString(bound) => format!("{CDR}::BoundedWString<{bound}>"),
            Type::Fixed { digits, scale } => format!("{CDR}::Fixed<{digits}, {scale}>"),
            Type::Sequence(of, 0) => format!("Vec<{}>", self.rust(of, from)),
            Type::Sequence(of, bound) => format!("{CDR}::BoundedSequence<{}, {bound}>", self.rust(of, from)),
            Type::Array(of, length) => format!("[{}; {length}]", self.rust(of, from)),
            Type::Named(id) => match self.specification.get(*id).kind {
                Kind::Interface(_) => format!("Option<{}>", self.path(*id, from)),
                _ => self.path(*id, from),
            },
        }
    }

    /// Whether a value is as cheap to hand on as a reference to it.
    fn is_copy(&self, of: &Type) -> bool {
        use Type as T;
        match self.specification.unaliased(of) {
            T::Any | T::TypeCode | T::Object | T::String(_) | T::WString(_) | T::Sequence(..) | T::Array(..) => false,
            T::Named(id) => matches!(self.specification.get(*id).kind, Kind::Enum { .. }),
            _ => true,
        }
    }

    /// A constant, as it is written within a scope.
    fn value(&self, of: &Type, value: &Value, from: DefId) -> String {
        match value {
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => match self.specification.unaliased(of) {
                Type::Float => format!("{:?}", *number as f32),
                _ => format!("{number:?}"),
            },
            Value::Fixed(number) => format!("{CDR}::Fixed::constant({})", number.unscaled),
            Value::Boolean(value) => value.to_string(),
            Value::Char(value) => format!("{value:?}"),
            Value::WChar(value) => format!("{CDR}::WChar({value:?})"),
            Value::Text(text) | Value::WideText(text) => format!("{text:?}"),
            Value::Enumerator(id) => {
                let Kind::Enumerator { of, .. } = self.specification.get(*id).kind else { return String::new() };
                format!("{}::{}", self.path(of, from), self.name(*id))
            }
        }
    }
}
