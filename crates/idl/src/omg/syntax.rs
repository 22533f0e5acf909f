//! What a file declares: definitions that refer to each other by [`DefId`].

use super::fixed::Fixed;
use crate::source::Location;

/// A definition in [`Specification::definitions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct DefId(pub(super) usize);

/// Everything that was declared. The first definition is the global scope, a module without a name.
#[derive(Debug)]
pub(super) struct Specification {
    pub(super) definitions: Vec<Definition>,
}

/// The global scope.
pub(super) const GLOBAL: DefId = DefId(0);

#[derive(Debug)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) repository_id: RepositoryId,
    pub(super) at: Location,
    pub(super) docs: Vec<String>,
    /// The module, interface, structure or union that it stands in.
    pub(super) parent: DefId,
    pub(super) kind: Kind,
}

/// A repository id: made of a prefix, the scoped name and a version, unless the file says what it is.
#[derive(Debug, Clone, Default)]
pub(super) struct RepositoryId {
    pub(super) prefix: String,
    pub(super) version: Option<String>,
    pub(super) explicit: Option<String>,
}

#[derive(Debug)]
pub(super) enum Kind {
    Module,
    Interface(Interface),
    Struct(Fields),
    Union(Union),
    Enum { members: Vec<DefId> },
    Enumerator { of: DefId, ordinal: u32 },
    Typedef(Type),
    Const { of: Type, value: Value },
    Exception(Fields),
}

#[derive(Debug, Default)]
pub(super) struct Interface {
    /// It has been declared, and not only announced.
    pub(super) complete: bool,
    /// It has no references that travel.
    pub(super) local: bool,
    pub(super) bases: Vec<DefId>,
    /// Everything that it inherits, each once, bases first.
    pub(super) inherited: Vec<DefId>,
    /// Attributes are operations too.
    pub(super) operations: Vec<Operation>,
}

#[derive(Debug, Default)]
pub(super) struct Fields {
    pub(super) complete: bool,
    pub(super) fields: Vec<Field>,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) of: Type,
    pub(super) docs: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Union {
    pub(super) complete: bool,
    pub(super) discriminator: Type,
    pub(super) cases: Vec<Case>,
}

#[derive(Debug)]
pub(super) struct Case {
    /// The labels; `None` is `default`.
    pub(super) labels: Vec<Option<Value>>,
    pub(super) field: Field,
}

#[derive(Debug, Clone)]
pub(super) struct Operation {
    /// The name in the IDL.
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) docs: Vec<String>,
    pub(super) at: Location,
    pub(super) oneway: bool,
    /// `None` is void.
    pub(super) result: Option<Type>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) raises: Vec<DefId>,
    /// The interface that declares it.
    pub(super) declared_in: DefId,
}

/// An attribute is one operation that returns it and, unless it can only be read, one that sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Operation,
    Getter,
    Setter,
}

impl Operation {
    /// The name on the wire.
    pub(super) fn wire_name(&self) -> String {
        match self.role {
            Role::Operation => self.name.clone(),
            Role::Getter => format!("_get_{}", self.name),
            Role::Setter => format!("_set_{}", self.name),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Parameter {
    pub(super) direction: Direction,
    pub(super) name: String,
    pub(super) of: Type,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    In,
    Out,
    InOut,
}

#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::enum_variant_names, reason = "TypeCode is what IDL calls it")]
pub(super) enum Type {
    Short,
    UShort,
    Long,
    ULong,
    LongLong,
    ULongLong,
    Float,
    Double,
    LongDouble,
    Boolean,
    Char,
    WChar,
    Octet,
    Any,
    TypeCode,
    Object,
    /// With its bound, or zero.
    String(u32),
    WString(u32),
    Fixed {
        digits: u16,
        scale: i16,
    },
    Sequence(Box<Type>, u32),
    Array(Box<Type>, u32),
    Named(DefId),
}

/// The value of a constant or of a label.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Integer(i128),
    Float(f64),
    Fixed(Fixed),
    Boolean(bool),
    Char(char),
    WChar(char),
    Text(String),
    WideText(String),
    Enumerator(DefId),
}

impl Specification {
    pub(super) fn get(&self, id: DefId) -> &Definition {
        &self.definitions[id.0]
    }

    /// Every definition but the global scope, in the order of declaration.
    pub(super) fn all(&self) -> impl Iterator<Item = DefId> {
        (1..self.definitions.len()).map(DefId)
    }

    /// What stands in a scope, in the order of declaration.
    pub(super) fn members(&self, scope: DefId) -> impl Iterator<Item = DefId> {
        self.all().filter(move |id| self.get(*id).parent == scope)
    }

    /// The type behind all its other names.
    pub(super) fn unaliased<'a>(&'a self, mut of: &'a Type) -> &'a Type {
        while let Type::Named(id) = of {
            match &self.get(*id).kind {
                Kind::Typedef(original) => of = original,
                _ => break,
            }
        }
        of
    }

    /// How many labels a union of this discriminator can have, where they are few.
    pub(super) fn label_count(&self, discriminator: &Type) -> Option<usize> {
        match self.unaliased(discriminator) {
            Type::Boolean => Some(2),
            Type::Named(id) => match &self.get(*id).kind {
                Kind::Enum { members } => Some(members.len()),
                _ => None,
            },
            _ => None,
        }
    }

    /// The scoped name, such as `CosNaming::NamingContext`.
    pub(super) fn scoped_name(&self, id: DefId) -> String {
        self.path(id).join("::")
    }

    /// The repository id.
    pub(super) fn repository_id(&self, id: DefId) -> String {
        let RepositoryId { prefix, version, explicit } = &self.get(id).repository_id;
        if let Some(explicit) = explicit {
            return explicit.clone();
        }
        let slash = if prefix.is_empty() { "" } else { "/" };
        let version = version.as_deref().unwrap_or("1.0");
        format!("IDL:{prefix}{slash}{}:{version}", self.path(id).join("/"))
    }

    /// The scopes from the one right below the global scope down to the definition, which is the last.
    pub(super) fn scopes(&self, id: DefId) -> Vec<DefId> {
        let mut scopes = Vec::new();
        let mut current = id;
        while current != GLOBAL {
            scopes.push(current);
            current = self.get(current).parent;
        }
        scopes.reverse();
        scopes
    }

    /// The names from the global scope down to the definition.
    fn path(&self, id: DefId) -> Vec<&str> {
        self.scopes(id).into_iter().map(|id| self.get(id).name.as_str()).collect()
    }

    /// What an interface inherits, each once, bases first, and the interface itself.
    pub(super) fn lineage(&self, id: DefId) -> impl DoubleEndedIterator<Item = DefId> {
        let inherited = match &self.get(id).kind {
            Kind::Interface(interface) => interface.inherited.as_slice(),
            _ => &[],
        };
        inherited.iter().copied().chain([id])
    }
}
