//! What every crate stands on and what is not shared memory.
//!
//! **What it is.** The clock of all deadlines, the cores of the machine, locks whose order is watched, which process of a line of forks this is, descriptors
//! that a program does not meet, threads without its signals, closing that cannot wait, the memory that is left, numbers for simulations, and an allocator of our own.
//!
//! **Who calls it.** Every crate but the codecs.
//!
//! **What it calls.** The kernel, through `rustix` and `libc`.
//!
//! **What it never does.** It never starts a thread that touches the program's memory, and knows nothing of peers.

pub mod budget;
pub mod clock;
pub mod cpu;
pub mod descriptor;
pub mod discard;
pub mod heap;
pub mod lock;
pub mod process;
pub mod procfs;
pub mod room;
pub mod seeded;
pub mod signal;
pub mod slab;
pub mod unconnected;
pub mod user;
