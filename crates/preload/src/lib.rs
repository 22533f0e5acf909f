//! `libsidestep.so`: the names by which a program reaches libc's socket calls, led to the socket engine.
//!
//! **What it is.** One list of calls (`list.rs`), a wrapper for each, and the next function of that name behind it.
//! A wrapper decides whether the call is for a descriptor of the engine, and hands it over or passes it on.
//!
//! **Who calls it.** Programs that never heard of it, through the dynamic linker (`LD_PRELOAD`); and those that call extended sockets
//! (`include/sidestep.h`).
//!
//! **What it calls.** `sidestep-sockets`, `sidestep-extended`, and whatever function of the same name comes next: libc's, or that of another
//! preloaded library.
//!
//! **What it never does.** It holds no stream, no protocol and no policy, starts no thread, opens no descriptor, and
//! never changes `errno` when a call succeeds.
//!
//! # Invariants
//!
//! What every SAFETY comment of this crate names.
//!
//! - **P1** The arguments are the program's. What it promised to libc by making the call (a pointer is valid for what the
//!   call reads or writes there, or null where that is allowed) is promised to the wrapper.
//! - **P2** A `real::Next` holds the address of a function of its own name, hence of its own signature.
//! - **P3** On the supported targets (x86_64, aarch64 Linux) a variadic function whose arguments are integers or pointers
//!   is called like one with fixed arguments, and may be given more than it reads.
//! - **P4** A descriptor is a number: a wrong one is an error of the program, never undefined behaviour.
//! - **P5** What is declared here by hand is declared as in libc's headers.
//! - **P6** Thread cancellation unwinds through wrappers: they are `extern "C-unwind"`, and nothing with a destructor is
//!   alive in a wrapper when it calls on.

#![allow(unsafe_code)]
#![allow(missing_docs)]

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("sidestep-preload knows the calling conventions of x86_64 and aarch64 only");

/// What the engine allocates comes from memory of its own: a call may come from a handler that has interrupted the program's
/// `malloc`, and before a `fork` the program's allocator may be locked.
#[global_allocator]
static HEAP: sidestep_sockets::Heap = sidestep_sockets::Heap::new();

#[macro_use]
mod export;

mod alone;
mod asynchronous;
mod cancel;
mod card;
mod child;
mod connection;
mod descriptor;
mod engine;
mod errno;
mod extended;
mod file;
mod handler;
mod jump;
mod limit;
mod message;
mod option;
mod process;
mod raw;
mod real;
mod sandbox;
mod select;
mod set;
mod signals;
mod startup;
mod transfer;
mod variadic;
mod vector;
mod wait;
