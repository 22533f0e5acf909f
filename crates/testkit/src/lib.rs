//! What the tests of several crates share.
//!
//! **What it is.** Conformance suites that hold every implementation of a contract to the same bullets, with the
//! fixtures that make the links to be tested.
//!
//! **Who calls it.** Integration tests only; no crate depends on it but for its tests.
//!
//! **What it calls.** The public interfaces of the crates under test, and `shm` where a hostile peer works below them.
//!
//! **What it never does.** It never sleeps to synchronise, never waits without a deadline, and never tests what a program
//! could not see.

pub mod allocator;
pub mod conformance;
pub mod hosts;
pub mod links;
pub mod ports;
pub mod process;
pub mod shared;
pub mod sockets;

pub use sidestep_sys::seeded;
