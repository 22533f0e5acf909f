//! The reading end of a byte ring. The invariants are those of the module above.

use crate::{
    Error, Result, Span,
    sync::{Ordering, head_publish, tail_observe, tail_want},
};

use super::*;

/// A producer sees by what it is told that the consumer moves: one that takes 30 MB/s moves within 8 ms, whatever the ring's size.
const MOST_UNTOLD: u64 = 256 << 10;

impl Consumer {
    /// Takes up the reading end.
    pub fn new(parts: Parts) -> Result<Consumer> {
        let (mask, begin) = (ring_mask(&parts.ring)?, parts.begin);
        Ok(Consumer {
            ring: parts.ring,
            tail: parts.tail,
            core: parts.core,
            switch: parts.switch,
            head: parts.head,
            read: begin,
            known_tail: begin,
            published: begin,
            viewed: begin,
            next: None,
            switched: 0,
            mask,
            end: End::Open,
            surrendered: false,
        })
    }

    /// Ring size in bytes.
    pub fn capacity(&self) -> usize {
        self.mask as usize + 1
    }

    /// Position of the next byte to read.
    pub fn position(&self) -> u64 {
        self.read
    }

    /// Where the next byte to read lies, or will, for hints to the processor.
    #[cfg(not(loom))]
    #[inline]
    pub fn next_place(&self) -> *const u8 {
        self.ring.place((self.read & self.mask) as usize)
    }

    /// Readable bytes; looks at the producer's copy only if none are known.
    #[inline]
    pub fn available(&mut self) -> Result<usize> {
        if self.known_tail == self.read {
            self.refresh()?;
        }
        Ok(self.readable() as usize)
    }

    /// Bytes that have come, after a fresh look at the producer's copy; also those that lie in the next ring.
    #[inline]
    pub fn available_now(&mut self) -> Result<usize> {
        self.refresh()?;
        if self.next.is_some() { self.available_across() } else { Ok(self.readable() as usize) }
    }

    #[cold]
    fn available_across(&mut self) -> Result<usize> {
        self.viewed = self.known_tail;
        self.look_across()?;
        Ok((self.viewed - self.read) as usize)
    }

    /// Whether bytes are known that were not read. Looks at nothing.
    #[inline]
    pub fn has_known(&self) -> bool {
        self.known_tail != self.read
    }

    /// Whether a look at the published tail would find something new. Touches nothing.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.has_known() || self.tail.load(Ordering::Relaxed) & POSITION != self.known_tail && self.end < End::Wanted
    }

    /// The core the producer last published on.
    #[inline]
    pub fn producer_core(&self) -> u32 {
        self.core.load(Ordering::Relaxed) as u32
    }

    /// Copies bytes out from `skip` bytes ahead, without consuming them, after a fresh look; also those that lie in the next ring.
    pub fn peek_now(&mut self, skip: usize, bytes: &mut [u8]) -> Result<usize> {
        let count = self.available_now()?.saturating_sub(skip).min(bytes.len());
        if count == 0 || self.next.is_none() {
            return self.peek(skip, &mut bytes[..count]);
        }
        self.latest_view().copy_out(skip, &mut bytes[..count])?;
        Ok(count)
    }

    /// Copies bytes out from `skip` bytes ahead, without consuming them.
    #[inline]
    pub fn peek(&mut self, skip: usize, bytes: &mut [u8]) -> Result<usize> {
        let available = self.available()?;
        let count = available.saturating_sub(skip).min(bytes.len());
        copy_from_ring(&self.ring, self.mask, self.read.wrapping_add(skip as u64), &mut bytes[..count])?;
        Ok(count)
    }

    /// Copies bytes out from `skip` bytes ahead, without consuming them, if all of them are known. Looks at nothing.
    #[inline(always)]
    pub fn peek_known(&self, skip: usize, bytes: &mut [u8]) -> bool {
        let known = self.readable() as usize;
        if skip > known || bytes.len() > known - skip {
            return false;
        }
        copy_from_ring(&self.ring, self.mask, self.read.wrapping_add(skip as u64), bytes).is_ok()
    }

    /// A view of the readable bytes, if there are at least `min`. Looks at the producer's copy only if fewer are known.
    #[inline]
    pub fn view(&mut self, min: usize) -> Result<Option<View<'_>>> {
        Ok(if self.can_view(min)? { Some(self.latest_view()) } else { None })
    }

    /// Whether there are at least `min` bytes for a view.
    #[inline]
    pub fn can_view(&mut self, min: usize) -> Result<bool> {
        if self.readable() < min.max(1) as u64 {
            self.refresh()?;
        }
        self.viewed = self.known_tail;
        if self.readable() < min as u64 && self.next.is_some() {
            self.look_across()?;
        }
        Ok(self.viewed - self.read >= min as u64)
    }

    /// What [`can_view`](Self::can_view) has found.
    #[inline]
    pub fn latest_view(&self) -> View<'_> {
        let here = self.readable() as usize;
        let len = self.viewed.saturating_sub(self.read) as usize;
        let next = match &self.next {
            Some(ring) if len > here => Some((ring, ring.len() as u64 - 1)),
            _ => None,
        };
        let len = if next.is_some() { len } else { len.min(here) };
        View { ring: &self.ring, mask: self.mask, position: self.read, len, here: here.min(len), readable: here, next }
    }

    /// The largest view there can be.
    pub fn largest_view(&self) -> usize {
        self.next.as_ref().map_or(0, |ring| ring.len()).max(self.capacity())
    }

    /// Finds what lies behind the switch to the next ring, while bytes before it have not been read.
    #[cold]
    fn look_across(&mut self) -> Result<()> {
        let Some(next) = &self.next else { return Ok(()) };
        let mark = self.switch.load(Ordering::Acquire);
        // `refresh` has checked the mark that it stopped at.
        if mark == self.switched || mark.wrapping_sub(1) != self.known_tail || self.end >= End::Wanted {
            return Ok(());
        }
        let mask = ring_mask(next)?;
        // Pairs with `Producer::publish`: payload visible.
        let tail = self.tail.load(tail_observe()) & POSITION;
        if tail < self.known_tail || tail - self.known_tail > mask + 1 {
            return Err(bad_tail(tail < self.known_tail));
        }
        self.viewed = tail;
        Ok(())
    }

    /// What the producer says about how far it has written and whether that is the end. For comparison only.
    #[inline]
    pub fn tail_now(&self) -> u64 {
        self.tail.load(Ordering::Relaxed)
    }

    /// Bytes that were consumed and that the producer has not been told of.
    #[inline]
    pub fn untold(&self) -> u64 {
        self.read - self.published
    }

    /// Copies bytes out and consumes them.
    #[inline]
    pub fn copy_out(&mut self, bytes: &mut [u8]) -> Result<usize> {
        let count = self.peek(0, bytes)?;
        self.consume(count);
        Ok(count)
    }

    /// Copies out at most `len` bytes that are readable to `at` of `target`, and consumes them.
    #[cfg(not(loom))]
    #[inline]
    pub fn copy_out_to(&mut self, target: &Span, at: usize, len: usize) -> Result<usize> {
        let count = self.available()?.min(len);
        let index = (self.read & self.mask) as usize;
        let first = count.min(self.mask as usize + 1 - index);
        target.copy_from(at, &self.ring, index, first)?;
        if first < count {
            target.copy_from(at + first, &self.ring, 0, count - first)?;
        }
        self.consume(count);
        Ok(count)
    }

    /// Steps over at most what is readable, or was in a view.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        let here = (count as u64).min(self.readable());
        self.read += here;
        if self.viewed > self.read && here < count as u64 {
            self.consume_across(count as u64 - here);
        }
    }

    /// The rest of a view that began before the switch to the next ring.
    #[cold]
    fn consume_across(&mut self, count: u64) {
        // What is wrong with the producer's words is found by the next look, too.
        if self.refresh().is_ok() {
            self.read += count.min(self.viewed.saturating_sub(self.read)).min(self.readable());
        }
    }

    /// Whether enough was consumed that the producer should be told: a quarter of the ring, or 256 KiB.
    #[inline]
    pub fn owes_head(&self) -> bool {
        self.untold() > (self.mask >> 2).min(MOST_UNTOLD)
    }

    /// Tells the producer what has been consumed.
    #[inline]
    pub fn publish_head(&mut self) {
        if self.surrendered {
            return;
        }
        // Pairs with `Producer::refresh`: reads of the consumed bytes come before the head.
        self.head.store(self.read, head_publish());
        self.published = self.read;
    }

    /// Ends the ring (B5). Returns the position at which it ends: bytes before it are read as ever.
    pub fn freeze(&mut self) -> Result<u64> {
        self.tail.fetch_or(FROZEN, Ordering::Relaxed);
        self.refresh()?;
        self.end_position().ok_or_else(bad_end)
    }

    /// The position at which the ring ends, if it has an end.
    pub fn end_position(&self) -> Option<u64> {
        match self.end {
            End::Open => None,
            // What is known may be the end of the ring before a larger one.
            End::Frozen | End::Wanted => Some(self.tail.load(Ordering::Relaxed) & POSITION),
            End::Taken => Some(self.read),
        }
    }

    /// Ends the ring, and wants what was not read to come in another way (B6). `false`: everything was read.
    pub fn want(&mut self) -> Result<bool> {
        if matches!(self.end, End::Wanted | End::Taken) {
            // One wish is enough: a second one would lie over the answer to the first.
            return Ok(!self.is_taken()?);
        }
        self.publish_head();
        (self.known_tail, self.viewed) = (self.read, self.read);
        self.end = End::Wanted;
        // Pairs with `Producer::take`: the head before it. One step with the freeze: what the producer finds, it finds at once.
        let held = self.tail.fetch_or(FROZEN | WANTED, tail_want());
        if held & POSITION == self.read {
            // Nothing is wanted; that it was taken meanwhile is the same.
            self.withdraw()?;
            return Ok(false);
        }
        Ok(true)
    }

    /// Whether that is so, and was not known to be decided when this side last looked.
    pub fn is_wanted(&self) -> bool {
        self.end == End::Wanted
    }

    /// Whether what was wanted has been taken: it comes in another way, and the ring ends here.
    pub fn is_taken(&mut self) -> Result<bool> {
        self.refresh()?;
        Ok(self.end == End::Taken)
    }

    /// Reads on after all. `false`: it was taken, and the ring ends here.
    pub fn withdraw(&mut self) -> Result<bool> {
        if self.end == End::Wanted {
            let held = self.tail.load(Ordering::Relaxed);
            let wanted = held & POSITION | FROZEN | WANTED;
            if held == wanted && self.tail.compare_exchange(wanted, wanted & !WANTED, Ordering::Relaxed) == wanted {
                self.end = End::Frozen;
            }
            self.refresh()?;
        }
        match self.end {
            End::Wanted => Err(bad_end()),
            end => Ok(end != End::Taken),
        }
    }

    /// Allows the producer to go on in a larger ring. Nothing moves until the producer does.
    pub fn offer(&mut self, ring: Span) -> Result<()> {
        ring_mask(&ring)?;
        self.next = Some(ring);
        Ok(())
    }

    /// Whether a larger ring is on offer that the producer has not gone on in, or this side has not followed.
    pub fn has_offer(&self) -> bool {
        self.next.is_some()
    }

    /// Bytes that may be read before the tail, or before the switch.
    #[inline]
    fn readable(&self) -> u64 {
        self.known_tail - self.read
    }

    /// Reads the producer's copy once and checks it (B2).
    #[inline]
    fn refresh(&mut self) -> Result<()> {
        // Pairs with `Producer::publish`: payload visible.
        let tail = self.tail.load(tail_observe());
        if tail > POSITION {
            return self.refresh_frozen(tail);
        }
        if self.next.is_some() {
            return self.cross_switch(tail);
        }
        if tail < self.known_tail || tail - self.read > self.mask + 1 {
            return Err(bad_tail(tail < self.known_tail));
        }
        self.known_tail = tail;
        Ok(())
    }

    /// As `refresh`, of a tail with bits (B7).
    #[cold]
    fn refresh_frozen(&mut self, tail: u64) -> Result<()> {
        let bits = tail & !POSITION;
        match (self.end, bits) {
            (End::Open | End::Frozen, FROZEN) => self.end = End::Frozen,
            // Nothing is read until it is decided.
            (End::Wanted, bits) if bits == FROZEN | WANTED => return Ok(()),
            (End::Wanted | End::Taken, bits) if bits == FROZEN | TAKEN => {
                self.end = End::Taken;
                return Ok(());
            }
            _ => return Err(bad_end()),
        }
        let tail = tail & POSITION;
        if self.next.is_some() {
            return self.cross_switch(tail);
        }
        if tail < self.known_tail || tail - self.read > self.mask + 1 {
            return Err(bad_tail(tail < self.known_tail));
        }
        self.known_tail = tail;
        Ok(())
    }

    /// As `refresh`, while a larger ring is on offer: stops at the switch, and crosses it when all before is read.
    #[cold]
    fn cross_switch(&mut self, tail: u64) -> Result<()> {
        let mark = self.switch.load(Ordering::Acquire);
        let old_capacity = self.mask + 1;
        let at = mark.wrapping_sub(1);
        // A mark beyond this tail was made after it: everything before this tail lies in the old ring.
        if mark == self.switched || at > tail {
            if tail < self.known_tail || tail - self.read > old_capacity {
                return Err(bad_tail(tail < self.known_tail));
            }
            self.known_tail = tail;
            return Ok(());
        }
        if at < self.known_tail || at - self.read > old_capacity {
            return Err(Error::Peer("its switch to the next ring is at an impossible position"));
        }
        if self.read < at {
            self.known_tail = at;
            return Ok(());
        }
        let Some(next) = self.next.take() else { return Ok(()) };
        self.mask = ring_mask(&next)?;
        self.ring = next;
        self.switched = mark;
        if tail - self.read > self.mask + 1 {
            return Err(bad_tail(false));
        }
        self.known_tail = tail;
        Ok(())
    }
}
