//! Memory that the other end may reach, and memory of the other end.

use std::{ptr::NonNull, sync::Arc};

use sidestep_fabric::{self as fabric, Aperture, RegionSlice, Rights};
use sidestep_shm::Word64;
use sidestep_sys::process;

use crate::error::{Error, Result};

/// Registered memory, with the most that a peer may be given. Clones are the same region.
#[derive(Debug, Clone)]
pub struct Region {
    pub(crate) inner: Arc<fabric::Region>,
    rights: Rights,
    /// The process that registered it.
    generation: u32,
}

/// A part of a registered region: one element of a gather list.
#[derive(Debug, Clone)]
pub struct Piece {
    pub(crate) region: Region,
    pub(crate) offset: usize,
    pub(crate) len: usize,
}

/// A region of the other end.
#[derive(Debug, Clone)]
pub struct Remote {
    pub(crate) aperture: Aperture,
    pub(crate) socket: u64,
    pub(crate) tag: u64,
    mapped: bool,
}

impl Region {
    pub(crate) fn new(inner: fabric::Region, rights: Rights) -> Region {
        Region { inner: Arc::new(inner), rights, generation: process::generation() }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.inner.len()
    }

    /// Whether it has no bytes; never true.
    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }

    /// The most that a peer may be given.
    pub fn rights(&self) -> Rights {
        self.rights
    }

    /// Where it begins, for programs that keep their own data here. Peers with rights read and write it at any time.
    pub fn base(&self) -> NonNull<u8> {
        self.inner.base()
    }

    /// Copies bytes in.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        Ok(self.inner.write(offset, bytes)?)
    }

    /// Copies bytes out.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<()> {
        Ok(self.inner.read(offset, bytes)?)
    }

    /// An aligned word of 64 bits.
    pub fn word64(&self, offset: usize) -> Result<Word64> {
        Ok(self.inner.word64(offset)?)
    }

    /// A part of it, for a gather list.
    pub fn piece(&self, offset: usize, len: usize) -> Result<Piece> {
        // Checked by the fabric, too, when it is used: here, so that the error comes with the call that is wrong.
        self.inner.slice(offset, len)?;
        Ok(Piece { region: self.clone(), offset, len })
    }

    /// Whether a clone of it is somewhere, or an operation that has not ended uses it.
    pub fn is_used(&self) -> bool {
        Arc::strong_count(&self.inner) > 1
    }

    /// Takes it back from every peer, and keeps it. When this returns, nothing that is stored here from now on is read by a peer,
    /// and nothing that a peer writes arrives here. It may be exported again.
    pub fn revoke(&self) -> Result<()> {
        Ok(self.inner.withdraw()?)
    }

    /// Takes it back from every peer and gives the memory back. When this returns, no peer reads what lies at its
    /// addresses from now on, and none writes there. [`Error::Busy`] while an operation uses it.
    ///
    /// Dropping the last clone does the same.
    pub fn deregister(self) -> Result<(), (Region, Error)> {
        if self.is_used() { Err((self, Error::Busy)) } else { Ok(()) }
    }

    pub(crate) fn check_rights(&self, wanted: Rights) -> Result<()> {
        if self.rights.allow(wanted) { Ok(()) } else { Err(Error::Rights { held: self.rights, wanted }) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if self.generation != process::generation() {
            // In a forked child: it would be taken back from the peers of the parent.
            std::mem::forget(self.inner.clone());
        }
    }
}

impl Piece {
    pub(crate) fn slice(&self) -> Result<RegionSlice> {
        Ok(self.region.inner.slice(self.offset, self.len)?)
    }

    pub(crate) fn slices(pieces: &[Piece]) -> Result<Vec<RegionSlice>> {
        pieces.iter().map(Piece::slice).collect()
    }

    pub(crate) fn total(pieces: &[Piece]) -> usize {
        pieces.iter().fold(0, |total, piece| total.saturating_add(piece.len))
    }
}

impl Remote {
    /// Of an open aperture: how it is reached is settled.
    pub(crate) fn new(aperture: Aperture, socket: u64, tag: u64) -> Remote {
        let copied = aperture.cookie().is_empty() || aperture.read(0, &mut []).unwrap_or(false);
        Remote { mapped: copied, aperture, socket, tag }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.aperture.cookie().len()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What this end may do with it.
    pub fn rights(&self) -> Rights {
        self.aperture.cookie().rights()
    }

    /// What its owner said when it exported it.
    pub fn tag(&self) -> u64 {
        self.tag
    }

    /// Whether this end has the memory itself mapped, for reading at least.
    #[inline]
    pub fn is_mapped(&self) -> bool {
        self.mapped
    }

    /// Whether reads need nothing of its owner. Otherwise the owner's library carries them out, at its next call.
    pub fn reads_directly(&self) -> bool {
        self.aperture.reads_directly()
    }
}
