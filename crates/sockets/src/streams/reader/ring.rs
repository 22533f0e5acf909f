//! Bytes of the carrier that is being read.

use std::{io::IoSliceMut, sync::atomic::Ordering};

use sidestep_stream::carrier::{Fault, Inbound, Mode, Watch};
use sidestep_sys::cpu;

use super::{BROKEN, Reader};
use crate::{
    kernel::Result,
    streams::{READ, Stream, WRITE},
};

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

    /// Takes bytes out of the ring.
    #[inline]
    pub(super) fn take(&mut self, stream: &Stream, parts: &mut [IoSliceMut<'_>], flags: i32) -> Result<usize> {
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
            Err(Fault::Broken | Fault::Frozen) => Err(BROKEN),
        }
    }

    /// So many bytes were taken out of the ring.
    #[inline]
    pub(super) fn took(&mut self, count: usize) {
        let (Some(ring), Some(carrier)) = (&mut self.ring, &self.carrier) else { return };
        carrier.taken.store(ring.position(), Ordering::Relaxed);
        carrier.places[READ].store(ring.next_place().cast_mut(), Ordering::Relaxed);
        // The answer often follows.
        cpu::prefetch_to_write(carrier.places[WRITE].load(Ordering::Relaxed));
        ring.testify();
        self.counts.took(ring.position());
        if self.growth.watches(count) {
            self.watch_crowding(count);
        }
    }
}

/// What the flags of `recv` say about the bytes.
pub(super) fn mode(flags: i32) -> Mode {
    match (flags & libc::MSG_PEEK, flags & libc::MSG_TRUNC) {
        (0, 0) => Mode::Take,
        (0, _) => Mode::Discard,
        _ => Mode::Peek,
    }
}
