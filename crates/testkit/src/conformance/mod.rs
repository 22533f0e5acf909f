//! The conformance suite of the fabric: each bullet of each contract is one function, and
//! [`conformance_suite!`](crate::conformance_suite) makes one test of each for a link.
//!
//! ```ignore
//! sidestep_testkit::conformance_suite!(shm, sidestep_testkit::conformance::fixture::shm);
//! ```
//!
//! A function takes a [`Fixture`], which makes links that can reach each other. What passes is what any program on any
//! link may rely on; what differs by link is asked of its capabilities.

pub mod aperture;
pub mod caller_memory;
pub mod channel;
pub mod cookie;
pub mod endpoint;
pub mod event_queue;
pub mod fixture;
pub mod in_place;
pub mod link;
pub mod listener;
pub mod message_queue;
pub mod node;
pub mod nodes;
pub mod program;
pub mod queue_events;
pub mod rdma;
pub mod rdma_group;
pub mod read_only;
pub mod region;
pub mod revocation;
pub mod sleepers;
pub mod stranger;
pub mod stream;
pub mod tripwire;

mod suite;

pub use self::fixture::{Fixture, Links};
