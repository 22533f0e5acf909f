//! Compilers of interface definitions to Rust.
//!
//! **What it is.** [`rpc`]: the language of rpcgen (`.x` files, RFC 4506 and RFC 5531). [`source`]: places in source
//! text and messages about them.
//!
//! **Who calls it.** `sidestep idl`, build scripts, tests.
//!
//! **What it calls.** Nothing. The generated code calls the runtime; this crate does not.
//!
//! **What it never does.** It never reads or writes a file, never stops at the first error, and never generates code
//! that the compiler of Rust would refuse: what cannot be translated is an error with a line and a column.

#![forbid(unsafe_code)]

pub mod rpc;
pub mod source;
