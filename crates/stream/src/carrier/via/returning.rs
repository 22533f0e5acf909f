//! Giving back: bytes that have arrived, and that will not be read here, return to their writer, which sends them another way.
//! They lie in memory of the reader, so they have to travel.
//!
//! ```text
//!   reader                                        writer
//!   note: wanted              ───────────────▶    sends nothing more
//!   RETURN position, bytes    ───────────────▶    collects them
//!                             ◀───────────────    READY: all that was sent and not read is here
//!   note: given               ───────────────▶    sends them another way
//!   or note: no longer wanted ───────────────▶    forgets them, and leaves the link where it was written to
//! ```
//!
//! # Invariants
//!
//! - G1. The reader alone decides, and says `given` only after READY of the same round. So each byte is with one of the two.
//! - G2. Between READY and the decision nothing is sent: what is held stays, and `Outbound::may_leave` says no.
//! - G3. While bytes are given back nobody reads any: what arrives meanwhile goes behind them.

use std::sync::atomic::Ordering;

use sidestep_vi::Descriptor;
use sidestep_wire::cursor::little::{Reader, Writer};

use super::{
    super::Reading,
    Link, Lost, Options,
    inward::Inward,
    outward::{self, Outward, SLOTS, SPARED},
    packet::{self, Kind, Packet},
};

/// Bytes of this side that go back to the peer.
#[derive(Debug)]
pub struct Giving {
    round: u16,
    /// The position of the first one.
    from: u64,
    bytes: Vec<u8>,
    /// How many were sent; `None`: not even the position.
    sent: Option<usize>,
}

/// Bytes that the peer has given back.
#[derive(Debug)]
pub struct Returned {
    round: u16,
    from: u64,
    bytes: Vec<u8>,
    /// The peer was told that these are all.
    is_told: bool,
}

/// Bytes of a packet before those that are given back: 48 bits of position, 16 of the round.
pub const HEAD: usize = 8;
const POSITION: u64 = (1 << 48) - 1;
/// Beyond a window, an offer may have been fetched.
const FETCHED: usize = 1 << 20;

/// No correct peer has more than this under way.
fn most(options: &Options) -> usize {
    options.window as usize * options.chunk + FETCHED
}

impl Link {
    /// Gives what was not read back, and what comes from now on; to be called until it has been decided. How many bytes it is,
    /// once the peer has all of them.
    pub fn give(&self) -> Option<u64> {
        let mut inward = self.inward.lock();
        let inward = &mut *inward;
        self.absorb_into(inward);
        if inward.giving.is_none() {
            self.begin_giving(inward);
        }
        self.drop_offer(inward);
        let giving = inward.giving.as_mut()?;
        while self.push_return(giving) {}
        let ready = self.received.ready.load(Ordering::Acquire) == u64::from(giving.round);
        ready.then_some(giving.bytes.len() as u64)
    }

    fn begin_giving(&self, inward: &mut Inward) {
        let bytes = self.take_unread(inward);
        let round = self.received.round.fetch_add(1, Ordering::Relaxed) + 1;
        self.received.written.store(self.position(), Ordering::Release);
        inward.giving = Some(Giving { round, from: self.position(), bytes, sent: None });
    }

    /// Data has come while bytes are given back. `None`: no correct peer sends so much.
    pub(super) fn give_more(&self, giving: &mut Giving, slot: usize, len: usize) -> Option<()> {
        let before = giving.bytes.len();
        if before + len > most(&self.options) {
            return None;
        }
        giving.bytes.resize(before + len, 0);
        self.read_slot(slot, 0, &mut giving.bytes[before..])?;
        self.post(slot).ok()
    }

    /// Sends a part of it. `false`: there is no more, or no room.
    fn push_return(&self, giving: &mut Giving) -> bool {
        let done = giving.sent.unwrap_or(0);
        if giving.sent.is_some() && done == giving.bytes.len() {
            return false;
        }
        let mut outward = self.outward.lock();
        let Some(slot) = self.spare_slot(&mut outward) else { return false };
        let room = outward::slot_len(&self.options).min(self.options.chunk).saturating_sub(HEAD);
        let part = &giving.bytes[done..giving.bytes.len().min(done + room)];
        let mut head = [0; HEAD];
        Writer::new(&mut head[..]).u64((giving.from + done as u64) & POSITION | u64::from(giving.round) << 48);
        let at = self.slot(slot);
        let written = self.line.memory.write(at, &head).and_then(|()| self.line.memory.write(at + HEAD, part));
        if written.is_err() || self.push_slot(&mut outward, slot, HEAD + part.len()) != Ok(true) {
            return false;
        }
        giving.sent = Some(done + part.len());
        true
    }

    /// A slot that no write is held in, and whose last send is over.
    fn spare_slot(&self, outward: &mut Outward) -> Option<usize> {
        self.finish_sends(outward);
        let others = (1..SLOTS).map(|step| (outward.slot + step) % SLOTS);
        others.into_iter().find(|slot| outward.busy & 1 << slot == 0)
    }

    fn push_slot(&self, outward: &mut Outward, slot: usize, len: usize) -> Result<bool, Lost> {
        let packet = Packet { kind: Kind::Return, wants: false, read: Default::default() };
        let descriptor = Descriptor::new(slot as u64, &[self.line.memory.segment(self.slot(slot), len)]);
        let descriptor = descriptor.with_immediate(packet.to_bits());
        let mut sent = self.line.vi.try_send(&descriptor, SPARED);
        if sent == Ok(false) {
            // The peer may have told of more receives.
            self.line.vi.progress();
            sent = self.line.vi.try_send(&descriptor, SPARED);
        }
        if sent == Ok(true) {
            outward.busy |= 1 << slot;
            self.finish_sends(outward);
        }
        sent.map_err(|_| self.lose())
    }

    /// What was given back is read here after all.
    pub fn keep(&self) {
        let mut inward = self.inward.lock();
        let Some(giving) = inward.giving.take() else { return };
        if !giving.bytes.is_empty() {
            let written = self.position() + giving.bytes.len() as u64;
            inward.push_staged(giving.bytes);
            self.received.written.store(written, Ordering::Release);
        }
    }

    /// The peer has all that was given back in this round.
    pub(super) fn hear_ready(&self, [round, _]: [u64; 2]) {
        self.received.ready.store(round, Ordering::Release);
    }

    /// The peer gives something back. `None`: not what a correct peer does.
    pub(super) fn take_return(&self, inward: &mut Inward, slot: usize, len: usize) -> Option<()> {
        let mut head = [0; HEAD];
        let mut bytes = vec![0; len.checked_sub(HEAD)?];
        self.read_slot(slot, 0, &mut head)?;
        self.read_slot(slot, HEAD, &mut bytes)?;
        let word = Reader::new(&head).u64().ok()?;
        let (from, round) = (word & POSITION, (word >> 48) as u16);
        // The first of a round forgets what came in the one before.
        let returned = match inward.returned.take() {
            Some(returned) if returned.round == round => returned,
            _ => Returned { round, from, bytes: Vec::new(), is_told: false },
        };
        let returned = inward.returned.insert(returned);
        let next = returned.from + returned.bytes.len() as u64;
        let total = returned.bytes.len() + bytes.len();
        if from != next || next + bytes.len() as u64 > self.sent() || total > most(&self.options) {
            return None;
        }
        returned.bytes.extend(bytes);
        self.received.returns.fetch_add(1, Ordering::Release);
        Some(())
    }

    /// How often the peer has given something back.
    pub fn returns(&self) -> u64 {
        self.received.returns.load(Ordering::Acquire)
    }

    /// Whether the peer has not decided yet about what it gives back. Under the lock of whoever writes to the link: if all of it
    /// is here, the peer is told so. One that is gone never decides.
    pub fn awaits_return(&self) -> bool {
        self.look_at_wire();
        self.absorb_waiting();
        let mut inward = self.inward.lock();
        if !self.is_undecided() || self.sent.refuses.load(Ordering::Relaxed) {
            return false;
        }
        // Nobody sends what is held meanwhile.
        let _outward = self.outward.lock();
        if let Some(returned) = &mut inward.returned
            && !returned.is_told
            && returned.from + returned.bytes.len() as u64 == self.sent()
        {
            let words = packet::note([u64::from(returned.round), returned.from]);
            returned.is_told = self.push(Kind::Ready, &words) == Ok(true);
        }
        true
    }

    /// Takes nothing back from now on. `false`: the peer was told that all is here, and it decides.
    pub fn refuse_return(&self) -> bool {
        let inward = self.inward.lock();
        let told = inward.returned.as_ref().is_some_and(|returned| returned.is_told);
        if told && self.is_undecided() && !self.is_lost() {
            return false;
        }
        self.sent.refuses.store(true, Ordering::Relaxed);
        true
    }

    /// What the peer has given back, if it has: this side has sent that much less.
    pub fn take_returned(&self) -> Vec<u8> {
        if !self.peer_reading().given {
            return Vec::new();
        }
        let mut inward = self.inward.lock();
        let Some(returned) = inward.returned.take().filter(|returned| returned.is_told) else { return Vec::new() };
        let _outward = self.outward.lock();
        let read = self.sent.read.load(Ordering::Relaxed) + self.sent.lent.load(Ordering::Relaxed);
        self.sent.read.store(read.min(returned.from), Ordering::Relaxed);
        self.sent.lent.store(0, Ordering::Relaxed);
        self.sent.bytes.store(returned.from, Ordering::Relaxed);
        returned.bytes
    }

    /// Whether the peer gives back what it has not read, or has.
    #[inline]
    pub(super) fn is_wanted_back(&self) -> bool {
        let reading = self.peer_reading();
        reading.wanted || reading.given
    }

    #[inline]
    pub(super) fn is_undecided(&self) -> bool {
        let reading = self.peer_reading();
        reading.wanted && !reading.given
    }

    #[inline]
    fn peer_reading(&self) -> Reading {
        Reading::from_note(self.reader_note())
    }
}
