//! What a writer does with a carrier that takes no more.

use std::{io::IoSlice, sync::atomic::Ordering};

use sidestep_stream::carrier::Outbound;
use sidestep_sys::clock;

use super::{
    BROKEN, Step, Writer,
    patience::{self, STALL_NS},
};
use crate::{
    kernel::Result,
    registry::reason::Reason,
    streams::{Stream, WRITE},
};

impl Writer {
    #[inline(never)]
    pub(super) fn when_full(&mut self, stream: &Stream, parts: &[IoSlice<'_>], patient: bool) -> Result<Step> {
        if self.is_frozen()? {
            return self.write(stream, parts, patient, false);
        }
        self.adopt_larger();
        let count = self.push(stream, parts, patient)?;
        if count > 0 {
            return Ok(Step::Sent(count));
        }
        // Who does not wait cannot be stalled: a reader that took nothing of the last half a ring, and takes nothing for
        // as long as one needs to wake up, does not read. It will offer a larger ring, which takes enough. What a reader says
        // over a wire may be old: there, only that look tells.
        let Some(carrier) = self.carrier.clone() else { return Ok(Step::Kernel) };
        let distant = carrier.capabilities().far;
        let idle = !patient && !patience::is_large(&carrier) && (distant || self.patience.is_idle(&carrier));
        let mut moves = false;
        if patient || idle {
            self.counts.looks();
        }
        if (patient || idle) && self.patience.look(&carrier, patient) {
            moves = true;
            let count = self.push(stream, parts, patient)?;
            if count > 0 {
                self.patience.moved();
                return Ok(Step::Sent(count));
            }
        }
        self.check(stream)?;
        if !stream.record().writing().is_within() {
            return self.write(stream, parts, patient, false);
        }
        let stalled = self.patience.has_stalled(&carrier, patient);
        if idle && (distant && !moves || self.patience.is_idle(&carrier)) || stalled {
            let step = self.write(stream, parts, patient, true);
            self.count_overflow(stream);
            return step;
        }
        if self.may_give_way() {
            // Packets, not bytes, fill it: that there is room again is news all the same.
            stream.is_full();
        }
        Ok(Step::Full)
    }

    /// A full carrier was to be left: counts it, unless that cannot be said now.
    fn count_overflow(&mut self, stream: &Stream) {
        if !stream.record().writing().is_within() {
            self.patience.overflows();
        }
    }

    /// Whether the ring has been ended.
    #[cold]
    pub(super) fn is_frozen(&mut self) -> Result<bool> {
        self.ring.as_mut().map_or(Ok(false), |ring| ring.is_frozen().map_err(|_| BROKEN))
    }

    /// Goes on in a larger ring, if the reader has offered one. `true`: it has.
    pub(super) fn adopt_larger(&mut self) -> bool {
        let (Some(ring), Some(carrier)) = (&mut self.ring, &self.carrier) else { return false };
        let capacity = ring.adopt_larger();
        if let Some(capacity) = capacity {
            carrier.capacity.store(capacity, Ordering::Relaxed);
        }
        capacity.is_some()
    }

    /// The same where no write follows: a program that found the smaller ring full waits to be told that there is space, and what the
    /// reader takes is no edge any more, since it had space enough by the measure of the larger one.
    pub(super) fn adopt_larger_at_rest(&mut self, stream: &Stream) {
        if self.adopt_larger() {
            stream.is_full();
        }
    }

    /// For a program that waits for space in some other way: when TCP takes over. `None`: there is space, be it on TCP.
    pub fn stalls_until(&mut self, stream: &Stream) -> Option<u64> {
        let carrier = self.carrier.clone()?;
        // A write that found a small ring full may have gone on in a larger one by itself: what is full of the small one is not
        // of that, and its reader tells of space by what that takes.
        self.adopt_larger_at_rest(stream);
        let mut reason = Reason::Demoted;
        if self.landing.is_none() {
            if !stream.record().writing().is_within() || carrier.has_space() {
                return None;
            }
            if self.is_frozen() != Ok(true) {
                let until = self.patience.stall(&carrier) + self.patience.limit(&carrier, false) + 1;
                if clock::now() < until {
                    return Some(until);
                }
                reason = Reason::Overflow;
            }
        }
        let full = self.close(stream, reason) == Ok(Step::Full);
        if reason == Reason::Overflow {
            self.count_overflow(stream);
        }
        (full && stream.on_ring(WRITE)).then(|| clock::now() + STALL_NS)
    }

    /// When a sleep on a full carrier must end at the latest: for TCP to take over, or for another look after a switch that could
    /// not be said, or that the reader did not know of in time. No news of space tells of those.
    pub fn stall_deadline(&self) -> Option<u64> {
        let carrier = self.carrier.as_ref()?;
        let now = clock::now();
        let stalled = self.patience.deadline(carrier).filter(|stalled| self.landing.is_none() && *stalled > now);
        Some(stalled.unwrap_or(now + STALL_NS))
    }
}
