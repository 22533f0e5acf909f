//! What a request does, where this process does it by itself: to memory that is mapped.

use std::sync::atomic::{Ordering, fence};

use sidestep_shm::Memory;

use crate::{
    aperture::{Aperture, Reach},
    error::Result,
    link::{Atomic, Outcome},
    region::{RegionSlice, perform},
    tripwire::Access,
};

use super::pieces::Pieces;

#[derive(Debug)]
pub(super) enum Operation {
    Write(Pieces),
    Immediate(u32),
    Read(Pieces),
    Atomic(Atomic, RegionSlice),
}

impl Operation {
    /// Whether it brings bytes that a later request may send.
    pub(super) fn fetches(&self) -> bool {
        matches!(self, Operation::Read(_) | Operation::Atomic(..))
    }

    /// Whether the memory is mapped for it.
    pub(super) fn is_mapped(&self, target: &Aperture) -> bool {
        target.is_mapped() || matches!(self, Operation::Read(_)) && target.readable().is_some()
    }

    /// Lets the owner know of what it watches, when bytes at `offset` of memory that is mapped have been moved.
    pub(super) fn report(&self, target: &Aperture, offset: usize, len: usize) {
        match self {
            Operation::Read(_) if !target.is_mapped() => target.report_reads(offset, len),
            Operation::Read(_) => target.fire(offset, len, Access::Read),
            _ => target.fire(offset, len, Access::Write),
        }
    }

    /// Moves bytes `from .. from + count` of the request, at `offset` of memory that is mapped.
    #[inline]
    pub(super) fn move_bytes(&self, target: &Aperture, offset: usize, from: usize, count: usize) -> Result<()> {
        let Some(mapped) = target.mapped() else {
            if let (Operation::Read(into), Some(readable)) = (self, target.readable()) {
                let mut done = offset + from;
                for (span, at, len) in into.runs(from, count) {
                    readable.copy_to(done, span, at, len)?;
                    done += len;
                }
            }
            return Ok(());
        };
        match self {
            Operation::Write(source) => source.write_to(&mapped.data, offset + from, from, count)?,
            Operation::Read(into) => {
                let mut done = offset + from;
                for (span, at, len) in into.runs(from, count) {
                    span.copy_from(at, &mapped.data, done, len)?;
                    done += len;
                }
                // The reads of a queue are in order. Pairs with the owner's Release stores.
                fence(Ordering::Acquire);
            }
            // Pairs with the owner's Acquire load: what the queue wrote before is visible.
            Operation::Immediate(value) => mapped.memory.store32(offset, *value, Ordering::Release)?,
            Operation::Atomic(atomic, into) => {
                let held = perform(&mapped.memory.word64(offset)?, *atomic);
                into.word64(0)?.store(held, Ordering::Release);
            }
        }
        Ok(())
    }

    /// Copies bytes `from .. from + count` of the request through the kernel, at `offset` of the memory. `false` if not all of
    /// them were copied, or it is an operation that only the owner can do.
    pub(super) fn copy_through(&self, reach: &Reach<'_>, offset: usize, from: usize, count: usize) -> Result<bool> {
        let start = offset + from;
        let mut done = 0;
        match self {
            Operation::Write(source) => {
                let word = source.split_word(count);
                let mut written = source.runs(from, count - word).all(|(span, at, len)| {
                    done += len;
                    reach.write((span, at, len), start + done - len)
                });
                if written && word > 0 {
                    let last = source.together(from + done, word)?;
                    written = reach.write((&last, 0, word), start + done);
                }
                Ok(written)
            }
            Operation::Read(into) => Ok(into.runs(from, count).all(|(span, at, len)| {
                done += len;
                reach.read((span, at, len), start + done - len)
            })),
            Operation::Immediate(value) => {
                let word = Memory::heap(4)?.span(0, 4)?;
                word.copy_in(0, &value.to_le_bytes())?;
                Ok(reach.write((&word, 0, 4), start))
            }
            Operation::Atomic(..) => Ok(false),
        }
    }

    /// Takes the link's answer to the piece that starts at `at`.
    pub(super) fn take(&self, at: usize, outcome: Outcome) -> Result<()> {
        match (outcome, self) {
            (Outcome::Refused(refusal), _) => Err(refusal.into()),
            (Outcome::Closed(reason), _) => Err(reason.into()),
            (Outcome::Failed(error), _) => Err(error),
            (Outcome::Bytes(bytes), Operation::Read(into)) => into.copy_in(at, &bytes),
            (Outcome::Value(held), Operation::Atomic(_, into)) => {
                into.word64(0)?.store(held, Ordering::Release);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
