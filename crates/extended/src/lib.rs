//! Extended sockets: one-sided operations on an ordinary connected TCP socket.
//!
//! **What it is.** Both ends of a TCP connection agree to more than a stream of bytes: they register memory, hand it to each other,
//! and from then on read it, write it and change its words without the other end's doing (Balaji 2006, chapters 10 and 11). Plain
//! calls on the socket go on as before.
//!
//! **Who calls it.** Rust programs; C programs through `libsidestep.so` and `sidestep.h`; `sidestep cache` and `sidestep balance`.
//!
//! **What it calls.** `fabric` for everything that moves; `sockets` for what the kernel says of a connection.
//!
//! **What it never does.** It never reads or writes the socket itself (unless it is extended in place), starts no thread (but for a stack
//! that reaches other hosts), and believes nothing that the other end wrote.
//!
//! Start with [`Stack`] and [`Socket`]; `docs/extended.md` has the rules.

#![forbid(unsafe_code)]

pub mod board;
mod completion;
mod direct;
mod error;
mod flow;
mod frame;
mod meeting;
mod options;
mod posted;
mod region;
mod socket;
mod stack;
pub mod traffic;

pub use completion::{Completion, CompletionQueue, Kind};
pub use error::{Error, Result};
pub use options::{IN_PLACE_VARIABLE, Options, PORT_VARIABLE};
pub use region::{Piece, Region, Remote};
pub use sidestep_fabric::Rights;
pub use sidestep_shm::Memory;
pub use sidestep_sys::process::generation;
pub use socket::Socket;
pub use stack::{Stack, in_milliseconds};
