//! The language of rpcgen (RFC 4506 §6, RFC 5531 §12) to Rust.
//!
//! ```text
//! text ──lexer──▶ tokens ──parser──▶ syntax ──check──▶ Model, Names ──generate──▶ one file of Rust
//! ```
//!
//! What rpcgen takes beyond the standards is taken, too: `char`, `short` and `long`, the names of C such as `u_int`,
//! `struct` before the name of a type, enumerators without values, several arguments. There is no preprocessor:
//! `#define NAME NUMBER` is a constant, the line marks of `cpp` are understood, other `#` lines are errors, and lines that begin
//! with `%` are ignored with a warning, since they hold C. The comment `/* repeatable */` right before a procedure says that it may
//! be executed twice.

mod check;
mod generate;
mod keywords;
mod lexer;
mod model;
mod names;
mod parser;
mod syntax;

use crate::source::Diagnostics;

/// Generated code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// A file of Rust.
    pub code: String,
    /// What was ignored.
    pub warnings: Diagnostics,
}

/// Translates the text of a `.x` file, whose name is only used in messages and in a comment.
pub fn compile(file: &str, text: &str) -> Result<Output, Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    let tokens = lexer::tokens(file, text, &mut diagnostics);
    let definitions = parser::parse(tokens, &mut diagnostics);
    if diagnostics.failed() {
        return Err(diagnostics);
    }
    let model = check::check(definitions, &mut diagnostics);
    if diagnostics.failed() {
        return Err(diagnostics);
    }
    Ok(Output { code: generate::generate(file, &model), warnings: diagnostics })
}
