//! Parts of a region, as source or target of transfers.

use std::sync::Arc;

use sidestep_shm::{self as shm, Span, Word64};

use super::{RegionCore, issued::Still};
use crate::error::Result;

/// A part of a region of this node, for use as source or target of transfers.
#[derive(Debug, Clone)]
pub struct RegionSlice {
    core: Arc<RegionCore>,
    offset: usize,
    len: usize,
}

impl RegionSlice {
    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the slice has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where it starts in its region.
    pub fn offset(&self) -> usize {
        self.offset
    }

    pub(super) fn new(core: Arc<RegionCore>, offset: usize, len: usize) -> RegionSlice {
        RegionSlice { core, offset, len }
    }

    pub(crate) fn core(&self) -> &Arc<RegionCore> {
        &self.core
    }

    /// A part of it.
    pub(crate) fn part(&self, at: usize, len: usize) -> RegionSlice {
        let at = at.min(self.len);
        RegionSlice { core: self.core.clone(), offset: self.offset + at, len: len.min(self.len - at) }
    }

    /// As long as this is held, no peer can change the bytes. `None` if one may at any time.
    pub(crate) fn hold_still(&self) -> Option<Still<'_>> {
        self.core.cookies.valid().still()
    }

    pub(crate) fn span(&self) -> Result<Span> {
        Ok(self.core.data.memory().span(self.offset, self.len)?)
    }

    pub(crate) fn word64(&self, at: usize) -> Result<Word64> {
        if at + 8 > self.len {
            return Err(shm::Error::Range { offset: at, len: 8, size: self.len }.into());
        }
        self.core.word64(self.offset + at)
    }
}
