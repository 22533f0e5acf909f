//! Gather and scatter lists: parts of regions that one transfer takes its bytes from, or puts them into, one after the other.

use sidestep_shm::{Memory, Span, last_word::WORD};

use crate::{error::Result, region::RegionSlice};

/// The local side of a transfer.
#[derive(Debug, Clone)]
pub(super) enum Pieces {
    One(RegionSlice),
    Many(Vec<RegionSlice>),
}

/// Bytes of a piece that lie together: where, from which byte of the span on, and how many.
pub(super) type Run<'a> = (&'a Span, usize, usize);

impl Pieces {
    pub(super) fn of(slices: &[RegionSlice]) -> Pieces {
        match slices {
            [one] => Pieces::One(one.clone()),
            many => Pieces::Many(many.to_vec()),
        }
    }

    pub(super) fn slices(&self) -> &[RegionSlice] {
        match self {
            Pieces::One(one) => std::slice::from_ref(one),
            Pieces::Many(many) => many,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slices().iter().map(RegionSlice::len).sum()
    }

    /// The bytes `from .. from + count`, as they lie together.
    pub(super) fn runs(&self, from: usize, count: usize) -> impl Iterator<Item = Run<'_>> {
        let (mut skip, mut left) = (from, count);
        self.slices().iter().filter_map(move |slice| {
            let at = skip.min(slice.len());
            skip -= at;
            let taken = left.min(slice.len() - at);
            left -= taken;
            (taken > 0).then(|| (&slice.core().data, slice.offset() + at, taken))
        })
    }

    /// The part `from .. from + count`, if it lies in one of the slices.
    pub(super) fn part(&self, from: usize, count: usize) -> Option<RegionSlice> {
        let mut start = 0;
        for slice in self.slices() {
            if from < start + slice.len() {
                return (from + count <= start + slice.len()).then(|| slice.part(from - start, count));
            }
            start += slice.len();
        }
        None
    }

    /// Copies bytes from `from` on.
    pub(super) fn copy_out(&self, from: usize, bytes: &mut [u8]) -> Result<()> {
        let mut done = 0;
        for (span, at, count) in self.runs(from, bytes.len()) {
            span.copy_out(at, &mut bytes[done..done + count])?;
            done += count;
        }
        Ok(())
    }

    /// Copies bytes in from `from` on.
    pub(super) fn copy_in(&self, from: usize, bytes: &[u8]) -> Result<()> {
        let mut done = 0;
        for (span, at, count) in self.runs(from, bytes.len()) {
            span.copy_in(at, &bytes[done..done + count])?;
            done += count;
        }
        Ok(())
    }

    /// Copies the bytes `from .. from + count` to `to` of a span, the last word as one and after the bytes before it,
    /// also where it comes from two pieces.
    pub(super) fn write_to(&self, target: &Span, to: usize, from: usize, count: usize) -> Result<()> {
        if let Pieces::One(source) = self {
            return Ok(target.copy_from_in_order(to, &source.core().data, source.offset() + from, count)?);
        }
        let word = self.split_word(count);
        let mut done = 0;
        for (span, at, len) in self.runs(from, count - word) {
            target.copy_from(to + done, span, at, len)?;
            done += len;
        }
        let mut last = [0; WORD];
        self.copy_out(from + done, &mut last[..word])?;
        Ok(target.copy_in_order(to + done, &last[..word])?)
    }

    /// How many of the last of `count` bytes must be put together to be stored as one.
    pub(super) fn split_word(&self, count: usize) -> usize {
        match self {
            Pieces::One(_) => 0,
            Pieces::Many(_) => count.min(WORD),
        }
    }

    /// A copy of at most a word of bytes from `from` on, which may come from several pieces.
    pub(super) fn together(&self, from: usize, count: usize) -> Result<Span> {
        let mut bytes = [0; WORD];
        self.copy_out(from, &mut bytes[..count])?;
        let copy = Memory::heap(count)?.span(0, count)?;
        copy.copy_in(0, &bytes[..count])?;
        Ok(copy)
    }
}
