//! What a file declares: definitions that refer to each other by [`DefId`].

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
    /// The name in the IDL, from which the name in Rust is made.
    pub(super) name: String,
    /// The name on the wire.
    pub(super) wire_name: String,
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
    Fixed { unscaled: i128, digits: u16, scale: i16 },
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

    /// What stands in a scope, in the order of declaration.
    pub(super) fn members(&self, scope: DefId) -> impl Iterator<Item = DefId> {
        (1..self.definitions.len()).map(DefId).filter(move |id| self.get(*id).parent == scope)
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

    /// The names from the global scope down to the definition.
    pub(super) fn path(&self, id: DefId) -> Vec<&str> {
        let mut path = Vec::new();
        let mut current = id;
        while current != GLOBAL {
            path.push(self.get(current).name.as_str());
            current = self.get(current).parent;
        }
        path.reverse();
        path
    }

    /// The interface and everything that it inherits, each once, bases first.
    pub(super) fn lineage(&self, id: DefId) -> Vec<DefId> {
        let mut lineage = Vec::new();
        self.add_lineage(id, &mut lineage);
        lineage
    }

    fn add_lineage(&self, id: DefId, lineage: &mut Vec<DefId>) {
        if lineage.contains(&id) {
            return;
        }
        if let Kind::Interface(interface) = &self.get(id).kind {
            interface.bases.iter().for_each(|base| self.add_lineage(*base, lineage));
        }
        lineage.push(id);
    }
}
