//! A stream that several processes hold: who uses its rings, and what happens to them when others want to.
//!
//! - `fork` moves nothing. Its rings stay with the process that forked; a child has what it needs to take them over.
//! - A holder that moves bytes, waits for them or shuts a direction down takes over, unless it is the owner.
//! - Memory of a ring that another holder may read from is not used again before that holder has gone.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use sidestep_stream::carrier::{AnyInbound, Carrier};
use sidestep_sys::lock::{Mutex, MutexGuard};

use crate::{
    kernel::{self, signal::Inside},
    processes::{
        custody,
        heirloom::{self, Heirloom, Resending},
    },
    registry::reason::Reason,
    streams::{READ, Stage, Stream, WRITE, lock},
};

/// Rings that this process has no more use for, and other holders of their streams may have.
#[derive(Debug, Default)]
pub struct Retired(Vec<(u64, Option<AnyInbound>, Option<Arc<Carrier>>)>);

static RETIRED: Mutex<Retired> = Mutex::new(Retired(Vec::new()));

/// Another holder has ended the rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenOver;

/// What the processes that hold a stream have of each other.
#[derive(Debug, Default)]
pub struct Family {
    /// Bytes that the family shares, and whether there may be some.
    pub(super) heirloom: Mutex<Option<Arc<Heirloom>>>,
    pub(super) has_heirloom: AtomicBool,
    /// A child may take its rings over, or read from them.
    pub shared: AtomicBool,
    /// Where the family counts what goes over TCP, plus one; 0: this process counts for itself.
    tally: AtomicU32,
}

impl Family {
    /// Where the family counts what goes over TCP, if others have held the stream.
    #[inline]
    pub(super) fn tally(&self) -> Option<u32> {
        self.tally.load(Ordering::SeqCst).checked_sub(1)
    }

    pub(super) fn set_tally(&self, tally: Option<u32>) {
        self.tally.store(tally.map_or(0, |tally| tally + 1), Ordering::SeqCst);
    }
}

impl Stream {
    /// Before a `fork`: both directions stay as they are, if the child can take them over later. `None`: they cannot stay.
    pub fn share(&self) -> Option<Arc<Heirloom>> {
        let carrier = self.carrier().filter(|carrier| carrier.capabilities().freezes)?;
        let (mut reader, mut writer) = (self.reader(), self.writer());
        if let Some(shared) = reader.shared().cloned() {
            // With another child before.
            if !shared.is_taken_over() {
                return Some(shared);
            }
            reader.surrender(self);
            return None;
        }
        let others = [&self.carriage.parting, &self.family.has_heirloom].iter().any(|word| word.load(Ordering::SeqCst));
        let lost = carrier.lost.load(Ordering::Relaxed) || carrier.has_ended() || carrier.peer_reading().closed;
        if lost || others || self.ends.any() || !writer.is_settled() {
            return None;
        }
        let (inward, read) = reader.settled()?;
        let recorded = self.family.tally().and_then(custody::heirloom_words);
        let heirloom = Heirloom::rings(inward, writer.stopper(self), read, recorded)?;
        reader.share(heirloom.clone());
        *lock(&self.family.heirloom) = Some(heirloom.clone());
        self.family.shared.store(true, Ordering::Relaxed);
        Some(heirloom)
    }

    /// Before this process leaves the rings for good: it has them alone again, or they are the family's.
    pub fn end_sharing(&self) {
        if !self.family.shared.load(Ordering::Relaxed) {
            return;
        }
        let mut reader = self.reader();
        match self.has_others() {
            true => reader.surrender(self),
            false => reader.unshare(self),
        }
    }

    /// Another holder may have taken over: what is left of the ring is known then.
    #[cold]
    pub fn see_sharing(&self) {
        if let Some(mut reader) = self.try_reader() {
            reader.see_sharing(self);
        }
    }

    /// Whether another holder has taken over rings that this process owned. What they shared of them is forgotten when it was read,
    /// and then the rings were taken over.
    #[inline]
    pub fn is_taken_over(&self) -> bool {
        self.family.shared.load(Ordering::Relaxed) && self.heirloom().is_none_or(|heirloom| heirloom.is_taken_over())
    }

    /// Before the writer takes back what the peer wants over TCP: others that hold the stream wait until it is there. `Err`: another
    /// holder has taken over.
    pub fn begin_resending(&self) -> Result<Option<Resending>, TakenOver> {
        if !self.family.shared.load(Ordering::Relaxed) {
            return Ok(None);
        }
        self.heirloom().and_then(Heirloom::begin_resending).map(Some).ok_or(TakenOver)
    }

    /// Whether another process holds the socket.
    pub fn has_others(&self) -> bool {
        kernel::cookie(self.fd()).is_ok_and(|cookie| !custody::is_sole_holder(cookie))
    }

    /// What the family shares is read before everything else. Under the lock of the reader, which knows of it.
    pub fn has_inherited(&self, heirloom: Arc<Heirloom>) {
        self.grows();
        *lock(&self.family.heirloom) = Some(heirloom);
        if !self.family.has_heirloom.swap(true, Ordering::AcqRel) {
            heirloom::came();
        }
    }

    /// How many bytes of what the family shares are left. Costs a load where there are none. Who asks takes over.
    #[inline]
    pub fn inherited_bytes(&self) -> usize {
        if self.family.has_heirloom.load(Ordering::Relaxed) {
            self.take_over().map_or(0, |heirloom| heirloom.left())
        } else {
            0
        }
    }

    /// What the family shares. Rings that another process owns are taken over.
    #[cold]
    pub fn take_over(&self) -> Option<Arc<Heirloom>> {
        if !self.family.has_heirloom.load(Ordering::Relaxed) {
            return None;
        }
        let heirloom = self.heirloom()?;
        heirloom.take_over();
        if !heirloom.await_resent() {
            // Rather an error than bytes that are missing.
            kernel::reset_at_close(self.fd());
            let _ = kernel::shutdown(self.fd(), libc::SHUT_RDWR);
        }
        if let Some(carried) = heirloom.count() {
            for direction in [READ, WRITE] {
                self.count_former(direction, carried[direction]);
            }
            // From here on it is a connection like any other.
            let (never, young) = (Stage::Never as u8, Stage::Young as u8);
            let _ = self.promotion.stage.compare_exchange(never, young, Ordering::SeqCst, Ordering::SeqCst);
            self.set_reason(Reason::OtherHolder);
        }
        Some(heirloom)
    }

    /// What the family shares.
    #[cold]
    pub fn heirloom(&self) -> Option<Arc<Heirloom>> {
        let _inside = Inside::enter();
        lock(&self.family.heirloom).clone()
    }

    /// Takes out what the family shares, if something of it is left, for a program that goes on with it. What of it is
    /// read here must be inherited again.
    pub fn lend_heirloom(&self) -> Option<Arc<Heirloom>> {
        let mut reader = self.reader();
        let heirloom = self.take_over().filter(|heirloom| heirloom.can_be_left() && heirloom.left() > 0)?;
        reader.disinherit();
        self.forget_heirloom();
        Some(heirloom)
    }

    /// All of it was read, or nobody shares it any more.
    pub fn forget_heirloom(&self) {
        let heirloom = lock(&self.family.heirloom).take();
        if self.family.has_heirloom.swap(false, Ordering::AcqRel) {
            heirloom::went();
            // They count as bytes of TCP. What the ring has carried may be added to this later.
            let returned = heirloom.map_or(0, |heirloom| heirloom.returned());
            self.record.reading().count_former(-(returned as i64));
        }
    }

    /// Before a program is executed, which may go on with it: how many bytes of each direction went over carriers. `None`: a
    /// carrier is in use still, or who else has the socket is not known.
    pub fn carried_before_program(&self) -> Option<[u64; 2]> {
        if self.origin.foreign.load(Ordering::Relaxed) || !self.origin.connected.load(Ordering::Relaxed) {
            return None;
        }
        if self.inherited_bytes() > 0 {
            return None;
        }
        let returned = self.heirloom().map_or(0, |heirloom| heirloom.returned());
        let mut carried = [0; 2];
        if self.stage() == Stage::Carried {
            let (mut reader, writer) = (self.reader(), self.writer());
            if !reader.is_read_out(self) || self.on_ring(WRITE) {
                return None;
            }
            carried = [reader.carried(), writer.carried()];
        }
        let [read, written] = [READ, WRITE].map(|direction| self.carried_bytes(direction, carried[direction]));
        Some([read.wrapping_sub(returned), written])
    }

    /// The ring of the reading direction is given up. If others may read from it, its memory is kept for them.
    pub(super) fn retire(&self, cookie: Option<u64>, ring: Option<AnyInbound>, carrier: Option<Arc<Carrier>>) {
        let others = |cookie: &u64| !custody::is_sole_holder(*cookie);
        let mut retired = lock(&RETIRED);
        retired.0.retain(|(cookie, ..)| others(cookie));
        if self.family.shared.swap(false, Ordering::Relaxed)
            && let Some(cookie) = cookie.filter(others)
        {
            retired.0.push((cookie, ring, carrier));
        }
    }
}

/// Held by a thread that forks.
pub fn hold_retired() -> MutexGuard<'static, Retired> {
    lock(&RETIRED)
}

impl Retired {
    /// In a forked child: they are the parent's.
    pub fn forget(&mut self) {
        std::mem::forget(std::mem::take(&mut self.0));
    }
}
