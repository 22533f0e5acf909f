//! One byte stream that is anchored in a kernel TCP connection and moves between that connection and a carrier, at any
//! byte, also while several processes hold the socket.
//!
//! **What it is.** The *path machine*: which path the next byte of a direction takes. It is a pair of state machines without
//! I/O, [`path::Reader`] and [`path::Writer`], whose shared state is a handful of words ([`path::words`]).
//!
//! **Who calls it.** `sockets`, once per receiving or sending call; the explorer in `tests/explore`, which runs every
//! interleaving of two or three processes.
//!
//! **What it calls.** Nothing.
//!
//! **What it never does.** It knows no descriptor, no epoll set, no libc name and no clock, and it never keeps a byte of the
//! stream in private memory after a call has returned.

#![forbid(unsafe_code)]

pub mod path;
