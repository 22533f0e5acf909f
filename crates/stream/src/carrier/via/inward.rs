//! The receiving side of a link.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering},
};

use sidestep_vi::{Completion, Descriptor};

use super::{
    Link, Lost, PACKETS, greeting,
    offer::Offer,
    outward,
    packet::{self, Kind, NOTE, Packet},
    returning::{Giving, Returned},
};

/// The place of bytes that came in no packet.
const STAGED: usize = usize::MAX;
/// Receives that are posted again together, if the program goes on reading.
const MANY: usize = 8;

/// Packets of data that have arrived and not been read.
#[derive(Debug, Default)]
pub struct Inward {
    packets: VecDeque<Arrived>,
    /// What the peer offers behind them, and bytes that were fetched of what it offered.
    pub(super) offer: Option<Offer>,
    staged: Vec<u8>,
    /// Bytes of the first one that have been read.
    taken: usize,
    /// Receives to be posted again: when the program looks for more, not while it waits for what it has.
    free: Vec<usize>,
    /// What goes back to the peer, and what came back from it.
    pub(super) giving: Option<Giving>,
    pub(super) returned: Option<Returned>,
}

/// What has come, for those who look without a lock.
#[derive(Debug, Default)]
pub struct Received {
    /// Bytes that have arrived, and how far they have been read here.
    pub(super) written: AtomicU64,
    pub(super) position: AtomicU64,
    /// Those that the peer offers.
    pub(super) offered: AtomicU64,
    /// What was read here, and how much of that was acknowledged: packets, bytes.
    pub(super) taken: AtomicU64,
    pub(super) told: AtomicU64,
    /// What this side has written into the peer's memory of that.
    pub(super) posted: AtomicU64,
    /// Receives wait to be posted again.
    pub(super) unposted: AtomicBool,
    /// The peer wants an acknowledgement when everything has been read.
    pub(super) wanted: AtomicBool,
    /// The peer's FIN has come.
    pub(super) fin: AtomicBool,
    /// How often bytes were given back, and the last time for which the peer has all of them.
    pub(super) round: AtomicU16,
    pub(super) ready: AtomicU64,
    /// Packets by which the peer gave something back.
    pub(super) returns: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
struct Arrived {
    slot: usize,
    len: usize,
}

impl Inward {
    /// Whether there is nothing to be read, but for an offer.
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Bytes that were fetched.
    pub(super) fn push_staged(&mut self, bytes: Vec<u8>) {
        self.packets.push_back(Arrived { slot: STAGED, len: bytes.len() });
        self.staged = bytes;
    }
}

/// From one receive to the next: not a power of two, or they would all lie in the same places of the cache.
pub fn stride(options: &super::Options) -> usize {
    options.chunk + 64
}

impl Link {
    /// Posts a receive.
    pub(super) fn post(&self, slot: usize) -> sidestep_vi::Result<()> {
        let segment = self.line.memory.segment(self.place(slot), self.options.chunk);
        self.line.vi.post_receive(&Descriptor::new(slot as u64, &[segment]))
    }

    fn place(&self, slot: usize) -> usize {
        PACKETS + outward::SLOTS * outward::slot_len(&self.options) + slot * stride(&self.options)
    }

    /// How much has arrived, or is offered, after a look.
    #[inline]
    pub fn written(&self) -> u64 {
        self.absorb();
        self.received.written.load(Ordering::Acquire) + self.offered()
    }

    /// Bytes that can be read.
    pub fn available(&self) -> usize {
        self.absorb();
        self.stage(&mut self.inward.lock());
        (self.received.written.load(Ordering::Relaxed) - self.position()) as usize
    }

    /// How far has been read.
    #[inline]
    pub fn position(&self) -> u64 {
        self.received.position.load(Ordering::Relaxed)
    }

    /// Takes what has arrived, unless another thread is at it.
    #[inline]
    pub fn absorb(&self) {
        if !self.has_arrivals() {
            return;
        }
        if let Some(mut inward) = self.inward.try_lock() {
            self.absorb_into(&mut inward);
        }
    }

    /// Whether there may be something to take. Takes no lock.
    #[inline]
    fn has_arrivals(&self) -> bool {
        if self.line.distant && !(self.host.is_sandboxed)() {
            self.line.nic.node().progress();
        }
        self.board_has_news() || !self.handled.load(Ordering::Relaxed) && self.line.vi.has_arrivals()
    }

    /// Takes what has arrived.
    pub(super) fn absorb_waiting(&self) {
        let mut inward = self.inward.lock();
        self.post_again(&mut inward);
        self.absorb_into(&mut inward);
    }

    /// The same if there is something, or if another thread is at it.
    pub fn take_in(&self) {
        if self.has_arrivals() || self.inward.try_lock().is_none() {
            self.absorb_waiting();
        }
    }

    pub(super) fn absorb_into(&self, inward: &mut Inward) {
        self.look_at_board();
        while self.absorb_one(inward) {}
    }

    /// Takes what has arrived, until there is something to be read: what lies behind that can wait until the program does.
    #[inline]
    fn absorb_some(&self, inward: &mut Inward) {
        self.look_at_board();
        while inward.packets.is_empty() && self.absorb_one(inward) {}
    }

    #[inline]
    fn absorb_one(&self, inward: &mut Inward) -> bool {
        if self.handled.load(Ordering::Relaxed) {
            return false;
        }
        let Some(completion) = self.line.vi.poll_receive() else { return false };
        if self.sort(inward, &completion).is_none() {
            // The connection is over, or the peer does not keep to the protocol.
            self.lost.store(true, Ordering::Relaxed);
        }
        true
    }

    /// Sees to one packet.
    #[inline]
    pub(super) fn sort(&self, inward: &mut Inward, completion: &Completion) -> Option<()> {
        if completion.status.is_error() {
            return None;
        }
        let packet = Packet::from_bits(completion.immediate?)?;
        let slot = completion.token as usize;
        self.gains(packet.read);
        if packet.kind == Kind::Data && completion.len > 0 {
            if let Some(giving) = &mut inward.giving {
                return self.give_more(giving, slot, completion.len as usize);
            }
            if packet.wants {
                self.received.wanted.store(true, Ordering::Relaxed);
            }
            if inward.offer.is_some() {
                self.drop_offer(inward);
            }
            inward.packets.push_back(Arrived { slot, len: completion.len as usize });
            // Pairs with `written`: who sees the bytes counted finds them. One thread at a time counts.
            let written = self.received.written.load(Ordering::Relaxed) + u64::from(completion.len);
            self.received.written.store(written, Ordering::Release);
            return Some(());
        }
        let words = if completion.len as usize == NOTE { self.two_words(slot) } else { None };
        match (packet.kind, words) {
            (Kind::Wakeup, Some(words)) => drop(self.words.theirs.set(greeting(words))),
            (Kind::Note | Kind::Fin, Some([which, note])) => {
                // Pairs with the looks at notes: the bytes before it have been counted.
                self.notes.last.get(which as usize)?.store(note, Ordering::Release);
                self.received.fin.fetch_or(packet.kind == Kind::Fin, Ordering::Relaxed);
            }
            (Kind::Offer, Some(words)) => self.take_offer(inward, words)?,
            (Kind::Return, _) => self.take_return(inward, slot, completion.len as usize)?,
            (Kind::Ready, Some(words)) => self.hear_ready(words),
            (Kind::FinAck, _) => self.sent.finished.store(true, Ordering::Release),
            _ => {}
        }
        self.post(slot).ok()
    }

    fn two_words(&self, slot: usize) -> Option<[u64; 2]> {
        let mut bytes = [0; NOTE];
        self.read_slot(slot, 0, &mut bytes)?;
        packet::read_note(&bytes)
    }

    /// Reads bytes of a packet.
    pub(super) fn read_slot(&self, slot: usize, at: usize, bytes: &mut [u8]) -> Option<()> {
        self.line.memory.read(self.place(slot) + at, bytes).ok()
    }

    /// Takes all that has arrived and was not read, to be given back: nothing is acknowledged.
    pub(super) fn take_unread(&self, inward: &mut Inward) -> Vec<u8> {
        let (mut bytes, mut taken) = (Vec::new(), std::mem::take(&mut inward.taken));
        for arrived in std::mem::take(&mut inward.packets) {
            let before = bytes.len();
            bytes.resize(before + arrived.len - std::mem::take(&mut taken), 0);
            let at = arrived.len - (bytes.len() - before);
            if self.copy_out(inward, &arrived, at, &mut bytes[before..]).is_err() {
                self.lose();
            }
            if arrived.slot != STAGED {
                inward.free.push(arrived.slot);
            }
        }
        inward.staged = Vec::new();
        self.post_again(inward);
        bytes
    }

    /// Copies bytes from `skip` bytes ahead without taking them.
    pub fn peek(&self, mut skip: usize, mut bytes: &mut [u8]) -> Result<usize, Lost> {
        self.absorb();
        let mut inward = self.inward.lock();
        self.stage(&mut inward);
        let (mut taken, mut total) = (inward.taken, 0);
        for arrived in &inward.packets {
            let here = arrived.len - taken;
            if skip >= here {
                skip -= here;
                taken = 0;
                continue;
            }
            let count = (here - skip).min(bytes.len());
            let (part, rest) = bytes.split_at_mut(count);
            self.copy_out(&inward, arrived, taken + skip, part)?;
            total += count;
            (bytes, skip, taken) = (rest, 0, 0);
            if bytes.is_empty() {
                break;
            }
        }
        Ok(total)
    }

    /// Takes the bytes that are there, at most as many as fit.
    #[inline]
    pub fn receive(&self, bytes: &mut [u8]) -> Result<usize, Lost> {
        let empty = || self.received.written.load(Ordering::Acquire) == self.position();
        if empty() && self.offered() == 0 && !self.has_arrivals() {
            return Ok(0);
        }
        let mut inward = self.inward.lock();
        if empty() {
            self.absorb_some(&mut inward);
        }
        let mut total = self.take_packets(&mut inward, bytes)?;
        if total < bytes.len() && !self.options.datagram && self.line.vi.has_more() {
            self.absorb_into(&mut inward);
            total += self.take_packets(&mut inward, &mut bytes[total..])?;
        }
        if inward.offer.is_some() && inward.packets.is_empty() && total < bytes.len() {
            total += self.take_offered(&mut inward, &mut bytes[total..])?;
        }
        if inward.packets.is_empty() {
            self.drained();
        }
        Ok(total)
    }

    /// Takes bytes of the packets that were sorted.
    #[inline]
    pub(super) fn take_packets(&self, inward: &mut Inward, mut bytes: &mut [u8]) -> Result<usize, Lost> {
        let mut total = 0;
        while let Some(arrived) = inward.packets.front().copied() {
            let count = (arrived.len - inward.taken).min(bytes.len());
            let (part, rest) = bytes.split_at_mut(count);
            self.copy_out(inward, &arrived, inward.taken, part)?;
            total += count;
            bytes = rest;
            let dropped = if self.options.datagram { arrived.len - inward.taken - count } else { 0 };
            self.step(inward, arrived, count + dropped)?;
            if bytes.is_empty() || self.options.datagram {
                break;
            }
        }
        Ok(total)
    }

    /// Copies a part of what has arrived.
    #[inline]
    fn copy_out(&self, inward: &Inward, arrived: &Arrived, at: usize, part: &mut [u8]) -> Result<(), Lost> {
        if arrived.slot == STAGED {
            part.copy_from_slice(inward.staged.get(at..at + part.len()).ok_or(Lost)?);
            return Ok(());
        }
        self.line.memory.read(self.place(arrived.slot) + at, part).map_err(|_| Lost)
    }

    /// Steps over bytes.
    pub fn consume(&self, mut count: usize) -> Result<(), Lost> {
        let mut inward = self.inward.lock();
        while count > 0
            && let Some(arrived) = inward.packets.front().copied()
        {
            let part = (arrived.len - inward.taken).min(count);
            count -= part;
            self.step(&mut inward, arrived, part)?;
        }
        Ok(())
    }

    /// So many bytes of the first packet have been read: its receive is posted again when all have.
    #[inline]
    fn step(&self, inward: &mut Inward, arrived: Arrived, count: usize) -> Result<(), Lost> {
        inward.taken += count;
        let position = self.received.position.load(Ordering::Relaxed) + count as u64;
        self.received.position.store(position, Ordering::Relaxed);
        if inward.taken < arrived.len {
            return Ok(());
        }
        inward.packets.pop_front();
        inward.taken = 0;
        if arrived.slot == STAGED {
            inward.staged = Vec::new();
            return Ok(());
        }
        inward.free.push(arrived.slot);
        self.received.unposted.store(true, Ordering::Relaxed);
        let taken = self.received.taken.load(Ordering::Relaxed).wrapping_add(1 << 32 | arrived.len as u64);
        self.received.taken.store(taken, Ordering::Relaxed);
        let owed = taken.wrapping_sub(self.received.told.load(Ordering::Relaxed)) >> 32;
        if inward.free.len() >= MANY || owed >= u64::from(self.options.acks) {
            self.post_again(inward);
        }
        if owed >= u64::from(self.options.acks) {
            self.acknowledge(inward);
        }
        Ok(())
    }

    /// Posts receives again whose packets have been read.
    #[inline]
    pub(super) fn post_again(&self, inward: &mut Inward) {
        self.received.unposted.store(false, Ordering::Relaxed);
        while let Some(slot) = inward.free.pop() {
            if self.post(slot).is_err() {
                self.lose();
            }
        }
    }

    /// Everything that has come has been read.
    #[inline]
    fn drained(&self) {
        if self.received.fin.load(Ordering::Relaxed) && self.position() == self.received.written.load(Ordering::Relaxed)
        {
            self.received.fin.store(false, Ordering::Relaxed);
            let _ = self.push(Kind::FinAck, &[]);
        }
    }

    /// A look found nothing: a peer that holds writes back until then is told, and what is held here goes out.
    #[inline]
    pub fn found_nothing(&self) {
        if self.sent.holds.load(Ordering::Relaxed) || self.notes.owed.load(Ordering::Relaxed) {
            self.go_on();
        }
        let wanted = self.received.wanted.load(Ordering::Relaxed) && self.owes();
        if (wanted || self.received.unposted.load(Ordering::Relaxed))
            && let Some(mut inward) = self.inward.try_lock()
        {
            self.post_again(&mut inward);
            if wanted {
                self.acknowledge(&mut inward);
            }
        }
    }

    /// Whether the peer has answered that it read everything before the end.
    pub fn is_finished(&self) -> bool {
        self.sent.finished.load(Ordering::Acquire)
    }
}
