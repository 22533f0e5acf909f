//! The sending side of a link.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};

use sidestep_vi::{Descriptor, Segment, Vi};

use super::{
    CONTROL, Link, Lost, Options, PACKETS,
    cache::Cache,
    offer::Offers,
    packet::{Kind, Packet},
    timer,
};

/// What is on its way out.
#[derive(Debug, Default)]
pub struct Outward {
    /// The slot that is filled, and how far.
    pub(super) slot: usize,
    held: usize,
    /// Slots whose sends have not completed.
    pub(super) busy: u32,
    pub(super) cache: Cache,
    pub(super) offers: Offers,
}

/// What was sent, for those who look without a lock.
#[derive(Debug, Default)]
pub struct Sent {
    /// Bytes that were sent; those that the peer took from where they were; how far the peer has read.
    pub(super) bytes: AtomicU64,
    pub(super) lent: AtomicU64,
    pub(super) read: AtomicU64,
    /// Packets that were sent, and that the peer has read.
    pub(super) packets: AtomicU32,
    pub(super) read_packets: AtomicU32,
    /// What the peer has written here of that.
    pub(super) heard: AtomicU64,
    /// Writes wait to be combined, and the timer knows.
    pub(super) holds: AtomicBool,
    pub(super) watched: AtomicBool,
    /// Whether small writes are not combined: TCP_NODELAY.
    pub(super) prompt: AtomicBool,
    /// The answer to this side's FIN has come.
    pub(super) finished: AtomicBool,
    /// What the peer gives back is not taken any more.
    pub(super) refuses: AtomicBool,
}

/// Places for copies of writes.
pub const SLOTS: usize = 4;
/// Packets under way from which on small writes are combined: the reader has something to do.
const HOLD_FROM: u32 = 1;
/// Packets that are small enough for whatever room there is on the way.
const SMALL: usize = 1 << 10;

/// Room on the way that data leaves to notes and acknowledgements, of all links with one peer.
pub(super) const SPARED: usize = 4 << 10;

/// Bytes of a slot.
pub fn slot_len(options: &Options) -> usize {
    options.copy.max(options.combine).max(64).next_multiple_of(64)
}

impl Link {
    /// How far has been sent, without what is held.
    #[inline]
    pub fn sent(&self) -> u64 {
        self.sent.bytes.load(Ordering::Relaxed) + self.sent.lent.load(Ordering::Relaxed)
    }

    /// How far the peer has read, as it says.
    #[inline]
    pub fn read(&self) -> u64 {
        self.absorb();
        self.sent.read.load(Ordering::Relaxed) + self.sent.lent.load(Ordering::Relaxed)
    }

    /// Bytes that would be taken now, at least.
    pub fn space(&self) -> usize {
        self.absorb();
        if self.credits() > 0 && self.line.vi.may_send(SMALL, SPARED) { self.options.chunk } else { 0 }
    }

    /// Whether enough is free that a writer should be told.
    #[inline]
    pub fn has_space(&self) -> bool {
        self.absorb();
        self.credits() > self.options.window / 4 && self.line.vi.may_send(SMALL, SPARED) && !self.is_undecided()
    }

    /// Sends as much as there is room for; the rest is the caller's.
    #[inline]
    pub fn send(self: &Arc<Self>, bytes: &[u8]) -> Result<usize, Lost> {
        let mut outward = self.outward.lock();
        let small = bytes.len() <= self.options.copy && bytes.len() < self.options.combine;
        if small && !self.sent.prompt.load(Ordering::Relaxed) && timer::may_hold(self.host) {
            return self.combine(&mut outward, bytes);
        }
        if !self.flush_held(&mut outward)? {
            return Ok(0);
        }
        // A datagram is one packet.
        let bytes = if self.options.datagram { &bytes[..bytes.len().min(self.options.chunk)] } else { bytes };
        let mut done = 0;
        while done < bytes.len() {
            let part = &bytes[done..bytes.len().min(done + self.options.chunk)];
            let sent = self.send_part(&mut outward, part)?;
            done += sent;
            if sent < part.len() {
                break;
            }
        }
        Ok(done)
    }

    /// Sends a packet of bytes as they are, or a copy; or less, if there is only room for that.
    #[inline]
    fn send_part(&self, outward: &mut Outward, part: &[u8]) -> Result<usize, Lost> {
        if !self.has_credit() {
            return Ok(0);
        }
        // Where there is no room for all, there may be for some: of a stream, not of a datagram.
        let small = if self.options.datagram { part.len() } else { part.len().min(SMALL) };
        for part in [part, &part[..small]] {
            if part.len() <= Vi::INLINE {
                if self.counted(part.len(), |bits| self.line.vi.send_inline(part, bits, SPARED))? {
                    return Ok(part.len());
                }
                continue;
            }
            if part.len() <= self.options.copy {
                let Some(at) = self.free_slot(outward) else { return Ok(0) };
                self.line.memory.write(at, part).map_err(|_| Lost)?;
                if self.send_slot(outward, self.line.memory.segment(at, part.len()))? {
                    return Ok(part.len());
                }
                continue;
            }
            let Some(segment) = outward.cache.segment(&self.line.nic, self.line.ptag, part) else { return Ok(0) };
            if self.push_data(segment, CONTROL)? {
                self.await_sends(outward);
                return Ok(part.len());
            }
        }
        Ok(0)
    }

    /// Appends a small write to those that are held, or sends it if the reader has nothing to do.
    fn combine(self: &Arc<Self>, outward: &mut Outward, bytes: &[u8]) -> Result<usize, Lost> {
        if outward.held == 0 && !self.reader_is_busy() && bytes.len() <= Vi::INLINE {
            let sent = self.send_part(outward, bytes)?;
            if sent > 0 {
                return Ok(sent);
            }
        }
        if outward.held + bytes.len() > self.options.combine && !self.flush_held(outward)? {
            return Ok(0);
        }
        let Some(at) = self.free_slot(outward) else { return Ok(0) };
        self.line.memory.write(at + outward.held, bytes).map_err(|_| Lost)?;
        outward.held += bytes.len();
        if self.reader_is_busy() {
            self.hold();
            return Ok(bytes.len());
        }
        if !self.flush_held(outward)? {
            self.hold();
        }
        Ok(bytes.len())
    }

    /// What is held goes out in time, whatever the program does.
    #[inline]
    fn hold(self: &Arc<Self>) {
        if !self.sent.holds.load(Ordering::Relaxed) {
            self.sent.holds.store(true, Ordering::SeqCst);
            timer::watch(self);
        }
    }

    /// Whether packets are under way that the peer has not read.
    #[inline]
    fn reader_is_busy(&self) -> bool {
        if self.under_way() < HOLD_FROM {
            return false;
        }
        self.absorb();
        self.under_way() >= HOLD_FROM
    }

    /// Sends what is held. `true`: nothing is.
    pub fn flush(&self) -> bool {
        self.flush_held(&mut self.outward.lock()).unwrap_or(true)
    }

    #[inline]
    pub(super) fn flush_held(&self, outward: &mut Outward) -> Result<bool, Lost> {
        if outward.held == 0 {
            return Ok(true);
        }
        if self.is_wanted_back() || !self.has_credit() {
            return Ok(false);
        }
        let segment = self.line.memory.segment(self.slot(outward.slot), outward.held);
        if !self.send_slot(outward, segment)? {
            return Ok(false);
        }
        outward.held = 0;
        self.sent.holds.store(false, Ordering::Release);
        Ok(true)
    }

    /// Takes back what is held: it goes another way.
    pub fn take_back(&self) -> Vec<u8> {
        let mut outward = self.outward.lock();
        let mut bytes = vec![0; outward.held];
        let _ = self.line.memory.read(self.slot(outward.slot), &mut bytes);
        outward.held = 0;
        self.sent.holds.store(false, Ordering::Release);
        bytes
    }

    /// How far the program has written, with what is held.
    #[inline]
    pub fn accepted(&self) -> u64 {
        // Pairs with `flush_held`: what was held is counted as sent before nothing is held.
        if !self.sent.holds.load(Ordering::Acquire) {
            return self.sent();
        }
        // Whoever sends what is held has the lock until it is counted.
        let outward = self.outward.lock();
        self.sent() + outward.held as u64
    }

    /// Whether the window has room for a packet.
    #[inline]
    pub fn has_credit(&self) -> bool {
        if self.credits() == 0 {
            self.absorb();
        }
        self.credits() > 0
    }

    /// Sends the slot that was filled, and goes on to the next.
    #[inline]
    fn send_slot(&self, outward: &mut Outward, segment: Segment) -> Result<bool, Lost> {
        if !self.push_data(segment, outward.slot as u64)? {
            return Ok(false);
        }
        outward.busy |= 1 << outward.slot;
        self.finish_sends(outward);
        if outward.busy != 0 {
            outward.slot = (outward.slot + 1) % SLOTS;
        }
        Ok(true)
    }

    /// Hands a packet of data to the VI. `false`: there is no room.
    #[inline]
    fn push_data(&self, segment: Segment, token: u64) -> Result<bool, Lost> {
        self.counted(segment.len as usize, |bits| {
            self.line.vi.try_send(&Descriptor::new(token, &[segment]).with_immediate(bits), SPARED)
        })
    }

    /// Sends a packet of data, and counts it.
    #[inline]
    fn counted(&self, len: usize, send: impl Fn(u32) -> sidestep_vi::Result<bool>) -> Result<bool, Lost> {
        let read = if self.options.piggyback { self.take_owed() } else { Default::default() };
        // Who holds writes until they are read wants to know when.
        let wants = self.options.combine > 0 && !self.sent.prompt.load(Ordering::Relaxed)
            || self.credits() <= self.options.window / 4 + 1;
        let packet = Packet { kind: Kind::Data, wants, read };
        self.find_witness();
        // Counted before it goes: the acknowledgement may be here before this thread goes on. One thread at a time counts.
        let (sent, packets) = (self.sent.bytes.load(Ordering::Relaxed), self.sent.packets.load(Ordering::Relaxed));
        self.sent.bytes.store(sent + len as u64, Ordering::Relaxed);
        self.sent.packets.store(packets.wrapping_add(1), Ordering::Relaxed);
        let mut outcome = send(packet.to_bits());
        if outcome == Ok(false) {
            // The peer may have told of more receives.
            self.line.vi.progress();
            outcome = send(packet.to_bits());
        }
        if outcome != Ok(true) {
            self.sent.bytes.store(sent, Ordering::Relaxed);
            self.sent.packets.store(packets, Ordering::Relaxed);
            self.give_back(read);
        }
        outcome.map_err(|_| self.lose())
    }

    /// Packets of data that were sent.
    pub fn packets(&self) -> u32 {
        self.sent.packets.load(Ordering::Relaxed)
    }

    /// The place to fill, if its last send is over.
    #[inline]
    fn free_slot(&self, outward: &mut Outward) -> Option<usize> {
        if outward.busy & 1 << outward.slot != 0 {
            self.finish_sends(outward);
        }
        (outward.busy & 1 << outward.slot == 0).then(|| self.slot(outward.slot))
    }

    pub(super) fn slot(&self, slot: usize) -> usize {
        PACKETS + slot * slot_len(&self.options)
    }

    /// Takes note of sends that have completed.
    #[inline]
    pub(super) fn finish_sends(&self, outward: &mut Outward) {
        while let Some(completion) = self.line.vi.poll_send() {
            if completion.token < SLOTS as u64 {
                outward.busy &= !(1 << completion.token);
            }
        }
    }

    /// Waits for sends from memory of the program: where the peer's is mapped they are over already.
    #[inline]
    fn await_sends(&self, outward: &mut Outward) {
        self.finish_sends(outward);
        while self.line.vi.has_sends() && !self.is_lost() {
            self.line.vi.progress();
            self.finish_sends(outward);
            if !self.line.vi.is_connected() {
                break;
            }
        }
    }

    /// The same for packets that are no data, which every thread sends.
    pub(super) fn drain_sends(&self) {
        if let Some(mut outward) = self.outward.try_lock() {
            self.finish_sends(&mut outward);
        }
    }
}
