//! Regions of a peer whose pages are mapped here.

use sidestep_shm::{
    self as shm, Memory, Span,
    read_only::ReadOnlyMemory,
    watch::{self, WATCHED_WORD, WORDS_PER_LINE, Watch},
};

use crate::{cookie::Cookie, error::Result, region::Layout, tripwire::Access};

/// Mapped for reading and writing.
#[derive(Debug)]
pub(crate) struct Mapped {
    pub(crate) memory: Memory,
    pub(crate) data: Span,
    pub(crate) writes: Watch,
    pub(crate) reads: Watch,
}

/// Mapped for reading.
#[derive(Debug)]
pub(crate) struct Readable {
    memory: ReadOnlyMemory,
    layout: Layout,
}

impl Mapped {
    pub(super) fn new(cookie: &Cookie, memory: Memory) -> Result<Mapped> {
        let layout = layout_of(cookie, memory.len())?;
        Ok(Mapped {
            data: memory.span(0, layout.len)?,
            writes: layout.watch(&memory, Access::Write)?,
            reads: layout.watch(&memory, Access::Read)?,
            memory,
        })
    }
}

impl Readable {
    pub(super) fn new(cookie: &Cookie, memory: ReadOnlyMemory) -> Result<Readable> {
        Ok(Readable { layout: layout_of(cookie, memory.len())?, memory })
    }

    /// Copies `len` bytes from `offset` on. That they lie in the region is the caller's to check.
    pub(crate) fn copy_to(&self, offset: usize, into: &Span, at: usize, len: usize) -> Result<()> {
        Ok(self.memory.copy_to(offset, into, at, len)?)
    }

    /// As `copy_to`, into memory of the caller.
    #[inline]
    pub(crate) fn copy_out(&self, offset: usize, bytes: &mut [u8]) -> Result<()> {
        Ok(self.memory.copy_out(offset, bytes)?)
    }

    /// The words among these bytes whose reads the owner watches: by line of armed bits, from the first of them to the last,
    /// as offset and length.
    pub(super) fn watched(&self, offset: usize, len: usize) -> impl Iterator<Item = (usize, (usize, usize))> {
        watch::lines(offset, len).filter_map(|(line, mask)| {
            let armed = self.memory.load64(self.layout.reads + line * 8).unwrap_or(0) & mask;
            let (first, last) =
                (armed.trailing_zeros() as usize, 63_usize.checked_sub(armed.leading_zeros() as usize)?);
            let start = (line * WORDS_PER_LINE + first) * WATCHED_WORD;
            let end = (line * WORDS_PER_LINE + last + 1) * WATCHED_WORD;
            Some((line, (start, end.min(self.layout.len) - start)))
        })
    }
}

fn layout_of(cookie: &Cookie, mapped: usize) -> Result<Layout> {
    let layout = Layout::new(cookie.len())?;
    if mapped != layout.total {
        return Err(shm::Error::Foreign("its size is not that of the region").into());
    }
    Ok(layout)
}
