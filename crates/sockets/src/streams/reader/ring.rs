//! Bytes of the carrier that is being read.

use std::{io::IoSliceMut, sync::atomic::Ordering};

use sidestep_stream::carrier::{Fault, Inbound, Mode, Watch};
use sidestep_sys::cpu;

use super::{BROKEN, Reader};
use crate::{
    kernel::Result,
    streams::{READ, Stream, WRITE},
};

/// Messages without an answer after which a stream goes one way.
const ONE_WAY: u32 = 64;
/// Flags of `recv` that make something else of the bytes than to take them.
const SPECIAL: i32 = libc::MSG_PEEK | libc::MSG_TRUNC;
/// How long the reader of such a one rests before it looks again: some 300 ns.
const GATHER_TICKS: u64 = 1_000;

impl Reader {
    /// Whether the carrier is being read, and has something.
    pub(super) fn has_news(&mut self) -> bool {
        self.on_ring && self.ring.as_mut().is_some_and(Inbound::has_news_now)
    }

    /// Looks for a while.
    #[inline]
    pub(super) fn look(&mut self) -> bool {
        let (Some(ring), Some(carrier)) = (&mut self.ring, &self.carrier) else { return false };
        self.counts.looks();
        let done = self.note.done;
        let core = || carrier.watch().peer_core();
        self.waiter.look(None, core, || ring.has_news() || carrier.announced(done).is_some())
    }

    /// Before a look at the ring by a call that can wait. A reader that is faster than its writer looks at the tail after every
    /// message, and takes the line from the core that is about to write to it. In a stream that goes one way nobody waits for
    /// an answer, so it rests for a moment, and finds several messages then.
    #[inline]
    pub(super) fn gather(&mut self) {
        if self.counts.unanswered >= ONE_WAY && !self.ring.as_mut().is_none_or(Inbound::has_known) {
            let before = cpu::ticks();
            while cpu::ticks().wrapping_sub(before) < GATHER_TICKS {
                std::hint::spin_loop();
            }
        }
    }

    /// Takes bytes out of the ring.
    #[inline(always)]
    pub(super) fn take(&mut self, stream: &Stream, parts: &mut [IoSliceMut<'_>], flags: i32) -> Result<usize> {
        if self.shared.is_some() {
            return self.take_shared(stream, parts, flags);
        }
        let (Some(ring), Some(carrier)) = (&mut self.ring, &self.carrier) else { return Ok(0) };
        if !ring.has_news() {
            return Ok(0);
        }
        let outcome = match parts {
            [part] if flags & SPECIAL == 0 => ring.receive(part),
            // Counted, and neither shown nor taken.
            parts if flags & SPECIAL == SPECIAL => Ok(ring.available().min(parts.iter().map(|part| part.len()).sum())),
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
            Err(Fault::Broken | Fault::Frozen) => Err(BROKEN),
        }
    }

    /// So many bytes were taken out of the ring.
    #[inline]
    pub(super) fn took(&mut self, count: usize) {
        let (Some(ring), Some(carrier)) = (&mut self.ring, &self.carrier) else { return };
        let (position, place) = ring.testify();
        carrier.taken.store(position, Ordering::Relaxed);
        carrier.places[READ].store(place.cast_mut(), Ordering::Relaxed);
        // The answer often follows.
        cpu::prefetch_to_write(carrier.places[WRITE].load(Ordering::Relaxed));
        self.counts.took(position, carrier.pushed.load(Ordering::Relaxed));
        if self.growth.watches(count) {
            self.watch_crowding(count);
        }
        if self.counts.is_long(position) {
            self.watch_length(position);
        }
    }
}

/// What the flags of `recv` say about the bytes.
fn mode(flags: i32) -> Mode {
    match (flags & libc::MSG_PEEK, flags & libc::MSG_TRUNC) {
        (0, 0) => Mode::Take,
        (0, _) => Mode::Discard,
        _ => Mode::Peek,
    }
}
