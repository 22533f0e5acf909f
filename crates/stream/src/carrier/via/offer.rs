//! Rendezvous: bytes that the reader takes from where the writer has them.
//!
//! A long write by a program that waits is not cut into packets at first. An *offer* names it, and the reader copies what it
//! wants through the kernel, straight from the memory of one program to that of the other. The writer looks for a moment
//! whether that happens; what was not taken then is withdrawn, and goes in packets.
//!
//! The two agree by one word in memory of the writer, which the reader has mapped:
//!
//! ```text
//!   0..24   bytes that have been copied
//!   24..48  bytes that the reader has claimed, before it copies them
//!   48      closed: no more can be claimed
//!   49      disliked: the reader cannot copy, or wants little at a time
//!   50..64  the number of the offer
//! ```
//!
//! # Invariants
//!
//! - O1. The writer's call ends only when nothing is claimed that was not copied, so the memory is there while it is copied.
//! - O2. The reader claims before it copies, by a compare-and-swap that fails once the offer is closed: a byte goes one way.
//! - O3. While an offer is open its writer sends nothing else; so it lies behind every packet that has come, and the next packet
//!   of data says that it was closed.

use std::{
    sync::{Arc, atomic::Ordering},
    thread,
};

use super::{
    Link, Lost,
    inward::Inward,
    outward::{Outward, SPARED},
    packet::{self, Kind, Packet},
};
use sidestep_shm::Word64;
use sidestep_sys::cpu;

/// What a writer has offered, and how far it was taken.
#[derive(Debug, Clone, Copy)]
pub struct Offer {
    number: u16,
    address: u64,
    len: usize,
    taken: usize,
}

/// The word on which both agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Claim {
    copied: usize,
    claimed: usize,
    closed: bool,
    disliked: bool,
    number: u16,
}

/// Where the word lies in the memory of a link.
pub const CLAIM: usize = 128;
/// The longest offer.
const MOST: usize = 1 << 20;
/// Smaller reads take packets, of bytes that were fetched for them.
const LEAST_READ: usize = 8 << 10;
/// How long a writer looks whether its offer is taken up, in ticks of the processor: some 10 microseconds.
const LOOK: u64 = 30_000;
/// How long it looks without letting others run while the reader copies.
const COPY: u64 = 1_000_000;
/// Long writes that go in packets after an offer that nobody liked: about twice as many each time, up to this.
const MOST_SKIPPED: u32 = 64;
const FIELD: u64 = (1 << 24) - 1;
const CLOSED: u64 = 1 << 48;
const DISLIKED: u64 = 1 << 49;

/// Offers of a writer.
#[derive(Debug, Default)]
pub struct Offers {
    number: u16,
    /// Long writes that are not offered, now and after the next offer that nobody takes up.
    skip: u32,
    penalty: u32,
}

impl Claim {
    fn from_word(word: u64) -> Claim {
        Claim {
            copied: (word & FIELD) as usize,
            claimed: (word >> 24 & FIELD) as usize,
            closed: word & CLOSED != 0,
            disliked: word & DISLIKED != 0,
            number: (word >> 50) as u16,
        }
    }

    fn open(number: u16) -> u64 {
        u64::from(number) << 50
    }
}

impl Link {
    /// Sends as much as there is room for. The reader may take it from where it is, for which this waits a moment.
    pub fn send_or_lend(self: &Arc<Self>, bytes: &[u8]) -> Result<usize, Lost> {
        let long = self.options.rendezvous > 0 && bytes.len() >= self.options.rendezvous;
        let lent = if long { self.lend(bytes)? } else { 0 };
        if lent == bytes.len() {
            return Ok(lent);
        }
        match self.send(&bytes[lent..]) {
            Err(Lost) if lent > 0 => Ok(lent),
            sent => Ok(lent + sent?),
        }
    }

    /// Offers bytes to the reader. How many it took, from the first on.
    fn lend(&self, bytes: &[u8]) -> Result<usize, Lost> {
        let mut outward = self.outward.lock();
        if outward.offers.skip > 0 {
            outward.offers.skip -= 1;
            return Ok(0);
        }
        let ready = self.line.vi.attachment().is_some()
            && self.line.vi.peer_core() != cpu::current_core()
            && self.under_way() <= self.options.window / 2;
        if !ready || !self.flush_held(&mut outward)? {
            return Ok(0);
        }
        let mut lent = 0;
        while lent < bytes.len() {
            let part = &bytes[lent..bytes.len().min(lent + MOST)];
            let taken = match self.offer(&mut outward, part) {
                // What was taken was taken.
                Err(Lost) if lent > 0 => 0,
                taken => taken?,
            };
            lent += taken;
            if taken < part.len() {
                break;
            }
        }
        Ok(lent)
    }

    /// One offer.
    fn offer(&self, outward: &mut Outward, bytes: &[u8]) -> Result<usize, Lost> {
        outward.offers.number = (outward.offers.number + 1) & 0x3fff;
        let number = outward.offers.number;
        self.words.claim.store(Claim::open(number), Ordering::Release);
        let words = packet::note([bytes.as_ptr() as u64, u64::from(number) << 32 | bytes.len() as u64]);
        let read = self.take_owed();
        let packet = Packet { kind: Kind::Offer, wants: true, read };
        let sent = self.line.vi.send_inline(&words, packet.to_bits(), SPARED);
        if sent != Ok(true) {
            self.give_back(read);
            return sent.map(|_| 0).map_err(|_| self.lose());
        }
        let claim = self.await_taken(number, bytes.len())?;
        let offers = &mut outward.offers;
        let liked = claim.copied > 0 && !claim.disliked;
        offers.penalty = if liked { 0 } else { (offers.penalty * 2 + 1).min(MOST_SKIPPED) };
        offers.skip = offers.penalty;
        self.sent.lent.store(self.sent.lent.load(Ordering::Relaxed) + claim.copied as u64, Ordering::Relaxed);
        Ok(claim.copied)
    }

    /// Waits until all was copied, or nobody comes for the rest.
    fn await_taken(&self, number: u16, len: usize) -> Result<Claim, Lost> {
        let (mut since, mut seen) = (cpu::ticks(), 0);
        loop {
            let word = self.words.claim.load(Ordering::Acquire);
            let claim = Claim::from_word(word);
            if claim.number != number || claim.copied > claim.claimed || claim.claimed > len {
                // No reader that keeps to the protocol writes this.
                self.lost.store(true, Ordering::Relaxed);
                return Err(Lost);
            }
            let copying = claim.copied < claim.claimed;
            if !copying && (claim.copied == len || claim.closed) {
                return Ok(claim);
            }
            if claim.claimed != seen {
                (since, seen) = (cpu::ticks(), claim.claimed);
            }
            let waited = cpu::ticks().wrapping_sub(since);
            if !copying && waited > LOOK {
                // If this fails, the reader has come in time.
                self.words.claim.compare_swap(word, word | CLOSED);
            } else if copying && waited > COPY {
                if !self.line.vi.is_connected() {
                    return Err(self.lose());
                }
                thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }

    /// An offer has come. `None`: it is none.
    pub(super) fn take_offer(&self, inward: &mut Inward, [address, what]: [u64; 2]) -> Option<()> {
        let (number, len) = ((what >> 32) as u16, what as u32 as usize);
        if len > MOST || what >> 48 != 0 {
            return None;
        }
        // Who cannot claim leaves it: it will be withdrawn.
        if self.peer_claim().is_some() && self.line.vi.attachment().is_some() {
            inward.offer = Some(Offer { number, address, len, taken: 0 });
            self.received.offered.store(len as u64, Ordering::Release);
        }
        Some(())
    }

    /// What was offered goes another way, or is over.
    pub(super) fn drop_offer(&self, inward: &mut Inward) {
        inward.offer = None;
        self.received.offered.store(0, Ordering::Release);
    }

    /// Bytes that are offered.
    #[inline]
    pub fn offered(&self) -> u64 {
        self.received.offered.load(Ordering::Acquire)
    }

    /// Reads what is offered, when everything before it was read: straight to where the program wants it, or, for less, by
    /// way of a buffer. How many bytes came to `bytes`.
    pub(super) fn take_offered(&self, inward: &mut Inward, bytes: &mut [u8]) -> Result<usize, Lost> {
        let Some(offer) = inward.offer else { return Ok(0) };
        let rest = offer.len - offer.taken;
        if bytes.len() < rest.min(LEAST_READ) {
            self.stage(inward);
            return self.take_packets(inward, bytes);
        }
        let count = rest.min(bytes.len());
        if !self.copy_offered(inward, &mut bytes[..count], 0) {
            return Ok(0);
        }
        self.received.position.store(self.position() + count as u64, Ordering::Relaxed);
        Ok(count)
    }

    /// Fetches what is offered, as if it had come in a packet.
    pub(super) fn stage(&self, inward: &mut Inward) {
        let Some(offer) = inward.offer else { return };
        let mut bytes = vec![0; offer.len - offer.taken];
        if inward.is_empty() && self.copy_offered(inward, &mut bytes, DISLIKED) {
            inward.push_staged(bytes);
        }
    }

    /// Claims and copies as many bytes as there is room for, and leaves a remark. `false`: it was withdrawn, or cannot be; it is
    /// gone then.
    fn copy_offered(&self, inward: &mut Inward, bytes: &mut [u8], remark: u64) -> bool {
        if (self.host.is_sandboxed)() {
            // The call that copies may be forbidden by now. Nobody claims it, so it is withdrawn.
            self.drop_offer(inward);
            return false;
        }
        let (Some(offer), Some(word)) = (&mut inward.offer, self.peer_claim()) else { return false };
        let count = bytes.len() as u64;
        // Only the writer closes, once; only this thread claims.
        let open = Claim::open(offer.number) | (offer.taken as u64) << 24 | offer.taken as u64;
        if word.compare_swap(open, open + (count << 24)) != open {
            self.drop_offer(inward);
            return false;
        }
        let from = offer.address.wrapping_add(offer.taken as u64);
        if !self.line.vi.attachment().is_some_and(|attachment| attachment.fetch(bytes, from)) {
            word.fetch_or(CLOSED | DISLIKED, Ordering::Relaxed);
            word.fetch_add((count << 24).wrapping_neg(), Ordering::Release);
            self.drop_offer(inward);
            return false;
        }
        offer.taken += bytes.len();
        let rest = (offer.len - offer.taken) as u64;
        // Too much is there for a moment, rather than too little.
        self.received.written.store(self.received.written.load(Ordering::Relaxed) + count, Ordering::Release);
        self.received.offered.store(rest, Ordering::Release);
        if rest == 0 {
            inward.offer = None;
        }
        word.fetch_add(count + remark, Ordering::Release);
        true
    }

    /// The word of the peer.
    fn peer_claim(&self) -> Option<&Word64> {
        self.word_of_peer(&self.words.peer_claim, CLAIM)
    }
}
