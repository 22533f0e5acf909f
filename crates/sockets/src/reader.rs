//! The reading direction of a stream.

use std::{
    collections::VecDeque,
    io::IoSliceMut,
    sync::{Arc, atomic::Ordering},
};

use sidestep_shm::{Word64, wait::Waiter};
use sidestep_stream::carrier::{AnyInbound, Carrier, Fault, Inbound, Mode, Reading, Switch, Watch};
use sidestep_sys::cpu;

use crate::{
    config::config,
    control::Control,
    heirloom::Heirloom,
    kernel::{self, Errno, Result, stack},
    reason::Reason,
    registry::Field,
    set,
    stream::{READ, Stream, WRITE},
};

pub mod alone;
mod aside;
mod parting;
mod peek;
mod returning;
mod sharing;

/// What a try to read gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// So many bytes; 0 is the end.
    Got(usize),
    /// Nothing now.
    Empty,
    /// The direction is not open: the kernel's own call is the right one.
    Kernel,
}

/// What a reading call knows of the anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// It has news.
    News,
    /// The call sleeps on it, if there is nothing: no need to look before.
    SleptOn,
    /// Nothing: it is looked at now and then.
    Unknown,
}

impl Anchor {
    /// What a call knows that has just begun.
    #[inline]
    pub fn before(nonblocking: bool) -> Anchor {
        if nonblocking { Anchor::Unknown } else { Anchor::SleptOn }
    }
}

/// Whether a larger ring is offered to the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Growth {
    /// None was.
    #[default]
    NotYet,
    /// One was; another one may be.
    Offered,
    /// None will be.
    Never,
}

/// The reading direction. Under the lock of its stream.
#[derive(Debug, Default)]
pub struct Reader {
    ring: Option<AnyInbound>,
    carrier: Option<Arc<Carrier>>,
    on_ring: bool,
    note: Reading,
    waiter: Waiter,
    /// The program has shut this direction down.
    shut: bool,
    messages: u64,
    /// Bytes that were read from carriers before this one.
    former: u64,
    counters: Option<[Word64; 3]>,
    /// When the anchor was looked at, in ticks of the processor.
    looked: u64,
    /// Reads that found the ring almost full.
    crowded: u32,
    growth: Growth,
    cut_off: bool,
    /// Bytes that are wanted over TCP.
    wanted: u64,
    /// Bytes since the writer was told that this side is on its way.
    paced: usize,
    /// Bytes from TCP that come after those of the ring.
    kept: VecDeque<u8>,
    /// What comes before everything else.
    aside: Option<Box<aside::Aside>>,
    /// What children may take over, while this process owns the ring.
    shared: Option<Arc<Heirloom>>,
}

/// Ticks between two looks at the anchor by calls that do not wait: some 20 microseconds.
const LOOK_TICKS: u64 = 50_000;
/// Not an error of the kernel's: all that came over TCP comes after bytes of the ring.
const AFTER_THE_RING: Errno = Errno(-2);
/// A ring that overflowed becomes so many times as large as one for bulk.
pub const AFTER_OVERFLOW: usize = 2;
/// Crowded reads before a larger ring is offered.
const CROWDED: u32 = 8;

impl Reader {
    /// Reads what is there, and looks for a while if there is nothing and `patient`.
    #[inline]
    pub fn step(
        &mut self,
        stream: &Stream,
        parts: &mut [IoSliceMut<'_>],
        flags: i32,
        patient: bool,
        anchor: Anchor,
    ) -> Result<Step> {
        self.step_with(stream, parts, flags, patient, anchor, None)
    }

    /// The same, with the control messages that the kernel has for what comes over TCP.
    #[inline]
    pub fn step_with(
        &mut self,
        stream: &Stream,
        parts: &mut [IoSliceMut<'_>],
        flags: i32,
        patient: bool,
        anchor: Anchor,
        control: Option<&mut Control<'_>>,
    ) -> Result<Step> {
        if self.aside.is_some()
            && let Some(step) = self.take_aside(stream, parts, flags)?
        {
            return Ok(step);
        }
        if self.on_ring {
            let count = self.take(stream, parts, flags)?;
            if count > 0 {
                return Ok(Step::Got(count));
            }
            if patient && self.look() {
                let count = self.take(stream, parts, flags)?;
                if count > 0 {
                    return Ok(Step::Got(count));
                }
            }
        }
        self.step_slowly(stream, parts, flags, anchor, control)
    }

    #[inline(never)]
    fn step_slowly(
        &mut self,
        stream: &Stream,
        parts: &mut [IoSliceMut<'_>],
        flags: i32,
        anchor: Anchor,
        mut control: Option<&mut Control<'_>>,
    ) -> Result<Step> {
        self.see_sharing(stream);
        if self.aside.is_some()
            && let Some(step) = self.take_aside(stream, parts, flags)?
        {
            return Ok(step);
        }
        if self.ring.is_none() && !self.take_up(stream) {
            return Ok(Step::Kernel);
        }
        self.cross(stream)?;
        let now = cpu::ticks();
        let ended = self.carrier.as_ref().is_some_and(|carrier| carrier.has_ended());
        let due = match anchor {
            Anchor::News => true,
            Anchor::SleptOn => ended,
            Anchor::Unknown => ended || now.wrapping_sub(self.looked) > LOOK_TICKS,
        };
        loop {
            if self.on_ring {
                let count = self.take(stream, parts, flags)?;
                if count > 0 {
                    return Ok(Step::Got(count));
                }
                if !due && !self.shut {
                    return Ok(Step::Empty);
                }
                self.looked = now;
                if kernel::look(stream.fd(), libc::POLLIN | libc::POLLRDHUP) == 0 {
                    return Ok(Step::Empty);
                }
                // What was published before the anchor's news is visible now, and so is an end of the ring.
                self.ring.iter_mut().for_each(|ring| _ = ring.available());
                if self.has_news() || self.cross(stream)? {
                    continue;
                }
            }
            if !self.on_ring && !self.kept.is_empty() {
                let count = self.take_kept(parts, flags);
                if flags & libc::MSG_PEEK == 0 {
                    stream.count(READ, count);
                }
                return Ok(Step::Got(count));
            }
            let outcome = if flags & (libc::MSG_TRUNC | libc::MSG_PEEK) == libc::MSG_TRUNC {
                // The kernel does not show what it drops, and some of that may have to be kept.
                let mut dropped = room_for(stream, parts);
                let flags = flags & !libc::MSG_TRUNC;
                self.read_tcp(stream, &mut [IoSliceMut::new(&mut dropped)], flags, control.as_deref_mut())
            } else {
                self.read_tcp(stream, parts, flags, control.as_deref_mut())
            };
            if outcome == Err(AFTER_THE_RING) {
                self.cross(stream)?;
                continue;
            }
            if outcome == Ok(0) && !self.shut {
                self.carrier.iter().for_each(|carrier| carrier.settle_end());
            }
            // A switch is announced before anything that follows it, the end included.
            if matches!(outcome, Ok(0) | Err(Errno(libc::EAGAIN))) && (self.cross(stream)? || self.has_news()) {
                continue;
            }
            return match outcome {
                Ok(0) if !self.shut && self.is_cut_off(stream) => Err(Errno(libc::ECONNRESET)),
                Ok(count) => {
                    if flags & libc::MSG_PEEK == 0 {
                        stream.count(READ, count);
                        self.pace(count);
                        self.tell_others();
                    }
                    Ok(Step::Got(count))
                }
                Err(Errno(libc::EAGAIN)) => Ok(Step::Empty),
                Err(errno) => {
                    self.cut_off |= errno == Errno(libc::ECONNRESET);
                    stream.tells_error();
                    Err(errno)
                }
            };
        }
    }

    /// Bytes before a switch have been taken: other threads that wait for those behind it look again.
    fn tell_others(&self) {
        let switching = |carrier: &&Arc<Carrier>| carrier.announced(self.note.done).is_some();
        if let Some(carrier) = self.carrier.as_ref().filter(switching) {
            carrier.node().wake();
        }
    }

    /// At the end of the stream: whether it came without the peer's word, by its death, while bytes of ours lay unread.
    /// The kernel would have sent a reset. Said once, as the kernel does.
    fn is_cut_off(&mut self, stream: &Stream) -> bool {
        let Some(carrier) = &self.carrier else { return false };
        carrier.settle_end();
        if self.cut_off || carrier.has_ended() || carrier.peer_reading().closed {
            return false;
        }
        if !self.has_lost_bytes(stream) && !stream.writer().has_unread(stream) {
            return false;
        }
        self.cut_off = true;
        stream.writes_over.store(true, Ordering::Relaxed);
        let _ = kernel::shutdown(stream.fd(), libc::SHUT_RDWR);
        true
    }

    /// Reads from TCP.
    fn read_tcp(
        &mut self,
        stream: &Stream,
        parts: &mut [IoSliceMut<'_>],
        flags: i32,
        control: Option<&mut Control<'_>>,
    ) -> Result<usize> {
        let flags = flags | libc::MSG_DONTWAIT;
        let outcome = match control {
            Some(control) => kernel::receive_message(stream.fd(), parts, flags, control),
            None => kernel::receive(stream.fd(), parts, flags),
        };
        // What was announced before those bytes, or before the end, is known then.
        self.ring.iter().for_each(Inbound::settle);
        let count = outcome?;
        match self.sort_out(stream, parts, count, flags) {
            0 if count > 0 => Err(AFTER_THE_RING),
            count => Ok(count),
        }
    }

    /// Bytes have come over TCP. If a switch to the ring was announced meanwhile, those from its position on were sent
    /// after the ring was left again: they are kept until then. Returns how many are not.
    fn sort_out(&mut self, stream: &Stream, parts: &[IoSliceMut<'_>], count: usize, flags: i32) -> usize {
        let (Some(carrier), Some(ring)) = (&self.carrier, &mut self.ring) else { return count };
        if ring.is_over() {
            return count;
        }
        let Some(switch) = carrier.announced(self.note.done).filter(|switch| switch.to_ring()) else { return count };
        let position = stream.position(READ, ring.position());
        let before = switch.position.saturating_sub(position).min(count as u64) as usize;
        if before < count && flags & libc::MSG_PEEK == 0 {
            let bytes = parts.iter().flat_map(|part| part.iter().copied());
            self.kept.extend(bytes.take(count).skip(before));
            self.tell_kept();
        }
        before
    }

    /// Takes bytes that were kept.
    fn take_kept(&mut self, parts: &mut [IoSliceMut<'_>], flags: i32) -> usize {
        let room: usize = parts.iter().map(|part| part.len()).sum();
        let count = room.min(self.kept.len());
        let places = parts.iter_mut().flat_map(|part| part.iter_mut());
        places.zip(&self.kept).for_each(|(place, byte)| *place = *byte);
        if flags & libc::MSG_PEEK == 0 {
            self.kept.drain(..count);
            self.tell_kept();
        }
        count
    }

    /// Bytes that can be read now: the kernel's and the ring's, as far as nothing is missing before them.
    pub fn available(&mut self, stream: &Stream) -> Result<usize> {
        self.see_sharing(stream);
        let kept = self.kept.len();
        let switching = self.carrier.as_ref().is_some_and(|carrier| carrier.is_switching());
        // TCP before the notes: a switch is announced before anything that follows it.
        let asked = !self.on_ring || switching;
        let in_kernel = if asked { kernel::ask(stream.fd(), libc::FIONREAD)? as usize } else { 0 };
        let before = self.bytes_aside();
        let (Some(carrier), Some(ring)) = (&self.carrier, &mut self.ring) else { return Ok(before + kept + in_kernel) };
        ring.settle();
        let (next, in_ring) = (carrier.announced(self.note.done), ring.available());
        let position = stream.position(READ, ring.position());
        let is_at = |switch: Switch, bytes: usize| switch.position == position + bytes as u64;
        if self.on_ring {
            let on_tcp = if next.is_some_and(|switch| is_at(switch, in_ring)) { kept + in_kernel } else { 0 };
            return Ok(before + in_ring + on_tcp);
        }
        let Some(switch) = next else { return Ok(before + kept + in_kernel) };
        let first = switch.position.saturating_sub(position + kept as u64).min(in_kernel as u64) as usize;
        if !is_at(switch, kept + first) {
            return Ok(before + kept + first);
        }
        let all = kept + first + in_ring;
        let last = carrier.announced(switch.number).is_some_and(|switch| is_at(switch, all));
        Ok(before + all + if last { in_kernel - first } else { 0 })
    }

    /// The program reads no more.
    pub fn shut(&mut self) {
        self.shut = true;
    }

    /// Asks the peer to send the rest over TCP.
    pub fn leave(&mut self) {
        if let Some(ring) = &mut self.ring {
            self.note.leaving = true;
            let _ = ring.set_note(self.note.to_note());
        }
    }

    /// Whether bytes may follow on the other path, of which the same call gives all it can. Not behind an urgent mark: a
    /// call that has bytes ends there.
    #[inline]
    pub fn goes_on(&self, stream: &Stream) -> bool {
        let Some(carrier) = &self.carrier else { return false };
        let follows = match carrier.announced(self.note.done) {
            Some(switch) if switch.to_ring() => return true,
            Some(_) => true,
            // What came over TCP and had to be kept is followed by what the kernel still has.
            None => !self.on_ring && kernel::ask(stream.fd(), libc::FIONREAD).is_ok_and(|count| count > 0),
        };
        follows && kernel::ask(stream.fd(), kernel::SIOCATMARK) == Ok(0)
    }

    /// Carries out a switch that waits for nothing else: calls that do not read do this too, so that a peer whose bytes
    /// nobody reads yet can move on.
    pub fn keep_up(&mut self, stream: &Stream) {
        self.see_sharing(stream);
        let _ = self.cross(stream);
    }

    /// Whether nothing lies in the ring, and nothing will.
    pub fn has_left(&mut self, stream: &Stream) -> bool {
        let _ = self.cross(stream);
        !self.on_ring
    }

    /// The program has closed the stream. Bytes that nobody will read are a reset, as on TCP.
    pub fn end(&mut self, stream: &Stream) {
        let Some(ring) = &mut self.ring else { return };
        let aside = self.aside.as_ref().is_some_and(|aside| !aside.bytes.is_empty());
        if ring.available() > 0 || !self.kept.is_empty() || aside {
            kernel::reset_at_close(stream.fd());
        }
        self.note.closed = true;
        let _ = ring.set_note(self.note.to_note());
    }

    /// Takes up the receiving end of a fresh carrier, and opens the direction (S3).
    #[cold]
    fn take_up(&mut self, stream: &Stream) -> bool {
        let stays = stream.parting.load(Ordering::SeqCst) || stream.shared.load(Ordering::SeqCst);
        let Some(carrier) = stream.carrier().filter(|_| !stays && set::can_open(stream)) else { return false };
        // SeqCst: pairs with `Stream::in_kernel` and then `open` in calls that are about to sleep in the kernel.
        stream.record().reading().open(1);
        if stream.calls_in_kernel(READ) != 0 {
            stream.record().reading().close();
            return false;
        }
        let receiver = crate::stream::lock(&stream.inbox).as_mut().and_then(|parts| parts.inbound.take());
        let Some(receiver) = receiver else {
            stream.record().reading().close();
            return false;
        };
        self.waiter = Waiter::with(config().patience);
        if let Some(place) = stream.known_place() {
            let fields = [Field::ReadRing, Field::ReadMessages, Field::Capacity];
            self.counters = Some(fields.map(|field| place.engine.registry.field(place.entry, field)));
        }
        self.ring = Some(receiver);
        self.publish_capacity();
        self.carrier = Some(carrier);
        set::opened(stream);
        self.note.open = true;
        self.former = stream.carried_bytes(READ, 0);
        self.tell();
        if self.former > 0
            && let Some(carrier) = &self.carrier
        {
            // Who sleeps on the carrier before this one looks at this one from now on.
            carrier.node().wake();
        }
        true
    }

    /// Carries out the switches that have been announced, if their position is reached. `true`: the path has changed, or
    /// has changed and changed back, since the writer left the ring without a byte.
    #[inline]
    fn cross(&mut self, stream: &Stream) -> Result<bool> {
        let crossed = self.cross_once(stream)?;
        if crossed {
            self.cross_once(stream)?;
        }
        Ok(crossed)
    }

    /// The next switch, if it has been announced and its position is reached: from here on this side reads the other path.
    #[inline]
    fn take_switch(&mut self, stream: &Stream) -> Result<Option<Switch>> {
        let (Some(carrier), Some(ring)) = (&self.carrier, &mut self.ring) else { return Ok(None) };
        if ring.is_over() {
            return Ok(self.finish_ring());
        }
        let Some(switch) = carrier.announced(self.note.done) else { return Ok(None) };
        let position = stream.position(READ, ring.position());
        if position < switch.position {
            return Ok(None);
        }
        if position > switch.position || switch.to_ring() == self.on_ring {
            // No correct writer announces that.
            return Err(Errno(libc::ECONNRESET));
        }
        self.on_ring = switch.to_ring();
        self.note.done = switch.number;
        carrier.switched.store(switch.number, Ordering::Relaxed);
        Ok(Some(switch))
    }

    #[inline]
    fn cross_once(&mut self, stream: &Stream) -> Result<bool> {
        let Some(switch) = self.take_switch(stream)? else { return Ok(false) };
        let demoted = self.note.leaving || self.ring.as_mut().is_some_and(Inbound::is_over);
        let reason = match (switch.to_ring(), demoted) {
            (true, _) => Reason::Promoted,
            (false, true) => Reason::Demoted,
            (false, false) => Reason::Overflow,
        };
        stream.moved(READ, switch.to_ring(), reason);
        self.tell();
        if reason == Reason::Overflow {
            // It was too small for what the peer writes before this side reads.
            self.grow(config().rings.1 * AFTER_OVERFLOW);
        }
        Ok(true)
    }

    fn tell(&mut self) {
        let note = self.note.to_note();
        if let Some(ring) = &mut self.ring {
            // A carrier that is gone needs no telling.
            let _ = ring.set_note(note);
        }
    }

    fn has_news(&mut self) -> bool {
        self.on_ring && self.ring.as_mut().is_some_and(Inbound::has_news_now)
    }

    /// Looks for a while.
    #[inline]
    fn look(&mut self) -> bool {
        let (Some(ring), Some(carrier)) = (&mut self.ring, &self.carrier) else { return false };
        let done = self.note.done;
        let core = || carrier.watch().peer_core();
        self.waiter.look(None, core, || ring.has_news() || carrier.announced(done).is_some())
    }

    /// Takes bytes out of the ring.
    #[inline]
    fn take(&mut self, stream: &Stream, parts: &mut [IoSliceMut<'_>], flags: i32) -> Result<usize> {
        if self.shared.is_some() {
            return self.take_shared(stream, parts, flags);
        }
        let (Some(ring), Some(carrier)) = (&mut self.ring, &self.carrier) else { return Ok(0) };
        if !ring.has_news() {
            return Ok(0);
        }
        let outcome = match parts {
            [part] if flags & (libc::MSG_PEEK | libc::MSG_TRUNC) == 0 => ring.receive(part),
            parts => ring.receive_parts(parts, mode(flags)),
        };
        match outcome {
            Ok(count) => {
                if flags & libc::MSG_PEEK == 0 {
                    self.took(count);
                }
                Ok(count)
            }
            Err(Fault::Closed) => {
                carrier.lost.store(true, Ordering::Release);
                Ok(0)
            }
            // What lies there is not what a correct peer writes.
            Err(Fault::Broken | Fault::Frozen) => Err(Errno(libc::ECONNRESET)),
        }
    }

    /// So many bytes were taken out of the ring.
    #[inline]
    fn took(&mut self, count: usize) {
        let (Some(ring), Some(carrier)) = (&mut self.ring, &self.carrier) else { return };
        carrier.taken.store(ring.position(), Ordering::Relaxed);
        carrier.places[READ].store(ring.next_place().cast_mut(), Ordering::Relaxed);
        // The answer often follows.
        cpu::prefetch_to_write(carrier.places[WRITE].load(Ordering::Relaxed));
        ring.testify();
        self.messages += 1;
        if let Some([bytes, messages, _]) = &self.counters {
            bytes.store(self.former + ring.position(), Ordering::Relaxed);
            messages.store(self.messages, Ordering::Relaxed);
        }
        if count >= 16 << 10 && self.growth == Growth::NotYet {
            self.watch_crowding(count);
        }
    }

    /// Bulk pays for a larger ring.
    #[cold]
    fn watch_crowding(&mut self, count: usize) {
        let Some(ring) = &mut self.ring else { return };
        if !self.carrier.as_ref().is_some_and(|carrier| carrier.capabilities().grows) {
            self.growth = Growth::Never;
            return;
        }
        if (count + ring.available()) * 2 < ring.capacity() {
            return;
        }
        self.crowded += 1;
        if self.crowded == CROWDED {
            self.grow(config().rings.1);
        }
    }

    /// Offers a larger ring.
    #[cold]
    fn grow(&mut self, larger: usize) {
        let Some(ring) = self.ring.as_mut().filter(|_| self.growth != Growth::Never && self.shared.is_none()) else {
            return;
        };
        let larger = config().affordable_ring(larger);
        if stack::on_own(|| ring.grow(larger)) {
            self.growth = Growth::Offered;
            if let Some([_, _, capacity]) = &self.counters {
                capacity.store(larger as u64, Ordering::Relaxed);
            }
        }
    }

    /// Stores the size of the carrier where `stat` looks.
    fn publish_capacity(&mut self) {
        if let (Some([_, _, capacity]), Some(ring)) = (&self.counters, &mut self.ring) {
            capacity.store(ring.capacity() as u64, Ordering::Relaxed);
        }
    }
}

/// Room for what TCP has for a call with these parts.
fn room_for(stream: &Stream, parts: &[IoSliceMut<'_>]) -> Vec<u8> {
    let there = kernel::ask(stream.fd(), libc::FIONREAD).unwrap_or(0).max(1) as usize;
    vec![0; parts.iter().map(|part| part.len()).sum::<usize>().min(there)]
}

/// What the flags of `recv` say about the bytes.
fn mode(flags: i32) -> Mode {
    match (flags & libc::MSG_PEEK, flags & libc::MSG_TRUNC) {
        (0, 0) => Mode::Take,
        (0, _) => Mode::Discard,
        _ => Mode::Peek,
    }
}
