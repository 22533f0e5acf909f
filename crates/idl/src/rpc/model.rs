//! A file in which every name is known, every number has its value, and every type has a size.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::names::Names;
use super::syntax::{Base, Declaration, Definition, Enum, Name, Scalar, Shape, Union, Value};

/// A checked file.
pub struct Model {
    pub definitions: Vec<Definition>,
    pub(super) types: HashMap<String, usize>,
    /// The values of constants and of members of enumerations.
    pub(super) numbers: HashMap<String, i128>,
    pub names: Names,
    /// Which types a type contains, in any way.
    pub(super) contains: BTreeMap<String, BTreeSet<String>>,
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

    pub(super) fn number(&self, value: &Value) -> Option<i128> {
        match value {
            Value::Number(number, _) => Some(*number),
            Value::Name(name) => match (self.numbers.get(&name.text), name.text.as_str()) {
                (Some(number), _) => Some(*number),
                (None, "TRUE") => Some(1),
                (None, "FALSE") => Some(0),
                (None, _) => None,
            },
        }
    }

    /// How Rust writes a number.
    pub fn rust(&self, value: &Value) -> String {
        match value {
            Value::Name(name) => self.names.number(&name.text).unwrap_or_else(|| self.value(value).to_string()),
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
        members.members.iter().map(|(name, _)| name).find(|name| self.member_value(name) == value)
    }

    pub fn member_value(&self, member: &Name) -> i128 {
        self.numbers.get(&member.text).copied().unwrap_or_default()
    }
}

/// Every declaration in a definition of a type.
pub(super) fn declarations(definition: &Definition) -> Vec<&Declaration> {
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
