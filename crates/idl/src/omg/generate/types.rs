//! Structures, exceptions, enumerations, other names and constants.

use super::super::syntax::{DefId, Field, Type, Value};
use super::{CDR, Generator, ORB};

impl Generator<'_> {
    pub(super) fn structure(&mut self, id: DefId, fields: &[Field]) {
        let parent = self.specification.get(id).parent;
        let name = self.name(id);
        self.line("");
        self.docs(id);
        self.line("#[derive(Debug, Clone, PartialEq)]");
        self.fields(id, fields, parent);
        self.line("");
        self.item(&format!("impl {CDR}::Cdr for {name} {{"));
        self.line(&format!("const MIN_LEN: usize = {};", self.smallest(fields, parent, None)));
        self.encode(id, false);
        self.decode(id, false);
        self.line("}");
        self.type_code(id, "structure", fields);
    }

    pub(super) fn exception(&mut self, id: DefId, fields: &[Field]) {
        let parent = self.specification.get(id).parent;
        let name = self.name(id);
        let repository_id = self.specification.repository_id(id);
        self.line("");
        self.docs(id);
        self.line("#[derive(Debug, Clone, PartialEq)]");
        self.fields(id, fields, parent);
        self.line("");
        self.item(&format!("impl {ORB}::UserException for {name} {{"));
        self.line(&format!("const ID: &'static str = {repository_id:?};"));
        self.line("}");
        self.line("");
        self.line("/// The repository id stands in front of the members.");
        self.item(&format!("impl {CDR}::Cdr for {name} {{"));
        self.line(&format!("const MIN_LEN: usize = {};", self.smallest(fields, parent, Some(4))));
        self.encode(id, true);
        self.decode(id, true);
        self.line("}");
        self.type_code(id, "exception", fields);
        self.line("");
        self.item(&format!("impl ::std::fmt::Display for {name} {{"));
        self.line("fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {");
        self.line("::std::fmt::Debug::fmt(self, f)");
        self.line("}");
        self.line("}");
        self.line("");
        self.item(&format!("impl ::std::error::Error for {name} {{}}"));
    }

    fn fields(&mut self, id: DefId, fields: &[Field], parent: DefId) {
        let name = self.name(id);
        if fields.is_empty() {
            return self.item(&format!("pub struct {name} {{}}"));
        }
        self.item(&format!("pub struct {name} {{"));
        for (field, name) in fields.iter().zip(self.names.members(id)) {
            self.doc_lines(&field.docs, &format!("`{}`", field.name));
            self.line(&format!("pub {name}: {},", self.rust(&field.of, parent)));
        }
        self.line("}");
    }

    /// The sum of what the members take at least.
    fn smallest(&self, fields: &[Field], parent: DefId, before: Option<usize>) -> String {
        let members = fields.iter().map(|field| format!("<{} as {CDR}::Cdr>::MIN_LEN", self.rust(&field.of, parent)));
        let sum = before.map(|before| before.to_string()).into_iter().chain(members).collect::<Vec<_>>();
        if sum.is_empty() { "0".to_owned() } else { sum.join(" + ") }
    }

    fn encode(&mut self, id: DefId, with_id: bool) {
        self.line("");
        self.line(&format!(
            "fn encode(&self, encoder: &mut {CDR}::Encoder) -> ::std::result::Result<(), {CDR}::Error> {{"
        ));
        if with_id {
            self.line(&format!("encoder.identifier(<Self as {ORB}::UserException>::ID.as_bytes())?;"));
        }
        for name in self.names.members(id) {
            self.line(&format!("{CDR}::Cdr::encode(&self.{name}, encoder)?;"));
        }
        self.line("Ok(())");
        self.line("}");
    }

    fn decode(&mut self, id: DefId, with_id: bool) {
        self.line("");
        self.line(&format!(
            "fn decode(decoder: &mut {CDR}::Decoder<'_>) -> ::std::result::Result<Self, {CDR}::Error> {{"
        ));
        if with_id {
            self.line("decoder.identifier()?;");
        }
        if self.names.members(id).is_empty() {
            self.line("Ok(Self {})");
        } else {
            self.line("Ok(Self {");
            self.indent += 1;
            for name in self.names.members(id) {
                self.line(&format!("{name}: {CDR}::Cdr::decode(decoder)?,"));
            }
            self.line("})");
        }
        self.line("}");
    }

    fn type_code(&mut self, id: DefId, kind: &str, fields: &[Field]) {
        let definition = self.specification.get(id);
        let repository_id = self.specification.repository_id(id);
        self.line("");
        self.begin_type_code(self.name(id), "path");
        self.line(&format!("path.enter({repository_id:?}, |path| {{"));
        self.line("let members = vec![");
        for field in fields {
            let of = self.rust(&field.of, definition.parent);
            self.line(&format!("({:?}, <{of} as {CDR}::Typed>::type_code_in(path)),", field.name));
        }
        self.line("];");
        if fields.is_empty() {
            self.line("let _ = path;");
        }
        self.line(&format!("{CDR}::TypeCode::{kind}({repository_id:?}, {:?}, members)", definition.name));
        self.line("})");
        self.line("}");
        self.line("}");
    }

    pub(super) fn begin_type_code(&mut self, name: &str, path: &str) {
        self.item(&format!("impl {CDR}::Typed for {name} {{"));
        self.line(&format!("fn type_code_in({path}: &mut {CDR}::Path) -> {CDR}::TypeCode {{"));
    }

    pub(super) fn enumeration(&mut self, id: DefId, members: &[DefId]) {
        let definition = self.specification.get(id);
        let name = self.name(id);
        let repository_id = self.specification.repository_id(id);
        let members: Vec<_> =
            members.iter().map(|member| (self.specification.get(*member), self.name(*member))).collect();
        self.line("");
        self.docs(id);
        self.line("#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]");
        self.item(&format!("pub enum {name} {{"));
        for (member, name) in &members {
            self.doc_lines(&member.docs, &format!("`{}`", member.name));
            self.line(&format!("{name},"));
        }
        self.line("}");
        self.line("");
        self.item(&format!("impl {CDR}::Cdr for {name} {{"));
        self.line("const MIN_LEN: usize = 4;");
        self.line("");
        self.line(&format!(
            "fn encode(&self, encoder: &mut {CDR}::Encoder) -> ::std::result::Result<(), {CDR}::Error> {{"
        ));
        self.line("encoder.u32(*self as u32);");
        self.line("Ok(())");
        self.line("}");
        self.line("");
        self.line(&format!(
            "fn decode(decoder: &mut {CDR}::Decoder<'_>) -> ::std::result::Result<Self, {CDR}::Error> {{"
        ));
        self.line("match decoder.u32()? {");
        for (ordinal, (_, name)) in members.iter().enumerate() {
            self.line(&format!("{ordinal} => Ok(Self::{name}),"));
        }
        self.line(&format!("found => Err({CDR}::Error::Enumeration {{ enumeration: {:?}, found }}),", definition.name));
        self.line("}");
        self.line("}");
        self.line("}");
        self.line("");
        self.begin_type_code(name, "_");
        let names: Vec<_> = members.iter().map(|(member, _)| format!("{:?}", member.name)).collect();
        self.line(&format!("let members = [{}];", names.join(", ")));
        self.line(&format!("{CDR}::TypeCode::enumeration({repository_id:?}, {:?}, &members)", definition.name));
        self.line("}");
        self.line("}");
    }

    pub(super) fn typedef(&mut self, id: DefId, of: &Type) {
        let definition = self.specification.get(id);
        self.line("");
        self.docs(id);
        let of = self.rust(of, definition.parent);
        self.item(&format!("pub type {} = {of};", self.name(id)));
    }

    pub(super) fn constant(&mut self, id: DefId, of: &Type, value: &Value) {
        let definition = self.specification.get(id);
        let of_rust = match (self.specification.unaliased(of), value) {
            (Type::String(_) | Type::WString(_), _) => "&str".to_owned(),
            (Type::LongDouble, _) => "f64".to_owned(),
            (Type::Fixed { digits: 0, .. }, Value::Fixed(number)) => {
                format!("{CDR}::Fixed<{}, {}>", number.digits(), number.scale)
            }
            _ => self.rust(of, definition.parent),
        };
        let value = self.value(of, value, definition.parent);
        self.line("");
        self.docs(id);
        self.item(&format!("pub const {}: {of_rust} = {value};", self.name(id)));
    }
}
