//! The words that mean something to the language.

use super::syntax::Scalar;

/// Words that are no names, besides those that begin a definition and those that name a type.
pub const RESERVED: [&str; 7] = ["case", "default", "opaque", "quadruple", "string", "switch", "void"];

/// Whether a definition, or a version of a program, begins with this word.
pub fn begins(word: &str) -> bool {
    matches!(word, "const" | "enum" | "struct" | "union" | "typedef" | "program" | "version")
}

/// The type that a word names.
pub fn scalar(name: &str) -> Option<Scalar> {
    Some(match name {
        "char" | "int8_t" => Scalar::I8,
        "u_char" | "uint8_t" | "u_int8_t" => Scalar::U8,
        "short" | "int16_t" => Scalar::I16,
        "u_short" | "uint16_t" | "u_int16_t" => Scalar::U16,
        "int" | "long" | "int32_t" => Scalar::I32,
        "unsigned" | "u_int" | "u_long" | "uint32_t" | "u_int32_t" => Scalar::U32,
        "hyper" | "int64_t" | "quad_t" | "longlong_t" => Scalar::I64,
        "u_hyper" | "uint64_t" | "u_int64_t" | "u_quad_t" | "u_longlong_t" => Scalar::U64,
        "float" => Scalar::F32,
        "double" => Scalar::F64,
        "bool" | "bool_t" => Scalar::Bool,
        _ => return None,
    })
}
