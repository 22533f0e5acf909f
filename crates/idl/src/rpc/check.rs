//! Syntax to a model in which every name is known, every number has its value, and every type has a size.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::names;
use super::syntax::{Base, Declaration, Definition, Enum, Name, Scalar, Shape, Union, Value, Version};
use crate::source::{Diagnostics, Location};

/// A checked file.
pub struct Model {
    pub definitions: Vec<Definition>,
    types: HashMap<String, usize>,
    numbers: HashMap<String, Number>,
    /// Which types a type contains, in any way.
    contains: BTreeMap<String, BTreeSet<String>>,
}

/// A constant or a member of an enumeration.
struct Number {
    value: i128,
    /// How Rust names it.
    rust: String,
}

/// What a union is switched by.
#[derive(Debug, Clone, PartialEq)]
pub enum Discriminant {
    Int,
    Unsigned,
    Bool,
    Enum(String),
}

impl Model {
    pub fn type_named(&self, name: &str) -> Option<&Definition> {
        self.types.get(name).map(|index| &self.definitions[*index])
    }

    /// The value of a number that was checked.
    pub fn value(&self, value: &Value) -> i128 {
        self.number(value).unwrap_or_default()
    }

    fn number(&self, value: &Value) -> Option<i128> {
        match value {
            Value::Number(number, _) => Some(*number),
            Value::Name(name) => match (self.numbers.get(&name.text), name.text.as_str()) {
                (Some(number), _) => Some(number.value),
                (None, "TRUE") => Some(1),
                (None, "FALSE") => Some(0),
                (None, _) => None,
            },
        }
    }

    /// How Rust writes a number.
    pub fn rust(&self, value: &Value) -> String {
        match value {
            Value::Name(name) => match self.numbers.get(&name.text) {
                Some(number) => number.rust.clone(),
                None => self.value(value).to_string(),
            },
            Value::Number(number, _) => number.to_string(),
        }
    }

    /// Whether a value of a type can contain others of that type.
    pub fn recursive(&self, name: &str) -> bool {
        self.contains.get(name).is_some_and(|contained| contained.contains(name))
    }

    /// Whether a type holds a floating-point number, which has no total equality.
    pub fn holds_float(&self, name: &str) -> bool {
        let direct = |name: &str| {
            let float = |declaration: &Declaration| matches!(declaration.base, Base::Scalar(Scalar::F32 | Scalar::F64));
            self.type_named(name).is_some_and(|definition| declarations(definition).into_iter().any(float))
        };
        direct(name) || self.contains.get(name).is_some_and(|contained| contained.iter().any(|name| direct(name)))
    }

    pub fn discriminant(&self, union: &Union) -> Option<Discriminant> {
        let mut declaration = &union.discriminant;
        // A chain of typedefs is not longer than the file.
        for _ in 0..=self.definitions.len() {
            match (&declaration.base, &declaration.shape) {
                (Base::Scalar(Scalar::I32), Shape::One) => return Some(Discriminant::Int),
                (Base::Scalar(Scalar::U32), Shape::One) => return Some(Discriminant::Unsigned),
                (Base::Scalar(Scalar::Bool), Shape::One) => return Some(Discriminant::Bool),
                (Base::Named(name), Shape::One) => match self.type_named(name)? {
                    Definition::Enum(_) => return Some(Discriminant::Enum(name.clone())),
                    Definition::Typedef(inner) => declaration = inner,
                    _ => return None,
                },
                _ => return None,
            }
        }
        None
    }

    /// The member of an enumeration with a value.
    pub fn member<'a>(&self, members: &'a Enum, value: i128) -> Option<&'a Name> {
        members.members.iter().map(|(name, _)| name).find(|name| self.numbers[&name.text].value == value)
    }

    pub fn member_value(&self, member: &Name) -> i128 {
        self.numbers.get(&member.text).map_or(0, |number| number.value)
    }
}

pub fn check(definitions: Vec<Definition>, diagnostics: &mut Diagnostics) -> Model {
    let model = Model { definitions, types: HashMap::new(), numbers: HashMap::new(), contains: BTreeMap::new() };
    let mut check = Check { model, diagnostics };
    check.names();
    check.numbers();
    if check.diagnostics.failed() {
        return check.model;
    }
    let definitions = std::mem::take(&mut check.model.definitions);
    check.model.definitions = definitions.clone();
    for definition in &definitions {
        check.definition(definition);
    }
    if !check.diagnostics.failed() {
        check.recursion();
    }
    check.model
}

struct Check<'a> {
    model: Model,
    diagnostics: &'a mut Diagnostics,
}

/// Every declaration in a definition of a type.
fn declarations(definition: &Definition) -> Vec<&Declaration> {
    match definition {
        Definition::Const(_) | Definition::Enum(_) | Definition::Program(_) => Vec::new(),
        Definition::Typedef(it) => vec![it],
        Definition::Struct(it) => it.fields.iter().collect(),
        Definition::Union(it) => {
            let arms = it.arms.iter().filter_map(|arm| arm.declaration.as_ref());
            std::iter::once(&it.discriminant).chain(arms).chain(it.default.iter().flatten()).collect()
        }
    }
}

impl Check<'_> {
    fn names(&mut self) {
        let mut types = Unique::new("type");
        let mut numbers = Unique::new("constant");
        for (index, definition) in self.model.definitions.iter().enumerate() {
            let name = definition.name();
            match definition {
                Definition::Const(_) => numbers.add(name, names::constant_name(&name.text), self.diagnostics),
                Definition::Program(program) => {
                    for version in &program.versions {
                        types.add(&version.name, names::type_name(&version.name.text), self.diagnostics);
                    }
                }
                _ => {
                    types.add(name, names::type_name(&name.text), self.diagnostics);
                    self.model.types.insert(name.text.clone(), index);
                }
            }
        }
    }

    /// Gives every constant and every member its value; they may stand in any order.
    fn numbers(&mut self) {
        struct Pending<'a> {
            name: &'a Name,
            rust: String,
            value: Option<&'a Value>,
            /// The member before, for one without a value.
            before: Option<&'a Name>,
        }
        let definitions = std::mem::take(&mut self.model.definitions);
        let mut pending = Vec::new();
        for definition in &definitions {
            match definition {
                Definition::Const(it) => {
                    let rust = names::constant_name(&it.name.text);
                    pending.push(Pending { name: &it.name, rust, value: Some(&it.value), before: None });
                }
                Definition::Enum(it) => {
                    let of = names::type_name(&it.name.text);
                    let mut unique = Unique::new("value");
                    let mut before = None;
                    for (name, value) in &it.members {
                        let variant = names::variant_name(&name.text);
                        unique.add(name, variant.clone(), self.diagnostics);
                        pending.push(Pending { name, rust: format!("{of}::{variant}"), value: value.as_ref(), before });
                        before = Some(name);
                    }
                }
                _ => {}
            }
        }
        let mut seen = HashMap::new();
        for Pending { name, .. } in &pending {
            if let Some(first) = seen.insert(name.text.clone(), name.at.clone()) {
                self.diagnostics.error(&name.at, format!("constant `{}` is already defined at {first}", name.text));
            }
        }
        loop {
            let known = self.model.numbers.len();
            pending.retain(|it| {
                let value = match (it.value, it.before) {
                    (Some(value), _) => self.model.number(value),
                    (None, Some(before)) => self.model.numbers.get(&before.text).map(|number| number.value + 1),
                    (None, None) => Some(0),
                };
                let found = value.is_some();
                if let Some(value) = value {
                    self.model.numbers.insert(it.name.text.clone(), Number { value, rust: it.rust.clone() });
                }
                !found
            });
            if self.model.numbers.len() == known {
                break;
            }
        }
        for Pending { name, value, .. } in pending {
            if let Some(value @ Value::Name(wanted)) = value {
                let circular = seen.contains_key(&wanted.text);
                let message = if circular {
                    format!("the value of `{}` depends on itself or on an unknown constant", name.text)
                } else {
                    format!("there is no constant `{}`", wanted.text)
                };
                self.diagnostics.error(value.at(), message);
            }
        }
        self.model.definitions = definitions;
    }

    fn definition(&mut self, definition: &Definition) {
        for declaration in declarations(definition) {
            self.declaration(declaration);
        }
        match definition {
            Definition::Const(it) => {
                let fits = i128::from(i64::MIN)..=i128::from(u64::MAX);
                if !fits.contains(&self.model.value(&it.value)) {
                    self.diagnostics.error(it.value.at(), "the value does not fit into 64 bits");
                }
            }
            Definition::Enum(it) => self.enumeration(it),
            Definition::Struct(it) => {
                let mut fields = Unique::new("member");
                for field in &it.fields {
                    fields.add(&field.name, names::field_name(&field.name.text), self.diagnostics);
                }
            }
            Definition::Union(it) => self.union(it),
            Definition::Typedef(_) => {}
            Definition::Program(it) => {
                self.in_range(&it.number, 0, u32::MAX.into(), "the number of a program");
                let mut numbers = HashMap::new();
                for version in &it.versions {
                    self.in_range(&version.number, 0, u32::MAX.into(), "the number of a version");
                    self.same_number(&mut numbers, &version.name, &version.number);
                    self.version(version);
                }
            }
        }
    }

    fn version(&mut self, version: &Version) {
        let mut unique = Unique::new("procedure");
        let mut numbers = HashMap::new();
        for procedure in &version.procedures {
            unique.add(&procedure.name, names::field_name(&procedure.name.text), self.diagnostics);
            self.in_range(&procedure.number, 0, u32::MAX.into(), "the number of a procedure");
            self.same_number(&mut numbers, &procedure.name, &procedure.number);
            for declaration in procedure.result.iter().chain(&procedure.arguments) {
                self.declaration(declaration);
            }
            let name = names::field_name(&procedure.name.text);
            if ["new", "connect", "client"].contains(&name.as_str()) || name.starts_with("begin_") {
                self.diagnostics.error(&procedure.name.at, format!("`{name}` is a name that every client has already"));
            }
            if name == "null" && self.model.value(&procedure.number) != 0 {
                self.diagnostics.error(&procedure.name.at, "only procedure 0 can be called `null`");
            }
        }
    }

    fn same_number(&mut self, numbers: &mut HashMap<i128, String>, name: &Name, number: &Value) {
        let value = self.model.value(number);
        if let Some(other) = numbers.insert(value, name.text.clone()) {
            self.diagnostics.error(number.at(), format!("`{}` and `{other}` have the same number {value}", name.text));
        }
    }

    fn enumeration(&mut self, it: &Enum) {
        let mut values = HashMap::new();
        for (name, _) in &it.members {
            let value = self.model.member_value(name);
            if i32::try_from(value).is_err() {
                self.diagnostics
                    .error(&name.at, format!("`{}` is {value}, which does not fit into 32 bits", name.text));
            }
            if let Some(other) = values.insert(value, name.text.clone()) {
                self.diagnostics.error(&name.at, format!("`{}` has the value of `{other}`", name.text));
            }
        }
    }

    fn union(&mut self, it: &Union) {
        let Some(discriminant) = self.model.discriminant(it) else {
            let at = &it.discriminant.name.at;
            self.diagnostics.error(at, "a discriminant is an int, an unsigned int, a bool or an enumeration");
            return;
        };
        if it.arms.is_empty() && it.default.is_none() {
            self.diagnostics.error(&it.name.at, format!("union `{}` has no arm", it.name.text));
        }
        let mut values = BTreeSet::new();
        for label in it.arms.iter().flat_map(|arm| &arm.labels) {
            let Some(value) = self.model.number(label) else {
                self.known(label);
                continue;
            };
            if !values.insert(value) {
                self.diagnostics.error(label.at(), format!("a second case for {value}"));
            }
            let fits = match &discriminant {
                Discriminant::Int => i32::try_from(value).is_ok(),
                Discriminant::Unsigned => u32::try_from(value).is_ok(),
                Discriminant::Bool => (0..=1).contains(&value),
                Discriminant::Enum(name) => match self.model.type_named(name) {
                    Some(Definition::Enum(members)) => self.model.member(members, value).is_some(),
                    _ => false,
                },
            };
            if !fits {
                let text = &it.discriminant.name.text;
                self.diagnostics.error(label.at(), format!("discriminant `{text}` is never {value}"));
            }
        }
    }

    fn declaration(&mut self, it: &Declaration) {
        if let Base::Named(name) = &it.base
            && self.model.type_named(name).is_none()
        {
            self.diagnostics.error(&it.name.at, format!("there is no type `{name}`"));
        }
        match &it.shape {
            Shape::Fixed(length) => self.in_range(length, 1, 1 << 24, "a fixed length"),
            Shape::Variable(Some(limit)) => self.in_range(limit, 0, u32::MAX.into(), "a limit"),
            _ => {}
        }
    }

    fn in_range(&mut self, value: &Value, low: i128, high: i128, what: &str) {
        if self.known(value) && !(low..=high).contains(&self.model.value(value)) {
            let found = self.model.value(value);
            self.diagnostics.error(value.at(), format!("{what} is from {low} to {high}, not {found}"));
        }
    }

    fn known(&mut self, value: &Value) -> bool {
        let known = self.model.number(value).is_some();
        if let (false, Value::Name(name)) = (known, value) {
            self.diagnostics.error(&name.at, format!("there is no constant `{}`", name.text));
        }
        known
    }

    /// Finds which types contain which, and refuses those that contain themselves without a way out.
    fn recursion(&mut self) {
        let edges = |wanted: &dyn Fn(&Definition, &Declaration) -> bool| {
            let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
            for definition in &self.model.definitions {
                for declaration in declarations(definition).into_iter().filter(|it| wanted(definition, it)) {
                    if let Base::Named(inner) = &declaration.base {
                        edges.entry(definition.name().text.clone()).or_default().insert(inner.clone());
                    }
                }
            }
            closed(edges)
        };
        let inside = edges(&|_, it| matches!(it.shape, Shape::One | Shape::Fixed(_)));
        let aliases = edges(&|definition, _| matches!(definition, Definition::Typedef(_)));
        self.model.contains = edges(&|_, _| true);
        for definition in &self.model.definitions {
            let name = definition.name();
            let in_itself = |edges: &BTreeMap<String, BTreeSet<String>>| {
                edges.get(&name.text).is_some_and(|contained| contained.contains(&name.text))
            };
            if in_itself(&inside) || in_itself(&aliases) {
                self.diagnostics.error(&name.at, format!("a `{}` contains itself and so has no end", name.text));
            }
        }
    }
}

/// Everything that can be reached from each type.
fn closed(mut edges: BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, BTreeSet<String>> {
    loop {
        let mut grown = edges.clone();
        for reached in grown.values_mut() {
            let further: Vec<String> = reached.iter().filter_map(|name| edges.get(name)).flatten().cloned().collect();
            reached.extend(further);
        }
        if grown == edges {
            return edges;
        }
        edges = grown;
    }
}

/// Names that must differ, in the file and in Rust.
struct Unique {
    what: &'static str,
    seen: HashMap<String, (String, Location)>,
}

impl Unique {
    fn new(what: &'static str) -> Self {
        Self { what, seen: HashMap::new() }
    }

    fn add(&mut self, name: &Name, rust: String, diagnostics: &mut Diagnostics) {
        let Unique { what, seen } = self;
        if let Some((other, at)) = seen.get(&rust) {
            let text = &name.text;
            let message = if other == text {
                format!("{what} `{text}` is already defined at {at}")
            } else {
                format!("{what} `{text}` would be `{rust}` in Rust, as `{other}` at {at}")
            };
            diagnostics.error(&name.at, message);
        } else {
            seen.insert(rust, (name.text.clone(), name.at.clone()));
        }
    }
}
