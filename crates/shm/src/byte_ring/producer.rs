//! The writing end of a byte ring. The invariants are those of the module above.

#[cfg(not(loom))]
use crate::cached::CachedFile;
use crate::{
    Error, Result, Span,
    sync::{Ordering, head_observe, tail_publish, tail_take},
};

use super::*;

/// What processors move between their caches at a time.
const LINE: u64 = 64;
/// A page is in memory or not as a whole.
const PAGE: u64 = 4096;

impl Producer {
    /// Takes up the writing end.
    pub fn new(parts: Parts) -> Result<Producer> {
        let (mask, begin) = (ring_mask(&parts.ring)?, parts.begin);
        let mut producer = Producer {
            ring: parts.ring,
            tail: parts.tail,
            core: parts.core,
            switch: parts.switch,
            head: parts.head,
            written: begin,
            published: begin,
            end: End::Open,
            limit: begin,
            known_head: begin,
            began: 0,
            mask,
            before: None,
        };
        producer.refresh()?;
        Ok(producer)
    }

    /// Ring size in bytes.
    pub fn capacity(&self) -> usize {
        self.mask as usize + 1
    }

    /// Position after the last byte written, published or not.
    #[inline]
    pub fn position(&self) -> u64 {
        self.written
    }

    /// How far the consumer is known to have read.
    pub fn known_head(&self) -> u64 {
        self.known_head
    }

    /// Where the next byte to write belongs, for hints to the processor.
    #[cfg(not(loom))]
    #[inline]
    pub fn next_place(&self) -> *const u8 {
        self.ring.place((self.written & self.mask) as usize)
    }

    /// Free bytes; looks at the consumer's copy only if fewer than `wanted` are known.
    #[inline]
    pub fn space(&mut self, wanted: usize) -> Result<usize> {
        if (self.limit - self.written) < wanted as u64 {
            self.refresh()?;
        }
        Ok((self.limit - self.written) as usize)
    }

    /// Copies in as much of `bytes` as fits, without publishing it.
    #[inline]
    pub fn copy_in(&mut self, bytes: &[u8]) -> Result<usize> {
        let count = self.space(bytes.len())?.min(bytes.len());
        self.place(self.written, &bytes[..count])?;
        self.written += count as u64;
        Ok(count)
    }

    /// Copies bytes to `at` bytes behind the last one written, where they are part of the stream once [`advance`](Self::advance)
    /// has passed them. They must lie in what is known to be free.
    #[inline]
    pub fn copy_ahead(&mut self, at: usize, bytes: &[u8]) -> Result<()> {
        self.check_ahead(at, bytes.len())?;
        self.place(self.written + at as u64, bytes)
    }

    /// Writes `len` bytes as [`copy_ahead`](Self::copy_ahead) does, which `make` gives eight at a time: it gets the offset of each
    /// eight from `at`. They go from registers to the ring.
    #[inline]
    pub fn fill_ahead(&mut self, at: usize, len: usize, mut make: impl FnMut(usize) -> [u8; 8]) -> Result<()> {
        self.check_ahead(at, len)?;
        let mut done = 0;
        while done < len {
            let position = self.written + (at + done) as u64;
            let index = (position & self.mask) as usize;
            let count = (len - done).min(self.mask as usize + 1 - index) / Span::LINE;
            if count > 0 {
                self.ring.fill_lines(index, count, |offset| make(done + offset))?;
                done += count * Span::LINE;
                continue;
            }
            let word = make(done);
            let rest = word.len().min(len - done);
            self.place(position, &word[..rest])?;
            done += rest;
        }
        Ok(())
    }

    /// Takes `count` bytes behind the last one written as written, without publishing them.
    #[inline]
    pub fn advance(&mut self, count: usize) -> Result<()> {
        self.check_ahead(0, count)?;
        self.written += count as u64;
        Ok(())
    }

    #[inline]
    fn check_ahead(&self, at: usize, len: usize) -> Result<()> {
        let free = (self.limit - self.written) as usize;
        if at > free || len > free - at {
            return Err(Error::Range { offset: at, len, size: free });
        }
        Ok(())
    }

    /// Gives the pages of what is free back to the machine, and returns how many bytes that were. By B3 nobody else touches
    /// what is free: the consumer reads before `tail`, and there is one producer.
    #[cfg(not(loom))]
    pub fn release(&mut self) -> Result<usize> {
        let free = self.space(self.capacity())?;
        let index = (self.written & self.mask) as usize;
        let first = free.min(self.capacity() - index);
        Ok(self.ring.release(index, first)? + self.ring.release(0, free - first)?)
    }

    /// Copies in as much as fits of `len` bytes of `source`, from `at` on, without publishing it.
    #[cfg(not(loom))]
    #[inline]
    pub fn copy_in_from(&mut self, source: &Span, at: usize, len: usize) -> Result<usize> {
        let count = self.space(len)?.min(len);
        let index = (self.written & self.mask) as usize;
        let first = count.min(self.mask as usize + 1 - index);
        self.ring.copy_from(index, source, at, first)?;
        if first < count {
            self.ring.copy_from(0, source, at + first, count - first)?;
        }
        self.written += count as u64;
        Ok(count)
    }

    /// Reads in at most `len` bytes of a file, as far as they fit before the ring's end, without publishing them.
    #[cfg(not(loom))]
    pub fn read_in(&mut self, file: &CachedFile, offset: Option<u64>, len: usize) -> Result<usize> {
        let index = (self.written & self.mask) as usize;
        let most = self.space(len)?.min(len).min(self.mask as usize + 1 - index);
        // B3: these are the producer's bytes, whatever of them the kernel writes.
        let count = if most > 0 { file.read_into(&self.ring, index, most, offset) } else { 0 };
        self.written += count as u64;
        Ok(count)
    }

    /// Copies in all of `bytes` and leaves a gap up to `stride`, or does nothing if that does not fit.
    #[inline]
    pub fn copy_in_whole(&mut self, parts: [&[u8]; 2], stride: usize) -> Result<bool> {
        debug_assert!(parts[0].len() + parts[1].len() <= stride);
        if self.space(stride)? < stride {
            return Ok(false);
        }
        self.place(self.written, parts[0])?;
        self.place(self.written + parts[0].len() as u64, parts[1])?;
        self.written += stride as u64;
        Ok(true)
    }

    /// Makes everything written visible to the consumer. `false`: the ring has ended, or its word is not what a correct
    /// peer leaves there ([`frozen`](Self::frozen) tells); what was written since is to be [recalled](Self::recall).
    #[inline]
    #[must_use]
    pub fn publish(&mut self, core: u32) -> bool {
        self.core.store(u64::from(core), Ordering::Relaxed);
        // Pairs with `Consumer::refresh`: the payload and the switch mark are visible before the tail is. B5.
        let held = self.tail.compare_exchange(self.published, self.written, tail_publish());
        let is_ours = held == self.published;
        if is_ours {
            self.published = self.written;
            self.claim_line();
        }
        is_ours
    }

    /// Writes to the next line, if it is free, so that the processor gets it from the consumer's cache before the next message
    /// is there: the swap that publishes waits for every line written before it. A page that may not be in memory is left alone.
    #[inline]
    fn claim_line(&self) {
        let next = self.written.next_multiple_of(LINE);
        if next < self.limit && next % PAGE != 0 {
            // B3. Within the ring, whose size is a power of two.
            let _ = self.ring.copy_in((next & self.mask) as usize, &[0]);
        }
    }

    /// Whether something was written and not published.
    pub fn has_unpublished(&self) -> bool {
        self.published != self.written
    }

    /// Takes back what was written and not published.
    pub fn recall(&mut self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; (self.written - self.published) as usize];
        // Nothing is written in a larger ring before everything in the one before is published.
        copy_from_ring(&self.ring, self.mask, self.published, &mut bytes)?;
        self.written = self.published;
        Ok(bytes)
    }

    /// The end of the ring, if it has come: a look at the consumer's memory.
    pub fn frozen(&mut self) -> Result<Option<Frozen>> {
        let held = self.tail.load(Ordering::Relaxed);
        self.judge(held)
    }

    /// Whether the end has come, or the consumer's memory says something that [`frozen`](Self::frozen) has to judge.
    #[inline]
    pub fn is_ending(&self) -> bool {
        self.has_ended() || self.tail.load(Ordering::Relaxed) != self.published
    }

    /// Whether the end is known here.
    #[inline]
    pub fn has_ended(&self) -> bool {
        self.end != End::Open
    }

    /// B7.
    fn judge(&mut self, held: u64) -> Result<Option<Frozen>> {
        let position = self.published;
        if self.end == End::Taken {
            return Ok(Some(Frozen { position, wanted: false }));
        }
        let wanted = match held ^ position {
            0 if self.end == End::Open => return Ok(None),
            FROZEN => false,
            bits if bits == FROZEN | WANTED => true,
            _ => return Err(bad_end()),
        };
        self.end = End::Frozen;
        self.limit = self.written;
        Ok(Some(Frozen { position, wanted }))
    }

    /// Sets the end of the ring from this side.
    pub fn freeze(&mut self) -> Result<Frozen> {
        let held = self.tail.fetch_or(FROZEN, Ordering::Relaxed);
        let frozen = self.judge(held | FROZEN)?;
        frozen.ok_or_else(bad_end)
    }

    /// Takes what the consumer [wants](Consumer::want) to come in another way: the bytes that it has not read. From then
    /// on the ring ends before them. `None`: it does not want that, or not any more.
    pub fn take(&mut self) -> Result<Option<Vec<u8>>> {
        let wanted = self.published | FROZEN | WANTED;
        // Pairs with `Consumer::want`: its position is visible. B6.
        if self.tail.compare_exchange(wanted, self.published | FROZEN | TAKEN, tail_take()) != wanted {
            return Ok(None);
        }
        self.recall()?;
        self.refresh()?;
        let head = self.known_head;
        let mut bytes = vec![0; (self.published - head) as usize];
        let old = (self.began.saturating_sub(head) as usize).min(bytes.len());
        let (before, after) = bytes.split_at_mut(old);
        if let Some(ring) = self.before.as_ref().filter(|_| old > 0) {
            if head < ring.began {
                return Err(bad_end());
            }
            copy_from_ring(&ring.ring, ring.mask, head, before)?;
        }
        copy_from_ring(&self.ring, self.mask, head + old as u64, after)?;
        (self.written, self.published, self.limit, self.end) = (head, head, head, End::Taken);
        Ok(Some(bytes))
    }

    /// Goes on in a larger ring, from the current position. Everything before it stays in the old one.
    pub fn switch_to(&mut self, ring: Span, core: u32) -> Result<()> {
        let mask = ring_mask(&ring)?;
        if !self.publish(core) {
            return Err(Error::Peer("its ring has ended"));
        }
        let old = std::mem::replace(&mut self.ring, ring);
        self.before = Some(Before { ring: old, began: self.began, mask: self.mask });
        self.began = self.written;
        self.limit = self.written + mask + 1;
        self.mask = mask;
        // Seen before any tail beyond it, by the order of the tail; its own carries no weight.
        self.switch.store(self.written + 1, Ordering::Release);
        Ok(())
    }

    /// Reads the consumer's copy once, checks it (B2), and widens the limit.
    fn refresh(&mut self) -> Result<()> {
        // Pairs with `Consumer::publish_head`: the consumer has finished with the bytes before head.
        let head = self.head.load(head_observe());
        if head > self.published {
            return Err(Error::Peer("its read position is ahead of what was written"));
        }
        if head < self.known_head {
            return Err(Error::Peer("its read position went backwards, or lags by more than the ring"));
        }
        self.known_head = head;
        // Never below `written`: `known_head` starts within a ring of it, and `limit` bounds every write.
        if self.end == End::Open {
            self.limit = head.max(self.began) + self.mask + 1;
        }
        Ok(())
    }

    #[inline]
    fn place(&self, position: u64, bytes: &[u8]) -> Result<()> {
        let at = (position & self.mask) as usize;
        if bytes.len() <= self.mask as usize + 1 - at {
            return self.ring.copy_in(at, bytes);
        }
        self.place_around(at, bytes)
    }

    /// As `place`, over the end of the ring.
    #[inline(never)]
    fn place_around(&self, at: usize, bytes: &[u8]) -> Result<()> {
        let (first, rest) = bytes.split_at(self.mask as usize + 1 - at);
        self.ring.copy_in(at, first)?;
        self.ring.copy_in(0, rest)
    }
}
