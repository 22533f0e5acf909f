//! Shared memory between processes that do not trust each other.
//!
//! **What it is.** Mapped memory with checked access, byte and slot rings with private and published
//! positions, armed words, event rings, and waiting: spin, yield, then sleep on descriptors.
//!
//! **Who calls it.** The fabric's shared-memory link and its message queues; tests and benchmarks.
//!
//! **What it calls.** The kernel, through `rustix`: memfd, mmap, eventfd, epoll, UNIX sockets.
//!
//! **What it never does.** It never forms a reference to bytes that another process can write, never
//! trusts a value found there, never stores a pointer there, and never sleeps without a descriptor
//! that tells of the peer's death.

#![cfg_attr(loom, allow(dead_code, unused_imports))]

pub mod byte_ring;
pub mod event_ring;
pub mod gate;
pub mod pending;
pub mod sleep_word;
pub mod slot_ring;
pub mod sync;
pub mod wait;
pub mod watch;

#[cfg(not(loom))]
pub mod memory;
#[cfg(loom)]
#[path = "memory_model.rs"]
pub mod memory;

#[cfg(not(loom))]
pub mod attach;
#[cfg(not(loom))]
pub mod cached;
#[cfg(not(loom))]
mod copy;
#[cfg(not(loom))]
pub mod digest;
#[cfg(not(loom))]
pub mod doorbell;
pub mod error;
#[cfg(not(loom))]
pub mod faults;
#[cfg(not(loom))]
pub mod last_word;
pub mod layout;
#[cfg(not(loom))]
mod lines;
#[cfg(not(loom))]
pub mod memfd;
#[cfg(not(loom))]
pub mod pair_bell;
#[cfg(not(loom))]
pub mod passing;
#[cfg(not(loom))]
mod pin;
#[cfg(not(loom))]
pub mod read_only;
#[cfg(not(loom))]
pub mod segment;
#[cfg(not(loom))]
pub mod stream;

pub use error::{Error, Result};
#[cfg(not(loom))]
pub use memory::Word32;
pub use memory::{Memory, Span, Word64};
