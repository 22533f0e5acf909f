//! How a writer comes to TCP: when its reader can know of it, for good or not, and with everything that it has taken back.

use std::{sync::atomic::Ordering, time::Duration};

use sidestep_shm::byte_ring::Stopper;
use sidestep_stream::{
    carrier::{ENDED, Outbound, Reading, Watch},
    path::{End, Tail},
};
use sidestep_sys::clock;

use super::{BROKEN, Step, Writer, walk};
use crate::{
    kernel::{self, Result},
    promotion::orders,
    registry::reason::Reason,
    streams::{Stream, WRITE},
    tap,
};

/// How long a writer that leaves waits until its reader can know, and between two looks.
pub(super) const LEAVE_NS: u64 = 20_000_000;
const LANDING: Duration = Duration::from_micros(10);
/// How long bytes that the peer wants over TCP wait for space there, and between two looks.
const FOLLOW_NS: u64 = 1_000_000_000;
const SPACE: Duration = Duration::from_millis(10);
/// How long the end of a stream waits for space on TCP, or for a peer that does not look.
const PAY: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_micros(100);

impl Writer {
    /// Whether TCP may go on: the switch is with the reader, so that what it finds there does not come before.
    pub(super) fn has_landed(&mut self, stream: &Stream) -> Result<bool> {
        let Some((reason, mut mark)) = self.landing else { return Ok(true) };
        let arrived = self.ring.as_ref().is_none_or(|ring| ring.has_arrived(&mut mark));
        self.landing = Some((reason, mark));
        if !arrived {
            self.check(stream)?;
            if self.carrier.as_ref().is_some_and(|carrier| !carrier.lost.load(Ordering::Relaxed)) {
                return Ok(false);
            }
        }
        self.landing = None;
        stream.record().writing().land();
        stream.moved(WRITE, false, reason);
        Ok(true)
    }

    /// Waits for that, for so long at most. `false`: it was in vain.
    pub(super) fn await_landing(&mut self, stream: &Stream, limit: u64) -> bool {
        let until = clock::now() + limit;
        loop {
            match self.has_landed(stream) {
                Ok(true) => return true,
                Ok(false) if clock::now() <= until => kernel::pause(LANDING),
                _ => return false,
            }
        }
    }

    /// Whether the peer is there. The death of its process ends the stream if the anchor says so. If it does not (its word
    /// may lie behind bytes that this side has not read), bytes in the ring that have no reader any more are a reset.
    #[cold]
    pub(super) fn check(&mut self, stream: &Stream) -> Result<()> {
        orders::notice(stream);
        // A reader that is fast enough never lets a small ring become full.
        self.adopt_larger_at_rest(stream);
        let Some(carrier) = &self.carrier else { return Ok(()) };
        if carrier.check() {
            return Ok(());
        }
        let events = kernel::look(stream.fd(), libc::POLLRDHUP);
        let ended = events & (libc::POLLHUP | libc::POLLERR | libc::POLLRDHUP) != 0;
        if ended {
            carrier.settle_end()
        } else {
            carrier.watch().settle()
        };
        let within = stream.record().writing().is_within();
        if !ended && !carrier.peer_reading().closed && self.has_unread(stream) {
            if carrier.capabilities().freezes {
                // A child of the peer's may read them. If there is none, the anchor's end follows.
                if within && !self.over {
                    self.leave_carrier(stream, Reason::LinkLost)?;
                }
                return Ok(());
            }
            kernel::reset_at_close(stream.fd());
            let _ = kernel::shutdown(stream.fd(), libc::SHUT_RDWR);
            return Err(BROKEN);
        }
        // The kernel answers from here on.
        if within {
            stream.record().writing().finish(Tail { position: self.carried(), end: End::Frozen }, false);
            stream.moved(WRITE, false, Reason::LinkLost);
        }
        Ok(())
    }

    /// Whether the peer has not read all that went over the carrier, by its own word. Some carriers tell late how far they were read:
    /// what the registry says of the peer is newer, as long as it is there. A peer that has carried out the switch back to TCP has read
    /// everything before it.
    pub fn has_unread(&self, stream: &Stream) -> bool {
        let Some(ring) = &self.ring else { return false };
        let done = self.carrier.as_ref().map(|carrier| carrier.peer_reading().done);
        let followed = !stream.record().writing().is_within() && done == Some(walk::number(stream));
        let is_behind = !followed && ring.witness().is_some_and(|read| read != ring.position());
        let has_all = || {
            let place = stream.known_place()?;
            let read = place.engine.registry.read(&place.key.reversed())?;
            Some(read >= stream.carried_bytes(WRITE, ring.position()))
        };
        is_behind && !(self.may_give_way() && has_all() == Some(true))
    }

    /// Goes back to TCP for good.
    pub fn leave(&mut self, stream: &Stream) {
        self.left = true;
        if stream.record().writing().is_within() {
            let _ = self.close(stream, Reason::Demoted);
        }
    }

    /// Tells the reader that nothing follows; the anchor's word for it comes after.
    pub fn end(&mut self, stream: &Stream) {
        stream.ends.writes_over.store(true, Ordering::Relaxed);
        tap::ended(stream);
        if self.ring.is_none() {
            self.take_up(stream);
        }
        self.conclude_return(stream);
        if self.holds(stream) || self.is_given_back(stream) {
            self.end_over_tcp(stream);
        }
        self.settle(stream);
        // Either note will do; the one of the last switch keeps what it says.
        if let Some(ring) = &mut self.ring {
            let _ = ring.set_note(self.note.0, self.note.1 | ENDED);
        }
    }

    /// After [`end`](Self::end), before the kernel is told: what the peer has not read by now it reads from the carrier.
    pub fn refuse_returns(&mut self) {
        self.over = true;
        if let Some(ring) = &mut self.ring {
            ring.refuse();
        }
    }

    /// Whether the carrier, which is used, has taken bytes that it cannot deliver now.
    fn holds(&self, stream: &Stream) -> bool {
        stream.record().writing().is_within() && self.ring.as_ref().is_some_and(|ring| ring.holds())
    }

    /// What a link holds, and cannot deliver now, goes over TCP before the end.
    #[cold]
    fn end_over_tcp(&mut self, stream: &Stream) {
        let until = clock::now() + PAY.as_nanos() as u64;
        while self.ring.as_mut().is_some_and(|ring| !ring.may_leave()) {
            if clock::now() > until {
                // Rather an error than an end that is none.
                return kernel::reset_at_close(stream.fd());
            }
            let _ = kernel::poll(&mut [], Some(LOOK), None);
        }
        let _ = self.close(stream, Reason::Demoted);
    }

    /// Waits until what was left is with the reader, and what was taken back with TCP: few bytes, for which it has space, since
    /// it was not used.
    fn settle(&mut self, stream: &Stream) {
        if !self.await_landing(stream, PAY.as_nanos() as u64) {
            kernel::reset_at_close(stream.fd());
        }
        while !self.back.is_empty() && self.close(stream, Reason::Demoted) == Ok(Step::Full) {
            if !has_space(stream, PAY) {
                return kernel::reset_at_close(stream.fd());
            }
        }
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
        while !self.back.is_empty() && self.landing.is_none() && clock::now() < until {
            if self.close(stream, Reason::Demoted) != Ok(Step::Full) {
                return;
            }
            has_space(stream, SPACE);
        }
    }

    /// Before a `fork`: everything that was written is on TCP, or with the reader, when this returns.
    pub fn leave_to_family(&mut self, stream: &Stream) {
        self.conclude_return(stream);
        if self.holds(stream) {
            self.end_over_tcp(stream);
        } else if stream.record().writing().is_within() {
            let _ = self.close(stream, Reason::Demoted);
        }
        self.settle(stream);
    }

    /// Whether a child may share this direction as it is.
    pub fn is_settled(&self) -> bool {
        self.back.is_empty() && self.landing.is_none() && !self.left
    }

    /// What a child needs to end the ring. `Err`: it is not written to, and has brought so many bytes.
    pub fn stopper(&mut self, stream: &Stream) -> std::result::Result<Stopper, u64> {
        let ring = self.ring.as_mut().filter(|_| stream.record().writing().is_within());
        ring.and_then(Outbound::stopper).ok_or(self.carried())
    }

    /// How far the carrier was written.
    pub fn carried(&self) -> u64 {
        self.ring.as_ref().map_or(0, Outbound::position)
    }

    /// This side wants to part with the carrier: it is left, but not for good. Not with bytes that it holds: the program may not
    /// write again, and nobody else would send them over TCP.
    pub fn part(&mut self, stream: &Stream) {
        let Some(carrier) = self.carrier.as_ref().filter(|_| stream.record().writing().is_within()) else { return };
        let reading = carrier.peer_reading();
        // What is held goes with what the reader gives back, which whoever follows sends.
        if reading.wanted || reading.given || self.ring.as_ref().is_some_and(|ring| !ring.holds()) {
            let _ = self.close(stream, Reason::Demoted);
        }
    }

    /// Whether the carrier is in use, and its reader gives back what it has not read, and has not decided about that.
    pub fn awaits_return(&self, stream: &Stream) -> bool {
        self.peer_reading(stream).is_some_and(|reading| reading.wanted && !reading.given)
    }

    /// Whether the reader has given back what it had not read, and the carrier is in use still.
    fn is_given_back(&self, stream: &Stream) -> bool {
        self.peer_reading(stream).is_some_and(|reading| reading.given)
    }

    /// What the peer's reader says, while the carrier is in use.
    fn peer_reading(&self, stream: &Stream) -> Option<Reading> {
        let carrier = self.carrier.as_ref().filter(|_| stream.record().writing().is_within())?;
        Some(carrier.peer_reading())
    }

    /// Before the carrier is left once and for all: what the reader gives back is taken, if that does not last long. A reader that
    /// was told that all of it is here is waited for: it decides.
    pub fn conclude_return(&mut self, stream: &Stream) {
        let began = clock::now();
        while self.awaits_return(stream) {
            let (Some(ring), Some(carrier)) = (&mut self.ring, &self.carrier) else { return };
            let waited = clock::now() - began;
            if ring.may_leave() || waited > LEAVE_NS && ring.refuse() || waited > PAY.as_nanos() as u64 {
                return;
            }
            carrier.check();
            kernel::pause(LANDING);
        }
    }

    /// Whether that is so, and the reader has carried it out; or whether the carrier was never used.
    pub fn has_parted(&self, stream: &Stream) -> bool {
        let number = walk::number(stream);
        let done = self.carrier.as_ref().is_none_or(|carrier| carrier.peer_reading().done == number);
        done && self.is_dry(stream)
    }

    /// Whether the carrier has never been written to.
    pub fn is_unused(&self, stream: &Stream) -> bool {
        walk::number(stream) == 0
    }

    /// Whether everything that was written is on its way over TCP, or was read, and nobody wants it to stay there.
    pub fn is_dry(&self, stream: &Stream) -> bool {
        !stream.record().writing().is_within() && self.is_settled()
    }

    /// The carrier is given up. Returns how far it was written.
    pub fn forget_carrier(&mut self) -> u64 {
        let position = self.carried();
        let writer = std::mem::take(self);
        (self.counts, self.patience, self.dice) = (writer.counts, writer.patience, writer.dice);
        position
    }
}

/// Waits until TCP has space, for so long at most.
fn has_space(stream: &Stream, limit: Duration) -> bool {
    let mut entry = [libc::pollfd { fd: stream.fd(), events: libc::POLLOUT, revents: 0 }];
    matches!(kernel::poll(&mut entry, Some(limit), None), Ok(1..))
}
