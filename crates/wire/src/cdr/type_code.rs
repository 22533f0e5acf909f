//! Descriptions of types that travel with values.

use std::sync::Arc;

use super::{Cdr, WChar, WString};

/// The description of a type.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TypeCode {
    /// No type; the type of an `any` that holds nothing.
    Null,
    /// No value.
    Void,
    /// `short`
    Short,
    /// `long`
    Long,
    /// `unsigned short`
    UShort,
    /// `unsigned long`
    ULong,
    /// `float`
    Float,
    /// `double`
    Double,
    /// `boolean`
    Boolean,
    /// `char`
    Char,
    /// `octet`
    Octet,
    /// `any`
    Any,
    /// `CORBA::TypeCode`
    TypeCode,
    /// A reference to an object of this interface.
    ObjectReference(Arc<Named>),
    /// `struct`
    Struct(Arc<Structure>),
    /// `union`
    Union(Arc<Union>),
    /// `enum`
    Enum(Arc<Enumeration>),
    /// `string`, with its bound, or zero.
    String(u32),
    /// `sequence`, with its bound, or zero.
    Sequence(Arc<TypeCode>, u32),
    /// An array of this length; arrays of several dimensions are arrays of arrays.
    Array(Arc<TypeCode>, u32),
    /// `typedef`
    Alias(Arc<Alias>),
    /// `exception`
    Exception(Arc<Structure>),
    /// `long long`
    LongLong,
    /// `unsigned long long`
    ULongLong,
    /// `long double`
    LongDouble,
    /// `wchar`
    WChar,
    /// `wstring`, with its bound, or zero.
    WString(u32),
    /// `fixed`
    Fixed {
        /// The number of digits.
        digits: u16,
        /// How many of them stand behind the point.
        scale: i16,
    },
    /// The enclosing structure or union with this repository id.
    Recursive(Arc<str>),
}

/// The repository id and the name of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The repository id, such as `IDL:CosNaming/Name:1.0`.
    pub id: Arc<str>,
    /// The name within its scope.
    pub name: Arc<str>,
}

/// A structure or an exception.
#[derive(Debug, Clone, PartialEq)]
pub struct Structure {
    /// Which one it is.
    pub named: Named,
    /// Its members in order.
    pub members: Vec<Member>,
}

/// A member of a structure.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Its name.
    pub name: Arc<str>,
    /// Its type.
    pub type_code: TypeCode,
}

/// A union.
#[derive(Debug, Clone, PartialEq)]
pub struct Union {
    /// Which one it is.
    pub named: Named,
    /// The type of its discriminator.
    pub discriminator: TypeCode,
    /// Its members, one for every label.
    pub members: Vec<UnionMember>,
    /// Which member is for all other labels.
    pub default: Option<usize>,
}

/// A member of a union under one of its labels.
#[derive(Debug, Clone, PartialEq)]
pub struct UnionMember {
    /// The discriminator that selects it, as a number.
    pub label: i64,
    /// The member.
    pub member: Member,
}

/// An enumeration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enumeration {
    /// Which one it is.
    pub named: Named,
    /// The names of its members in order.
    pub members: Vec<Arc<str>>,
}

/// Another name of a type.
#[derive(Debug, Clone, PartialEq)]
pub struct Alias {
    /// The other name.
    pub named: Named,
    /// The type.
    pub original: TypeCode,
}

impl Named {
    /// A repository id and a name.
    #[must_use]
    pub fn new(id: &str, name: &str) -> Self {
        Self { id: id.into(), name: name.into() }
    }
}

/// The structures and unions that a type code is being made within.
#[derive(Debug, Default)]
pub struct Path(Vec<&'static str>);

impl Path {
    /// What `make` makes, or a reference to the enclosing type if `id` is already being made.
    pub fn enter(&mut self, id: &'static str, make: impl FnOnce(&mut Self) -> TypeCode) -> TypeCode {
        if self.0.contains(&id) {
            return TypeCode::Recursive(id.into());
        }
        self.0.push(id);
        let type_code = make(self);
        self.0.pop();
        type_code
    }
}

/// A type that has a type code, so that an [`super::Any`] can hold its values.
pub trait Typed: Cdr {
    /// The type code, within the types of `path`.
    fn type_code_in(path: &mut Path) -> TypeCode;

    /// The type code.
    #[must_use]
    fn type_code() -> TypeCode {
        Self::type_code_in(&mut Path::default())
    }
}

impl TypeCode {
    /// The type code of a structure.
    #[must_use]
    pub fn structure(id: &str, name: &str, members: Vec<(&str, TypeCode)>) -> Self {
        Self::Struct(Arc::new(Structure::new(id, name, members)))
    }

    /// The type code of an exception.
    #[must_use]
    pub fn exception(id: &str, name: &str, members: Vec<(&str, TypeCode)>) -> Self {
        Self::Exception(Arc::new(Structure::new(id, name, members)))
    }

    /// The type code of an enumeration.
    #[must_use]
    pub fn enumeration(id: &str, name: &str, members: &[&str]) -> Self {
        let members = members.iter().map(|&member| member.into()).collect();
        Self::Enum(Arc::new(Enumeration { named: Named::new(id, name), members }))
    }

    /// The type code of a union. A member is (label, name, type).
    #[must_use]
    pub fn union(
        id: &str,
        name: &str,
        discriminator: TypeCode,
        default: Option<usize>,
        members: Vec<(i64, &str, TypeCode)>,
    ) -> Self {
        let members = members
            .into_iter()
            .map(|(label, name, type_code)| UnionMember { label, member: Member { name: name.into(), type_code } })
            .collect();
        Self::Union(Arc::new(Union { named: Named::new(id, name), discriminator, members, default }))
    }

    /// The type code of an object reference.
    #[must_use]
    pub fn reference(id: &str, name: &str) -> Self {
        Self::ObjectReference(Arc::new(Named::new(id, name)))
    }

    /// The type behind all its other names.
    #[must_use]
    pub fn unaliased(&self) -> &Self {
        let mut current = self;
        while let Self::Alias(alias) = current {
            current = &alias.original;
        }
        current
    }

    /// Whether values of both types have the same encoding and the same meaning (CORBA 3.3 §8.11).
    ///
    /// Names are ignored where both sides have a repository id, and so are aliases.
    #[must_use]
    pub fn equivalent(&self, other: &Self) -> bool {
        use TypeCode as T;
        match (self.unaliased(), other.unaliased()) {
            (T::ObjectReference(a), T::ObjectReference(b)) => a.id == b.id,
            (T::Recursive(a), T::Recursive(b)) => a == b,
            (T::Recursive(id), named) | (named, T::Recursive(id)) => named.id() == Some(id),
            (T::Struct(a), T::Struct(b)) | (T::Exception(a), T::Exception(b)) => same_id(&a.named, &b.named)
                .unwrap_or_else(|| all_pairs(&a.members, &b.members, |a, b| a.type_code.equivalent(&b.type_code))),
            (T::Union(a), T::Union(b)) => same_id(&a.named, &b.named).unwrap_or_else(|| {
                a.discriminator.equivalent(&b.discriminator)
                    && a.default == b.default
                    && all_pairs(&a.members, &b.members, |a, b| {
                        a.label == b.label && a.member.type_code.equivalent(&b.member.type_code)
                    })
            }),
            (T::Enum(a), T::Enum(b)) => {
                same_id(&a.named, &b.named).unwrap_or_else(|| a.members.len() == b.members.len())
            }
            (T::Sequence(a, bound_a), T::Sequence(b, bound_b)) => bound_a == bound_b && a.equivalent(b),
            (T::Array(a, length_a), T::Array(b, length_b)) => length_a == length_b && a.equivalent(b),
            (a, b) => a == b,
        }
    }

    /// The repository id, if the type has one.
    #[must_use]
    pub fn id(&self) -> Option<&Arc<str>> {
        Some(match self {
            Self::ObjectReference(named) => &named.id,
            Self::Struct(it) | Self::Exception(it) => &it.named.id,
            Self::Union(it) => &it.named.id,
            Self::Enum(it) => &it.named.id,
            Self::Alias(it) => &it.named.id,
            Self::Recursive(id) => id,
            _ => return None,
        })
    }
}

impl Structure {
    fn new(id: &str, name: &str, members: Vec<(&str, TypeCode)>) -> Self {
        let members = members.into_iter().map(|(name, type_code)| Member { name: name.into(), type_code }).collect();
        Self { named: Named::new(id, name), members }
    }
}

/// Whether both have one repository id; `None` if a side does not say.
fn same_id(a: &Named, b: &Named) -> Option<bool> {
    if a.id.is_empty() || b.id.is_empty() { None } else { Some(a.id == b.id) }
}

fn all_pairs<T>(a: &[T], b: &[T], same: impl Fn(&T, &T) -> bool) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
}

macro_rules! basic {
    ($($type:ty => $code:expr),* $(,)?) => {$(
        impl Typed for $type {
            fn type_code_in(_: &mut Path) -> TypeCode {
                $code
            }
        }
    )*};
}

basic! {
    () => TypeCode::Void,
    i16 => TypeCode::Short,
    i32 => TypeCode::Long,
    i64 => TypeCode::LongLong,
    u16 => TypeCode::UShort,
    u32 => TypeCode::ULong,
    u64 => TypeCode::ULongLong,
    f32 => TypeCode::Float,
    f64 => TypeCode::Double,
    bool => TypeCode::Boolean,
    char => TypeCode::Char,
    u8 => TypeCode::Octet,
    WChar => TypeCode::WChar,
    String => TypeCode::String(0),
    WString => TypeCode::WString(0),
    TypeCode => TypeCode::TypeCode,
}

impl<T: Typed> Typed for Vec<T> {
    fn type_code_in(path: &mut Path) -> TypeCode {
        TypeCode::Sequence(Arc::new(T::type_code_in(path)), 0)
    }
}

impl<T: Typed> Typed for Box<T> {
    fn type_code_in(path: &mut Path) -> TypeCode {
        T::type_code_in(path)
    }
}

impl<T: Typed, const N: usize> Typed for [T; N] {
    fn type_code_in(path: &mut Path) -> TypeCode {
        TypeCode::Array(Arc::new(T::type_code_in(path)), u32::try_from(N).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_names_do_not_matter() {
        let alias = Alias { named: Named::new("IDL:Text:1.0", "Text"), original: TypeCode::String(0) };
        assert!(TypeCode::Alias(Arc::new(alias)).equivalent(&TypeCode::String(0)));
        assert!(!TypeCode::String(1).equivalent(&TypeCode::String(0)));
        let named = TypeCode::structure("IDL:S:1.0", "S", vec![("a", TypeCode::Long)]);
        let nameless = TypeCode::structure("", "", vec![("", TypeCode::Long)]);
        assert!(named.equivalent(&nameless));
        assert!(!named.equivalent(&TypeCode::structure("", "", vec![("", TypeCode::Short)])));
    }
}
