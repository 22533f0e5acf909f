//! The reading side of a queue.

use std::os::fd::BorrowedFd;

use sidestep_shm::{
    Span,
    byte_ring::{Consumer, Parts, View},
    slot_ring::SlotConsumer,
    sync::Ordering,
    wait::{Patience, Waiter},
};
use sidestep_sys::cpu;

use super::{
    BLOCK_HEADER, HEAD, HEAD_CORE, HEAD_NOTE, Kind, QueueBlock, SWITCH, TAIL, TAIL_CORE, TAIL_NOTES, WITNESS,
    home::Home, wire::Wire,
};
use crate::{
    arena::ArenaBlock,
    error::{Error, Result},
    event::{EventQueue, SourceId},
    region::{Region, RegionSlice},
    tripwire::{Mode, Tripwire},
};

/// Receives. One thread at a time; several threads share it under a lock of their own.
#[derive(Debug)]
pub struct Receiver {
    ring: Ring,
    pub(super) wire: Wire,
    pub(super) home: Home,
    waiter: Waiter,
    core: sidestep_shm::Word64,
    idle: u32,
    /// The program's own words of the peer's sender.
    notes: [sidestep_shm::Word64; 2],
    /// Own memory, which the peer may read when this process is gone.
    pub(super) witness: sidestep_shm::Word64,
    /// Reports arrivals to an event queue.
    reporter: Option<Tripwire>,
}

#[derive(Debug)]
enum Ring {
    Bytes(Consumer),
    Slots(SlotConsumer),
}

/// Bytes of a large receive that are taken at a time.
const PIECE: usize = 16 * 1024;
/// Empty looks before a receiver that only polls lets the process breathe.
const BREATH: u32 = 1024;

impl Receiver {
    pub(super) fn new(home: Home, wire: Wire, ours: &QueueBlock) -> Result<Receiver> {
        let word = |at| ours.slice().word64(at);
        let parts = Parts {
            ring: ring_of(ours.slice(), ours.capacity)?,
            tail: word(TAIL)?,
            core: word(TAIL_CORE)?,
            switch: word(SWITCH)?,
            head: wire.word(HEAD)?,
            begin: 0,
        };
        let ring = match ours.kind {
            Kind::Stream => Ring::Bytes(Consumer::new(parts)?),
            Kind::Slots(stride) => Ring::Slots(SlotConsumer::new(parts, stride as usize)?),
        };
        let core = wire.word(HEAD_CORE)?;
        let (witness, notes) = (word(WITNESS)?, [word(TAIL_NOTES[0])?, word(TAIL_NOTES[1])?]);
        Ok(Receiver { ring, wire, home, waiter: Waiter::default(), core, idle: 0, notes, witness, reporter: None })
    }

    /// Reports to an event queue as [`EventQueue::attach_receiver`] says.
    pub(crate) fn attach(&mut self, queue: &EventQueue, token: u64) -> Result<SourceId> {
        let (id, reporter) = self.home.attach(queue, token, Mode::Repeating)?;
        reporter.arm();
        if self.consumer().has_news() {
            self.home.report(&reporter);
        }
        self.reporter = Some(reporter);
        Ok(id)
    }

    /// How patient waits are before they sleep.
    pub fn set_patience(&mut self, patience: Patience) {
        self.waiter = Waiter::with(patience);
    }

    /// Takes the bytes that are there, at most as many as fit. Zero if there are none.
    // Always: who looks for news again and again finds it 30 ns later behind a call (200 ns in all).
    #[inline(always)]
    pub fn try_receive(&mut self, bytes: &mut [u8]) -> Result<usize> {
        let Ring::Bytes(ring) = &mut self.ring else { return Err(Error::Unsupported("streams on a queue of slots")) };
        if !ring.has_news() {
            self.was_empty()?;
            return Ok(0);
        }
        if bytes.len() > PIECE {
            return self.receive_pieces(bytes);
        }
        let mut count = ring.copy_out(bytes)?;
        if count < bytes.len() && ring.has_offer() {
            // What follows may lie in the larger ring.
            count += ring.copy_out(&mut bytes[count..])?;
        }
        self.tell_if_due()?;
        Ok(count)
    }

    /// Large ones are taken in pieces, so that the sender learns of space while this side copies out.
    fn receive_pieces(&mut self, bytes: &mut [u8]) -> Result<usize> {
        let mut count = 0;
        while count < bytes.len() {
            let end = bytes.len().min(count + PIECE);
            let more = self.consumer().copy_out(&mut bytes[count..end])?;
            if more == 0 {
                break;
            }
            count += more;
            self.tell_if_due()?;
        }
        Ok(count)
    }

    /// Takes the next message and returns its length; `None` if there is none.
    #[inline]
    pub fn try_receive_message(&mut self, buffer: &mut [u8]) -> Result<Option<usize>> {
        let Ring::Slots(ring) = &mut self.ring else { return Err(Error::Unsupported("messages on a stream")) };
        if !ring.bytes().has_news() {
            self.was_empty()?;
            return Ok(None);
        }
        let message = ring.pop(buffer)?;
        self.tell_if_due()?;
        Ok(message)
    }

    /// The bytes that have arrived, looked at where they lie, if there are at least `min`; `None` if there are fewer now
    /// ([`wait_bytes`](Self::wait_bytes) waits for them). [`consume`](Self::consume) steps over what was dealt with. More
    /// than the ring holds cannot be asked for.
    #[inline]
    pub fn view(&mut self, min: usize) -> Result<Option<View<'_>>> {
        if !self.can_view(min)? {
            self.was_empty()?;
            return Ok(None);
        }
        Ok(Some(self.ring.consumer().latest_view()))
    }

    /// Waits until [`view`](Self::view) shows at least `min` bytes. If the connection ends before, that is an error, and
    /// fewer bytes may still be there.
    ///
    /// A sender that waits for space for `n` bytes at a time, and a receiver that waits for `min`, do not wait for each
    /// other as long as `n + min` is at most the size of the ring.
    pub fn wait_bytes(&mut self, min: usize, deadline: Option<u64>) -> Result<()> {
        loop {
            let seen = self.consumer().tail_now();
            if self.can_view(min)? {
                return Ok(());
            }
            if self.consumer().end_position().is_some() {
                return Err(Error::Frozen);
            }
            let Receiver { ring, home, waiter, .. } = self;
            let ring = ring.consumer();
            home.wait(waiter, deadline, "bytes to receive", &|| ring.producer_core(), &|| ring.tail_now() != seen)?;
        }
    }

    #[inline]
    fn can_view(&mut self, min: usize) -> Result<bool> {
        let Ring::Bytes(ring) = &mut self.ring else { return Err(Error::Unsupported("streams on a queue of slots")) };
        if ring.can_view(min)? {
            return Ok(true);
        }
        if min > ring.largest_view() {
            return Err(Error::Size { what: "view", must: "at most the ring", value: min });
        }
        // The sender may be out of space for the rest as long as it does not know of all that was taken.
        if ring.untold() > 0 && ring.available()? > 0 {
            self.tell_now()?;
        }
        Ok(false)
    }

    /// Copies bytes from `skip` bytes ahead without taking them.
    #[inline]
    pub fn peek(&mut self, skip: usize, bytes: &mut [u8]) -> Result<usize> {
        Ok(self.consumer().peek_now(skip, bytes)?)
    }

    /// Bytes that are known to be there; looks for more only if none are. Zero, too, where [`view`](Self::view) finds an error.
    #[inline(always)]
    pub fn known(&mut self) -> usize {
        self.consumer().available().unwrap_or(0)
    }

    /// Copies bytes from `skip` bytes ahead without taking them, if as many are [known](Self::known) in one ring. `false`: they
    /// are not, and [`view`](Self::view) says what there is. A [`View`] is for larger things: it is moved through memory.
    #[inline(always)]
    pub fn peek_known(&mut self, skip: usize, bytes: &mut [u8]) -> bool {
        self.consumer().peek_known(skip, bytes)
    }

    /// Steps over bytes that were peeked at.
    #[inline]
    pub fn consume(&mut self, count: usize) -> Result<()> {
        self.consumer().consume(count);
        self.tell_if_due()
    }

    /// Takes bytes that are there into a region: one copy, to where they belong.
    #[inline]
    pub fn take_into(&mut self, region: &Region, at: usize, len: usize) -> Result<usize> {
        let count = self.consumer().copy_out_to(&region.core().data, at, len)?;
        self.tell_if_due()?;
        Ok(count)
    }

    /// Takes at least one byte, waiting for it as needed.
    pub fn receive(&mut self, bytes: &mut [u8], deadline: Option<u64>) -> Result<usize> {
        loop {
            let count = self.try_receive(bytes)?;
            if count > 0 || bytes.is_empty() {
                return Ok(count);
            }
            self.wait(deadline)?;
        }
    }

    /// Fills `bytes`, waiting as needed.
    pub fn receive_exact(&mut self, bytes: &mut [u8], deadline: Option<u64>) -> Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let count = self.receive(rest, deadline)?;
            rest = &mut rest[count..];
        }
        Ok(())
    }

    /// Takes the next message, waiting for it as needed.
    pub fn receive_message(&mut self, buffer: &mut [u8], deadline: Option<u64>) -> Result<usize> {
        loop {
            if let Some(len) = self.try_receive_message(buffer)? {
                return Ok(len);
            }
            self.wait(deadline)?;
        }
    }

    /// Waits until there is something to receive. Bytes that arrived before the connection ended can still be received.
    #[inline]
    pub fn wait(&mut self, deadline: Option<u64>) -> Result<()> {
        let Receiver { ring, home, waiter, .. } = self;
        let ring = ring.consumer();
        home.wait(waiter, deadline, "something to receive", &|| ring.producer_core(), &|| ring.has_news())
    }

    /// Whether something may have arrived that was not taken. Touches nothing.
    #[inline]
    pub fn has_news(&mut self) -> bool {
        self.consumer().has_news()
    }

    /// Whether the connection has ended and nothing is left to receive.
    pub fn is_over(&mut self) -> bool {
        self.home.check_open().is_err() && !self.has_news()
    }

    /// Bytes that can be received at the moment.
    #[inline]
    pub fn available(&mut self) -> Result<usize> {
        Ok(self.consumer().available_now()?)
    }

    /// Leaves word how far has been read, for a peer that may outlive this process, and returns it. Costs a store.
    #[inline]
    pub fn testify(&mut self) -> u64 {
        let position = self.consumer().position();
        self.witness.store(position, Ordering::Relaxed);
        position
    }

    /// Whether bytes are known to be there that were not taken, without a look at what the peer writes.
    #[inline]
    pub fn has_known(&mut self) -> bool {
        self.consumer().has_known()
    }

    /// Position of the next byte to receive.
    #[inline]
    pub fn position(&mut self) -> u64 {
        self.consumer().position()
    }

    /// Where the next byte to receive lies, or will, for hints to the processor.
    #[inline]
    pub fn next_place(&mut self) -> *const u8 {
        self.consumer().next_place()
    }

    /// Ring size in bytes.
    pub fn capacity(&mut self) -> usize {
        self.consumer().capacity()
    }

    /// Tells the sender what has been taken, now.
    pub fn tell(&mut self) -> Result<()> {
        self.core.store(u64::from(cpu::current_core()), Ordering::Relaxed);
        self.consumer().publish_head();
        self.wire.stored()
    }

    /// One of the two words that the peer's sender has left ([`super::Sender::set_note`]). What it sent before is visible. A
    /// note that is left wakes whoever waits, and is an event of the receiver.
    #[inline]
    pub fn note(&self, which: usize) -> u64 {
        self.notes[which & 1].load(Ordering::Acquire)
    }

    /// Leaves a word for the sender ([`super::Sender::note`]), after telling it what has been taken, and wakes
    /// it if it waits for space.
    pub fn set_note(&mut self, note: u64) -> Result<()> {
        self.tell()?;
        self.wire.word(HEAD_NOTE)?.store(note, Ordering::Release);
        self.wire.send_other(HEAD_NOTE)?;
        self.wire.stored()
    }

    /// Whether the end of the queue is one word that both sides can set: where memory is mapped.
    pub fn can_freeze(&self) -> bool {
        self.wire.is_mapped()
    }

    /// Ends the queue: no more is sent than the bytes before the position that this returns, which are received as ever.
    pub fn freeze(&mut self) -> Result<u64> {
        self.check_mapped()?;
        let end = self.consumer().freeze()?;
        self.wire.stored()?;
        Ok(end)
    }

    /// The position at which the queue ends, if it has an end.
    pub fn end_position(&mut self) -> Option<u64> {
        self.consumer().end_position()
    }

    /// Ends the queue, and wants the sender to [take](super::Sender::take) what was not received. Nothing is received until
    /// that is [withdrawn](Self::withdraw). `false`: everything was received.
    pub fn want(&mut self) -> Result<bool> {
        self.check_mapped()?;
        let wanted = self.consumer().want()?;
        self.wire.stored()?;
        Ok(wanted)
    }

    /// Whether that is so, and was not known to be decided at the last look.
    pub fn is_wanted(&mut self) -> bool {
        self.consumer().is_wanted()
    }

    /// Whether the sender has taken what was wanted: the queue ends at the present position then.
    pub fn is_taken(&mut self) -> Result<bool> {
        Ok(self.consumer().is_taken()?)
    }

    /// Wants it no more. `false`: it was taken before.
    pub fn withdraw(&mut self) -> Result<bool> {
        Ok(self.consumer().withdraw()?)
    }

    /// Lends a larger ring from memory that only the peer can write, and allows the sender to go on there. The sender must be
    /// told of it ([`super::Sender::begin_growth`]), and the block must be kept as long as the sender may write there.
    /// [`Channel::grow`](crate::Channel::grow) does all of it.
    pub fn grow(&mut self, capacity: usize) -> Result<ArenaBlock> {
        let Ring::Bytes(_) = &self.ring else { return Err(Error::Unsupported("streams on a queue of slots")) };
        if capacity <= self.capacity() {
            return Err(Error::Size { what: "larger ring", must: "larger than the present one", value: capacity });
        }
        if self.consumer().has_offer() {
            return Err(Error::Full { what: "the offer of a larger ring", limit: 1 });
        }
        let Home { node, endpoint, .. } = &self.home;
        let block = node.lend_block(endpoint.peer(), capacity, Kind::Stream)?;
        self.offer_ring(block.block())?;
        Ok(block)
    }

    /// Offers a larger ring for the sender to go on in ([`super::Sender::adopt_ring`]); its block is made as any other,
    /// and only its ring is used.
    pub fn offer_ring(&mut self, block: &QueueBlock) -> Result<()> {
        let span = ring_of(block.slice(), block.capacity)?;
        Ok(self.consumer().offer(span)?)
    }

    /// For a caller that sleeps by itself: arms, and says whether it may sleep.
    pub fn prepare_wait(&mut self) -> Result<bool> {
        let Receiver { ring, home, .. } = self;
        let ring = ring.consumer();
        Ok(!ring.has_news() && home.prepare_wait(&|| ring.has_news())?)
    }

    /// When such a sleep must end at the latest, if it must.
    pub fn wait_deadline(&self) -> Option<u64> {
        self.home.deadline()
    }

    /// After such a sleep.
    pub fn finish_wait(&mut self) {
        self.home.finish_wait();
    }

    /// The descriptor to sleep on after [`prepare_wait`](Self::prepare_wait): readable when there may be something, or
    /// the connection has ended. It is this receiver's alone, and always the same.
    pub fn wait_descriptor(&mut self) -> Result<BorrowedFd<'_>> {
        self.home.descriptor()
    }

    fn check_mapped(&self) -> Result<()> {
        if self.can_freeze() { Ok(()) } else { Err(Error::Unsupported("ending a queue by its tail")) }
    }

    #[inline]
    pub(super) fn consumer(&mut self) -> &mut Consumer {
        self.ring.consumer()
    }

    #[inline]
    fn tell_if_due(&mut self) -> Result<()> {
        if self.consumer().owes_head() { self.tell_now() } else { Ok(()) }
    }

    #[inline(never)]
    fn tell_now(&mut self) -> Result<()> {
        self.tell()
    }

    #[inline]
    fn was_empty(&mut self) -> Result<()> {
        self.idle += 1;
        if self.idle < BREATH { Ok(()) } else { self.breathe() }
    }

    #[cold]
    #[inline(never)]
    fn breathe(&mut self) -> Result<()> {
        self.idle = 0;
        match self.home.breathe() {
            // What arrived before the end is delivered first.
            Err(_) if self.ring.consumer().has_news() => Ok(()),
            outcome => outcome,
        }
    }
}

impl Ring {
    #[inline]
    fn consumer(&mut self) -> &mut Consumer {
        match self {
            Ring::Bytes(ring) => ring,
            Ring::Slots(ring) => ring.bytes(),
        }
    }
}

fn ring_of(slice: &RegionSlice, capacity: usize) -> Result<Span> {
    Ok(slice.core().data.memory().span(slice.offset() + BLOCK_HEADER, capacity)?)
}
