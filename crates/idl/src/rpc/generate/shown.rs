//! Declarations as the `.x` file writes them, for the comments of generated code.

use crate::rpc::syntax::{Base, Const, Declaration, Procedure, Scalar, Shape, Value};

pub fn value(it: &Value) -> String {
    match it {
        Value::Number(number, _) => number.to_string(),
        Value::Name(name) => name.text.clone(),
    }
}

pub fn constant(it: &Const) -> String {
    format!("const {} = {}", it.name.text, value(&it.value))
}

pub fn declaration(it: &Declaration) -> String {
    let base = base(&it.base);
    let name = &it.name.text;
    match &it.shape {
        Shape::One => format!("{base} {name}"),
        Shape::Fixed(length) => format!("{base} {name}[{}]", value(length)),
        Shape::Variable(limit) => format!("{base} {name}<{}>", limit.as_ref().map(value).unwrap_or_default()),
        Shape::Optional => format!("{base} *{name}"),
    }
}

pub fn arm(it: Option<&Declaration>) -> String {
    it.map_or_else(|| "void".to_owned(), declaration)
}

pub fn procedure(it: &Procedure) -> String {
    let unnamed = |it: &Declaration| match &it.shape {
        Shape::Variable(limit) => {
            format!("{}<{}>", base(&it.base), limit.as_ref().map(value).unwrap_or_default())
        }
        _ => base(&it.base).to_owned(),
    };
    let result = it.result.as_ref().map_or_else(|| "void".to_owned(), unnamed);
    let arguments: Vec<String> = it.arguments.iter().map(unnamed).collect();
    let arguments = if arguments.is_empty() { "void".to_owned() } else { arguments.join(", ") };
    format!("{result} {}({arguments}) = {}", it.name.text, value(&it.number))
}

fn base(it: &Base) -> &str {
    match it {
        Base::Scalar(scalar) => match scalar {
            Scalar::I8 => "char",
            Scalar::U8 => "unsigned char",
            Scalar::I16 => "short",
            Scalar::U16 => "unsigned short",
            Scalar::I32 => "int",
            Scalar::U32 => "unsigned int",
            Scalar::I64 => "hyper",
            Scalar::U64 => "unsigned hyper",
            Scalar::F32 => "float",
            Scalar::F64 => "double",
            Scalar::Bool => "bool",
        },
        Base::Quadruple => "quadruple",
        Base::Opaque => "opaque",
        Base::String => "string",
        Base::Named(name) => name,
    }
}
