//! ONC RPC: clients and servers.
//!
//! **What it is.** [`Client`] makes calls, many at a time and from many threads; [`Server`] gives calls to services with
//! a pool of threads. Both speak over TCP, UDP and UNIX sockets, over RDMA (iWARP), over channels of the fabric, and over VIs.
//! [`rpcbind`] tells and asks where programs listen. The compiler of `.x` files (`sidestep idl`) generates typed clients and servers on top.
//!
//! **Who calls it.** Generated code and Rust programs; `sidestep rpcinfo`.
//!
//! **What it calls.** `wire` for bytes, `fabric` for channels, `vi` for VIs, `iwarp` for RDMA; the C library for sockets, so that these programs can be run under Sidestep.
//!
//! **What it never does.** It never executes a call twice that it has executed for the same client before and still remembers, never
//! believes a length, and never allocates for a null call once it is warm. It never lets a slow client stop another one, nor a slow
//! procedure the calls of another connection, as long as fewer are slow over sockets than their pool has threads
//! ([`ServerBuilder::threads`]).

#![forbid(unsafe_code)]

mod address;
mod client;
mod credential;
mod directory;
mod error;
mod rdma;
mod record;
pub mod rpcbind;
mod server;
mod transport;
mod via;

pub use address::Address;
pub use client::{Client, ClientOptions, Pending, Procedure};
pub use credential::Credential;
pub use directory::{Directory, DirectoryService};
pub use error::Error;
pub use rdma::Binding;
pub use server::{Call, Peer, Refusal, Server, ServerBuilder, Service};
pub use sidestep_wire::oncrpc::reply::{Accepted, AuthError, Denied};
pub use sidestep_wire::oncrpc::{Auth, AuthSys, Xid};
pub use sidestep_wire::xdr;

/// The greatest length of a message unless an option says otherwise: what NFS needs for 1 MiB of data, and more.
pub const MAX_MESSAGE: usize = 4 << 20;
