//! What the coordinator and the workers say to each other: one JSON object a line, rare and small.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::counters::Counts;
use crate::error::Cause;
use crate::filter::Unit;
use crate::graph::{CopyId, Graph};

/// To a worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Listen for connections of a new epoch.
    Prepare(Box<Plan>),
    /// Everyone listens, at these addresses: make the connections, and start the copies.
    Connect { epoch: u64, addresses: BTreeMap<String, String> },
    /// Work.
    Work { epoch: u64, unit: Unit },
    /// The epoch is over.
    Abort { epoch: u64 },
    /// Say what the copies have done.
    Count,
    /// Say anything.
    Answer,
}

/// What a worker must know of an epoch.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub epoch: u64,
    /// Whoever connects must know it.
    pub key: [u8; 16],
    pub graph: Arc<Graph>,
    /// Which process this is, and the address of its host, if another host has to reach it.
    pub process: String,
    pub address: Option<IpAddr>,
}

/// From a worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Report {
    /// Connections of the epoch can be made to this address.
    Ready { epoch: u64, address: String },
    /// All connections are made.
    Connected { epoch: u64 },
    /// The epoch cannot be.
    Stuck { epoch: u64, what: String },
    /// A copy has begun with a unit of work.
    Began { epoch: u64, copy: CopyId, unit: u64 },
    /// A copy has done its part.
    Finished { epoch: u64, copy: CopyId, unit: u64 },
    /// A copy has failed.
    Failed { epoch: u64, copy: CopyId, unit: u64, what: String, cause: Cause },
    /// It is there.
    Here,
    /// What the copies have done in this epoch so far.
    Counts { epoch: u64, counts: Vec<(CopyId, Counts)> },
}

/// What a connection begins with: which one it is, and that it belongs to this group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Edge {
    pub stream: u32,
    pub producer: u32,
    pub consumer: u32,
}

/// Bytes of a greeting: the key, the epoch, the edge.
pub(crate) const GREETING: usize = 36;

impl Plan {
    pub fn greeting(&self, edge: Edge) -> [u8; GREETING] {
        let mut bytes = [0; GREETING];
        bytes[..16].copy_from_slice(&self.key);
        bytes[16..24].copy_from_slice(&self.epoch.to_le_bytes());
        for (at, word) in [edge.stream, edge.producer, edge.consumer].into_iter().enumerate() {
            bytes[24 + 4 * at..28 + 4 * at].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The connection that a greeting is about; `None` if it does not belong here.
    pub fn greeted(&self, bytes: &[u8]) -> Option<Edge> {
        let bytes: &[u8; GREETING] = bytes.try_into().ok()?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let edge = Edge { stream: word(24), producer: word(28), consumer: word(32) };
        (*bytes == self.greeting(edge)).then_some(edge)
    }
}
