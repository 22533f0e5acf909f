//! A provider of the Virtual Interface Architecture: connected pairs of queues, with protected memory.
//!
//! **What it is.** NICs, VIs with send and receive queues of descriptors, registered memory with protection tags and
//! rights, completion queues, two ways to connect, three levels of reliability, RDMA: all of VIPL 1.0 as a safe API.
//!
//! **Who calls it.** `vipl`, which is its C face, and Rust programs directly.
//!
//! **What it calls.** The fabric: an endpoint a connection, a message queue in each direction for all connections of two
//! processes, RDMA for large messages, tripwires to wait on.
//!
//! **What it never does.** It never trusts what a peer says, never gives a peer access to memory of the caller, never
//! remaps it, and starts no thread unless callbacks or [`Nic::serve`] ask for one.
//!
//! Start with [`Nic`], [`Vi`] and the examples.

#![forbid(unsafe_code)]

mod address;
mod attributes;
pub mod code;
mod connect;
mod cq;
mod descriptor;
mod device;
mod entry;
mod error;
mod fifo;
mod line;
mod memory;
mod names;
mod nic;
mod peer;
mod service;
mod trunk;
mod vi;

pub use crate::{
    address::NetAddress,
    attributes::{
        MAX_CQ_ENTRIES, MAX_CQS, MAX_DESCRIPTORS, MAX_DISCRIMINATOR, MAX_SEGMENTS, MAX_TRANSFER, MAX_VIS,
        MemAttributes, Reliability, RemoteAttributes, ViAttributes,
    },
    code::{Code, ErrorCode, Resource, Status, ViState},
    connect::{Connecting, ConnectionRequest},
    cq::{Cq, CqNotify, Queue},
    descriptor::{Completion, Descriptor, Operation, Remote, Segment, Segments},
    error::{Error, Result},
    memory::{Buffer, MemHandle, Ptag},
    names::NameService,
    nic::{Nic, NicAttributes},
    service::{ErrorEvent, ErrorHandler},
    vi::{FlowControl, Notify, Sink, Sleeper, Vi, Way},
};
/// Memory of the caller, for [`Nic::register`], and the clock of every deadline.
pub use sidestep_shm::Memory;
pub use sidestep_sys::clock;
