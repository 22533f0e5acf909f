//! How one side's words and bytes reach the other's block: stores to mapped memory, or puts.

use std::sync::atomic::{AtomicU64, Ordering};

use sidestep_shm::{
    Memory, Span, Word64,
    sync::{stored_fence, swapped_fence},
    watch::WatchedWord,
};

use super::BLOCK_HEADER;
use crate::{aperture::Aperture, error::Result, tripwire::Access};

/// The way to one word of the peer's block (its tail or its head) and, for a tail, the ring behind it.
#[derive(Debug)]
pub(crate) enum Wire {
    /// The peer's memory is mapped: a store, a fence, a look at the armed bit.
    Mapped { memory: Memory, block: usize, word: usize, watched: WatchedWord, aperture: Aperture, alarms: AtomicU64 },
    /// Every store travels: the ring is written to a local copy first.
    Proxied { aperture: Aperture, block: usize, word: usize, shadow: Memory },
}

impl Wire {
    /// The way to the word `at` of the block at `block`.
    pub(crate) fn new(aperture: &Aperture, block: usize, at: usize) -> Result<Wire> {
        Ok(match aperture.mapped() {
            Some(mapped) => Wire::Mapped {
                memory: mapped.memory.clone(),
                block,
                word: block + at,
                watched: mapped
                    .writes
                    .word(block + at)
                    .ok_or(crate::error::Refusal::Range { offset: (block + at) as u64, len: 8 })?,
                aperture: aperture.clone(),
                alarms: AtomicU64::new(0),
            },
            None => Wire::Proxied {
                aperture: aperture.clone(),
                block,
                word: block + at,
                shadow: Memory::heap(BLOCK_HEADER)?,
            },
        })
    }

    /// A word of the peer's block to store into: the real one, or its local copy.
    pub(crate) fn word(&self, at: usize) -> Result<Word64> {
        Ok(match self {
            Wire::Mapped { memory, block, .. } => memory.word64(block + at)?,
            Wire::Proxied { shadow, .. } => shadow.word64(at)?,
        })
    }

    /// The peer's ring, or a local copy of it.
    pub(crate) fn ring(&self, offset: usize, capacity: usize) -> Result<Span> {
        Ok(match self {
            Wire::Mapped { memory, .. } => memory.span(offset, capacity)?,
            Wire::Proxied { .. } => Memory::heap(capacity)?.span(0, capacity)?,
        })
    }

    /// After the word was stored: lets it reach the peer, and wakes the peer if it armed the word.
    #[inline]
    pub(crate) fn stored(&self) -> Result<()> {
        match self {
            Wire::Mapped { watched, .. } => {
                // SeqCst: pairs with `WatchedWord::arm` of the peer, which looks at the word after arming.
                stored_fence();
                if watched.is_armed() {
                    self.alarm();
                }
                Ok(())
            }
            Wire::Proxied { .. } => self.send_word(),
        }
    }

    /// As [`stored`](Self::stored), right behind a compare-and-swap of the word.
    #[inline]
    pub(crate) fn swapped(&self) -> Result<()> {
        match self {
            Wire::Mapped { watched, .. } => {
                // As above.
                swapped_fence();
                if watched.is_armed() {
                    self.alarm();
                }
                Ok(())
            }
            Wire::Proxied { .. } => self.send_word(),
        }
    }

    /// Whether both sides change the same word.
    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self, Wire::Mapped { .. })
    }

    /// The peer armed the word: takes the firing upon us and delivers it.
    #[cold]
    #[inline(never)]
    fn alarm(&self) {
        let Wire::Mapped { watched, aperture, alarms, word, .. } = self else { return };
        if !watched.disarm() {
            return;
        }
        alarms.fetch_add(1, Ordering::Relaxed);
        aperture.report(*word, Access::Write);
    }

    /// How often an armed peer was told.
    #[inline]
    pub(crate) fn alarms(&self) -> u64 {
        match self {
            Wire::Mapped { alarms, .. } => alarms.load(Ordering::Relaxed),
            Wire::Proxied { .. } => 0,
        }
    }

    #[cold]
    fn send_word(&self) -> Result<()> {
        let Wire::Proxied { aperture, block, word, shadow } = self else { return Ok(()) };
        aperture.store64(*word, shadow.word64(word - block)?.load(Ordering::Relaxed))
    }

    /// Sends another word of the block.
    #[cold]
    pub(crate) fn send_other(&self, at: usize) -> Result<()> {
        let Wire::Proxied { aperture, block, shadow, .. } = self else { return Ok(()) };
        aperture.store64(block + at, shadow.word64(at)?.load(Ordering::Relaxed))
    }

    /// The aperture every store travels through, if the peer's memory is not mapped.
    pub(crate) fn aperture(&self) -> Option<Aperture> {
        match self {
            Wire::Mapped { .. } => None,
            Wire::Proxied { aperture, .. } => Some(aperture.clone()),
        }
    }
}

/// Sends the ring bytes `from .. to` of a local copy to the ring at `offset` of the peer's region.
pub(crate) fn send_ring(aperture: &Aperture, ring: &Span, offset: usize, from: u64, to: u64) -> Result<()> {
    let capacity = ring.len();
    let mut position = from;
    let mut buffer = Vec::new();
    while position < to {
        let at = position as usize & (capacity - 1);
        let count = ((to - position) as usize).min(capacity - at);
        buffer.resize(count, 0);
        ring.copy_out(at, &mut buffer)?;
        aperture.write(offset + at, &buffer)?;
        position += count as u64;
    }
    Ok(())
}
