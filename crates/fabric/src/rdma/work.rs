//! Work for an RDMA queue: one request that was checked, and groups of them.

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
    pub(super) work: Vec<Work>,
}

/// One request.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) operation: Operation,
    pub(super) target: Aperture,
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
        self.add(Work::write(sources, target, offset))
    }

    /// Adds what [`RdmaQueue::immediate`](super::RdmaQueue::immediate) posts.
    pub fn immediate(&mut self, target: &Aperture, offset: usize, value: u32) -> Result<&mut Group> {
        self.add(Work::immediate(target, offset, value))
    }

    /// Adds what [`RdmaQueue::read`](super::RdmaQueue::read) posts.
    pub fn read(&mut self, target: &Aperture, offset: usize, into: &RegionSlice) -> Result<&mut Group> {
        self.scatter(target, offset, std::slice::from_ref(into))
    }

    /// Adds what [`RdmaQueue::scatter`](super::RdmaQueue::scatter) posts.
    pub fn scatter(&mut self, target: &Aperture, offset: usize, into: &[RegionSlice]) -> Result<&mut Group> {
        self.add(Work::read(target, offset, into))
    }

    /// How many requests.
    pub fn len(&self) -> usize {
        self.work.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.work.is_empty()
    }

    fn add(&mut self, work: Result<Work>) -> Result<&mut Group> {
        self.work.push(work?);
        Ok(self)
    }
}

impl Work {
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

    pub(super) fn write(sources: &[RegionSlice], target: &Aperture, offset: usize) -> Result<Work> {
        let pieces = Pieces::of(sources);
        let len = pieces.len();
        target.check(offset, len, Rights::WRITE)?;
        Ok(Work { operation: Operation::Write(pieces), target: target.clone(), offset, len })
    }

    pub(super) fn immediate(target: &Aperture, offset: usize, value: u32) -> Result<Work> {
        target.check(offset, 4, Rights::WRITE)?;
        aligned(offset, 4)?;
        Ok(Work { operation: Operation::Immediate(value), target: target.clone(), offset, len: 4 })
    }

    pub(super) fn read(target: &Aperture, offset: usize, into: &[RegionSlice]) -> Result<Work> {
        let pieces = Pieces::of(into);
        let len = pieces.len();
        target.check(offset, len, Rights::READ)?;
        Ok(Work { operation: Operation::Read(pieces), target: target.clone(), offset, len })
    }

    pub(super) fn atomic(target: &Aperture, offset: usize, atomic: Atomic, into: &RegionSlice) -> Result<Work> {
        target.check(offset, 8, Rights::ATOMIC)?;
        aligned(offset, 8)?;
        into.word64(0)?;
        Ok(Work { operation: Operation::Atomic(atomic, into.clone()), target: target.clone(), offset, len: 8 })
    }
}

fn aligned(offset: usize, to: usize) -> Result<()> {
    if offset % to != 0 {
        return Err(Refusal::Range { offset: offset as u64, len: to as u64 }.into());
    }
    Ok(())
}
