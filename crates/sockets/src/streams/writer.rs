//! The writing direction of a stream.
//!
//! Which path the next byte takes is decided by [`sidestep_stream::path::Writer`], on the words of the stream's record; [`walk`]
//! carries out what it asks for. The usual way through that machine, a byte for a carrier that nobody wants to end, is
//! made in one piece here ([`Writer::step`]): the words say that the writer is within the carrier, and publishing decides.

use std::{
    io::IoSlice,
    sync::{Arc, atomic::Ordering},
};

use sidestep_shm::Word64;
use sidestep_stream::carrier::{AnyOutbound, Carrier, Fault, Outbound};
use sidestep_sys::cpu;

use crate::{
    kernel::{Errno, Result},
    processes::heirloom::Resending,
    registry::reason::Reason,
    streams::{Stream, WRITE},
    tap,
};

mod counts;
mod dice;
mod file;
mod full;
mod landing;
mod patience;
mod walk;

use counts::Counts;
use dice::Dice;
use patience::Patience;

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

/// The writing direction: what this process alone has of it. Under the lock of its stream.
#[derive(Debug, Default)]
pub struct Writer {
    ring: Option<AnyOutbound>,
    carrier: Option<Arc<Carrier>>,
    /// Bytes that were written to the carrier, were taken back, and come next over TCP.
    back: Vec<u8>,
    /// While there are some, and others hold the stream.
    resending: Option<Resending>,
    /// The end of the carrier was announced, and why; the reader may not know yet.
    landing: Option<(Reason, Option<u64>)>,
    /// The last note, and which of the two it is.
    note: (usize, u64),
    /// It stays on TCP.
    left: bool,
    /// The kernel has been told that nothing follows: no byte can go over TCP any more.
    over: bool,
    /// When the carrier was looked after, in ticks of the processor.
    checked: u64,
    patience: Patience,
    counts: Counts,
    dice: Dice,
    /// What this process counts for a peer that cannot see it, and what the peer was told last.
    news: Option<(Word64, u64)>,
}

/// Messages between two looks at the clock, and
const CHECK_MESSAGES: u64 = 16;
/// ticks between two looks at whether the peer lives: some 300 microseconds.
const CHECK_TICKS: u64 = 1_000_000;
const BROKEN: Errno = Errno(libc::ECONNRESET);

impl Writer {
    /// Called now and then: gives the pages of an idle ring back.
    pub fn sweep(&mut self) {
        if let Some(ring) = &mut self.ring {
            self.counts.sweep(ring);
        }
    }

    /// Writes what fits.
    #[inline]
    pub fn step(&mut self, stream: &Stream, parts: &[IoSlice<'_>], patient: bool) -> Result<Step> {
        if stream.ends.writes_over.load(Ordering::Relaxed) {
            // The kernel knows which error it is.
            return Ok(Step::Kernel);
        }
        let Some(carrier) = self.carrier.as_ref().filter(|_| stream.record().writing().is_within()) else {
            return self.write(stream, parts, patient, false);
        };
        let reading = carrier.peer_reading();
        if reading.closed {
            // The kernel knows what becomes of bytes for a closed peer.
            return Ok(Step::Kernel);
        }
        let parting = stream.carriage.parting.load(Ordering::Relaxed);
        if reading.asks_to_leave() || self.left || parting || self.dice.leaves(stream) {
            return self.leave_ring(stream, parts, patient);
        }
        self.patience.watch(carrier);
        let count = self.push(stream, parts, patient)?;
        if count > 0 {
            self.patience.moved();
            self.look_after(stream)?;
            return Ok(Step::Sent(count));
        }
        if parts.iter().all(|part| part.is_empty()) {
            return Ok(Step::Sent(0));
        }
        self.when_full(stream, parts, patient)
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

    /// Whether the next bytes would go to the ring, or have to wait for some that went there.
    #[inline]
    pub fn is_on_ring(&self, stream: &Stream) -> bool {
        stream.on_ring(WRITE) || !self.back.is_empty()
    }

    /// The same, unless the peer has closed: what becomes of the bytes then is the kernel's to say, of a whole call at once.
    pub fn uses_ring(&self, stream: &Stream) -> bool {
        self.is_on_ring(stream) && !self.carrier.as_ref().is_some_and(|carrier| carrier.peer_reading().closed)
    }

    /// Goes over to the ring before a call that the kernel would carry out, if it may. `true`: the ring it is.
    pub fn prefers_ring(&mut self, stream: &Stream) -> bool {
        if !self.is_on_ring(stream) {
            let _ = self.step(stream, &[], false);
        }
        self.uses_ring(stream)
    }

    #[inline]
    fn push(&mut self, stream: &Stream, parts: &[IoSlice<'_>], patient: bool) -> Result<usize> {
        if self.news.is_some() {
            self.tell_news();
        }
        let Some(ring) = &mut self.ring else { return Ok(0) };
        let outcome = ring.send(parts, patient);
        // What follows a frozen one goes over TCP.
        let count = self.pushed(outcome)?.unwrap_or(0);
        tap::wrote(stream, parts, count);
        Ok(count)
    }

    /// Before bytes are written: a peer of another user learns how often this process has told something by way of the kernel.
    fn tell_news(&mut self) {
        let (Some((count, told)), Some(ring)) = (&mut self.news, &mut self.ring) else { return };
        let now = count.load(Ordering::Acquire);
        if now != *told {
            *told = now;
            ring.set_count(now);
        }
    }

    /// Counts what was written. `None`: the carrier has ended.
    #[inline]
    fn pushed(&mut self, outcome: std::result::Result<usize, Fault>) -> Result<Option<usize>> {
        let (Some(ring), Some(carrier)) = (&self.ring, &self.carrier) else { return Ok(Some(0)) };
        match outcome {
            Ok(0) => Ok(Some(0)),
            Ok(count) => {
                let written = ring.written();
                carrier.pushed.store(written.position, Ordering::Relaxed);
                carrier.places[WRITE].store(written.next_place.cast_mut(), Ordering::Relaxed);
                self.counts.sent(written);
                Ok(Some(count))
            }
            Err(Fault::Closed) => {
                carrier.lost.store(true, Ordering::Release);
                Ok(Some(0))
            }
            Err(Fault::Frozen) => Ok(None),
            Err(Fault::Broken) => Err(BROKEN),
        }
    }

    /// Now and then: whether the peer is still there.
    #[inline]
    fn look_after(&mut self, stream: &Stream) -> Result<()> {
        if self.counts.messages % CHECK_MESSAGES != 0 {
            return Ok(());
        }
        let now = cpu::ticks();
        if now.wrapping_sub(self.checked) < CHECK_TICKS {
            return Ok(());
        }
        self.checked = now;
        self.check(stream)
    }
}
