//! `libvipl.so`: VIPL 1.0 for C programs, as `include/vipl.h` declares it.
//!
//! **What it is.** Handles, C structures and descriptors in the caller's memory, mapped onto `sidestep-vi`.
//!
//! **Who calls it.** Programs in C and C++, old and new, by the functions of the header and nothing else.
//!
//! **What it calls.** `sidestep-vi`, by its public interface.
//!
//! **What it never does.** It holds no protocol, never lets a panic into C, and never believes a handle: a wrong, freed or
//! null one is answered with a code.
//!
//! # Invariants
//!
//! What C promises, as the header and the manual page tell it; every SAFETY comment names one of these.
//!
//! - **C1** A pointer that is not null is valid for its type for the duration of the call, and a string ends with a zero.
//! - **C2** A descriptor, with all the segments it counts, stays valid from its posting until it is taken.
//! - **C3** Registered memory stays readable and writable until it is deregistered.
//! - **C4** A handler may be called with its context from any thread.

#![allow(unsafe_code)]
#![allow(missing_docs)]

mod connect;
mod cq;
mod extension;
mod handles;
mod memory;
mod names;
mod nic;
mod pointer;
mod post;
#[doc(hidden)]
pub mod probe;
mod types;
mod vi;
