//! The writing direction of a stream.

use std::{
    io::IoSlice,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use sidestep_shm::{Word64, cached::CachedFile, wait::Waiter};
use sidestep_stream::carrier::{AnyOutbound, Carrier, ENDED, Fault, Outbound, Switch, Watch};
use sidestep_sys::{clock, cpu};

use crate::{
    config::{Carrier as Choice, Promote, config},
    kernel::{self, Errno, Result},
    reader::AFTER_OVERFLOW,
    reason::Reason,
    registry::Field,
    stream::{Stream, WRITE, lock},
};

mod landing;

/// What a try to write gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// So many bytes.
    Sent(usize),
    /// No space now.
    Full,
    /// The direction is on TCP: the kernel's own call is the right one.
    Kernel,
}

/// The writing direction. Under the lock of its stream.
#[derive(Debug, Default)]
pub struct Writer {
    ring: Option<AnyOutbound>,
    /// Bytes that were written to a link and come next over TCP.
    owing: Vec<u8>,
    carrier: Option<Arc<Carrier>>,
    on_ring: bool,
    /// A switch to TCP that the reader may not have, and why it was announced: nothing goes over TCP before it has.
    landing: Option<(Reason, Option<u64>)>,
    /// The last switch that was announced, and its note.
    number: u8,
    last_note: u64,
    waiter: Waiter,
    /// It stays on TCP.
    left: bool,
    messages: u64,
    /// Bytes that were written to carriers before this one.
    former: u64,
    counters: Option<[Word64; 3]>,
    /// When the carrier was looked after, in ticks of the processor.
    checked: u64,
    /// Since when the ring has been full, and how far the peer had read then.
    stalled: Option<(u64, u64)>,
    /// How often the ring gave way to TCP.
    overflows: u32,
    /// What the peer's reader has said last.
    head: Said,
    /// How far it had come when this side last saw it at work, and how much of its ring or link had been filled then.
    progress: u64,
    filled: u64,
    random: u64,
    /// How far had been written at the last sweep of idle rings, and when pages were last given back.
    swept: u64,
    released: u64,
}

/// What tells that a reader moves: how far it has read, and its note.
type Said = (u64, u64);

/// A full ring whose reader does not move for so long gives way to TCP, which has buffers of its own. A reader whose turn it is
/// not on a busy core moves within a few time slices.
const STALL_NS: u64 = 8_000_000;
const MOST_STALL_NS: u64 = 1_000_000_000;
/// A large ring takes as much as most programs ever write before they read. So long its reader may rest while a program waits
/// for space in `poll` or `epoll`: four times as long each further time.
const LARGE_STALL_NS: u64 = 200_000_000;
/// How long a writer that does not wait looks for signs of a link's reader before it gives way, and between two looks.
const LINK_LOOK_NS: u64 = 2_000_000;
const LINK_LOOK: Duration = Duration::from_micros(20);
/// How long the end of a stream waits for space on TCP, or for a peer that does not look.
const PAY: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_micros(100);
/// Fewer bytes than this have not touched enough pages.
const WORTH_RELEASING: u64 = 16 << 10;
/// Messages between two looks at the clock, and
const CHECK_MESSAGES: u64 = 16;
/// ticks between two looks at whether the peer lives: some 300 microseconds.
const CHECK_TICKS: u64 = 1_000_000;

impl Writer {
    /// Called now and then: gives the pages of a ring back that nothing was written to since the last time.
    pub fn sweep(&mut self) {
        let Some(ring) = &mut self.ring else { return };
        let position = ring.position();
        if position == self.swept && position.wrapping_sub(self.released) >= WORTH_RELEASING {
            ring.release();
            self.released = position;
        }
        self.swept = position;
    }

    /// Writes what fits.
    #[inline]
    pub fn step(&mut self, stream: &Stream, parts: &[IoSlice<'_>], patient: bool) -> Result<Step> {
        if stream.writes_over.load(Ordering::Relaxed) {
            // The kernel knows which error it is.
            return Ok(Step::Kernel);
        }
        if self.landing.is_some() {
            return self.land(stream);
        }
        if !self.owing.is_empty() && !self.pay(stream)? {
            return Ok(Step::Full);
        }
        if !self.on_ring && !self.enter_ring(stream)? {
            return Ok(Step::Kernel);
        }
        let Some(carrier) = &self.carrier else { return Ok(Step::Kernel) };
        let reading = carrier.peer_reading();
        if reading.closed {
            // The kernel knows what becomes of bytes for a closed peer.
            return Ok(Step::Kernel);
        }
        let parting = reading.parting || stream.parting.load(Ordering::Relaxed);
        if reading.leaving || self.left || parting || self.would_rather_leave(stream) {
            return self.leave_ring(stream, Reason::Demoted);
        }
        self.watch_reader();
        let count = self.push(parts, patient)?;
        if count > 0 {
            self.stalled = None;
            self.look_after(stream)?;
            return Ok(Step::Sent(count));
        }
        if parts.iter().all(|part| part.is_empty()) {
            return Ok(Step::Sent(0));
        }
        self.when_full(stream, parts, patient)
    }

    /// Notes how far the peer has read, when that has changed.
    #[inline]
    fn watch_reader(&mut self) {
        let Some(carrier) = &self.carrier else { return };
        let said = carrier.watch().said();
        if said != self.head {
            let (now, stride) = carrier.watch().progress(said);
            if now.wrapping_sub(self.progress) >= stride || said.1 != self.head.1 {
                (self.progress, self.filled) = (now, carrier.filled());
            }
            self.head = said;
        }
    }

    /// How many bytes fit into the ring now.
    pub fn space(&mut self) -> usize {
        self.ring.as_mut().map_or(0, Outbound::space)
    }

    /// Whether what does not fit goes on over TCP in the same call, also for who does not wait: packets that nobody takes fill
    /// a link sooner than a program expects of a connection.
    pub fn may_give_way(&self) -> bool {
        self.carrier.as_ref().is_some_and(|carrier| carrier.capabilities().packets)
    }

    /// Whether the next bytes would go to the ring.
    pub fn is_on_ring(&self) -> bool {
        self.on_ring || self.landing.is_some()
    }

    /// Goes back to TCP for good.
    pub fn leave(&mut self, stream: &Stream) {
        self.left = true;
        if self.on_ring {
            let _ = self.leave_ring(stream, Reason::Demoted);
        }
    }

    /// The same, unless the peer has closed: what becomes of the bytes then is the kernel's to say, of a whole call at once.
    pub fn uses_ring(&self) -> bool {
        self.is_on_ring() && !self.carrier.as_ref().is_some_and(|carrier| carrier.peer_reading().closed)
    }

    /// Goes over to the ring before a call that the kernel would carry out, if it may. `true`: the ring it is.
    pub fn prefers_ring(&mut self, stream: &Stream) -> bool {
        self.uses_ring() || !self.is_on_ring() && self.enter_ring(stream).unwrap_or(false)
    }

    /// Takes up the sending end of a carrier, and goes on over the ring if the reader has opened it.
    #[inline]
    fn enter_ring(&mut self, stream: &Stream) -> Result<bool> {
        let Some(carrier) = &self.carrier else { return Ok(self.take_up(stream) && self.enter_ring(stream)?) };
        let reading = carrier.peer_reading();
        let parting = reading.parting || stream.parting.load(Ordering::Relaxed);
        let leaves = reading.leaving || parting || self.left;
        let over = stream.writes_over.load(Ordering::Relaxed) || stream.shared.load(Ordering::Relaxed);
        let may = reading.open && !leaves && !over && !reading.closed && reading.done == self.number;
        if !may || carrier.lost.load(Ordering::Relaxed) || stream.calls_in_kernel(WRITE) != 0 {
            return Ok(false);
        }
        if matches!(config().promote, Promote::Random(_)) && self.dice() % 4 != 0 || !crate::set::can_open(stream) {
            return Ok(false);
        }
        if self.ring.as_ref().is_none_or(|ring| !ring.may_note()) || self.is_frozen()? {
            return Ok(false);
        }
        self.announce(stream)?;
        stream.moved(WRITE, true, Reason::Promoted);
        crate::set::opened(stream);
        Ok(true)
    }

    #[cold]
    fn take_up(&mut self, stream: &Stream) -> bool {
        let Some(carrier) = stream.carrier() else { return false };
        let sender = lock(&stream.inbox).as_mut().and_then(|parts| parts.outbound.take());
        let Some(sender) = sender else { return false };
        self.waiter = Waiter::with(config().patience);
        if let Some(place) = stream.known_place() {
            let fields = [Field::WrittenRing, Field::WrittenMessages, Field::Doorbells];
            self.counters = Some(fields.map(|field| place.engine.registry.field(place.entry, field)));
        }
        self.former = stream.carried_bytes(WRITE, 0);
        self.ring = Some(sender);
        self.carrier = Some(carrier);
        true
    }

    /// Goes on over TCP, also if the reader has not seen the switch to the ring: it sorts out what it reads then
    /// (`Reader::sort_out`).
    fn leave_ring(&mut self, stream: &Stream, reason: Reason) -> Result<Step> {
        if stream.is_taken_over() {
            return self.surrender(stream);
        }
        let Some(ring) = self.ring.as_mut().filter(|ring| ring.may_note()) else { return Ok(Step::Full) };
        let back = ring.take_back().map_err(|_| Errno(libc::ECONNRESET))?;
        let wanted = !back.is_empty();
        if wanted && let Some(carrier) = &self.carrier {
            carrier.pushed.store(ring.position(), Ordering::Relaxed);
        }
        // What was written to a file's end comes behind it.
        self.owing.splice(..0, back);
        self.announce(stream)?;
        self.landing = Some((reason, None));
        self.await_landing(stream, landing::LEAVE_NS);
        let step = self.land(stream);
        if wanted {
            // They were with the reader before.
            kernel::push_out(stream.fd());
        }
        step
    }

    /// Sends over TCP what a link had taken and could not deliver. `false`: TCP has no space now.
    #[cold]
    fn pay(&mut self, stream: &Stream) -> Result<bool> {
        while !self.owing.is_empty() {
            let parts = [IoSlice::new(&self.owing)];
            match kernel::send(stream.fd(), &parts, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) {
                Ok(count) => {
                    stream.count(WRITE, count);
                    self.owing.drain(..count);
                }
                Err(Errno(libc::EAGAIN)) => {
                    // A sleep that follows ends in time.
                    self.stall();
                    return Ok(false);
                }
                Err(errno) => {
                    self.owing.clear();
                    return Err(errno);
                }
            }
        }
        Ok(true)
    }

    /// Announces a switch at the present position, to the path that is not the present one.
    fn announce(&mut self, stream: &Stream) -> Result<()> {
        let Some(ring) = &mut self.ring else { return Ok(()) };
        let position = stream.position(WRITE, ring.position());
        self.number = Switch::next_number(self.number);
        let switch = Switch { position, number: self.number };
        // Its word for the end stays.
        let ended = if stream.sends_no_more.load(Ordering::SeqCst) { ENDED } else { 0 };
        self.last_note = switch.to_note() | ended;
        ring.set_note(Switch::note(self.number), self.last_note).map_err(|_| Errno(libc::ECONNRESET))?;
        self.on_ring = switch.to_ring();
        Ok(())
    }

    /// Tells the reader that nothing follows; the anchor's word for it comes after.
    pub fn end(&mut self, stream: &Stream) {
        stream.writes_over.store(true, Ordering::Relaxed);
        if self.ring.is_none() {
            self.take_up(stream);
        }
        if self.on_ring && self.ring.as_ref().is_some_and(|ring| ring.holds()) {
            self.end_over_tcp(stream);
        }
        if !self.await_landing(stream, PAY.as_nanos() as u64) {
            kernel::reset_at_close(stream.fd());
        }
        self.pay_all(stream);
        let Some(ring) = &mut self.ring else { return };
        // Either note will do; the one of the last switch keeps what it says.
        let note = Switch::note(self.number);
        let _ = ring.set_note(note, self.last_note | ENDED);
    }

    /// What a link holds, and cannot deliver now, goes over TCP before the end.
    #[cold]
    fn end_over_tcp(&mut self, stream: &Stream) {
        let until = clock::now() + PAY.as_nanos() as u64;
        while self.ring.as_ref().is_some_and(|ring| !ring.may_note()) {
            if clock::now() > until {
                // Rather an error than an end that is none.
                return kernel::reset_at_close(stream.fd());
            }
            let _ = kernel::poll(&mut [], Some(LOOK), None);
        }
        let _ = self.leave_ring(stream, Reason::Demoted);
    }

    /// The same before the end: few bytes, for which TCP has space, since it was not used.
    fn pay_all(&mut self, stream: &Stream) {
        while self.pay(stream) == Ok(false) {
            let mut entry = [libc::pollfd { fd: stream.fd(), events: libc::POLLOUT, revents: 0 }];
            if !matches!(kernel::poll(&mut entry, Some(PAY), None), Ok(1..)) {
                return kernel::reset_at_close(stream.fd());
            }
        }
    }

    /// Whether the peer has not read all that went over the carrier, by its own word. Some carriers tell late how far they were read:
    /// what the registry says of the peer is newer, as long as it is there.
    pub fn has_unread(&self, stream: &Stream) -> bool {
        let Some(ring) = &self.ring else { return false };
        let is_behind = ring.witness().is_some_and(|read| read != ring.position());
        let tells_late = || self.carrier.as_ref().is_some_and(|carrier| carrier.capabilities().packets);
        let has_all = || {
            let place = stream.known_place()?;
            let read = place.engine.registry.read(&place.key.reversed())?;
            Some(read >= stream.carried_bytes(WRITE, ring.position()))
        };
        is_behind && !(tells_late() && has_all() == Some(true))
    }

    #[inline]
    fn push(&mut self, parts: &[IoSlice<'_>], patient: bool) -> Result<usize> {
        let Some(ring) = &mut self.ring else { return Ok(0) };
        let outcome = ring.send(parts, patient);
        self.pushed(outcome)
    }

    /// Reads a file straight into the ring, if all that [`step`](Self::step) sees to has been seen to. Zero: `step` must do it.
    pub fn push_file(
        &mut self,
        stream: &Stream,
        file: &CachedFile,
        offset: Option<u64>,
        count: usize,
    ) -> Result<usize> {
        if self.ring.is_none() || self.may_give_way() || self.step(stream, &[], true)? != Step::Sent(0) {
            return Ok(0);
        }
        let Some(ring) = &mut self.ring else { return Ok(0) };
        let outcome = ring.send_file(file, offset, count);
        if outcome == Err(Fault::Frozen) {
            // The file may have been read on: these bytes are on their way, and go over TCP.
            self.owing = ring.recall().map_err(|_| Errno(libc::ECONNRESET))?;
            let count = self.owing.len();
            self.leave_ring(stream, Reason::Demoted)?;
            return Ok(count);
        }
        let count = self.pushed(outcome)?;
        if count > 0 {
            self.stalled = None;
            self.look_after(stream)?;
        }
        Ok(count)
    }

    /// Whether a file that is sent without waiting must wait for space. Servers that send files so go on when they are told of
    /// space, and do not rely on how much a connection takes: the ring gives way only if its reader stands still for long.
    pub fn is_full_for_file(&mut self, stream: &Stream) -> Result<bool> {
        if !self.on_ring || self.may_give_way() || self.space() > 0 || self.is_frozen()? {
            return Ok(false);
        }
        self.adopt_larger();
        self.check(stream)?;
        Ok(self.on_ring && self.space() == 0 && !self.has_stalled(false))
    }

    /// Counts what was written.
    #[inline]
    fn pushed(&mut self, outcome: std::result::Result<usize, Fault>) -> Result<usize> {
        let (Some(ring), Some(carrier)) = (&self.ring, &self.carrier) else { return Ok(0) };
        match outcome {
            Ok(0) => Ok(0),
            Ok(count) => {
                carrier.pushed.store(ring.position(), Ordering::Relaxed);
                carrier.places[WRITE].store(ring.next_place().cast_mut(), Ordering::Relaxed);
                self.messages += 1;
                if let Some([bytes, messages, doorbells]) = &self.counters {
                    bytes.store(self.former + ring.position(), Ordering::Relaxed);
                    messages.store(self.messages, Ordering::Relaxed);
                    doorbells.store(ring.alarms(), Ordering::Relaxed);
                }
                Ok(count)
            }
            Err(Fault::Closed) => {
                carrier.lost.store(true, Ordering::Release);
                Ok(0)
            }
            // What follows goes over TCP.
            Err(Fault::Frozen) => Ok(0),
            Err(Fault::Broken) => Err(Errno(libc::ECONNRESET)),
        }
    }

    /// Now and then: whether the peer is still there.
    #[inline]
    fn look_after(&mut self, stream: &Stream) -> Result<()> {
        if self.messages % CHECK_MESSAGES != 0 {
            return Ok(());
        }
        let now = cpu::ticks();
        if now.wrapping_sub(self.checked) < CHECK_TICKS {
            return Ok(());
        }
        self.checked = now;
        self.check(stream)
    }

    /// Whether the peer is there. The death of its process ends the stream if the anchor says so. If it does not (its word
    /// may lie behind bytes that this side has not read), bytes in the ring that have no reader any more are a reset.
    #[cold]
    fn check(&mut self, stream: &Stream) -> Result<()> {
        let Some(carrier) = &self.carrier else { return Ok(()) };
        if carrier.check() {
            return Ok(());
        }
        let events = kernel::look(stream.fd(), libc::POLLRDHUP);
        if events & (libc::POLLHUP | libc::POLLERR | libc::POLLRDHUP) != 0 {
            carrier.settle_end()
        } else {
            carrier.watch().settle()
        };
        let ended = events & (libc::POLLHUP | libc::POLLERR | libc::POLLRDHUP) != 0 || carrier.peer_reading().closed;
        if !ended && self.has_unread(stream) {
            if carrier.capabilities().freezes {
                // A child of the peer's may read them. If there is none, the anchor's end follows.
                self.leave_ring(stream, Reason::LinkLost)?;
                return Ok(());
            }
            kernel::reset_at_close(stream.fd());
            let _ = kernel::shutdown(stream.fd(), libc::SHUT_RDWR);
            return Err(Errno(libc::ECONNRESET));
        }
        // The kernel answers from here on.
        self.on_ring = false;
        stream.moved(WRITE, false, Reason::LinkLost);
        Ok(())
    }

    #[inline(never)]
    fn when_full(&mut self, stream: &Stream, parts: &[IoSlice<'_>], patient: bool) -> Result<Step> {
        if self.is_frozen()? {
            return self.leave_ring(stream, Reason::Demoted);
        }
        self.adopt_larger();
        let count = self.push(parts, patient)?;
        if count > 0 {
            return Ok(Step::Sent(count));
        }
        // Who does not wait cannot be stalled: a reader that took nothing of the last half a ring, and takes nothing for
        // as long as one needs to wake up, does not read. It will offer a larger ring, which takes enough. What a reader says
        // over a wire may be old: there, only that look tells.
        let distant = self.carrier.as_ref().is_some_and(|carrier| carrier.capabilities().far);
        let idle = !patient && !self.is_large() && (distant || self.reader_is_idle());
        let mut moves = false;
        if (patient || idle) && self.look(patient) {
            moves = true;
            let count = self.push(parts, patient)?;
            if count > 0 {
                self.stalled = None;
                return Ok(Step::Sent(count));
            }
        }
        self.check(stream)?;
        if !self.on_ring {
            return Ok(Step::Kernel);
        }
        let stalled = self.has_stalled(patient);
        if idle && (distant && !moves || self.reader_is_idle()) || stalled {
            return self.give_way(stream);
        }
        if self.may_give_way() {
            // Packets, not bytes, fill it: that there is room again is news all the same.
            stream.is_full();
        }
        Ok(Step::Full)
    }

    /// Whether the ring has been ended.
    #[cold]
    fn is_frozen(&mut self) -> Result<bool> {
        self.ring.as_mut().map_or(Ok(false), |ring| ring.is_frozen().map_err(|_| Errno(libc::ECONNRESET)))
    }

    /// Whether the reader of a full ring has stood still for too long.
    fn has_stalled(&mut self, patient: bool) -> bool {
        self.stall().is_some_and(|since| clock::now() - since > self.stall_limit(patient))
    }

    /// Goes on over TCP, since the ring is full.
    fn give_way(&mut self, stream: &Stream) -> Result<Step> {
        self.stalled = None;
        self.overflows += 1;
        self.leave_ring(stream, Reason::Overflow)
    }

    fn reader_is_idle(&self) -> bool {
        self.carrier.as_ref().is_some_and(|carrier| {
            self.head == carrier.watch().said() && carrier.filled().wrapping_sub(self.filled) >= carrier.much()
        })
    }

    /// Whether the ring takes as much as a program may expect of a connection that nobody reads.
    fn is_large(&self) -> bool {
        let large = (config().rings.1 * AFTER_OVERFLOW) as u64;
        self.carrier.as_ref().is_some_and(|carrier| carrier.capacity.load(Ordering::Relaxed) >= large)
    }

    /// Notes that the ring is full. Returns since when its reader has not moved.
    fn stall(&mut self) -> Option<u64> {
        let read = self.carrier.as_ref()?.watch().read();
        if self.stalled.is_none_or(|(_, then)| then != read) {
            self.stalled = Some((clock::now(), read));
        }
        self.stalled.map(|(since, _)| since)
    }

    /// For a program that waits for space in some other way: when TCP takes over. `None`: there is space, be it on TCP.
    pub fn stalls_until(&mut self, stream: &Stream) -> Option<u64> {
        if self.landing.is_some() {
            return matches!(self.land(stream), Ok(Step::Full)).then(|| clock::now() + STALL_NS);
        }
        if !self.on_ring || self.carrier.as_ref()?.has_space() {
            return None;
        }
        if self.is_frozen() == Ok(true) {
            let _ = self.leave_ring(stream, Reason::Demoted);
            return None;
        }
        let until = self.stall()? + self.stall_limit(false) + 1;
        if clock::now() < until {
            return Some(until);
        }
        match self.give_way(stream) {
            Ok(Step::Full) => Some(clock::now() + STALL_NS),
            _ => None,
        }
    }

    /// When a sleep on a full ring must end at the latest, so that TCP can take over.
    pub fn stall_deadline(&self) -> Option<u64> {
        self.stalled.map(|(since, _)| since + self.stall_limit(true) + 1)
    }

    /// Longer with every time: a reader that is slow is better waited for. Most programs that do not wait in the call itself
    /// can do something else meanwhile.
    fn stall_limit(&self, patient: bool) -> u64 {
        // A link whose window has room for more than the way to the peer takes as little as a small ring.
        let is_choked = || self.carrier.as_ref().is_some_and(|carrier| carrier.watch().is_choked());
        if !patient && (self.is_large() || is_choked()) {
            return LARGE_STALL_NS << (2 * self.overflows.min(3));
        }
        (STALL_NS << (2 * self.overflows.min(5))).min(MOST_STALL_NS)
    }

    /// Goes on in a larger ring, if the reader has offered one.
    fn adopt_larger(&mut self) {
        let (Some(ring), Some(carrier)) = (&mut self.ring, &self.carrier) else { return };
        if let Some(capacity) = ring.adopt_larger() {
            carrier.capacity.store(capacity, Ordering::Relaxed);
        }
    }

    /// Looks for a while whether the reader makes space.
    fn look(&mut self, patient: bool) -> bool {
        let Some(carrier) = &self.carrier else { return false };
        if !patient && carrier.capabilities().packets {
            // The reader of a link says seldom what it has read, and one that comes from TCP has much to read there first.
            let (before, until) = (carrier.watch().said(), clock::now() + LINK_LOOK_NS);
            while carrier.watch().said() == before && clock::now() < until {
                kernel::pause(LINK_LOOK);
            }
            return carrier.watch().said() != before;
        }
        let before = carrier.watch().read();
        let core = || carrier.watch().peer_core();
        self.waiter.look(None, core, || carrier.watch().read() != before)
    }

    /// In tests: moves back at random, and where there are several carriers now and then for good.
    #[inline]
    fn would_rather_leave(&mut self, stream: &Stream) -> bool {
        let leaves = matches!(config().promote, Promote::Random(_)) && self.dice() % 16 == 0;
        if leaves && config().carrier == Choice::Both && self.dice() % 2 == 0 {
            stream.parting.store(true, Ordering::Relaxed);
        }
        leaves
    }

    fn dice(&mut self) -> u64 {
        if self.random == 0 {
            let seed = if let Promote::Random(seed) = config().promote { seed } else { 1 };
            self.random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}
