//! One byte stream that is anchored in a kernel TCP connection and moves between that connection and a carrier, at any
//! byte, also while several processes hold the socket.
//!
//! **What it is.** The *path machine*: which path the next byte of a direction takes. It is a pair of state machines without
//! I/O, [`path::Reader`] and [`path::Writer`], whose shared state is a handful of words ([`path::words`]). The *record*
//! ([`record`]): those of the words that the processes of one end share. The *carriers* ([`carrier`]): what moves the bytes of
//! a stream that is not on TCP. The *driver* ([`driver`]): carries out what a machine asks for, on a record, a carrier and an anchor.
//!
//! **Who calls it.** `sockets`, which lets the machines decide, keeps a record for each stream and uses the carriers; the explorer in `tests/explore`, which runs every
//! interleaving of two or three processes; `tests/pair`, which drives both ends of a stream under virtual time.
//!
//! **What it calls.** The path machine: nothing. The record: shared memory. The carriers: the fabric and `vi`.
//!
//! **What it never does.** It knows no descriptor table, no epoll set and no libc name. The path machine knows no clock either,
//! and never keeps a byte of the stream in private memory after a call has returned.

#[cfg(not(loom))]
pub mod carrier;
#[cfg(not(loom))]
pub mod driver;
pub mod path;
pub mod record;
