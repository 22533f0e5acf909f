//! What a `.x` file says, as the parser finds it.

use crate::source::Location;

/// A name and where it stands.
#[derive(Debug, Clone)]
pub struct Name {
    pub text: String,
    pub at: Location,
}

#[derive(Debug, Clone)]
pub enum Definition {
    Const(Const),
    Enum(Enum),
    Struct(Struct),
    Union(Box<Union>),
    Typedef(Declaration),
    Program(Program),
}

impl Definition {
    pub fn name(&self) -> &Name {
        match self {
            Definition::Const(it) => &it.name,
            Definition::Enum(it) => &it.name,
            Definition::Struct(it) => &it.name,
            Definition::Union(it) => &it.name,
            Definition::Typedef(it) => &it.name,
            Definition::Program(it) => &it.name,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Const {
    pub name: Name,
    pub value: Value,
}

/// A number, or the name of one.
#[derive(Debug, Clone)]
pub enum Value {
    Number(i128, Location),
    Name(Name),
}

impl Value {
    pub fn at(&self) -> &Location {
        match self {
            Value::Number(_, at) => at,
            Value::Name(name) => &name.at,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Enum {
    pub name: Name,
    /// A member without a value has the one after its predecessor's.
    pub members: Vec<(Name, Option<Value>)>,
}

#[derive(Debug, Clone)]
pub struct Struct {
    pub name: Name,
    pub fields: Vec<Declaration>,
}

#[derive(Debug, Clone)]
pub struct Union {
    pub name: Name,
    pub discriminant: Declaration,
    pub arms: Vec<Arm>,
    /// The declaration of `default:`; `Some(None)` for `default: void`.
    pub default: Option<Option<Declaration>>,
}

/// `case label: case label: declaration`; no declaration for `void`.
#[derive(Debug, Clone)]
pub struct Arm {
    pub labels: Vec<Value>,
    pub declaration: Option<Declaration>,
}

/// A named member of a structure, an arm of a union, a new type, or an argument.
#[derive(Debug, Clone)]
pub struct Declaration {
    pub name: Name,
    pub base: Base,
    pub shape: Shape,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Base {
    Scalar(Scalar),
    Quadruple,
    Opaque,
    String,
    Named(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
    Bool,
}

#[derive(Debug, Clone)]
pub enum Shape {
    One,
    Fixed(Value),
    Variable(Option<Value>),
    Optional,
}

#[derive(Debug, Clone)]
pub struct Program {
    pub name: Name,
    pub versions: Vec<Version>,
    pub number: Value,
}

#[derive(Debug, Clone)]
pub struct Version {
    pub name: Name,
    pub procedures: Vec<Procedure>,
    pub number: Value,
}

#[derive(Debug, Clone)]
pub struct Procedure {
    /// It may be executed again when its call comes again.
    pub repeatable: bool,
    pub name: Name,
    pub result: Option<Declaration>,
    pub arguments: Vec<Declaration>,
    pub number: Value,
}
