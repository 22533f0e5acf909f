//! The network model: write to remote memory, and be told when a chosen word was written.
//!
//! **What it is.** Regions and the cookies that name them, apertures to store through, RDMA queues, tripwires, event
//! queues, endpoints and message queues, over links of which shared memory is the first.
//!
//! **Who calls it.** The VIA provider, the socket engine, RPC and the object broker; Rust programs directly.
//!
//! **What it calls.** `shm` for memory, rings and waiting. Links reach the kernel through it.
//!
//! **What it never does.** It never trusts what a peer wrote, never reads through an aperture but by RDMA, never starts a thread but
//! for a link that needs one to be served, and never lets one peer's failure touch another's connection.
//!
//! Start with [`Node`], [`Channel`] and the examples.

#![forbid(unsafe_code)]

pub mod aperture;
mod arena;
pub mod berth;
pub mod channel;
pub mod cookie;
pub mod counters;
pub mod endpoint;
pub mod error;
pub mod event;
pub mod link;
pub mod listener;
pub mod node;
mod outbox;
pub mod peer;
pub mod protocol;
pub mod queue;
pub mod random;
pub mod rdma;
mod refusal;
pub mod region;
mod scheduler;
mod service;
mod ticket;
pub mod tripwire;
mod watchers;

pub use crate::{
    aperture::Aperture,
    arena::ArenaBlock,
    berth::Berth,
    channel::{Channel, ChannelOptions},
    cookie::{Cookie, Rights},
    counters::Counters,
    endpoint::Endpoint,
    error::{CloseReason, Error, Refusal, Result},
    event::{Event, EventQueue},
    link::LinkOptions,
    listener::{Listener, Request},
    node::Node,
    peer::{Peer, PeerId},
    rdma::{Group, RdmaQueue, Totals},
    region::{Region, RegionSlice},
    tripwire::{Access, Mode, Tripwire},
};
