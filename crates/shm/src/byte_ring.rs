//! A ring of bytes with one producer and one consumer, in memory that the two do not trust each other with.
//!
//! The ring lies in the consumer's memory. Each side has the other's position as a *lazy copy* in its own
//! memory, so neither ever reads across:
//!
//! ```text
//!   consumer's memory: ring, tail (+ core, switch)   written by the producer
//!   producer's memory: head                          written by the consumer
//!   family memory of each side: its own position     never seen by the peer
//! ```
//!
//! # Invariants
//!
//! - **B1** Positions are 64-bit byte counts that only grow. A position belongs to the ring index
//!   `position & (capacity - 1)`.
//! - **B2** `head <= consumer position <= tail <= producer position <= head + capacity` in a correct pair. A
//!   copy received from the peer that would break this is refused and never used.
//! - **B3** The producer writes only ring bytes in `tail .. head + capacity`, the consumer reads only bytes in
//!   `head .. tail`: they never touch the same byte at once.
//! - **B4** Each side's own truth is its family word. It is stored before the published copy, so that a process
//!   that takes over publishes again what its predecessor may not have published.
//! - **B5** `frozen` is the top bit of `head`. Once it is set the consumer reads nothing at or after that
//!   position; these bytes belong to the producer again.

#[cfg(not(loom))]
use crate::cached::CachedFile;
use crate::{
    Error, Result, Span, Word64,
    sync::{HEAD_OBSERVE, HEAD_PUBLISH, Ordering, TAIL_OBSERVE, TAIL_PUBLISH, freeze_fence},
};

/// The writing end.
#[derive(Debug)]
pub struct Producer {
    ring: Span,
    tail: Word64,
    core: Word64,
    switch: Word64,
    head: Word64,
    /// B4: what has been published, ours alone.
    position: Word64,
    /// Bytes written, published or not.
    written: u64,
    /// Position up to which the ring is known to be free.
    limit: u64,
    /// The last head that was accepted.
    known_head: u64,
    /// Where the current ring began; space before it does not count.
    began: u64,
    mask: u64,
    /// The ring before the switch, for a consumer that leaves before it has crossed.
    before: Option<Before>,
}

#[derive(Debug)]
struct Before {
    ring: Span,
    began: u64,
    mask: u64,
}

/// The reading end.
#[derive(Debug)]
pub struct Consumer {
    ring: Span,
    tail: Word64,
    core: Word64,
    switch: Word64,
    head: Word64,
    /// B4: what has been consumed, ours alone.
    position: Word64,
    /// The same, at hand.
    read: u64,
    /// The last tail that was accepted.
    known_tail: u64,
    /// What the producer was last told.
    published: u64,
    /// A larger ring that the producer may switch to.
    next: Option<Span>,
    /// The last switch mark that was acted on.
    switched: u64,
    mask: u64,
}

/// The five words and the ring that make up one direction.
#[derive(Debug, Clone)]
pub struct Parts {
    /// The ring itself; its length is a power of two.
    pub ring: Span,
    /// Published by the producer.
    pub tail: Word64,
    /// The core the producer last published on.
    pub core: Word64,
    /// Position + 1 from which bytes lie in the next ring.
    pub switch: Word64,
    /// Published by the consumer.
    pub head: Word64,
    /// This side's own position.
    pub position: Word64,
}

/// What a freeze found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frozen {
    /// The consumer reads nothing at or after this position.
    pub position: u64,
    /// Whether bytes lay there that the producer must take back.
    pub unread: bool,
}

/// Top bit of `head`: the consumer has left.
pub const FROZEN: u64 = 1 << 63;

impl Producer {
    /// Takes up the writing end where the family word says it was left.
    pub fn new(parts: Parts) -> Result<Producer> {
        let mask = ring_mask(&parts.ring)?;
        let written = parts.position.load(Ordering::Relaxed);
        let mut producer = Producer {
            ring: parts.ring,
            tail: parts.tail,
            core: parts.core,
            switch: parts.switch,
            head: parts.head,
            position: parts.position,
            written,
            limit: written,
            known_head: written.saturating_sub(mask + 1),
            began: 0,
            mask,
            before: None,
        };
        producer.refresh()?;
        // B4. Pairs with `Consumer::refresh`.
        producer.tail.store(written, TAIL_PUBLISH);
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

    /// Makes everything written visible to the consumer.
    #[inline]
    pub fn publish(&mut self, core: u32) {
        self.position.store(self.written, Ordering::Relaxed);
        self.core.store(u64::from(core), Ordering::Relaxed);
        // Pairs with `Consumer::refresh`: the payload and the switch mark are visible before the tail is.
        self.tail.store(self.written, TAIL_PUBLISH);
    }

    /// Whether something was written and not published.
    pub fn has_unpublished(&self) -> bool {
        self.position.load(Ordering::Relaxed) != self.written
    }

    /// The position at which the consumer left, if it has. Call after a publish and a
    /// [`stored_fence`](crate::sync::stored_fence): then either the consumer's last look at the tail saw that
    /// publish, or this sees the freeze.
    #[inline]
    pub fn frozen(&self) -> Option<u64> {
        // Pairs with `Consumer::freeze`.
        let head = self.head.load(HEAD_OBSERVE);
        if head & FROZEN == 0 { None } else { Some(self.clamp(head & !FROZEN)) }
    }

    /// After a freeze: reads back bytes that the consumer did not take. Returns how many.
    pub fn take_back(&self, position: u64, bytes: &mut [u8]) -> Result<usize> {
        let oldest = self.before.as_ref().map_or(self.began, |before| before.began);
        let position = self.clamp(position).max(oldest);
        let count = ((self.written - position) as usize).min(bytes.len());
        let old = (self.began.saturating_sub(position) as usize).min(count);
        let (old_bytes, bytes) = bytes[..count].split_at_mut(old);
        if let Some(before) = &self.before {
            copy_from_ring(&before.ring, before.mask, position, old_bytes)?;
        }
        copy_from_ring(&self.ring, self.mask, position + old as u64, bytes)?;
        Ok(count)
    }

    /// Goes on in a larger ring, from the current position. Everything before it stays in the old one.
    pub fn switch_to(&mut self, ring: Span, core: u32) -> Result<()> {
        let mask = ring_mask(&ring)?;
        self.publish(core);
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
        let head = self.head.load(HEAD_OBSERVE) & !FROZEN;
        if head > self.written {
            return Err(Error::Peer("its read position is ahead of what was written"));
        }
        if head < self.known_head {
            return Err(Error::Peer("its read position went backwards, or lags by more than the ring"));
        }
        self.known_head = head;
        // Never below `written`: `known_head` starts within a ring of it, and `limit` bounds every write.
        self.limit = head.max(self.began) + self.mask + 1;
        Ok(())
    }

    /// A frozen position a correct consumer can have; any other is moved to the nearest one.
    fn clamp(&self, position: u64) -> u64 {
        position.clamp(self.known_head, self.written)
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

impl Consumer {
    /// Takes up the reading end where the family word says it was left.
    pub fn new(parts: Parts) -> Result<Consumer> {
        let mask = ring_mask(&parts.ring)?;
        let read = parts.position.load(Ordering::Relaxed);
        let switched = parts.switch.load(Ordering::Acquire);
        Ok(Consumer {
            ring: parts.ring,
            tail: parts.tail,
            core: parts.core,
            switch: parts.switch,
            head: parts.head,
            position: parts.position,
            read,
            known_tail: read,
            // B4: as if nothing had been told, so that what is consumed next is.
            published: read.saturating_sub(mask + 1),
            next: None,
            switched: if switched <= read { switched } else { 0 },
            mask,
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

    /// Readable bytes after a fresh look at the producer's copy.
    #[inline]
    pub fn available_now(&mut self) -> Result<usize> {
        self.refresh()?;
        Ok(self.readable() as usize)
    }

    /// Whether a look at the published tail would find something new. Touches nothing.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.known_tail != self.read || self.tail.load(Ordering::Relaxed) != self.known_tail
    }

    /// The core the producer last published on.
    #[inline]
    pub fn producer_core(&self) -> u32 {
        self.core.load(Ordering::Relaxed) as u32
    }

    /// Copies bytes out from `skip` bytes ahead, without consuming them.
    #[inline]
    pub fn peek(&mut self, skip: usize, bytes: &mut [u8]) -> Result<usize> {
        let available = self.available()?;
        let count = available.saturating_sub(skip).min(bytes.len());
        copy_from_ring(&self.ring, self.mask, self.read.wrapping_add(skip as u64), &mut bytes[..count])?;
        Ok(count)
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

    /// Steps over at most what is readable.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        self.read += (count as u64).min(self.readable());
        self.position.store(self.read, Ordering::Relaxed);
    }

    /// Whether enough was consumed that the producer should be told: a quarter of the ring.
    #[inline]
    pub fn owes_head(&self) -> bool {
        self.read - self.published > self.mask >> 2
    }

    /// Tells the producer what has been consumed.
    #[inline]
    pub fn publish_head(&mut self) {
        // Pairs with `Producer::refresh`: reads of the consumed bytes come before the head.
        self.head.store(self.read, HEAD_PUBLISH);
        self.published = self.read;
    }

    /// Leaves the ring: nothing at or after the current position will be read (B5).
    pub fn freeze(&mut self) -> Frozen {
        // Pairs with `Producer::refresh` and `Producer::frozen`.
        self.head.store(self.read | FROZEN, HEAD_PUBLISH);
        // SeqCst: with the producer's publish-fence-look, at least one side sees the other (docs/fabric.md).
        freeze_fence();
        let unread = self.tail.load(Ordering::Relaxed) != self.read;
        Frozen { position: self.read, unread }
    }

    /// Allows the producer to go on in a larger ring. Nothing moves until the producer does.
    pub fn offer(&mut self, ring: Span) -> Result<()> {
        ring_mask(&ring)?;
        self.next = Some(ring);
        Ok(())
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
        let tail = self.tail.load(TAIL_OBSERVE);
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

fn bad_tail(backwards: bool) -> Error {
    Error::Peer(if backwards {
        "its write position went backwards"
    } else {
        "its write position is ahead of the ring's space"
    })
}

fn ring_mask(ring: &Span) -> Result<u64> {
    let len = ring.len();
    if !len.is_power_of_two() || len > 1 << 40 {
        return Err(Error::Size { what: "ring", must: "a power of two", value: len });
    }
    Ok(len as u64 - 1)
}

#[inline]
fn copy_from_ring(ring: &Span, mask: u64, position: u64, bytes: &mut [u8]) -> Result<()> {
    let at = (position & mask) as usize;
    if bytes.len() <= mask as usize + 1 - at {
        return ring.copy_out(at, bytes);
    }
    copy_around(ring, at, bytes)
}

/// As `copy_from_ring`, over the end of the ring.
#[inline(never)]
fn copy_around(ring: &Span, at: usize, bytes: &mut [u8]) -> Result<()> {
    let (first, rest) = bytes.split_at_mut(ring.len() - at);
    ring.copy_out(at, first)?;
    ring.copy_out(0, rest)
}
