//! The types of Rust, and the expressions that encode and decode them.

use super::Generator;
use crate::rpc::syntax::{Base, Declaration, Definition, Scalar, Shape, Value};

/// How an expression names a value that it encodes.
pub struct Place {
    /// As a value of a type that is `Copy`.
    pub value: String,
    /// As a reference.
    pub reference: String,
    /// Before the dot of a method.
    pub receiver: String,
}

impl Place {
    pub fn field(name: &str) -> Self {
        let value = format!("self.{name}");
        Self { reference: format!("&{value}"), receiver: value.clone(), value }
    }

    /// A variable that is a reference.
    pub fn reference(name: &str) -> Self {
        Self { value: format!("*{name}"), reference: name.to_owned(), receiver: name.to_owned() }
    }

    /// An expression.
    pub fn value(expression: &str) -> Self {
        let reference = match expression.strip_prefix('*') {
            Some(name) => name.to_owned(),
            None => format!("&{expression}"),
        };
        Self { value: expression.to_owned(), reference, receiver: expression.to_owned() }
    }
}

impl Generator<'_> {
    /// The type of a declaration.
    pub fn rust_type(&self, it: &Declaration) -> String {
        let one = match &it.base {
            Base::Scalar(scalar) => scalar_type(*scalar).to_owned(),
            Base::Quadruple => "xdr::Quadruple".to_owned(),
            Base::Named(name) => self.model.names.type_named(name).to_owned(),
            Base::Opaque => "u8".to_owned(),
            Base::String => return "String".to_owned(),
        };
        match &it.shape {
            Shape::One => one,
            Shape::Fixed(length) => format!("[{one}; {}]", self.length(length)),
            Shape::Variable(_) => format!("Vec<{one}>"),
            Shape::Optional if self.recursive(it) => format!("Option<Box<{one}>>"),
            Shape::Optional => format!("Option<{one}>"),
        }
    }

    /// Appends the value at `place` to `out`: an expression of type `Result<(), xdr::Error>`.
    pub fn encode(&self, it: &Declaration, place: &Place) -> String {
        let Place { value, reference, receiver } = place;
        match (&it.base, &it.shape) {
            (Base::Opaque, Shape::Fixed(_)) => format!("out.fixed({reference})"),
            (Base::Opaque, Shape::Variable(limit)) => format!("out.opaque({reference}, {})", self.limit(limit)),
            (Base::String, Shape::Variable(limit)) => format!("out.string({reference}, {})", self.limit(limit)),
            (base, Shape::One) => match base {
                Base::Scalar(scalar) => format!("out.{}({value})", scalar_type(*scalar)),
                Base::Named(name) => match self.model.type_named(name) {
                    Some(Definition::Typedef(inner)) => self.encode(inner, place),
                    _ => format!("out.value({reference})"),
                },
                _ => format!("out.value({reference})"),
            },
            (_, Shape::Fixed(_)) => {
                format!("out.items({reference}, |out, item| {})", self.encode_item(it))
            }
            (_, Shape::Variable(limit)) => {
                let limit = self.limit(limit);
                format!("out.array({reference}, {limit}, |out, item| {})", self.encode_item(it))
            }
            (_, Shape::Optional) => {
                let view = if self.recursive(it) { "as_deref" } else { "as_ref" };
                let item = self.encode(&element(it), &Place::reference("item"));
                format!("out.optional({receiver}.{view}(), |out, item| {item})")
            }
        }
    }

    /// Takes a value from `input`: an expression of type `Result<_, xdr::Error>`.
    pub fn decode(&self, it: &Declaration) -> String {
        match (&it.base, &it.shape) {
            (Base::Opaque, Shape::Fixed(_)) => "input.fixed_array()".to_owned(),
            (Base::Opaque, _) => format!("{}.map(<[u8]>::to_vec)", self.decode_borrowed(it)),
            (Base::String, _) => format!("{}.map(str::to_owned)", self.decode_borrowed(it)),
            (base, Shape::One) => match base {
                Base::Scalar(scalar) => format!("input.{}()", scalar_type(*scalar)),
                Base::Named(name) => match self.model.type_named(name) {
                    Some(Definition::Typedef(inner)) => self.decode(inner),
                    _ => "input.value()".to_owned(),
                },
                _ => "input.value()".to_owned(),
            },
            (_, Shape::Fixed(_)) => format!("input.items(|input| {})", self.decode_item(it)),
            (_, Shape::Variable(limit)) => {
                format!("input.array({}, |input| {})", self.limit(limit), self.decode_item(it))
            }
            (_, Shape::Optional) => {
                let item = self.decode(&element(it));
                let boxed = if self.recursive(it) { ".map(Box::new)" } else { "" };
                format!("input.optional(|input| {item}{boxed})")
            }
        }
    }

    /// Takes a string or opaque data of varying length without copying them.
    pub fn decode_borrowed(&self, it: &Declaration) -> String {
        let limit = match &it.shape {
            Shape::Variable(limit) => self.limit(limit),
            _ => unreachable!("only data of varying length are borrowed"),
        };
        if it.base == Base::String { format!("input.string({limit})") } else { format!("input.opaque({limit})") }
    }

    fn encode_item(&self, it: &Declaration) -> String {
        let item = self.encode(&element(it), &Place::reference("item"));
        if self.recursive(it) { format!("out.nested(|out| {item})") } else { item }
    }

    fn decode_item(&self, it: &Declaration) -> String {
        let item = self.decode(&element(it));
        if self.recursive(it) { format!("input.nested(|input| {item})") } else { item }
    }

    /// Whether what a declaration consists of can contain others of its type: it lies behind a pointer then, and its
    /// depth is counted.
    fn recursive(&self, it: &Declaration) -> bool {
        matches!(&it.base, Base::Named(name) if self.model.recursive(name))
    }

    fn limit(&self, limit: &Option<Value>) -> String {
        match limit {
            None => "xdr::UNBOUNDED".to_owned(),
            Some(value) => {
                let rust = self.model.rust(value);
                if rust.contains("::") { format!("{rust} as u32") } else { rust }
            }
        }
    }

    fn length(&self, length: &Value) -> String {
        match length {
            Value::Number(number, _) => number.to_string(),
            Value::Name(_) => format!("{} as usize", self.model.rust(length)),
        }
    }
}

/// What an array or an optional value consists of.
fn element(it: &Declaration) -> Declaration {
    Declaration { shape: Shape::One, ..it.clone() }
}

/// The type of Rust, which is also the name of the method that encodes or decodes it.
pub fn scalar_type(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::I8 => "i8",
        Scalar::U8 => "u8",
        Scalar::I16 => "i16",
        Scalar::U16 => "u16",
        Scalar::I32 => "i32",
        Scalar::U32 => "u32",
        Scalar::I64 => "i64",
        Scalar::U64 => "u64",
        Scalar::F32 => "f32",
        Scalar::F64 => "f64",
        Scalar::Bool => "bool",
    }
}
