//! A model to one file of Rust, without macros, in the order of the `.x` file.

mod expression;
mod program;
mod shown;

use std::collections::HashSet;

use super::model::{Discriminant, Model};
use super::names::DEFAULT;
use super::syntax::{Const, Declaration, Definition, Enum, Struct, Union};
use crate::names::Scope;
use expression::Place;

pub fn generate(file: &str, model: &Model) -> String {
    let mut generator = Generator { model, out: String::new() };
    for (index, definition) in model.definitions.iter().enumerate() {
        generator.line(0, "");
        match definition {
            Definition::Const(it) => generator.constant(it),
            Definition::Enum(it) => generator.enumeration(it),
            Definition::Struct(it) => generator.structure(it),
            Definition::Union(it) => generator.union(it),
            Definition::Typedef(it) => generator.alias(it),
            Definition::Program(it) => generator.program(index, it),
        }
    }
    let name = file.rsplit('/').next().unwrap_or(file);
    let code = generator.out;
    format!("// Generated from {name} by `sidestep idl`. Changes belong there.\n\n{}{code}", imports(&code))
}

/// The imports of what the code names.
fn imports(code: &str) -> String {
    let mut words = HashSet::new();
    for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
        for path in line.split(|each: char| !each.is_ascii_alphanumeric() && !"_:".contains(each)) {
            // Of a path, the first word is what is imported.
            words.extend(path.split(':').next());
        }
    }
    let import = |path: &str, names: &[&str]| {
        let used: Vec<&str> = names.iter().copied().filter(|name| words.contains(name)).collect();
        match used.as_slice() {
            [] => String::new(),
            ["xdr"] => format!("use {path};\n"),
            ["xdr", others @ ..] => format!("use {path}::{{self, {}}};\n", others.join(", ")),
            [one] => format!("use {path}::{one};\n"),
            several => format!("use {path}::{{{}}};\n", several.join(", ")),
        }
    };
    import("sidestep_rpc::xdr", &["xdr", "Reader", "Writer", "Xdr"])
        + &import("sidestep_rpc", &["Call", "Client", "Error", "Pending", "Procedure", "Refusal", "Service"])
}

struct Generator<'a> {
    model: &'a Model,
    out: String,
}

impl Generator<'_> {
    fn constant(&mut self, it: &Const) {
        let value = self.model.value(&it.value);
        let kind = match value {
            0..=0xffff_ffff => "u32",
            _ if i32::try_from(value).is_ok() => "i32",
            _ if i64::try_from(value).is_ok() => "i64",
            _ => "u64",
        };
        self.line(0, &format!("/// `{}`.", shown::constant(it)));
        self.line(0, &format!("pub const {}: {kind} = {value};", self.model.names.constant(&it.name.text)));
    }

    fn enumeration(&mut self, it: &Enum) {
        let name = self.model.names.type_named(&it.name.text);
        self.line(0, &format!("/// `enum {}`.", it.name.text));
        self.line(0, "#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]");
        self.line(0, &format!("pub enum {name} {{"));
        for (member, _) in &it.members {
            let value = self.model.member_value(member);
            self.line(1, &format!("/// `{}`.", member.text));
            self.line(1, &format!("{} = {value},", self.model.names.variant(&member.text)));
        }
        self.line(0, "}");
        self.xdr(name, "out.i32(*self as i32)", |generator| {
            generator.line(2, "Ok(match input.i32()? {");
            for (member, _) in &it.members {
                let value = generator.model.member_value(member);
                let variant = generator.model.names.variant(&member.text);
                generator.line(3, &format!("{value} => Self::{variant},"));
            }
            generator.no_value(&it.name.text);
            generator.line(2, "})");
        });
    }

    fn structure(&mut self, it: &Struct) {
        let name = self.model.names.type_named(&it.name.text);
        self.line(0, &format!("/// `struct {}`.", it.name.text));
        self.derive(&it.name.text);
        self.line(0, &format!("pub struct {name} {{"));
        let names = self.model.names.fields(&it.name.text);
        for (field, name) in it.fields.iter().zip(names) {
            self.line(1, &format!("/// `{}`.", shown::declaration(field)));
            let kind = self.rust_type(field);
            self.line(1, &format!("pub {name}: {kind},"));
        }
        self.line(0, "}");
        let mut encode = String::new();
        for (index, (field, name)) in it.fields.iter().zip(names).enumerate() {
            let place = Place::field(name);
            encode += &self.encode(field, &place);
            if index + 1 < it.fields.len() {
                encode += "?;\n        ";
            }
        }
        self.xdr(name, &encode, |generator| {
            generator.line(2, "Ok(Self {");
            for (field, name) in it.fields.iter().zip(names) {
                let value = generator.decode(field);
                generator.line(3, &format!("{name}: {value}?,"));
            }
            generator.line(2, "})");
        });
    }

    fn union(&mut self, it: &Union) {
        let owner = &it.name.text;
        let name = self.model.names.type_named(owner);
        let discriminant = self.model.discriminant(it).expect("a checked union");
        let cases = self.cases(it, &discriminant);
        self.line(0, &format!("/// `union {owner} switch ({})`.", shown::declaration(&it.discriminant)));
        // The sizes of the arms are those of the protocol.
        self.line(0, "#[allow(clippy::large_enum_variant)]");
        self.derive(owner);
        self.line(0, &format!("pub enum {name} {{"));
        for case in &cases {
            self.line(1, &format!("/// `case {}: {}`.", case.shown, shown::arm(case.declaration)));
            let content = case.declaration.map(|it| format!("({})", self.rust_type(it))).unwrap_or_default();
            self.line(1, &format!("{}{content},", case.variant));
        }
        let kind = self.rust_type(&it.discriminant);
        if let Some(default) = &it.default {
            self.line(1, &format!("/// `default: {}`, with the discriminant.", shown::arm(default.as_ref())));
            let content = default.as_ref().map(|it| format!(", {}", self.rust_type(it))).unwrap_or_default();
            self.line(1, &format!("{DEFAULT}({kind}{content}),"));
        }
        self.line(0, "}");

        let put = |value: &str| self.encode(&it.discriminant, &Place::value(value));
        let mut encode = "match self {\n".to_owned();
        for case in &cases {
            encode += &match case.declaration {
                Some(declaration) => format!(
                    "            Self::{}(value) => {{\n                {}?;\n                {}\n            }}\n",
                    case.variant,
                    put(&case.rust),
                    self.encode(declaration, &Place::reference("value"))
                ),
                None => format!("            Self::{} => {},\n", case.variant, put(&case.rust)),
            };
        }
        if let Some(default) = &it.default {
            let taken: Vec<String> = cases.iter().map(|case| case.rust.clone()).collect();
            let pattern =
                if default.is_some() { "Self::Default(discriminant, value)" } else { "Self::Default(discriminant)" };
            if !taken.is_empty() {
                let cast = if discriminant == Discriminant::Int { "" } else { " as i32" };
                let refused =
                    format!("Err(xdr::Error::Value {{ name: \"default of {owner}\", found: *discriminant{cast} }})");
                encode += &format!(
                    "            {} if matches!(discriminant, {}) => {refused},\n",
                    pattern.replace(", value", ", _"),
                    taken.join(" | ")
                );
            }
            encode += &match default {
                Some(declaration) => format!(
                    "            {pattern} => {{\n                {}?;\n                {}\n            }}\n",
                    put("*discriminant"),
                    self.encode(declaration, &Place::reference("value"))
                ),
                None => format!("            {pattern} => {},\n", put("*discriminant")),
            };
        }
        encode += "        }";
        self.xdr(name, &encode, |generator| {
            let discriminant_of = generator.decode(&it.discriminant);
            let typed = discriminant_of == "input.value()";
            let read = if typed { format!("input.value::<{kind}>()?") } else { format!("{discriminant_of}?") };
            generator.line(2, &format!("Ok(match {read} {{"));
            for case in &cases {
                let content = case.declaration.map(|it| format!("({}?)", generator.decode(it))).unwrap_or_default();
                generator.line(3, &format!("{} => Self::{}{content},", case.rust, case.variant));
            }
            let complete = generator.complete(&discriminant, cases.len());
            match &it.default {
                _ if complete => {}
                Some(default) => {
                    let content = default.as_ref().map(|it| format!(", {}?", generator.decode(it))).unwrap_or_default();
                    generator.line(3, &format!("discriminant => Self::Default(discriminant{content}),"));
                }
                None => generator.no_case(owner, &discriminant),
            }
            generator.line(2, "})");
        });
    }

    /// Whether every value of the discriminant has a case.
    fn complete(&self, discriminant: &Discriminant, cases: usize) -> bool {
        match discriminant {
            Discriminant::Bool => cases == 2,
            Discriminant::Enum(name) => match self.model.type_named(name) {
                Some(Definition::Enum(it)) => it.members.len() == cases,
                _ => false,
            },
            Discriminant::Int | Discriminant::Unsigned => false,
        }
    }

    fn cases<'b>(&self, it: &'b Union, discriminant: &Discriminant) -> Vec<Case<'b>> {
        let mut cases = Vec::new();
        let mut scope = Scope::reserving(if it.default.is_some() { &[DEFAULT] } else { &[] });
        for arm in &it.arms {
            for label in &arm.labels {
                let value = self.model.value(label);
                let (variant, rust): (String, String) = match discriminant {
                    Discriminant::Bool if value == 0 => ("False".into(), "false".into()),
                    Discriminant::Bool => ("True".into(), "true".into()),
                    Discriminant::Enum(name) => {
                        let Some(Definition::Enum(members)) = self.model.type_named(name) else {
                            unreachable!("a checked union")
                        };
                        let member = self.model.member(members, value).expect("a checked union");
                        let variant = self.model.names.variant(&member.text);
                        (variant.to_owned(), self.model.names.number(&member.text).expect("a checked union"))
                    }
                    Discriminant::Int | Discriminant::Unsigned => {
                        let variant = if value < 0 { format!("CaseMinus{}", -value) } else { format!("Case{value}") };
                        (variant, value.to_string())
                    }
                };
                let variant = scope.give(variant);
                cases.push(Case { variant, rust, shown: shown::value(label), declaration: arm.declaration.as_ref() });
            }
        }
        cases
    }

    fn alias(&mut self, it: &Declaration) {
        self.line(0, &format!("/// `typedef {}`.", shown::declaration(it)));
        let kind = self.rust_type(it);
        self.line(0, &format!("pub type {} = {kind};", self.model.names.type_named(&it.name.text)));
    }

    fn derive(&mut self, name: &str) {
        let total = if self.model.holds_float(name) { "" } else { ", Eq" };
        self.line(0, &format!("#[derive(Debug, Clone, PartialEq{total})]"));
    }

    fn xdr(&mut self, name: &str, encode: &str, decode: impl FnOnce(&mut Self)) {
        self.line(0, "");
        self.line(0, &format!("impl Xdr for {name} {{"));
        self.line(1, "fn encode(&self, out: &mut Writer<'_>) -> Result<(), xdr::Error> {");
        self.line(2, encode);
        self.line(1, "}");
        self.line(0, "");
        self.line(1, "fn decode(input: &mut Reader<'_>) -> Result<Self, xdr::Error> {");
        decode(self);
        self.line(1, "}");
        self.line(0, "}");
    }

    fn no_value(&mut self, name: &str) {
        self.line(3, &format!("found => return Err(xdr::Error::Value {{ name: \"{name}\", found }}),"));
    }

    fn no_case(&mut self, name: &str, discriminant: &Discriminant) {
        let found = match discriminant {
            Discriminant::Int => "found".to_owned(),
            _ => "found: found as i32".to_owned(),
        };
        self.line(3, &format!("found => return Err(xdr::Error::Value {{ name: \"{name}\", {found} }}),"));
    }

    fn line(&mut self, depth: usize, text: &str) {
        if !text.is_empty() {
            self.out.extend(std::iter::repeat_n("    ", depth));
            self.out.push_str(text);
        }
        self.out.push('\n');
    }
}

/// One label of a union: a variant of its own.
struct Case<'a> {
    variant: String,
    /// The discriminant, in an expression or a pattern.
    rust: String,
    shown: String,
    declaration: Option<&'a Declaration>,
}
