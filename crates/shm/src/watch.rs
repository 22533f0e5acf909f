//! Armed words: which words of a memory its owner wants to be told about.
//!
//! One bit per 32-bit word of the watched memory. The owner sets a bit, and *then* looks at the word again;
//! a writer stores the word, and *then* looks at the bit. With a full fence between the two steps on both
//! sides at least one of them sees the other, so no write goes unnoticed. The bit is also the rule against
//! floods: whoever clears it owns the one event that may follow, and no other follows until the owner arms again.
//!
//! # Invariants
//!
//! - **W1** A bit goes from 0 to 1 only by its owner, who has no event of that word outstanding.
//! - **W2** A bit goes from 1 to 0 by one atomic step, whose doer delivers the event (or, if it is the owner,
//!   has no need of it).

use std::ops::Range;

use crate::{
    Memory, Result, Word64,
    memory::Words,
    sync::{Ordering, arm_fence, bit_observe, bit_take, stored_fence},
};

/// Bytes per watched word.
pub const WATCHED_WORD: usize = 4;
/// Watched words per line of armed bits.
pub const WORDS_PER_LINE: usize = 64;

/// The armed bits of one memory.
#[derive(Debug, Clone)]
pub struct Watch {
    lines: Words,
}

/// Bytes that the armed bits of `len` bytes of memory take.
pub const fn watch_len(len: usize) -> usize {
    len.div_ceil(WATCHED_WORD * WORDS_PER_LINE) * 8
}

/// The bit at hand for one word: what a ring looks at after every publish. Or the bits of several words of one line, for an
/// owner that watches them together.
#[derive(Debug, Clone)]
pub struct WatchedWord {
    line: Word64,
    bits: u64,
}

impl Watch {
    /// The armed bits at `offset` of `memory`, for `watched_len` bytes.
    pub fn new(memory: &Memory, offset: usize, watched_len: usize) -> Result<Watch> {
        let count = watch_len(watched_len) / 8;
        Ok(Watch { lines: memory.words(offset, count)? })
    }

    /// The word at byte `offset`, at hand. `None` outside the watched memory.
    pub fn word(&self, offset: usize) -> Option<WatchedWord> {
        let index = offset / WATCHED_WORD;
        let line = index / WORDS_PER_LINE;
        if line >= self.lines.count() {
            return None;
        }
        let line = self.lines.word(line);
        Some(WatchedWord { line, bits: 1 << (index % WORDS_PER_LINE) })
    }

    /// The words of the bytes `offset .. offset + len`, a line at a time. Those outside the watched memory are left out.
    pub fn range(&self, offset: usize, len: usize) -> impl Iterator<Item = WatchedWord> {
        let inside = lines(offset, len).take_while(|(index, _)| *index < self.lines.count());
        inside.map(|(index, bits)| WatchedWord { line: self.lines.word(index), bits })
    }

    /// Writer: after storing bytes `offset .. offset + len`, clears the armed bits among them and reports the byte
    /// offset of each word whose event is now the caller's to deliver (W2).
    pub fn fire(&self, offset: usize, len: usize, mut fired: impl FnMut(usize)) {
        if len == 0 || self.lines.count() == 0 {
            return;
        }
        // SeqCst: pairs with the fence in `WatchedWord::arm`.
        stored_fence();
        let touched = line_indices(offset, len);
        for index in touched.start..touched.end.min(self.lines.count()) {
            // Mostly: 64 KiB have 256 lines, so nothing more is done for each.
            if self.lines.load(index, Ordering::Relaxed) == 0 {
                continue;
            }
            let mask = line_mask(index, offset, len);
            let mut bits = self.lines.word(index).fetch_and(!mask, bit_take()) & mask;
            while bits != 0 {
                let bit = bits.trailing_zeros() as usize;
                bits &= bits - 1;
                fired((index * WORDS_PER_LINE + bit) * WATCHED_WORD);
            }
        }
    }
}

/// The lines of armed bits that the bytes `offset .. offset + len` have, each with the bits of those bytes.
pub fn lines(offset: usize, len: usize) -> impl Iterator<Item = (usize, u64)> {
    line_indices(offset, len).map(move |index| (index, line_mask(index, offset, len)))
}

#[inline]
fn line_indices(offset: usize, len: usize) -> Range<usize> {
    let (first, end) = (offset / WATCHED_WORD, (offset + len).div_ceil(WATCHED_WORD));
    let start = first / WORDS_PER_LINE;
    start..if len == 0 { start } else { end.div_ceil(WORDS_PER_LINE) }
}

/// The bits of those bytes in one of their lines.
fn line_mask(index: usize, offset: usize, len: usize) -> u64 {
    let (first, end) = (offset / WATCHED_WORD, (offset + len).div_ceil(WATCHED_WORD));
    let base = index * WORDS_PER_LINE;
    let low = first.max(base) - base;
    let high = end.min(base + WORDS_PER_LINE) - 1 - base;
    (u64::MAX >> (63 - (high - low))) << low
}

impl WatchedWord {
    /// Owner: arms the word. Look at the word again before relying on it.
    pub fn arm(&self) {
        // The order of this step itself carries no weight: the fence does more.
        self.line.fetch_or(self.bits, Ordering::AcqRel);
        // SeqCst: pairs with the fence of the writer. The owner's second look is ordered after the bit.
        arm_fence();
    }

    /// Owner: disarms the word. `true` if it was still armed, so that no event of it is on the way (W2); if
    /// not, the word that was written is visible.
    pub fn disarm(&self) -> bool {
        // Pairs with itself at the writer.
        self.line.fetch_and(!self.bits, bit_take()) & self.bits != 0
    }

    /// Whether the word is armed; of several words, all. If its owner armed it and it no longer is, the word that was written is visible.
    #[inline]
    pub fn is_armed(&self) -> bool {
        // Pairs with `disarm` at the writer.
        self.line.load(bit_observe()) & self.bits == self.bits
    }

    /// Writer: after storing the word and a [`stored_fence`]. `true` if its event is now the caller's to deliver.
    #[inline]
    pub fn fire(&self) -> bool {
        self.is_armed() && self.disarm()
    }
}
