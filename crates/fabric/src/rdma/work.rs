//! Work for an RDMA queue: one request that was checked, and groups of them.

use std::borrow::Cow;

use crate::{
    aperture::Aperture,
    cookie::Rights,
    error::{Refusal, Result},
    link::Atomic,
    region::RegionSlice,
};

use super::{operation::Operation, pieces::Pieces};

/// Requests that belong together. They are posted at once, all or none, and what fits into one turn of the queue is served
/// in one turn: no request of another queue comes in between.
#[derive(Debug, Default)]
pub struct Group {
    pub(super) work: Vec<Work<'static>>,
}

/// One request. Its target is the caller's until it is kept: most requests are done at once.
#[derive(Debug)]
pub(super) struct Work<'a> {
    pub(super) operation: Operation,
    pub(super) target: Cow<'a, Aperture>,
    pub(super) offset: usize,
    pub(super) len: usize,
}

impl Group {
    /// A group without requests.
    pub fn new() -> Group {
        Group::default()
    }

    /// Adds what [`RdmaQueue::write`](super::RdmaQueue::write) posts.
    pub fn write(&mut self, source: &RegionSlice, target: &Aperture, offset: usize) -> Result<&mut Group> {
        self.gather(std::slice::from_ref(source), target, offset)
    }

    /// Adds what [`RdmaQueue::gather`](super::RdmaQueue::gather) posts.
    pub fn gather(&mut self, sources: &[RegionSlice], target: &Aperture, offset: usize) -> Result<&mut Group> {
        self.add(Work::write(sources, Cow::Owned(target.clone()), offset))
    }

    /// Adds what [`RdmaQueue::immediate`](super::RdmaQueue::immediate) posts.
    pub fn immediate(&mut self, target: &Aperture, offset: usize, value: u32) -> Result<&mut Group> {
        self.add(Work::immediate(Cow::Owned(target.clone()), offset, value))
    }

    /// Adds what [`RdmaQueue::read`](super::RdmaQueue::read) posts.
    pub fn read(&mut self, target: &Aperture, offset: usize, into: &RegionSlice) -> Result<&mut Group> {
        self.scatter(target, offset, std::slice::from_ref(into))
    }

    /// Adds what [`RdmaQueue::scatter`](super::RdmaQueue::scatter) posts.
    pub fn scatter(&mut self, target: &Aperture, offset: usize, into: &[RegionSlice]) -> Result<&mut Group> {
        self.add(Work::read(Cow::Owned(target.clone()), offset, into))
    }

    /// How many requests.
    pub fn len(&self) -> usize {
        self.work.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.work.is_empty()
    }

    fn add(&mut self, work: Result<Work<'static>>) -> Result<&mut Group> {
        self.work.push(work?);
        Ok(self)
    }
}

impl<'a> Work<'a> {
    /// To be kept.
    pub(super) fn into_owned(self) -> Work<'static> {
        Work {
            target: Cow::Owned(self.target.into_owned()),
            operation: self.operation,
            offset: self.offset,
            len: self.len,
        }
    }

    pub(super) fn is_mapped(&self) -> bool {
        self.operation.is_mapped(&self.target)
    }

    /// Does all of it, to memory that is mapped.
    #[inline]
    pub(super) fn carry_out(&self) -> Result<()> {
        self.operation.move_bytes(&self.target, self.offset, 0, self.len)?;
        self.operation.report(&self.target, self.offset, self.len);
        Ok(())
    }

    pub(super) fn write(sources: &[RegionSlice], target: Cow<'a, Aperture>, offset: usize) -> Result<Work<'a>> {
        let pieces = Pieces::of(sources);
        let len = pieces.len();
        target.check(offset, len, Rights::WRITE)?;
        Ok(Work { operation: Operation::Write(pieces), target, offset, len })
    }

    pub(super) fn immediate(target: Cow<'a, Aperture>, offset: usize, value: u32) -> Result<Work<'a>> {
        target.check(offset, 4, Rights::WRITE)?;
        aligned(offset, 4)?;
        Ok(Work { operation: Operation::Immediate(value), target, offset, len: 4 })
    }

    pub(super) fn read(target: Cow<'a, Aperture>, offset: usize, into: &[RegionSlice]) -> Result<Work<'a>> {
        let pieces = Pieces::of(into);
        let len = pieces.len();
        target.check(offset, len, Rights::READ)?;
        Ok(Work { operation: Operation::Read(pieces), target, offset, len })
    }

    pub(super) fn atomic(
        target: Cow<'a, Aperture>,
        offset: usize,
        atomic: Atomic,
        into: &RegionSlice,
    ) -> Result<Work<'a>> {
        target.check(offset, 8, Rights::ATOMIC)?;
        aligned(offset, 8)?;
        into.word64(0)?;
        Ok(Work { operation: Operation::Atomic(atomic, into.clone()), target, offset, len: 8 })
    }
}

fn aligned(offset: usize, to: usize) -> Result<()> {
    if offset % to != 0 {
        return Err(Refusal::Range { offset: offset as u64, len: to as u64 }.into());
    }
    Ok(())
}
