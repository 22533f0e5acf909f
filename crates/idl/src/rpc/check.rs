//! Syntax to a [`Model`], or messages about what is wrong.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::model::{Discriminant, Model, declarations};
use super::names::Names;
use super::syntax::{Base, Declaration, Definition, Enum, Name, Shape, Union, Value, Version};
use crate::source::{Diagnostics, Location};

/// How many typedefs may stand for each other.
const MAX_TYPEDEFS: usize = 64;

pub fn check(definitions: Vec<Definition>, diagnostics: &mut Diagnostics) -> Model {
    let definitions = without_identities(definitions, diagnostics);
    let model = Model {
        definitions,
        types: HashMap::new(),
        numbers: HashMap::new(),
        names: Names::default(),
        contains: BTreeMap::new(),
    };
    let mut check = Check { model, diagnostics };
    check.names();
    check.numbers();
    if check.diagnostics.failed() {
        return check.model;
    }
    let definitions = check.model.definitions.clone();
    for definition in &definitions {
        check.definition(definition);
    }
    if !check.diagnostics.failed() {
        check.recursion();
    }
    if !check.diagnostics.failed() {
        check.model.names = Names::of(&definitions, &|value| check.model.value(value));
    }
    check.model
}

/// Leaves out `typedef struct a a`, which C needs so that the word `struct` can be left out.
fn without_identities(mut definitions: Vec<Definition>, diagnostics: &mut Diagnostics) -> Vec<Definition> {
    let is_identity = |definition: &Definition| match definition {
        Definition::Typedef(it) => {
            matches!(&it.base, Base::Named(name) if *name == it.name.text) && matches!(it.shape, Shape::One)
        }
        _ => false,
    };
    let defines = |definition: &Definition| !matches!(definition, Definition::Const(_) | Definition::Program(_));
    let defined = definitions.iter().filter(|it| defines(it) && !is_identity(it));
    let defined: BTreeSet<String> = defined.map(|it| it.name().text.clone()).collect();
    definitions.retain(|definition| {
        let Name { text, at } = definition.name();
        if !is_identity(definition) {
            return true;
        }
        match defined.contains(text) {
            true => diagnostics.warning(at, format!("`typedef {text} {text}` says nothing new and is ignored")),
            false => diagnostics.error(at, format!("`{text}` is defined as itself and as nothing else")),
        }
        false
    });
    definitions
}

struct Check<'a> {
    model: Model,
    diagnostics: &'a mut Diagnostics,
}

impl Check<'_> {
    fn names(&mut self) {
        let mut types = Unique::new("type");
        for (index, definition) in self.model.definitions.iter().enumerate() {
            if !matches!(definition, Definition::Const(_) | Definition::Program(_)) {
                let name = definition.name();
                types.add(name, self.diagnostics);
                self.model.types.insert(name.text.clone(), index);
            }
        }
    }

    /// Gives every constant and every member its value; they may stand in any order.
    fn numbers(&mut self) {
        struct Pending<'a> {
            name: &'a Name,
            value: Option<&'a Value>,
            /// The member before, for one without a value.
            before: Option<&'a Name>,
        }
        let definitions = std::mem::take(&mut self.model.definitions);
        let mut pending = Vec::new();
        for definition in &definitions {
            match definition {
                Definition::Const(it) => {
                    pending.push(Pending { name: &it.name, value: Some(&it.value), before: None });
                }
                Definition::Enum(it) => {
                    let mut before = None;
                    for (name, value) in &it.members {
                        pending.push(Pending { name, value: value.as_ref(), before });
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
                    (None, Some(before)) => self.model.numbers.get(&before.text).map(|number| number + 1),
                    (None, None) => Some(0),
                };
                let found = value.is_some();
                if let Some(value) = value {
                    self.model.numbers.insert(it.name.text.clone(), value);
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
                    fields.add(&field.name, self.diagnostics);
                }
            }
            Definition::Union(it) => self.union(it),
            Definition::Typedef(it) => self.typedef(it),
            Definition::Program(it) => {
                self.in_range(&it.number, 0, u32::MAX.into(), "the number of a program");
                let mut numbers = HashMap::new();
                let mut versions = Unique::new("version");
                for version in &it.versions {
                    versions.add(&version.name, self.diagnostics);
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
            unique.add(&procedure.name, self.diagnostics);
            self.in_range(&procedure.number, 0, u32::MAX.into(), "the number of a procedure");
            self.same_number(&mut numbers, &procedure.name, &procedure.number);
            for declaration in procedure.result.iter().chain(&procedure.arguments) {
                self.declaration(declaration);
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

    fn typedef(&mut self, it: &Declaration) {
        let mut inner = it;
        for _ in 0..MAX_TYPEDEFS {
            let Base::Named(name) = &inner.base else { return };
            match self.model.type_named(name) {
                Some(Definition::Typedef(next)) => inner = next,
                _ => return,
            }
        }
        // One that contains itself gets a message of its own.
        if inner.name.text != it.name.text {
            let message = format!("more than {MAX_TYPEDEFS} typedefs stand for each other, or they have no end");
            self.diagnostics.error(&it.name.at, message);
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
            closed(&edges)
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
fn closed(edges: &BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, BTreeSet<String>> {
    let reached = |from: &String| {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(name) = open.pop() {
            open.extend(edges.get(name).into_iter().flatten().filter(|next| reached.insert((*next).clone())));
        }
        reached
    };
    edges.keys().map(|name| (name.clone(), reached(name))).collect()
}

/// Names that must differ.
struct Unique {
    what: &'static str,
    seen: HashMap<String, Location>,
}

impl Unique {
    fn new(what: &'static str) -> Self {
        Self { what, seen: HashMap::new() }
    }

    fn add(&mut self, name: &Name, diagnostics: &mut Diagnostics) {
        if let Some(at) = self.seen.get(&name.text) {
            diagnostics.error(&name.at, format!("{} `{}` is already defined at {at}", self.what, name.text));
        } else {
            self.seen.insert(name.text.clone(), name.at.clone());
        }
    }
}
