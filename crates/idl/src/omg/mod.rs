//! OMG IDL to Rust (CORBA 3.3 part 1 §7).
//!
//! ```text
//! text -> tokens (lexer) -> files and conditions (preprocess) -> definitions (parser) -> Rust (generate)
//! ```
//!
//! | IDL | Rust |
//! |---|---|
//! | `module` | a module, in snake case |
//! | `interface Echo` | `Echo`, a reference with typed calls; `trait EchoServant`; `EchoSkeleton(servant)` |
//! | what stands in an interface | a module of the interface's name |
//! | `struct`, `exception` | a struct |
//! | `union` | an enum with a variant for each member |
//! | `enum` | an enum |
//! | `sequence<T>`, `sequence<T, 5>` | `Vec<T>`, `BoundedSequence<T, 5>` |
//! | `string`, `string<5>`, `wstring` | `String`, `BoundedString<5>`, `WString` |
//! | a reference | `Option<Echo>`, since every reference may be nil |
//! | out parameters | parts of the result, behind the result itself |
//! | `raises (A, B)` | an enum with a variant for each, and `System` |
//!
//! Names become Rust's: `FooBar` for types, `FOO_BAR` for constants, `foo_bar` for the rest. In each scope of Rust what is declared
//! first keeps its name, made names such as `EchoServant` and `begin_say` included; a later one that would be the same gets
//! underscores at its end, and so does one that Rust or the generated code uses there (`Option`, `encoder`). A keyword becomes
//! `r#type`. Names that differ only in case are an error, as IDL says.
//!
//! The preprocessor has files to include, conditions with the operators of C, and macros without parameters.
//!
//! Value types and components are not supported. `context` is ignored with a warning.

mod condition;
mod constant;
mod declarations;
mod fixed;
mod generate;
mod interface;
mod keywords;
mod lexer;
mod literal;
mod macros;
mod parser;
mod preprocess;
mod syntax;
mod types;

#[cfg(test)]
mod tests;

pub use preprocess::Files;

use crate::source::Diagnostics;

/// What a run has made.
#[derive(Debug)]
pub struct Output {
    /// The Rust code. Its lines are indented, and not broken.
    pub code: String,
    /// What was ignored.
    pub warnings: Diagnostics,
}

/// Compiles the text of a file. `files` finds what it includes.
pub fn compile(file: &str, text: &str, files: &dyn Files) -> Result<Output, Diagnostics> {
    compile_with(file, text, files, &[])
}

/// Compiles the text of a file in which these macros are defined: each is `NAME=TEXT`, or `NAME`, which is 1.
pub fn compile_with(file: &str, text: &str, files: &dyn Files, macros: &[String]) -> Result<Output, Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    let tokens = preprocess::tokens(file, text, files, macros, &mut diagnostics);
    let specification = parser::parse(tokens, &mut diagnostics);
    if diagnostics.failed() {
        return Err(diagnostics);
    }
    let name = file.rsplit('/').next().unwrap_or(file);
    Ok(Output { code: generate::generate(&specification, name), warnings: diagnostics })
}
