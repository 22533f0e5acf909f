//! Which memory a peer may touch: steering tags, their regions, and the check before every access
//! (RFC 5041 §7.1 and §8, RFC 5040 §7.2 and §8.1.1, RFC 5042).
//!
//! A tag is 32 random bits, so that it cannot be guessed. It belongs to one protection domain, and if
//! its owner says so to one stream of that domain.

use crate::error::Error;
use sidestep_wire::{Stag, TaggedOffset};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::{fmt, ops};

/// A set of streams and regions that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DomainId(pub u32);

/// One stream, unique among those that share a [`MemoryTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamId(pub u64);

/// Who asks for access: a stream of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamIdentity {
    /// The domain of the stream.
    pub domain: DomainId,
    /// The stream.
    pub stream: StreamId,
}

/// What a peer may do with a region.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Rights(u8);

impl Rights {
    /// Nothing. The owner can still read into the region.
    pub const NONE: Self = Self(0);
    /// RDMA read from it.
    pub const READ: Self = Self(1);
    /// RDMA write to it.
    pub const WRITE: Self = Self(2);
    /// Atomics on it.
    pub const ATOMIC: Self = Self(4);
    /// Invalidate its tag with a send. Only honoured for a region of one stream, since a peer must
    /// not take a tag away from other streams (RFC 5040 §8.1.1).
    pub const INVALIDATE: Self = Self(8);

    /// Whether all of `other` is granted.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl ops::BitOr for Rights {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = f.debug_set();
        for (right, name) in
            [(Self::READ, "read"), (Self::WRITE, "write"), (Self::ATOMIC, "atomic"), (Self::INVALIDATE, "invalidate")]
        {
            if self.contains(right) {
                names.entry(&format_args!("{name}"));
            }
        }
        names.finish()
    }
}

/// Memory that has a steering tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// The tagged offset of its first byte.
    pub base: TaggedOffset,
    /// How many bytes it has.
    pub length: u64,
    /// What a peer may do with it.
    pub rights: Rights,
    /// The domain it belongs to.
    pub domain: DomainId,
    /// The one stream it is for, if it is not for all of the domain.
    pub stream: Option<StreamId>,
}

/// What a segment wants to do with a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// RDMA write by the peer.
    RemoteWrite,
    /// RDMA read by the peer.
    RemoteRead,
    /// An atomic by the peer.
    RemoteAtomic,
    /// The answer to a read of the owner.
    ReadSink,
}

/// Why an access is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MemoryFault {
    /// There is no such tag, or it is no longer valid.
    #[error("the steering tag is not valid")]
    InvalidStag,
    /// The tag is of another domain or of another stream.
    #[error("the steering tag is not for this stream")]
    NotAssociated,
    /// The region does not grant it.
    #[error("the region does not allow it")]
    Rights,
    /// The offset and the length add up to more than 64 bits.
    #[error("the tagged offset wraps")]
    Wrap,
    /// A part lies outside the region.
    #[error("it reaches outside the region")]
    Bounds,
}

/// Why a tag is not invalidated on a peer's behalf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidateFault {
    /// The tag is of another domain or of another stream.
    #[error("the steering tag is not for this stream")]
    NotAssociated,
    /// There is no such valid tag, or its owner does not allow it.
    #[error("the steering tag cannot be invalidated by the peer")]
    NotAllowed,
}

/// All regions of one host, or of as much of it as its owner likes.
#[derive(Debug, Default)]
pub struct MemoryTable {
    regions: BTreeMap<Stag, Registered>,
}

#[derive(Debug)]
struct Registered {
    region: Region,
    valid: bool,
}

impl MemoryTable {
    /// A table without regions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives `region` a tag: the first free one among the numbers of `random`, which must come from a
    /// source that a peer cannot predict.
    pub fn register(&mut self, region: Region, mut random: impl FnMut() -> u32) -> Result<Stag, Error> {
        let Region { base, length, .. } = region;
        if base.0.checked_add(length).is_none() {
            return Err(Error::RegionWraps { base, length });
        }
        for _ in 0..STAG_TRIES {
            // Zero is what an uninitialised program sends.
            let stag = Stag(random());
            if stag == Stag(0) {
                continue;
            }
            if let Entry::Vacant(entry) = self.regions.entry(stag) {
                entry.insert(Registered { region, valid: true });
                return Ok(stag);
            }
        }
        Err(Error::NoFreeStag { tries: STAG_TRIES })
    }

    /// Makes the tag invalid for every peer. Returns whether it was valid.
    pub fn invalidate(&mut self, stag: Stag) -> bool {
        self.regions.get_mut(&stag).is_some_and(|entry| std::mem::replace(&mut entry.valid, false))
    }

    /// Forgets the region. The memory may be reused once no connection
    /// [`holds`](crate::Connection::holds) it.
    pub fn deregister(&mut self, stag: Stag) -> Option<Region> {
        self.regions.remove(&stag).map(|entry| entry.region)
    }

    /// The region of a valid tag.
    #[must_use]
    pub fn region(&self, stag: Stag) -> Option<&Region> {
        self.regions.get(&stag).filter(|entry| entry.valid).map(|entry| &entry.region)
    }

    /// Checks an access of `len` bytes; gives its place from the beginning of the region's memory.
    pub fn check(
        &self,
        access: Access,
        who: StreamIdentity,
        stag: Stag,
        offset: TaggedOffset,
        len: u64,
    ) -> Result<u64, MemoryFault> {
        let region = self.region(stag).ok_or(MemoryFault::InvalidStag)?;
        if !region.serves(who) {
            return Err(MemoryFault::NotAssociated);
        }
        let needed = match access {
            Access::RemoteWrite => Rights::WRITE,
            Access::RemoteRead => Rights::READ,
            Access::RemoteAtomic => Rights::ATOMIC,
            Access::ReadSink => Rights::NONE,
        };
        if !region.rights.contains(needed) {
            return Err(MemoryFault::Rights);
        }
        let end = offset.0.checked_add(len).ok_or(MemoryFault::Wrap)?;
        // The sum was checked when the region was registered.
        if offset < region.base || end > region.base.0 + region.length {
            return Err(MemoryFault::Bounds);
        }
        Ok(offset.0 - region.base.0)
    }

    /// Whether a peer may invalidate the tag with a send.
    pub(crate) fn check_invalidate(&self, who: StreamIdentity, stag: Stag) -> Result<(), InvalidateFault> {
        let region = self.region(stag).ok_or(InvalidateFault::NotAllowed)?;
        if !region.serves(who) {
            return Err(InvalidateFault::NotAssociated);
        }
        if region.stream.is_none() || !region.rights.contains(Rights::INVALIDATE) {
            return Err(InvalidateFault::NotAllowed);
        }
        Ok(())
    }
}

impl Region {
    fn serves(&self, who: StreamIdentity) -> bool {
        self.domain == who.domain && self.stream.is_none_or(|stream| stream == who.stream)
    }
}

/// Beyond a few tries the random numbers are not random.
const STAG_TRIES: usize = 64;

#[cfg(test)]
mod tests;
