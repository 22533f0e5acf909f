//! The writing side of a queue.

use std::os::fd::BorrowedFd;

use sidestep_shm::{
    Memory, Span, Word64,
    byte_ring::{Frozen, Parts, Producer},
    cached::CachedFile,
    slot_ring::SlotProducer,
    sync::Ordering,
    wait::{Patience, Waiter},
};
use sidestep_sys::cpu;

use super::{
    BLOCK_HEADER, COUNT, HEAD, HEAD_CORE, HEAD_NOTE, Kind, QueueBlock, QueueSpec, Reserved, SWITCH, TAIL, TAIL_CORE,
    TAIL_NOTES, WITNESS,
    home::Home,
    wire::{Wire, send_ring},
};
use crate::{
    aperture::Aperture,
    cookie::Rights,
    error::{Error, Result},
    event::{EventQueue, SourceId},
    region::Region,
    tripwire::{Mode, Tripwire},
};

/// Sends. One thread at a time; several threads share it under a lock of their own.
#[derive(Debug)]
pub struct Sender {
    ring: Ring,
    wire: Wire,
    home: Home,
    waiter: Waiter,
    /// Where the peer ran when it last told how far it has read.
    peer_core: Word64,
    head: Word64,
    /// The program's own word of the peer's receiver.
    note: Word64,
    refused: u32,
    current: Current,
    /// A larger ring that is being opened.
    growth: Option<(Aperture, QueueSpec)>,
    /// Reports space to an event queue, after a try that found too little.
    reporter: Option<Tripwire>,
}

#[derive(Debug)]
enum Ring {
    Bytes(Producer),
    Slots(SlotProducer),
}

/// The ring that is written at present. For a peer whose memory is not mapped it is a local copy, sent through the
/// aperture up to a position.
#[derive(Debug)]
struct Current {
    ring: Span,
    offset: usize,
    aperture: Option<Aperture>,
    sent: u64,
}

/// Bytes of a large send that are published at a time.
const PIECE: usize = 16 * 1024;
/// And of a very large one.
const LARGE_PIECE: usize = 64 * 1024;
/// Failed tries before a sender that only polls lets the process breathe.
const BREATH: u32 = 256;
/// The same for waits, which are longer.
const WAITS: u32 = 32;

impl Sender {
    pub(super) fn new(home: Home, wire: Wire, ours: &QueueBlock, theirs: &QueueSpec) -> Result<Sender> {
        let offset = theirs.offset as usize + BLOCK_HEADER;
        let ring = wire.ring(offset, theirs.capacity as usize)?;
        let word = |at| ours.slice().word64(at);
        let (head, peer_core, note) = (word(HEAD)?, word(HEAD_CORE)?, word(HEAD_NOTE)?);
        let parts = Parts {
            ring: ring.clone(),
            tail: wire.word(TAIL)?,
            core: wire.word(TAIL_CORE)?,
            switch: wire.word(SWITCH)?,
            head: head.clone(),
            begin: 0,
        };
        let current = Current { ring, offset, aperture: wire.aperture(), sent: 0 };
        let ring = match theirs.kind {
            Kind::Stream => Ring::Bytes(Producer::new(parts)?),
            Kind::Slots(stride) => Ring::Slots(SlotProducer::new(parts, stride as usize)?),
        };
        let waiter = Waiter::default();
        let (refused, growth, reporter) = (0, None, None);
        Ok(Sender { ring, wire, home, waiter, peer_core, head, note, refused, current, growth, reporter })
    }

    /// Reports to an event queue as [`EventQueue::attach_sender`] says.
    pub(crate) fn attach(&mut self, queue: &EventQueue, token: u64) -> Result<SourceId> {
        let (id, reporter) = self.home.attach(queue, token, Mode::Once)?;
        self.reporter = Some(reporter);
        if self.space()? == 0 {
            self.report_space();
        }
        Ok(id)
    }

    /// Lets the event queue, if there is one, know of the next space.
    fn report_space(&mut self) {
        let Some(reporter) = &self.reporter else { return };
        reporter.arm();
        let known = self.ring.producer().known_head();
        if self.head.load(Ordering::Relaxed) != known {
            self.home.report(reporter);
        }
    }

    /// How patient waits are before they sleep.
    pub fn set_patience(&mut self, patience: Patience) {
        self.waiter = Waiter::with(patience);
    }

    /// Sends as much of `bytes` as fits now; the rest is the caller's. Zero if the ring is full. A queue that has been
    /// frozen takes nothing: [`Error::Frozen`].
    #[inline]
    pub fn try_send(&mut self, bytes: &[u8]) -> Result<usize> {
        if bytes.len() > PIECE {
            return self.try_send_pieces(bytes);
        }
        let count = self.push(bytes)?;
        if count > 0 {
            let is_mapped = self.current.aperture.is_none();
            if !is_mapped || !self.ring.producer().publish(cpu::current_core()) {
                self.publish_or_recall()?;
            } else {
                self.wire.swapped()?;
            }
        }
        Ok(count)
    }

    /// Large sends are published in pieces, so that the peer copies out while this side copies in.
    fn try_send_pieces(&mut self, bytes: &[u8]) -> Result<usize> {
        let mut sent = 0;
        // The step that publishes waits until every store before it has reached the ring, which is dear in the middle of a
        // large copy: 64 KiB at a time are early enough for a peer that has many of them to copy.
        let largest = (bytes.len() / 16).clamp(PIECE, LARGE_PIECE);
        for piece in bytes.chunks(largest) {
            let count = self.push(piece)?;
            if count > 0 {
                match self.publish_or_recall() {
                    Err(Error::Frozen) if sent > 0 => return Ok(sent),
                    outcome => outcome?,
                }
            }
            sent += count;
            if count < piece.len() {
                break;
            }
        }
        Ok(sent)
    }

    /// Puts bytes into the ring without publishing them.
    #[inline(always)]
    pub fn push(&mut self, bytes: &[u8]) -> Result<usize> {
        let Ring::Bytes(ring) = &mut self.ring else { return Err(not("a stream")) };
        let count = ring.copy_in(bytes)?;
        if count == 0 && !bytes.is_empty() {
            self.was_full()?;
        }
        Ok(count)
    }

    /// Space for at least `min` bytes, to be written where they will lie; `None` if there is less now
    /// ([`wait_space`](Self::wait_space) waits for it). More than three quarters of the ring cannot be asked for: a
    /// receiver tells how far it has read only now and then.
    #[inline]
    pub fn reserve(&mut self, min: usize) -> Result<Option<Reserved<'_>>> {
        let Ring::Bytes(ring) = &mut self.ring else { return Err(not("a stream")) };
        if min > ring.capacity() / 4 * 3 {
            return Err(Error::Size { what: "reservation", must: "at most three quarters of the ring", value: min });
        }
        let space = ring.space(min)?;
        if space < min {
            self.was_full()?;
            return Ok(None);
        }
        Ok(Some(Reserved::new(self, space)))
    }

    /// Writes bytes from `at` bytes behind the last one sent, as [`Reserved::copy_in`] does, in space that is known to be free
    /// ([`space_for`](Self::space_for)).
    #[inline(always)]
    pub fn copy_ahead(&mut self, at: usize, bytes: &[u8]) -> Result<()> {
        let Ring::Bytes(ring) = &mut self.ring else { return Err(not("a stream")) };
        Ok(ring.copy_ahead(at, bytes)?)
    }

    /// Sends the first `count` bytes of what was written so, as [`Reserved::commit`] does.
    #[inline]
    pub fn commit_ahead(&mut self, count: usize) -> Result<()> {
        let Ring::Bytes(ring) = &mut self.ring else { return Err(not("a stream")) };
        ring.advance(count)?;
        self.publish()
    }

    /// Puts bytes of a region into the ring without publishing them: one copy, from where they are.
    #[inline]
    pub fn push_from(&mut self, region: &Region, at: usize, len: usize) -> Result<usize> {
        let Ring::Bytes(ring) = &mut self.ring else { return Err(not("a stream")) };
        let count = ring.copy_in_from(&region.core().data, at, len)?;
        if count == 0 && len > 0 {
            self.was_full()?;
        }
        Ok(count)
    }

    /// Puts bytes of a file into the ring without publishing them, if they are in memory. Zero: there is no space, or an
    /// ordinary read must tell why there are none.
    pub fn push_file(&mut self, file: &CachedFile, offset: Option<u64>, len: usize) -> Result<usize> {
        let Ring::Bytes(ring) = &mut self.ring else { return Err(not("a stream")) };
        Ok(ring.read_in(file, offset, len)?)
    }

    /// Sends one message; `false` if no slot is free.
    #[inline]
    pub fn try_send_message(&mut self, message: &[u8]) -> Result<bool> {
        let sent = self.push_message(message)?;
        if sent {
            self.publish()?;
        }
        Ok(sent)
    }

    /// Puts one message into a slot without publishing it.
    #[inline]
    pub fn push_message(&mut self, message: &[u8]) -> Result<bool> {
        let Ring::Slots(ring) = &mut self.ring else { return Err(not("a queue of slots")) };
        let pushed = ring.push(message)?;
        if !pushed {
            self.was_full()?;
        }
        Ok(pushed)
    }

    /// Makes everything pushed visible to the peer, and wakes it if it waits. [`Error::Frozen`]: the queue has ended before,
    /// and what was pushed is to be [recalled](Self::recall).
    #[inline]
    pub fn publish(&mut self) -> Result<()> {
        if self.current.aperture.is_some() {
            self.send_bytes()?;
        }
        if !self.producer().publish(cpu::current_core()) {
            return self.not_published();
        }
        self.wire.swapped()
    }

    #[inline(never)]
    fn publish_or_recall(&mut self) -> Result<()> {
        let outcome = self.publish();
        if outcome == Err(Error::Frozen) {
            self.recall()?;
        }
        outcome
    }

    #[cold]
    fn not_published(&mut self) -> Result<()> {
        self.frozen()?;
        Err(Error::Frozen)
    }

    /// Takes back what was pushed and not published.
    #[cold]
    pub fn recall(&mut self) -> Result<Vec<u8>> {
        Ok(self.producer().recall()?)
    }

    /// Leaves one of two words for the receiver ([`super::Monitor::sender_note`]) after everything sent before, and wakes
    /// it if it waits.
    pub fn set_note(&mut self, which: usize, note: u64) -> Result<()> {
        match self.publish() {
            Err(Error::Frozen) if !self.producer().has_unpublished() => {}
            outcome => outcome?,
        }
        let at = TAIL_NOTES[which & 1];
        self.wire.word(at)?.store(note, Ordering::Release);
        self.wire.send_other(at)?;
        self.wire.stored()
    }

    /// Leaves a count for the receiver ([`super::Monitor::sender_count`]), where memory is mapped: whoever sees bytes that are sent
    /// from now on sees it, or a later one. Wakes nobody.
    #[inline]
    pub fn set_count(&mut self, count: u64) -> Result<()> {
        // The publication of what follows is a Release.
        self.wire.word(COUNT)?.store(count, Ordering::Relaxed);
        Ok(())
    }

    /// The word that the peer's receiver has left ([`super::Receiver::set_note`]). A note that is left wakes who waits for
    /// space.
    #[inline]
    pub fn note(&self) -> u64 {
        self.note.load(Ordering::Acquire)
    }

    /// How far the receiver has read by its own word, which it need not have told: for a sender that has outlived it.
    /// Nothing but the peer's word for it; use it for what may as well be wrong.
    pub fn witness(&self) -> Option<u64> {
        match &self.wire {
            Wire::Mapped { .. } => Some(self.wire.word(WITNESS).ok()?.load(Ordering::Relaxed)),
            Wire::Proxied { .. } => None,
        }
    }

    /// Sends all of `bytes`, waiting for space as needed.
    pub fn send(&mut self, bytes: &[u8], deadline: Option<u64>) -> Result<()> {
        let mut rest = bytes;
        loop {
            rest = &rest[self.try_send(rest)?..];
            if rest.is_empty() {
                return self.flush(deadline);
            }
            self.wait_space(1, deadline)?;
        }
    }

    /// Sends one message, waiting for a slot as needed.
    pub fn send_message(&mut self, message: &[u8], deadline: Option<u64>) -> Result<()> {
        while !self.try_send_message(message)? {
            let stride = self.stride();
            self.wait_space(stride, deadline)?;
        }
        self.flush(deadline)
    }

    /// Waits until the link has taken what was sent, so that it arrives without further calls. Nothing to wait for where
    /// the peer's memory is mapped.
    #[inline]
    pub fn flush(&mut self, deadline: Option<u64>) -> Result<()> {
        self.current.aperture.as_ref().map_or(Ok(()), |aperture| aperture.wait_taken(deadline))
    }

    /// A mark behind everything that was published, for [`has_landed`](Self::has_landed).
    pub fn mark(&self) -> u64 {
        self.wire.aperture().map_or(0, |aperture| aperture.mark())
    }

    /// Whether everything before a mark lies in memory of the peer.
    pub fn has_landed(&self, mark: u64) -> bool {
        self.wire.aperture().is_none_or(|aperture| aperture.has_landed(mark))
    }

    /// Waits until `wanted` bytes are free, which must be at most three quarters of the ring.
    pub fn wait_space(&mut self, wanted: usize, deadline: Option<u64>) -> Result<()> {
        loop {
            let seen = self.head.load(Ordering::Relaxed);
            if self.producer().space(wanted)? >= wanted {
                return Ok(());
            }
            if self.frozen()?.is_some() {
                return Err(Error::Frozen);
            }
            if self.poll_growth()? {
                continue;
            }
            let Sender { home, waiter, peer_core, head, growth, ring, .. } = self;
            let (core, ring) = (|| peer_core.load(Ordering::Relaxed) as u32, ring.producer());
            let opening = growth.as_ref().map(|(aperture, _)| aperture);
            let is_offered = || match opening {
                Some(aperture) => aperture.is_open() != Ok(false),
                None => home.has_larger_ring(),
            };
            let news = || head.load(Ordering::Relaxed) != seen || ring.is_ending() || is_offered();
            home.wait(waiter, deadline, "space in a queue", &core, &news)?;
            // Space that is found by looking lets the process see to nothing else.
            self.count_shortage(WAITS)?;
        }
    }

    /// Bytes free at the moment.
    #[inline]
    pub fn space(&mut self) -> Result<usize> {
        let capacity = self.producer().capacity();
        Ok(self.producer().space(capacity)?)
    }

    /// Gives the pages of what is free in the peer's ring back to the machine, if it is a stream in mapped memory; returns how
    /// many bytes that were. For a ring that was not used of late: the next bytes take the pages anew.
    pub fn release(&mut self) -> Result<usize> {
        match &mut self.ring {
            Ring::Bytes(ring) if self.current.aperture.is_none() => Ok(ring.release()?),
            _ => Ok(0),
        }
    }

    /// Bytes known to be free; asks how far the peer has read only if they are fewer than `wanted`.
    #[inline]
    pub fn space_for(&mut self, wanted: usize) -> Result<usize> {
        Ok(self.producer().space(wanted)?)
    }

    /// How often the receiver waited and was told.
    #[inline]
    pub fn alarms(&self) -> u64 {
        self.wire.alarms()
    }

    /// Position after the last byte pushed.
    #[inline]
    pub fn position(&self) -> u64 {
        self.ring.position()
    }

    /// Ring size in bytes.
    pub fn capacity(&self) -> usize {
        self.current.ring.len()
    }

    /// Whether the end of the queue is one word that both sides can set: where memory is mapped.
    pub fn can_freeze(&self) -> bool {
        self.wire.is_mapped()
    }

    /// The end of the queue, if it has come. What is not a correct end is the peer's fault.
    pub fn frozen(&mut self) -> Result<Option<Frozen>> {
        Ok(self.producer().frozen()?)
    }

    /// Ends the queue: nothing is sent any more, and the receiver has what was published before.
    pub fn freeze(&mut self) -> Result<Frozen> {
        if !self.can_freeze() {
            return Err(Error::Unsupported("ending a queue by its tail"));
        }
        let frozen = self.producer().freeze()?;
        self.wire.stored()?;
        Ok(frozen)
    }

    /// Takes back the bytes of a frozen queue that the receiver wants to get in another way
    /// ([`super::Receiver::want`]); they have not been sent then. `None`: it does not want that any more.
    pub fn take(&mut self) -> Result<Option<Vec<u8>>> {
        let taken = self.producer().take()?;
        self.wire.stored()?;
        Ok(taken)
    }

    /// Where the next byte to send belongs, for hints to the processor.
    #[inline]
    pub fn next_place(&self) -> *const u8 {
        match &self.ring {
            Ring::Bytes(ring) => ring.next_place(),
            Ring::Slots(_) => std::ptr::null(),
        }
    }

    /// A larger ring that the peer's receiver [allows](super::Receiver::grow), and the aperture to it, which need not be open
    /// yet. It is used from the [`poll_growth`](Self::poll_growth) on that finds it open.
    pub fn begin_growth(&mut self, aperture: Aperture, theirs: &QueueSpec) {
        self.growth = Some((aperture, *theirs));
    }

    /// Whether a larger ring is being opened, or waits for everything to be published.
    pub fn is_growing(&self) -> bool {
        self.growth.is_some()
    }

    /// Goes on in a larger ring if the peer has offered one, it is open, and everything pushed has been published. `true`:
    /// the ring has changed. A ring that cannot be used is forgotten. Calls that wait, and tries that find too little space,
    /// do this by themselves.
    #[cold]
    pub fn poll_growth(&mut self) -> Result<bool> {
        if self.home.has_larger_ring() {
            let Home { node, endpoint, .. } = &self.home;
            if let Some(theirs) = endpoint.take_larger_ring() {
                self.growth = Some((Aperture::begin_at(node, endpoint.peer(), &theirs.cookie)?, theirs));
            }
        }
        let Some((aperture, theirs)) = &self.growth else { return Ok(false) };
        let is_open = aperture.is_open();
        if is_open == Ok(false) || self.ring.producer().has_unpublished() {
            return Ok(false);
        }
        let (aperture, theirs) = (aperture.clone(), *theirs);
        self.growth = None;
        Ok(is_open.is_ok() && self.adopt_ring(&aperture, &theirs).is_ok())
    }

    /// Goes on in the larger ring that the peer has offered ([`super::Receiver::offer_ring`]).
    pub fn adopt_ring(&mut self, aperture: &Aperture, theirs: &QueueSpec) -> Result<()> {
        let Ring::Bytes(ring) = &mut self.ring else { return Err(not("a stream")) };
        let (offset, capacity) = (theirs.offset as usize + BLOCK_HEADER, theirs.capacity as usize);
        aperture.check(offset, capacity, Rights::WRITE)?;
        if aperture.is_mapped() == self.current.aperture.is_some() {
            return Err(Error::Unsupported("a larger ring that is reached in another way"));
        }
        if ring.has_unpublished() {
            return Err(Error::Unsupported("changing the ring with bytes that are not published"));
        }
        let span = match aperture.mapped() {
            Some(mapped) => mapped.memory.span(offset, capacity)?,
            None => Memory::heap(capacity)?.span(0, capacity)?,
        };
        ring.switch_to(span.clone(), cpu::current_core())?;
        let proxied = (!aperture.is_mapped()).then(|| aperture.clone());
        self.current = Current { ring: span, offset, aperture: proxied, sent: ring.position() };
        self.wire.send_other(SWITCH)
    }

    /// For a caller that sleeps by itself until there is space: arms, and says whether it may sleep.
    pub fn prepare_wait(&mut self) -> Result<bool> {
        let seen = self.head.load(Ordering::Relaxed);
        let space = self.space().unwrap_or(1);
        let Sender { home, head, ring, .. } = self;
        let ring = ring.producer();
        let news = || head.load(Ordering::Relaxed) != seen || ring.is_ending();
        Ok(space == 0 && home.prepare_wait(&news)?)
    }

    /// When such a sleep must end at the latest, if it must.
    pub fn wait_deadline(&self) -> Option<u64> {
        self.home.deadline()
    }

    /// After such a sleep.
    pub fn finish_wait(&mut self) {
        self.home.finish_wait();
    }

    /// The descriptor to sleep on after [`prepare_wait`](Self::prepare_wait): readable when there may be space, or the
    /// connection has ended. It is this sender's alone, and always the same.
    pub fn wait_descriptor(&mut self) -> Result<BorrowedFd<'_>> {
        self.home.descriptor()
    }

    #[inline]
    pub(super) fn producer(&mut self) -> &mut Producer {
        self.ring.producer()
    }

    fn stride(&self) -> usize {
        match &self.ring {
            Ring::Bytes(_) => 1,
            Ring::Slots(ring) => ring.max_message() + sidestep_shm::slot_ring::SLOT_HEADER,
        }
    }

    #[cold]
    #[inline(never)]
    fn was_full(&mut self) -> Result<()> {
        if self.producer().has_ended() {
            return Err(Error::Frozen);
        }
        self.report_space();
        if (self.growth.is_some() || self.home.has_larger_ring())
            && self.poll_growth()?
            && let Some(reporter) = &self.reporter
        {
            self.home.report(reporter);
        }
        self.count_shortage(BREATH)
    }

    /// Lets the process see to other things after so many shortages of space.
    fn count_shortage(&mut self, limit: u32) -> Result<()> {
        self.refused += 1;
        if self.refused < limit {
            return Ok(());
        }
        self.refused = 0;
        self.home.breathe()
    }

    #[cold]
    fn send_bytes(&mut self) -> Result<()> {
        let upto = self.ring.position();
        let Current { ring, offset, aperture: Some(aperture), sent } = &mut self.current else { return Ok(()) };
        send_ring(aperture, ring, *offset, *sent, upto)?;
        *sent = upto;
        Ok(())
    }
}

impl Ring {
    #[inline]
    fn producer(&mut self) -> &mut Producer {
        match self {
            Ring::Bytes(ring) => ring,
            Ring::Slots(ring) => ring.bytes(),
        }
    }

    #[inline]
    fn position(&self) -> u64 {
        match self {
            Ring::Bytes(ring) => ring.position(),
            Ring::Slots(ring) => ring.position(),
        }
    }
}

fn not(what: &'static str) -> Error {
    Error::Unsupported(if what == "a stream" { "streams on a queue of slots" } else { "messages on a stream" })
}
