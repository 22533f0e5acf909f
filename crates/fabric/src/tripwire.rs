//! Tripwires: a watch on one word of one's own region.
//!
//! A tripwire is *armed* by its owner and *fires* when a peer writes (or reads) the word; then it is spent until it is
//! armed again. A repeating one is armed again when its firing is taken notice of, never before: so however often
//! a peer writes, there is one firing outstanding.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use sidestep_shm::{
    self as shm,
    wait::Waiter,
    watch::{WATCHED_WORD, WatchedWord},
};
use sidestep_sys::lock::Mutex;

use crate::{
    error::Result,
    event::Subscription,
    node::Node,
    region::{Region, RegionCore, RegionSlice},
};

/// What a tripwire watches for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// A peer writes the word.
    Write = 0,
    /// A peer reads the word through the fabric.
    Read = 1,
}

/// How often a tripwire fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Once for each [`Tripwire::arm`].
    Once,
    /// Again after each firing that was taken notice of.
    Repeating,
}

/// A watch on one word. Dropping it ends the watch.
#[derive(Debug)]
pub struct Tripwire {
    core: Arc<TripwireCore>,
    node: Node,
}

/// What a firing touches comes first, beside the reference count: with many tripwires each line of memory counts.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct TripwireCore {
    /// The owner's view: armed and not yet fired.
    armed: AtomicBool,
    fired: AtomicBool,
    mode: Mode,
    access: Access,
    firings: AtomicU64,
    subscription: Mutex<Option<Subscription>>,
    word: WatchedWord,
    offset: usize,
    region: Arc<RegionCore>,
}

impl Tripwire {
    /// Sets a tripwire on the 32-bit word at `offset`; it is not armed yet.
    pub fn new(region: &Region, offset: usize, access: Access, mode: Mode) -> Result<Tripwire> {
        Self::on_slice(region.node(), &region.slice(offset, WATCHED_WORD)?, 0, access, mode)
    }

    pub(crate) fn on_slice(
        node: &Node,
        slice: &RegionSlice,
        at: usize,
        access: Access,
        mode: Mode,
    ) -> Result<Tripwire> {
        let region = slice.core().clone();
        let offset = (slice.offset() + at) / WATCHED_WORD * WATCHED_WORD;
        let word = region.watch(access)?.word(offset).ok_or(shm::Error::Range {
            offset,
            len: WATCHED_WORD,
            size: slice.len(),
        })?;
        let core = Arc::new(TripwireCore {
            region,
            offset,
            access,
            mode,
            word,
            armed: AtomicBool::new(false),
            fired: AtomicBool::new(false),
            firings: AtomicU64::new(0),
            subscription: Mutex::new(None),
        });
        core.region.watchers().add(&core);
        Ok(Tripwire { core, node: node.clone() })
    }

    /// Another tripwire on the same word.
    pub(crate) fn beside(&self, mode: Mode) -> Result<Tripwire> {
        let word = self.core.region.slice(self.core.offset, WATCHED_WORD)?;
        Self::on_slice(&self.node, &word, 0, self.core.access, mode)
    }

    /// Arms it. Look at the word once more afterwards: a write before this moment does not fire.
    pub fn arm(&self) {
        self.core.arm();
    }

    /// Disarms it. A firing that is already on the way may still arrive.
    pub fn disarm(&self) {
        self.core.disarm();
    }

    /// Whether it has fired since the last call. A repeating one is armed again.
    pub fn test(&self) -> bool {
        self.node.progress();
        self.core.take()
    }

    /// How often it has fired.
    pub fn firings(&self) -> u64 {
        self.core.firings.load(Ordering::Relaxed)
    }

    /// Arms, looks once more with `changed`, and sleeps until the tripwire fires or `changed` is true: in one step, so
    /// that no write is missed. The deadline is in nanoseconds of [`sidestep_sys::clock::now`].
    pub fn wait(&self, deadline: Option<u64>, mut changed: impl FnMut() -> bool) -> Result<()> {
        let mut waiter = Waiter::default();
        let node = &self.node;
        node.wait_until(&mut waiter, deadline, "a tripwire", &mut || {
            // A firing that told of this change is taken with it: it would end the next wait, too.
            if self.core.take() | changed() {
                return Ok(Some(()));
            }
            self.core.arm();
            Ok(changed().then_some(()))
        })
    }

    pub(crate) fn core(&self) -> &Arc<TripwireCore> {
        &self.core
    }
}

impl Drop for Tripwire {
    fn drop(&mut self) {
        self.core.disarm();
        self.core.unsubscribe();
        self.core.region.watchers().remove(&self.core);
    }
}

impl TripwireCore {
    pub(crate) fn place(&self) -> (usize, Access) {
        (self.offset, self.access)
    }

    pub(crate) fn arm(&self) {
        self.armed.store(true, Ordering::Release);
        self.word.arm();
    }

    /// Several tripwires may share a word and so a bit: then the bit stays, and a firing finds nobody armed.
    pub(crate) fn disarm(&self) {
        self.armed.store(false, Ordering::Release);
        if !self.region.watchers().shares(self.offset, self.access) {
            self.word.disarm();
        }
    }

    /// The word was written or read.
    pub(crate) fn fire(&self) {
        if !self.armed.swap(false, Ordering::AcqRel) {
            return;
        }
        self.firings.fetch_add(1, Ordering::Relaxed);
        self.fired.store(true, Ordering::Release);
        if let Some(subscription) = &*self.subscription.lock().expect("no panic while subscribed") {
            subscription.post();
        }
    }

    /// Fires if the armed bit is gone though no report came.
    pub(crate) fn fire_if_spent(&self) {
        if self.armed.load(Ordering::Acquire) && !self.word.is_armed() {
            self.fire();
        }
    }

    /// Takes notice of a firing.
    pub(crate) fn take(&self) -> bool {
        if !self.fired.swap(false, Ordering::AcqRel) {
            return false;
        }
        if self.mode == Mode::Repeating {
            self.arm();
        }
        true
    }

    pub(crate) fn subscribe(&self, subscription: Subscription) {
        *self.subscription.lock().expect("no panic while subscribed") = Some(subscription);
    }

    /// Reports no more, and fires no more.
    pub(crate) fn silence(&self) {
        self.unsubscribe();
        self.disarm();
    }

    pub(crate) fn unsubscribe(&self) {
        *self.subscription.lock().expect("no panic while subscribed") = None;
    }
}
