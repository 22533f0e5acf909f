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
//! Value types and components are not supported. `context` is ignored with a warning.

mod constant;
mod declarations;
mod generate;
mod lexer;
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
    let mut diagnostics = Diagnostics::default();
    let tokens = preprocess::tokens(file, text, files, &mut diagnostics);
    let specification = parser::parse(tokens, &mut diagnostics);
    let name = file.rsplit('/').next().unwrap_or(file);
    let code = generate::generate(&specification, name, &mut diagnostics);
    if diagnostics.failed() { Err(diagnostics) } else { Ok(Output { code, warnings: diagnostics }) }
}
