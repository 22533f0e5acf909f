//! Apertures: a region of a peer, opened for storing into.
//!
//! On shared memory the pages are mapped and a store is a store: copy, fence, look at the armed bits. On other links,
//! and for regions whose owner does not hand out pages, every store travels as a put. Which of the two it is is settled
//! when the aperture is opened and never changes, so stores through one aperture stay in order.
//!
//! A region whose pages are mapped for reading takes no stores; RDMA queues read it without its owner. Else nothing is read
//! through an aperture but the armed bits.

mod location;
mod mapped;
mod reports;
mod table;

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
};

use sidestep_shm::{Word64, wait::Waiter};
use sidestep_sys::lock::Mutex;

use self::{location::Location, mapped::Readable, reports::Reports};
pub(crate) use self::{location::Reach, mapped::Mapped, table::Apertures};
use crate::{
    cookie::{Cookie, Rights},
    endpoint::Endpoint,
    error::{CloseReason, Error, Refusal, Result},
    event::Subscription,
    link::{Mapping, Outcome, Request},
    node::Node,
    peer::PeerId,
    ticket::Completion,
    tripwire::Access,
};

/// A peer's region, open for stores. Clones are the same aperture.
#[derive(Debug, Clone)]
pub struct Aperture {
    core: Arc<ApertureCore>,
    node: Node,
}

#[derive(Debug)]
pub(crate) struct ApertureCore {
    peer: PeerId,
    cookie: Cookie,
    state: OnceLock<State>,
    revoked: AtomicBool,
    closed: OnceLock<CloseReason>,
    /// Puts on the way, for an aperture that is not mapped.
    in_flight: AtomicU32,
    /// Puts that were asked for, and that the owner has carried out: in the same order.
    asked: AtomicU64,
    landed: AtomicU64,
    failed: OnceLock<Error>,
    /// Who is told when the owner has answered.
    waiting: Mutex<Vec<Subscription>>,
    reports: Reports,
    location: Location,
}

#[derive(Debug)]
enum State {
    Mapped(Mapped),
    Readable(Readable),
    Proxied,
    Refused(Error),
}

impl Aperture {
    /// Opens the region a cookie names at the peer of `endpoint`. Waits for the owner's word until the deadline; the
    /// owner's process must make progress for that.
    pub fn open(endpoint: &Endpoint, cookie: &Cookie, deadline: Option<u64>) -> Result<Aperture> {
        let aperture = Self::begin(endpoint, cookie)?;
        aperture.wait_open(deadline)?;
        Ok(aperture)
    }

    /// Begins to open it, without waiting. [`is_open`](Self::is_open) tells when the owner has answered.
    pub fn begin(endpoint: &Endpoint, cookie: &Cookie) -> Result<Aperture> {
        Self::begin_at(endpoint.node(), endpoint.peer(), cookie)
    }

    /// As `begin`, at a peer that this node has a connection with.
    pub(crate) fn begin_at(node: &Node, peer: PeerId, cookie: &Cookie) -> Result<Aperture> {
        let (core, new) = node.core().apertures.find_or_insert(peer, cookie);
        if new && !node.core().apertures.open_from_offered(&core) {
            let begun = node.request(peer, cookie, Request::Map, Completion::Open(core.clone()));
            if let Err(error) = begun {
                node.core().apertures.forget(&core);
                return Err(error);
            }
        }
        Ok(Aperture { core, node: node.clone() })
    }

    /// Reports the owner's answer, at once if it is there.
    pub(crate) fn subscribe(&self, subscription: &Subscription) {
        let mut waiting = self.core.waiting.lock().expect("no panic while subscribed");
        if self.core.state.get().is_some() {
            subscription.post();
        } else {
            waiting.push(subscription.clone());
        }
    }

    /// Whether the owner has answered; an error if it refused.
    pub fn is_open(&self) -> Result<bool> {
        self.core.ready()
    }

    /// Waits for the owner's answer.
    pub fn wait_open(&self, deadline: Option<u64>) -> Result<()> {
        if self.core.ready()? {
            return Ok(());
        }
        let mut waiter = Waiter::default();
        self.node.wait_until(&mut waiter, deadline, "an aperture to open", &mut || Ok(self.core.ready()?.then_some(())))
    }

    /// The cookie it was opened with.
    pub fn cookie(&self) -> &Cookie {
        &self.core.cookie
    }

    /// Whether stores go straight to memory.
    pub fn is_mapped(&self) -> bool {
        self.mapped().is_some()
    }

    /// Whether reads go straight to memory, and need nothing of the owner.
    pub fn reads_directly(&self) -> bool {
        self.is_mapped() || self.readable().is_some() || self.is_reached()
    }

    /// Stores bytes. Visible to the owner in the order of the calls; fires what watches the words written.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        self.check(offset, bytes.len(), Rights::WRITE)?;
        match self.mapped() {
            Some(mapped) => mapped.data.copy_in(offset, bytes)?,
            None => return self.put(offset, bytes),
        }
        self.fire(offset, bytes.len(), Access::Write);
        Ok(())
    }

    /// Reads bytes into memory of the caller: an RDMA read in one step, without a queue. `false` where the region is not mapped
    /// here; then a queue reads it ([`RdmaQueue::read`](crate::RdmaQueue::read)).
    #[inline]
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<bool> {
        self.check(offset, bytes.len(), Rights::READ)?;
        match self.core.state.get() {
            Some(State::Mapped(mapped)) => {
                mapped.data.copy_out(offset, bytes)?;
                // Reads stay in order. Pairs with the owner's Release stores.
                fence(Ordering::Acquire);
                self.fire(offset, bytes.len(), Access::Read);
            }
            Some(State::Readable(readable)) => {
                readable.copy_out(offset, bytes)?;
                self.report_reads(offset, bytes.len());
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Stores one aligned 32-bit word; everything stored before is visible before it.
    pub fn store32(&self, offset: usize, value: u32) -> Result<()> {
        self.check_word(offset, 4)?;
        match self.mapped() {
            // Pairs with the owner's Acquire load of the word.
            Some(mapped) => mapped.memory.store32(offset, value, Ordering::Release)?,
            None => return self.put(offset, &value.to_le_bytes()),
        }
        self.fire(offset, 4, Access::Write);
        Ok(())
    }

    /// Stores one aligned 64-bit word; everything stored before is visible before it.
    pub fn store64(&self, offset: usize, value: u64) -> Result<()> {
        self.check_word(offset, 8)?;
        match self.mapped() {
            // Pairs with the owner's Acquire load of the word.
            Some(mapped) => mapped.memory.store64(offset, value, Ordering::Release)?,
            None => return self.put(offset, &value.to_le_bytes()),
        }
        self.fire(offset, 8, Access::Write);
        Ok(())
    }

    /// An aligned word to be read and changed in place, where the region is mapped. Nothing that watches it fires.
    pub fn word64(&self, offset: usize) -> Result<Option<Word64>> {
        self.check(offset, 8, Rights::READ)?;
        self.check_word(offset, 8)?;
        self.mapped().map(|mapped| Ok(mapped.memory.word64(offset)?)).transpose()
    }

    /// Waits until every store so far has been carried out; an error if one failed.
    pub fn flush(&self, deadline: Option<u64>) -> Result<()> {
        let mut waiter = Waiter::default();
        self.node.wait_until(&mut waiter, deadline, "stores to arrive", &mut || {
            self.node.peer(self.core.peer).push();
            let all = self.core.in_flight.load(Ordering::Acquire) == 0;
            self.core.check_failed()?;
            Ok(all.then_some(()))
        })
    }

    /// Waits until the link has taken every store so far.
    #[cold]
    pub(crate) fn wait_taken(&self, deadline: Option<u64>) -> Result<()> {
        if self.node.has_sent_all(self.core.peer) {
            return Ok(());
        }
        let mut waiter = Waiter::default();
        self.node.wait_until(&mut waiter, deadline, "a full link", &mut || {
            Ok(self.node.has_sent_all(self.core.peer).then_some(()))
        })
    }

    /// How many stores have been asked for, to be compared by [`has_landed`](Self::has_landed).
    pub(crate) fn mark(&self) -> u64 {
        self.core.asked.load(Ordering::Acquire)
    }

    /// Whether the owner has carried out all stores before a mark, and with them all that went to its node before. Asks for
    /// the answer, if it has not been asked for.
    pub(crate) fn has_landed(&self, mark: u64) -> bool {
        let landed = || self.core.landed.load(Ordering::Acquire) >= mark;
        if landed() {
            return true;
        }
        self.node.peer(self.core.peer).push();
        self.node.progress_kernel();
        landed()
    }

    /// What it is an aperture of: a region of a peer, by its cookie.
    pub(crate) fn names(&self) -> (PeerId, Cookie) {
        self.core.names()
    }

    pub(crate) fn peer(&self) -> PeerId {
        self.core.peer
    }

    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    pub(crate) fn mapped(&self) -> Option<&Mapped> {
        match self.core.state.get() {
            Some(State::Mapped(mapped)) => Some(mapped),
            _ => None,
        }
    }

    /// Whether the memory is reached through the kernel.
    pub(crate) fn is_reached(&self) -> bool {
        self.core.location.is_known()
    }

    pub(crate) fn readable(&self) -> Option<&Readable> {
        match self.core.state.get() {
            Some(State::Readable(readable)) => Some(readable),
            _ => None,
        }
    }

    /// Whether the cookie allows this, as far as this side can tell; the owner checks again what travels.
    pub(crate) fn check(&self, offset: usize, len: usize, wanted: Rights) -> Result<()> {
        let cookie = &self.core.cookie;
        if !cookie.rights().allow(wanted) {
            return Err(Refusal::Rights { held: cookie.rights(), wanted }.into());
        }
        if offset.checked_add(len).is_none_or(|end| end > cookie.len()) {
            return Err(Refusal::Range { offset: offset as u64, len: len as u64 }.into());
        }
        self.core.check_usable()
    }

    /// As `check`, for an aligned word to write.
    fn check_word(&self, offset: usize, len: usize) -> Result<()> {
        if offset % len != 0 {
            return Err(Refusal::Range { offset: offset as u64, len: len as u64 }.into());
        }
        self.check(offset, len, Rights::WRITE)
    }

    /// After a store or a read of mapped memory: reports the armed words among those bytes.
    pub(crate) fn fire(&self, offset: usize, len: usize, access: Access) {
        let Some(mapped) = self.mapped() else { return };
        let watch = match access {
            Access::Write => &mapped.writes,
            Access::Read => &mapped.reads,
        };
        watch.fire(offset, len, |word| self.report(word, access));
    }

    /// After a read of memory that is mapped for reading only: lets the owner know which of the words that it watches were
    /// read. This side cannot clear their armed bits, so it asks for them as if they were not mapped.
    pub(crate) fn report_reads(&self, offset: usize, len: usize) {
        let Some(readable) = self.readable() else { return };
        for (line, words) in readable.watched(offset, len) {
            if self.core.reports.begin(line) {
                self.node.core().report_read(&self.core, line, words);
            }
        }
    }

    /// Reports one armed word that this side has cleared.
    #[cold]
    pub(crate) fn report(&self, word: usize, access: Access) {
        self.node.peer(self.core.peer).fire(self.core.cookie.region(), word, access);
    }

    fn put(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        self.core.check_failed()?;
        let limit = self.node.peer(self.core.peer).capabilities().max_transfer;
        for (index, piece) in bytes.chunks(limit).enumerate() {
            let at = (offset + index * limit) as u64;
            self.core.in_flight.fetch_add(1, Ordering::AcqRel);
            self.core.asked.fetch_add(1, Ordering::AcqRel);
            let completion = Completion::Store(Arc::downgrade(&self.core));
            if let Err(error) = self.node.store(self.core.peer, &self.core.cookie, at, piece, completion) {
                self.core.in_flight.fetch_sub(1, Ordering::AcqRel);
                self.core.asked.fetch_sub(1, Ordering::AcqRel);
                return Err(error);
            }
        }
        Ok(())
    }
}

impl State {
    fn mapped(cookie: &Cookie, mapping: Mapping) -> Result<State> {
        Ok(match mapping {
            Mapping::ReadWrite(memory) => State::Mapped(Mapped::new(cookie, memory)?),
            Mapping::ReadOnly(memory) => State::Readable(Readable::new(cookie, memory)?),
        })
    }
}

impl ApertureCore {
    /// What it is an aperture of: a region of a peer, by its cookie.
    pub(crate) fn names(&self) -> (PeerId, Cookie) {
        (self.peer, self.cookie)
    }

    /// Whether the owner serves every access.
    pub(crate) fn is_proxied(&self) -> bool {
        matches!(self.state.get(), Some(State::Proxied)) && self.check_usable().is_ok()
    }

    /// The owner has heard of a read of a line of watched words. `true` if they were read again meanwhile, and it is still to
    /// hear of that.
    pub(crate) fn reported(&self, line: usize) -> bool {
        self.reports.end(line)
    }

    /// The owner has answered.
    pub(crate) fn opened(&self, outcome: Outcome) {
        let state = match outcome {
            Outcome::Mapped(mapping) => State::mapped(&self.cookie, mapping).unwrap_or_else(State::Refused),
            Outcome::Refused(refusal) => State::Refused(refusal.into()),
            Outcome::Closed(reason) => State::Refused(reason.into()),
            Outcome::Failed(error) => State::Refused(error),
            _ => State::Proxied,
        };
        let _ = self.state.set(state);
        let waiting = std::mem::take(&mut *self.waiting.lock().expect("no panic while subscribed"));
        waiting.iter().for_each(|subscription| _ = subscription.post());
    }

    /// A put has ended.
    pub(crate) fn stored(&self, outcome: Outcome) {
        match outcome {
            Outcome::Refused(refusal) => drop(self.failed.set(refusal.into())),
            Outcome::Closed(reason) => drop(self.failed.set(reason.into())),
            Outcome::Failed(error) => drop(self.failed.set(error)),
            _ => drop(self.landed.fetch_add(1, Ordering::AcqRel)),
        }
        self.in_flight.fetch_sub(1, Ordering::AcqRel);
    }

    fn ready(&self) -> Result<bool> {
        match self.state.get() {
            None => Ok(false),
            Some(State::Mapped(_) | State::Readable(_) | State::Proxied) => self.check_usable().map(|()| true),
            Some(State::Refused(error)) => Err(error.clone()),
        }
    }

    fn check_usable(&self) -> Result<()> {
        if self.revoked.load(Ordering::Acquire) {
            return Err(Refusal::Revoked.into());
        }
        self.closed.get().map_or(Ok(()), |reason| Err((*reason).into()))
    }

    fn check_failed(&self) -> Result<()> {
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }
}
