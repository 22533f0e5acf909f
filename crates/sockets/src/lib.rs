//! The socket engine: streams of bytes that are anchored in a kernel TCP connection and move between that connection
//! and a ring in shared memory, at any byte position.
//!
//! **What it is.** A table of descriptors, streams with two paths per direction, the promotion of a stream without a
//! daemon, readiness (`poll`, `epoll`), and what `sidestep stat` reads.
//!
//! **Who calls it.** `preload`, one function of [`calls`] per intercepted call; tests, in one process.
//!
//! **What it calls.** `stream`, whose carriers move the bytes that are not on TCP; the fabric, to connect them. The
//! kernel, through [`kernel`].
//!
//! **What it never does.** It starts no thread, but one that sends what links hold back, holds no lock in a sleep, and believes nothing that a peer or the
//! registry says without a check of its own descriptor.

pub mod address;
mod asking;
pub mod calls;
pub mod config;
pub mod control;
mod custody;
pub mod engine;
mod fork;
mod heirloom;
mod idle;
mod io;
pub mod jump;
pub mod kernel;
mod leaving;
mod member;
mod numbers;
mod orders;
mod poll;
mod reader;
mod readiness;
pub mod reason;
pub mod registry;
mod set;
pub mod signal;
mod sleep;
mod stream;
mod table;
pub mod tap;
mod unseen;
mod writer;

pub use kernel::{Errno, Result};
pub use sidestep_sys::heap::Heap;
