//! How a writer comes to TCP: when its reader can know of it, and for good if the two part with their carrier.

use std::{sync::atomic::Ordering, time::Duration};

use sidestep_shm::byte_ring::Stopper;
use sidestep_stream::carrier::{Outbound, Switch};
use sidestep_sys::clock;

use super::{Step, Writer};
use crate::{
    kernel::{self, Errno, Result},
    reason::Reason,
    stream::{Stream, WRITE},
};

/// How long a writer that leaves waits until its reader can know, and between two looks.
pub(super) const LEAVE_NS: u64 = 20_000_000;
/// How long bytes that the peer wants over TCP wait for space there, and between two looks.
const FOLLOW_NS: u64 = 1_000_000_000;
const SPACE: Duration = Duration::from_millis(10);
const LANDING: Duration = Duration::from_micros(10);

impl Writer {
    /// Goes on over TCP, as soon as the switch is with the reader: what it finds there must not come before.
    pub(super) fn land(&mut self, stream: &Stream) -> Result<Step> {
        if let Some((reason, mut mark)) = self.landing {
            let arrived = self.ring.as_ref().is_none_or(|ring| ring.has_arrived(&mut mark));
            self.landing = Some((reason, mark));
            if !arrived {
                self.check(stream)?;
                if self.carrier.as_ref().is_some_and(|carrier| !carrier.lost.load(Ordering::Relaxed)) {
                    return Ok(Step::Full);
                }
            }
            self.landing = None;
            stream.moved(WRITE, false, reason);
        }
        if self.pay(stream)? { Ok(Step::Kernel) } else { Ok(Step::Full) }
    }

    /// Waits for that, for so long at most. `false`: it was in vain.
    pub(super) fn await_landing(&mut self, stream: &Stream, limit: u64) -> bool {
        let until = clock::now() + limit;
        while self.landing.is_some() {
            if self.land(stream).is_err() || clock::now() > until {
                return false;
            }
            if self.landing.is_some() {
                kernel::pause(LANDING);
            }
        }
        true
    }

    /// The peer's reader goes over to TCP, for good or to part with the carrier. What it wants to have there is sent at once, as
    /// far as TCP takes it: the program may not write again.
    pub fn follow(&mut self, stream: &Stream, for_good: bool) {
        if for_good {
            self.leave(stream)
        } else {
            self.part(stream)
        }
        let until = clock::now() + FOLLOW_NS;
        while !self.owing.is_empty() && self.landing.is_none() && clock::now() < until {
            let mut entry = [libc::pollfd { fd: stream.fd(), events: libc::POLLOUT, revents: 0 }];
            if self.pay(stream) != Ok(false) || kernel::poll(&mut entry, Some(SPACE), None).is_err() {
                return;
            }
        }
    }

    /// Before a `fork`: everything that was written is on TCP, or with the reader, when this returns.
    pub fn leave_to_family(&mut self, stream: &Stream) {
        if self.on_ring && self.ring.as_ref().is_some_and(|ring| ring.holds()) {
            self.end_over_tcp(stream);
        } else if self.on_ring {
            let _ = self.leave_ring(stream, Reason::Demoted);
        }
        if !self.await_landing(stream, super::PAY.as_nanos() as u64) {
            kernel::reset_at_close(stream.fd());
        }
        self.pay_all(stream);
    }

    /// Whether a child may share this direction as it is.
    pub fn is_settled(&self) -> bool {
        self.owing.is_empty() && self.landing.is_none() && !self.left
    }

    /// What a child needs to end the ring.
    pub fn stopper(&mut self) -> Option<Stopper> {
        self.ring.as_mut().and_then(Outbound::stopper)
    }

    /// Another holder has ended the ring, and may have written over TCP since: where this direction changed its path is told by
    /// the end of the ring alone. The reader counts that as a switch.
    #[cold]
    pub(super) fn surrender(&mut self, stream: &Stream) -> Result<Step> {
        if let Some(ring) = self.ring.as_mut().filter(|_| self.on_ring) {
            // What the reader wants over TCP can be sent by this process only.
            self.owing = ring.take_back().map_err(|_| Errno(libc::ECONNRESET))?;
            self.number = Switch::next_number(self.number);
            self.on_ring = false;
            stream.moved(WRITE, false, Reason::OtherHolder);
        }
        if self.pay(stream)? { Ok(Step::Kernel) } else { Ok(Step::Full) }
    }

    /// How far the carrier was written.
    pub fn carried(&self) -> u64 {
        self.ring.as_ref().map_or(0, Outbound::position)
    }

    /// This side wants to part with the carrier: it is left, but not for good. Not with bytes that it holds: the program may not
    /// write again, and nobody else would send them over TCP.
    pub fn part(&mut self, stream: &Stream) {
        if self.on_ring && self.ring.as_ref().is_some_and(|ring| !ring.holds()) {
            let _ = self.leave_ring(stream, Reason::Demoted);
        }
    }

    /// Whether that is so, and the reader has carried it out; or whether the carrier was never used.
    pub fn has_parted(&self) -> bool {
        let done = self.carrier.as_ref().is_none_or(|carrier| carrier.peer_reading().done == self.number);
        done && self.is_dry()
    }

    /// Whether everything that was written is on its way over TCP, or was read, and nobody wants it to stay there.
    pub fn is_dry(&self) -> bool {
        !self.on_ring && self.landing.is_none() && self.owing.is_empty() && !self.left
    }

    /// The carrier is given up. Returns how far it was written.
    pub fn forget_carrier(&mut self) -> u64 {
        let position = self.ring.as_ref().map_or(0, Outbound::position);
        let (messages, overflows, random) = (self.messages, self.overflows, self.random);
        *self = Writer { messages, overflows, random, ..Writer::default() };
        position
    }
}
