//! Compilers of interface definitions to Rust.
//!
//! **What it is.** [`rpc`]: the language of rpcgen (`.x` files, RFC 4506 and RFC 5531). [`omg`]: OMG IDL, the language
//! of CORBA. [`source`]: places in source text and messages about them. [`compile`] and [`Build`]: both
//! in a build script.
//!
//! **Who calls it.** `sidestep idl`, build scripts, tests.
//!
//! **What it calls.** Nothing. The generated code calls the runtime; this crate does not.
//!
//! **What it never does.** It never stops at the first error, and never generates code that the compiler of Rust would
//! refuse: what cannot be translated is an error with a line and a column. Only [`Build`] and [`Disk`] touch files, and
//! only [`formatted`] starts a process.

#![forbid(unsafe_code)]

pub mod omg;
pub mod rpc;
pub mod source;

mod markdown;
mod names;
mod script;

pub use script::{Build, Built, CompileError, Disk, compile, formatted};
