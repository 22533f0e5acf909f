//! Virtual memory-mapped communication (VMMC) on a software card that has little memory of its own.
//!
//! **What it is.** Processes export ranges of their memory and send into, and fetch from, those of others. A [`card`](Card) does it
//! with small caches in front of tables on the host: what is not in them is dropped, resolved, and sent again (Azimi 2002,
//! *miNI*). The state machines know no I/O; around them stand the card process, a link of the fabric, and a simulation.
//!
//! **Who calls it.** Programs that want it, the fabric's users through the link, and `sidestep bench vmmc`.
//!
//! **What it calls.** `fabric` for queues in shared memory and for the way between cards, `shm` for the memory of processes.
//!
//! **What it never does.** It never trusts what another process or card wrote, never pins a page before it is used, and never
//! unpins one that the card may still use.

#![forbid(unsafe_code)]

pub mod board;
mod budget;
mod card;
mod cbh;
mod config;
mod data_link;
mod driver;
pub mod endpoints;
mod error;
pub mod experiment;
mod id;
pub mod link;
mod pace;
mod packet;
pub mod process;
pub mod simulation;
pub mod svm;
mod vmh;
pub mod workload;

pub use budget::{Budget, STATIC_BUFFERS, STATIC_IMPORTS, STATIC_PAGES};
pub use card::{
    Card, Counters, Dma, Event, Fill, INLINE, Import, Job, MAX_NOTICES, Miss, NotPosted, Operation, Path, Post, Source,
};
pub use cbh::Descriptor;
pub use config::{CacheShape, Config, LinkConfig, Mode};
pub use driver::{BINS, Bins, Driver, Export, Marks, MissEvent, MissQueue, PinFault, Pinning, Timing};
pub use error::{Error, Fault, Result};
pub use id::{Address, BufferId, Cbh, Frame, Key, NodeId, PAGE, Page, ProcessId, Rights, Work};
pub use packet::{Packet, parse as parse_packet};
pub use vmh::cache::{Lookup, Slot, Tag, VmhCache};
pub use vmh::{Engine, Entry};
