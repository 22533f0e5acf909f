//! How a reader comes to its carrier, and from one path to the other: where the writer has said, when everything before was
//! read.

use std::sync::{Arc, atomic::Ordering};

use sidestep_shm::wait::Waiter;
use sidestep_stream::carrier::{Carrier, Inbound, Switch, Watch};

use super::{BROKEN, Reader};
use crate::{
    config::config,
    kernel::{self, Result},
    readiness::set,
    registry::reason::Reason,
    streams::{READ, Stream, lock},
};

/// Bytes from TCP after which a writer whose link waits is told.
const PACE: usize = 64 << 10;

impl Reader {
    /// Takes up the receiving end of a fresh carrier, and opens the direction (S3).
    #[cold]
    pub(super) fn take_up(&mut self, stream: &Stream) -> bool {
        let stays = stream.carriage.parting.load(Ordering::SeqCst) || stream.family.shared.load(Ordering::SeqCst);
        let Some(carrier) = stream.carrier().filter(|_| !stays && set::can_open(stream)) else { return false };
        // Pairs with a call that is about to sleep in the kernel: it is counted, and then sees whether this is open.
        stream.record().reading().open(1);
        let receiver = match stream.calls_in_kernel(READ) {
            0 => lock(&stream.carriage.inbox).as_mut().and_then(|parts| parts.inbound.take()),
            _ => None,
        };
        let Some(receiver) = receiver else {
            stream.record().reading().close();
            return false;
        };
        self.waiter = Waiter::with(config().patience);
        self.counts.begin(stream);
        let capacity = self.ring.insert(receiver).capacity();
        self.counts.holds(capacity);
        self.carrier = Some(carrier.clone());
        set::opened(stream);
        self.note.open = true;
        self.tell();
        if self.counts.former > 0 {
            // Who sleeps on the carrier before this one looks at this one from now on.
            carrier.node().wake();
        }
        true
    }

    /// Carries out the switches that have been announced, if their position is reached. `true`: the path has changed, or
    /// has changed and changed back, since the writer left the ring without a byte.
    #[inline]
    pub(super) fn cross(&mut self, stream: &Stream) -> Result<bool> {
        let crossed = self.cross_once(stream)?;
        if crossed {
            self.cross_once(stream)?;
        }
        Ok(crossed)
    }

    /// The next switch, if it has been announced and its position is reached: from here on this side reads the other path.
    #[inline]
    pub(super) fn take_switch(&mut self, stream: &Stream) -> Result<Option<Switch>> {
        let (Some(carrier), Some(ring)) = (&self.carrier, &mut self.ring) else { return Ok(None) };
        if ring.is_over() {
            return Ok(self.finish_ring());
        }
        let Some(switch) = carrier.announced(self.note.done) else { return Ok(None) };
        let position = self.counts.position(stream, self.on_ring, ring.position());
        if position < switch.position {
            return Ok(None);
        }
        if position > switch.position || switch.to_ring() == self.on_ring {
            // No correct writer announces that.
            return Err(BROKEN);
        }
        self.on_ring = switch.to_ring();
        self.counts.entered = position.wrapping_sub(ring.position());
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
            self.grow(config().rings[2]);
        }
        Ok(true)
    }

    /// The ring has ended and was read: whatever its writer announces, the rest comes over TCP. The switch to TCP that its
    /// writer announces when it finds the end is carried out before.
    #[cold]
    fn finish_ring(&mut self) -> Option<Switch> {
        let (Some(carrier), Some(ring)) = (&self.carrier, &mut self.ring) else { return None };
        let before = (self.on_ring, self.note.done);
        for _ in 0..2 {
            self.note.done = carrier.announced(self.note.done).map_or(self.note.done, |switch| switch.number);
        }
        if self.note.done % 2 != 0 {
            self.note.done = Switch::next_number(self.note.done);
        }
        self.on_ring = false;
        carrier.switched.store(self.note.done, Ordering::Relaxed);
        carrier.taken.store(carrier.watch().written(), Ordering::Relaxed);
        let number = self.note.done;
        ((self.on_ring, number) != before).then(|| Switch { position: ring.position(), number })
    }

    /// Tells the writer what this side has to say.
    pub(super) fn tell(&mut self) {
        let note = self.note.to_note();
        if let Some(ring) = &mut self.ring {
            // A carrier that is gone needs no telling.
            let _ = ring.set_note(note);
        }
    }

    /// Bytes before a switch have been taken: other threads that wait for those behind it look again.
    pub(super) fn tell_others(&self) {
        let switching = |carrier: &&Arc<Carrier>| carrier.announced(self.note.done).is_some();
        if let Some(carrier) = self.carrier.as_ref().filter(switching) {
            carrier.node().wake();
        }
    }

    /// On the way to a link, with what TCP has before it: now and then its writer is told that this side reads.
    pub(super) fn pace(&mut self, count: usize) {
        let announced = |carrier: &Arc<Carrier>| carrier.announced(self.note.done).is_some();
        if self.carrier.as_ref().is_none_or(|carrier| !carrier.capabilities().packets || !announced(carrier)) {
            return;
        }
        self.paced += count;
        if self.paced >= PACE {
            self.paced = 0;
            self.note.paces = self.note.paces.wrapping_add(1);
            self.tell();
        }
    }

    /// Whether bytes may follow on the other path, of which the same call gives all it can. Not behind an urgent mark: a
    /// call that has bytes ends there.
    #[inline]
    pub fn goes_on(&self, stream: &Stream) -> bool {
        let announced = self.carrier.as_ref().and_then(|carrier| carrier.announced(self.note.done));
        let follows = match announced {
            Some(switch) if switch.to_ring() => return true,
            Some(_) => true,
            // No more was taken from TCP than it had before the notes were looked at; nothing, if the bytes were inherited.
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

    /// Whether this side reads TCP, and the writer has announced nothing else.
    pub fn has_left(&mut self, stream: &Stream) -> bool {
        if let Some(carrier) = &self.carrier {
            carrier.watch().settle();
        }
        let _ = self.cross(stream);
        let announced = |carrier: &Arc<Carrier>| carrier.announced(self.note.done).is_some();
        !self.on_ring && !self.carrier.as_ref().is_some_and(announced)
    }
}
