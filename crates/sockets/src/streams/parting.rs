//! How a stream gives its carrier up, so that it may get another one: by agreement, at a moment when both directions are on TCP
//! at both ends; or when the carrier has been lost for a while and the anchor lives.
//!
//! An end that wants to part says so in its reader's note, and its writer leaves the carrier. The other one does the same when
//! it sees that. Neither goes back after its word. So an end that has the other's word, has carried out every switch, and whose
//! own last switch has been carried out, has nothing to expect of the carrier.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use sidestep_stream::carrier::{AnyInbound, Carrier, Halves, Inbound, Reading, Watch};
use sidestep_sys::{
    clock,
    lock::{Guard, Mutex},
};

use crate::{
    descriptors::table,
    kernel::{self, signal::Inside, stack},
    readiness::set::Set,
    registry::reason::Reason,
    streams::{READ, Stage, Stream, WRITE, lock, reader::Reader, writer::Writer},
};

/// A carrier that has been lost for so long, though the anchor stands, did not go with the peer.
const LOST_NS: u64 = 1_000_000_000;
/// Between two looks at whether unread bytes are back.
const WITHHELD_LOOK: Duration = Duration::from_micros(50);
/// A stream that has lost so many gets no more.
const MOST_LOST: u32 = 8;
/// Between two looks at whether the peer still wants a carrier that neither end has used.
const UNUSED_LOOK_NS: u64 = 1_000_000;
/// A carrier that was given up within this time has not paid for the agreement that it took.
const BRIEF_NS: u64 = 100_000_000;

/// What carries a stream that is not on TCP alone.
#[derive(Debug, Default)]
pub struct Carriage {
    pub(super) carrier: Mutex<Option<Arc<Carrier>>>,
    /// On its way to the directions.
    pub inbox: Mutex<Option<Halves>>,
    /// The carrier is to be given up.
    pub parting: AtomicBool,
    /// How many were, and how many of them since they were lost.
    pub partings: AtomicU32,
    pub(super) losses: AtomicU32,
    /// When it came.
    pub(super) since: AtomicU64,
    /// How many in a row were given up soon after they came.
    pub(super) brief: AtomicU32,
    /// How long forks have waited for the peer to leave it, in nanoseconds.
    pub waited: AtomicU64,
    /// When it was looked at, before either end used it.
    looked: AtomicU64,
    /// Threads that give back what was not read of it, or put it elsewhere.
    withheld: AtomicU32,
    /// A tool sees what goes over it. Beside the word above, which every write looks at.
    pub tapped: AtomicBool,
}

impl Carriage {
    /// If no reading call has taken the carrier up yet, none does so later, and the peer, whose writer has not been let in, is told
    /// that this side parts with it.
    pub fn decline(&self) {
        self.take_inbound().into_iter().for_each(decline_inbound);
    }

    /// What no reading call has taken up of the carrier yet. The writer's half stays: nothing goes over it any more but the word for
    /// the end of the stream, without which the peer would take that for the death of this process.
    pub fn take_inbound(&self) -> Option<AnyInbound> {
        lock(&self.inbox).as_mut().and_then(|halves| halves.inbound.take())
    }

    /// It is given up: returns how many in a row were soon after they came.
    fn count_brief(&self) -> u32 {
        let is_brief = clock::now().saturating_sub(self.since.load(Ordering::Relaxed)) < BRIEF_NS;
        let count = if is_brief { self.brief.load(Ordering::Relaxed).saturating_add(1) } else { 0 };
        self.brief.store(count, Ordering::Relaxed);
        count
    }

    /// There is none any more.
    pub(super) fn end(&self) {
        *lock(&self.inbox) = None;
        *lock(&self.carrier) = None;
        self.waited.store(0, Ordering::Relaxed);
        self.tapped.store(false, Ordering::Relaxed);
    }
}

/// While it lives, this thread gives back what was not read of some streams, or puts it elsewhere. Calls of other threads that read
/// wait for that: the program may have been told of the bytes before.
#[derive(Debug)]
pub struct Withheld<'a>(&'a [&'static Stream]);

impl<'a> Withheld<'a> {
    /// Of these streams, none of whose readers this thread has locked.
    pub fn begin(streams: &'a [&'static Stream]) -> Withheld<'a> {
        for stream in streams {
            stream.carriage.withheld.fetch_add(1, Ordering::Relaxed);
        }
        Withheld(streams)
    }
}

impl Drop for Withheld<'_> {
    fn drop(&mut self) {
        for stream in self.0 {
            stream.carriage.withheld.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// A carrier that was agreed upon, and that this side will not take up: the peer parts with it, and may ask again.
pub(super) fn decline(halves: Halves) {
    halves.inbound.into_iter().for_each(decline_inbound);
}

fn decline_inbound(mut inbound: AnyInbound) {
    let _ = inbound.set_note(Reading { parting: true, ..Reading::default() }.to_note());
}

impl Stream {
    /// The reading direction, for a call of the program: not before another thread has put unread bytes where this one finds them
    /// ([`Withheld`]). That thread counts itself before it locks the reader, so the lock shows the count.
    #[inline]
    pub fn reader_for_call(&self) -> Guard<'_, Reader> {
        loop {
            let mut reader = self.reader();
            if self.carriage.withheld.load(Ordering::Relaxed) == 0 && !reader.awaits_return(self) {
                return reader;
            }
            drop(reader);
            kernel::pause(WITHHELD_LOOK);
        }
    }

    /// Called where a call goes to the kernel: while the carrier is not used both ways, sees whether it is to be given up.
    #[inline]
    pub fn see_parting(&self) {
        if !self.uses_carrier_both_ways() {
            self.part();
        }
    }

    /// Whether both directions are on the carrier.
    #[inline]
    pub(super) fn uses_carrier_both_ways(&self) -> bool {
        [READ, WRITE].iter().all(|direction| self.on_ring(*direction))
    }

    /// Whether this is its carrier still: who is about to sleep on one looks whether it was given up.
    pub fn is_carried_by(&self, carrier: &Carrier) -> bool {
        self.carrier().is_some_and(|current| current.serial == carrier.serial)
    }

    #[cold]
    fn part(&self) {
        let Some(carrier) = self.carrier() else { return };
        if self.carriage.parting.load(Ordering::Relaxed) || self.is_unused_look_due() {
            // A peer that has given it up before it could say so is gone, or has decided otherwise while this side agreed. The
            // fabric alone is looked at: what else the engine has to do takes locks, and this thread may hold some of streams
            // and sets.
            let _inside = Inside::enter();
            stack::on_own(|| {
                carrier.node().progress_kernel();
                carrier.check()
            });
        }
        let lost = carrier.lost.load(Ordering::Relaxed);
        if !lost && !self.carriage.parting.load(Ordering::Relaxed) && !carrier.peer_reading().parting {
            return;
        }
        let Some((mut reader, mut writer)) = self.try_both() else { return };
        if !self.is_carried_by(&carrier) {
            // Another thread has given it up meanwhile, and there may be the next one.
            return;
        }
        // Under the lock: a fork lists its child, and then shares what is here.
        if self.family.shared.load(Ordering::Relaxed) && self.has_others() {
            // What a child may take over stays where it is.
            return;
        }
        reader.unshare(self);
        if self.ends.any() || carrier.has_ended() || carrier.peer_reading().closed {
            return;
        }
        if !lost {
            self.carriage.parting.store(true, Ordering::Relaxed);
            self.carriage.decline();
            reader.part(self);
            writer.part(self);
        }
        // Its word comes behind its last switch: whoever has seen the one sees the other. A peer that had this side's word, too,
        // may have gone on without the carrier. What was never opened cannot bring anything; and without a word from either, a
        // peer from another user's time learns that the carrier is gone.
        let agreed = carrier.peer_reading().parting && (reader.is_unopened() || reader.has_parted(self));
        // Nor has anything been lost that neither end ever used.
        let unopened = reader.is_unopened() && (lost && writer.is_unused(self) || !lost && lock(&self.place).is_none());
        let parted = (agreed || unopened) && writer.has_parted(self);
        if parted || lost && self.has_lost(&carrier) && reader.is_dry() && writer.is_dry(self) {
            self.carriage.losses.fetch_add(u32::from(!parted), Ordering::Relaxed);
            self.give_up(&mut reader, &mut writer);
            drop((reader, writer));
            if self.stage() == Stage::Never {
                let sets = lock(&self.sets).clone();
                sets.into_iter().filter_map(table::set_at).for_each(Set::give_back);
            }
        }
    }

    /// Whether the fabric is to be looked at for the sake of a carrier that neither direction is on: now and then.
    fn is_unused_look_due(&self) -> bool {
        if [READ, WRITE].iter().any(|direction| self.on_ring(*direction)) {
            return false;
        }
        let now = clock::now();
        let is_due = now.saturating_sub(self.carriage.looked.load(Ordering::Relaxed)) >= UNUSED_LOOK_NS;
        if is_due {
            self.carriage.looked.store(now, Ordering::Relaxed);
        }
        is_due
    }

    /// Before a change of user: whatever this stream has of the engine is given back. What is not promoted may be, under the
    /// new user. A carrier is parted with: at once if the peer follows, or by later calls.
    pub fn give_back(&self) {
        let place = lock(&self.place).take();
        if let Some(place) = place {
            place.engine.forget(&place.key);
            place.engine.registry.remove(place.entry);
        }
        let offered = Stage::Offered as u8;
        let _ = self.promotion.stage.compare_exchange(offered, Stage::Young as u8, Ordering::SeqCst, Ordering::SeqCst);
        self.begin_tries();
        self.part_with_carrier();
    }

    /// Before a program is executed that will have the stream: peers that look for this process do not find it any more.
    pub fn withdraw(&self) {
        if self.stage() == Stage::Carried {
            return;
        }
        let place = lock(&self.place).take();
        if let Some(place) = place {
            place.engine.forget(&place.key);
            place.engine.registry.add_totals(place.engine.process, place.entry);
            place.engine.registry.remove(place.entry);
        }
        let offered = Stage::Offered as u8;
        let _ = self.promotion.stage.compare_exchange(offered, Stage::Young as u8, Ordering::SeqCst, Ordering::SeqCst);
        self.begin_tries();
    }

    /// Parts with the carrier, if there is one: at once if the peer follows, or by later calls.
    pub fn part_with_carrier(&self) {
        self.end_sharing();
        if let Some(carrier) = self.carrier() {
            self.carriage.parting.store(true, Ordering::Relaxed);
            self.part();
            carrier.watch().nudge();
        }
    }

    /// Goes on with that. `true`: there is nothing left to give back.
    pub fn has_given_back(&self) -> bool {
        self.part();
        match self.carrier() {
            Some(carrier) => {
                carrier.check();
                false
            }
            None => true,
        }
    }

    /// Whether the carrier has been gone for a while, and the peer has not.
    fn has_lost(&self, carrier: &Carrier) -> bool {
        let since = carrier.lost_since();
        // One that said before that it parts has executed a program, which goes on without the carrier.
        let patience = if carrier.peer_reading().parting { 0 } else { LOST_NS };
        self.carriage.losses.load(Ordering::Relaxed) < MOST_LOST
            && clock::now().saturating_sub(since) >= patience
            && kernel::state(self.fd()) == Ok(kernel::TCP_ESTABLISHED)
            && !kernel::has_peer_ended(self.fd())
    }

    /// The stream is on TCP alone, and offered anew.
    fn give_up(&self, reader: &mut Reader, writer: &mut Writer) {
        self.retire(kernel::cookie(self.fd()).ok(), None, None);
        for (direction, bytes) in [(READ, reader.forget_carrier()), (WRITE, writer.forget_carrier())] {
            self.count_former(direction, bytes);
        }
        self.record.writing().rest();
        self.record.reading().close();
        self.carriage.end();
        self.carriage.parting.store(false, Ordering::Relaxed);
        self.carriage.partings.fetch_add(1, Ordering::Relaxed);
        self.begin_tries();
        self.rest(self.carriage.count_brief());
        // Without a place, the engine that it was known to is gone.
        let place = self.known_place();
        if place.is_some() {
            // Before other threads may decide anything else.
            self.set_reason(Reason::Demoted);
        }
        self.promotion.stage.store(if place.is_some() { Stage::Offered } else { Stage::Never } as u8, Ordering::SeqCst);
        if let Some(place) = place {
            self.await_peer(&place);
        }
    }
}
