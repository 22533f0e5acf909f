//! Attributes of NICs, VIs and memory, and the limits of the provider.

use crate::{
    error::{Error, Result},
    memory::Ptag,
};

/// How messages are treated when something goes wrong (VIA 1.0 §2.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Reliability {
    /// A message that cannot be taken is dropped, and nobody is told.
    Unreliable = 1,
    /// Exactly once and in order; a message that cannot be taken ends the connection.
    Delivery = 2,
    /// As delivery, and a send has completed only when the data are in the target's memory.
    Reception = 4,
}

impl Reliability {
    /// The level of a number, as VIPL numbers them.
    pub fn from_bits(bits: u16) -> Result<Reliability> {
        match bits {
            1 => Ok(Reliability::Unreliable),
            2 => Ok(Reliability::Delivery),
            4 => Ok(Reliability::Reception),
            _ => Err(Error::Reliability),
        }
    }
}

/// Attributes of a VI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViAttributes {
    /// The level; both sides must agree.
    pub reliability: Reliability,
    /// The largest message.
    pub max_transfer: usize,
    /// The memory it may use.
    pub ptag: Ptag,
    /// Whether the peer may write this side's memory.
    pub rdma_write: bool,
    /// Whether the peer may read this side's memory.
    pub rdma_read: bool,
}

impl ViAttributes {
    /// Reliable delivery, the largest transfers, no remote access.
    pub fn new(ptag: Ptag) -> ViAttributes {
        let (reliability, max_transfer) = (Reliability::Delivery, MAX_TRANSFER);
        ViAttributes { reliability, max_transfer, ptag, rdma_write: false, rdma_read: false }
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.max_transfer > MAX_TRANSFER {
            return Err(Error::TransferSize(self.max_transfer));
        }
        if self.rdma_read && self.reliability == Reliability::Unreliable {
            return Err(Error::RdmaRead);
        }
        Ok(())
    }
}

/// What the other side said about its VI; a protection tag means nothing here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteAttributes {
    /// Its level.
    pub reliability: Reliability,
    /// Its largest message.
    pub max_transfer: usize,
    /// Whether its memory may be written.
    pub rdma_write: bool,
    /// Whether its memory may be read.
    pub rdma_read: bool,
}

impl From<&ViAttributes> for RemoteAttributes {
    fn from(own: &ViAttributes) -> RemoteAttributes {
        RemoteAttributes {
            reliability: own.reliability,
            max_transfer: own.max_transfer,
            rdma_write: own.rdma_write,
            rdma_read: own.rdma_read,
        }
    }
}

/// Attributes of registered memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemAttributes {
    /// Which VIs may use it.
    pub ptag: Ptag,
    /// Whether peers of those VIs may write it.
    pub rdma_write: bool,
    /// Whether peers of those VIs may read it.
    pub rdma_read: bool,
}

impl MemAttributes {
    /// For this node alone.
    pub fn new(ptag: Ptag) -> MemAttributes {
        MemAttributes { ptag, rdma_write: false, rdma_read: false }
    }
}

/// VIs of a NIC.
pub const MAX_VIS: usize = 4096;
/// Descriptors of a queue that have not been taken.
pub const MAX_DESCRIPTORS: usize = 1024;
/// Segments of a descriptor.
pub const MAX_SEGMENTS: usize = 252;
/// Completion queues of a NIC.
pub const MAX_CQS: usize = 4096;
/// Entries of a completion queue.
pub const MAX_CQ_ENTRIES: usize = 1 << 20;
/// The largest message.
pub const MAX_TRANSFER: usize = 16 << 20;
/// Protection tags of a NIC.
pub const MAX_PTAGS: usize = 4096;
/// Registrations of a NIC.
pub const MAX_REGIONS: usize = 1 << 16;
/// Bytes of one registration.
pub const MAX_REGION_BYTES: usize = 1 << 40;
/// Bytes of a discriminator.
pub const MAX_DISCRIMINATOR: usize = 64;
