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

pub mod calls;
pub mod config;
mod descriptors;
pub mod kernel;
mod processes;
mod promotion;
mod readiness;
pub mod registry;
mod streams;
pub mod tap;

pub use kernel::{Errno, Result, address, messages::Control, signal};
pub use promotion::engine;
pub use readiness::jump;
pub use registry::reason;
pub use sidestep_sys::heap::Heap;
