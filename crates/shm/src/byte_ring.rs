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
//!   that takes over publishes again what its predecessor may not have published. A frozen tail is truer.
//! - **B5** The producer publishes by compare-and-swap on the tail that it published last. [`FROZEN`] in the tail is
//!   set by whoever holds either end, in one step, and never cleared. So exactly one tail is the last, and both sides
//!   know it without asking: bytes before it are the consumer's, and none come after it.
//! - **B6** [`WANTED`] is set with [`FROZEN`], by the consumer, when its position is in `head`; while it is set the
//!   consumer reads nothing. One swap takes it away: the producer's, which puts [`TAKEN`] in its place and has the
//!   bytes from `head` on again, so that the ring ends at `head` for both; or the consumer's, which reads on.
//! - **B7** The producer accepts no tail but its own last one, with the bits that B5 and B6 allow; the consumer none
//!   with other bits than those, and [`TAKEN`] only if it wanted that.

#[cfg(not(loom))]
use crate::cached::CachedFile;
use crate::{
    Error, Result, Span, Word64,
    sync::{HEAD_OBSERVE, HEAD_PUBLISH, Ordering, TAIL_OBSERVE, TAIL_PUBLISH, TAIL_TAKE, TAIL_WANT},
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
    /// Bytes published: what the tail says.
    published: u64,
    /// B5, B6: nothing is published any more.
    end: End,
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
    end: End,
}

/// What one side knows of the end of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum End {
    /// There is none yet.
    Open,
    /// The tail is frozen.
    Frozen,
    /// The consumer waits for the producer to take what was not read.
    Wanted,
    /// The producer has.
    Taken,
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

/// The end of a ring, as its producer finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frozen {
    /// Bytes before this position are the consumer's; none come after it.
    pub position: u64,
    /// The consumer wants what it has not read of them to come in another way ([`Producer::take`]).
    pub wanted: bool,
}

/// In the tail: it is the last one.
pub const FROZEN: u64 = 1 << 63;
/// In the tail: the consumer wants what it has not read to come in another way.
pub const WANTED: u64 = 1 << 62;
/// In the tail: the producer has taken that.
pub const TAKEN: u64 = 1 << 61;
/// The rest of the tail is the position.
pub const POSITION: u64 = TAKEN - 1;

/// Tries to take up a tail that changes meanwhile, which it does once in a correct pair.
const TRIES: u32 = 4;

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
            published: written,
            end: End::Open,
            limit: written,
            known_head: written.saturating_sub(mask + 1),
            began: 0,
            mask,
            before: None,
        };
        producer.refresh()?;
        producer.publish_again()?;
        Ok(producer)
    }

    /// B4: publishes what the family word says, or finds that the ring has ended before.
    fn publish_again(&mut self) -> Result<()> {
        for _ in 0..TRIES {
            let held = self.tail.load(Ordering::Relaxed);
            if held & FROZEN != 0 {
                let position = held & POSITION;
                if position > self.written || position < self.known_head {
                    return Err(bad_end());
                }
                (self.written, self.published) = (position, position);
                self.position.store(position, Ordering::Relaxed);
                return self.judge(held).map(|_| ());
            }
            // Pairs with `Consumer::refresh`.
            if self.tail.compare_exchange(held, self.written, TAIL_PUBLISH) == held {
                return Ok(());
            }
        }
        Err(bad_end())
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

    /// Gives the pages of what is free back to the machine, and returns how many bytes that were. By B3 nobody else touches
    /// what is free: the consumer reads before `tail`, and other producers of the family are kept out as from writing.
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
        self.position.store(self.written, Ordering::Relaxed);
        self.core.store(u64::from(core), Ordering::Relaxed);
        // Pairs with `Consumer::refresh`: the payload and the switch mark are visible before the tail is. B5.
        let held = self.tail.compare_exchange(self.published, self.written, TAIL_PUBLISH);
        if held == self.published {
            self.published = self.written;
            return true;
        }
        self.refuse();
        false
    }

    #[cold]
    fn refuse(&mut self) {
        self.position.store(self.published, Ordering::Relaxed);
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
        if self.tail.compare_exchange(wanted, self.published | FROZEN | TAKEN, TAIL_TAKE) != wanted {
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
        self.position.store(head, Ordering::Relaxed);
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
        let head = self.head.load(HEAD_OBSERVE);
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
            end: End::Open,
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
        self.known_tail != self.read
            || self.tail.load(Ordering::Relaxed) & POSITION != self.known_tail && self.end < End::Wanted
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
        if self.end == End::Taken {
            return Ok(false);
        }
        self.publish_head();
        self.known_tail = self.read;
        self.end = End::Wanted;
        // Pairs with `Producer::take`: the head before it. One step with the freeze: what the producer finds, it finds at once.
        let held = self.tail.fetch_or(FROZEN | WANTED, TAIL_WANT);
        if held & POSITION == self.read {
            // Nothing is wanted; that it was taken meanwhile is the same.
            self.withdraw()?;
            return Ok(false);
        }
        Ok(true)
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

fn bad_end() -> Error {
    Error::Peer("the end of its ring is not one that it may have")
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
