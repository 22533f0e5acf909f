//! Tripwires: a watch on one word of one's own region, on a range of words, or on several ranges.
//!
//! A tripwire is *armed* by its owner and *fires* when a peer writes (or reads) the word; then it is spent until it is
//! armed again. A repeating one is armed again when its firing is taken notice of, never before: so however often
//! a peer writes, there is one firing outstanding.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use sidestep_shm::{
    self as shm,
    wait::Waiter,
    watch::{WATCHED_WORD, WatchedWord},
};
use sidestep_sys::lock::Mutex;

use crate::{
    endpoint::{Endpoint, EndpointCore},
    error::{Error, Result},
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

/// A watch on one word, or on a group of words that are watched together. Dropping it ends the watch.
#[derive(Debug)]
pub struct Tripwire {
    core: Arc<TripwireCore>,
    node: Node,
    /// Whose writes it waits for.
    endpoint: Option<Arc<EndpointCore>>,
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
    /// All words and where they are, if it watches more than one.
    group: Option<Box<WatchedGroup>>,
}

/// Words that are watched together.
#[derive(Debug)]
struct WatchedGroup {
    ranges: Vec<Range<usize>>,
    words: Vec<WatchedWord>,
}

impl Tripwire {
    /// Sets a tripwire on the 32-bit word at `offset`; it is not armed yet.
    pub fn new(region: &Region, offset: usize, access: Access, mode: Mode) -> Result<Tripwire> {
        region.core().check(offset, WATCHED_WORD)?;
        Self::on_word(region.node(), region.core(), offset, access, mode)
    }

    pub(crate) fn on_slice(
        node: &Node,
        slice: &RegionSlice,
        at: usize,
        access: Access,
        mode: Mode,
    ) -> Result<Tripwire> {
        Self::on_word(node, slice.core(), slice.offset() + at, access, mode)
    }

    fn on_word(node: &Node, region: &Arc<RegionCore>, at: usize, access: Access, mode: Mode) -> Result<Tripwire> {
        let offset = at / WATCHED_WORD * WATCHED_WORD;
        let outside = || shm::Error::Range { offset, len: WATCHED_WORD, size: region.len() };
        let word = region.watch(access)?.word(offset).ok_or_else(outside)?;
        Ok(Self::set(node, (region.clone(), offset), (access, mode), word, None))
    }

    /// Sets a tripwire on a range of bytes: [`over`](Self::over) one.
    pub fn range(region: &Region, range: Range<usize>, access: Access, mode: Mode) -> Result<Tripwire> {
        Self::over(region, std::slice::from_ref(&range), access, mode)
    }

    /// Sets a tripwire on several ranges of bytes, whole words of which are watched: it fires when a peer writes (or reads)
    /// any of them, once for all; it is not armed yet. It costs a step per 256 bytes whenever it is armed.
    pub fn over(region: &Region, ranges: &[Range<usize>], access: Access, mode: Mode) -> Result<Tripwire> {
        let core = region.core();
        let watch = core.watch(access)?;
        let mut words = Vec::new();
        let mut whole = Vec::new();
        for range in ranges.iter().filter(|range| !range.is_empty()) {
            core.check(range.start, range.end - range.start)?;
            let start = range.start / WATCHED_WORD * WATCHED_WORD;
            words.extend(watch.range(start, range.end - start));
            whole.push(start..range.end.next_multiple_of(WATCHED_WORD));
        }
        let (Some(word), Some(offset)) = (words.first().cloned(), whole.first().map(|range| range.start)) else {
            return Err(Error::Size { what: "watched ranges", must: "at least one byte", value: 0 });
        };
        let group = Box::new(WatchedGroup { ranges: whole, words });
        Ok(Self::set(region.node(), (core.clone(), offset), (access, mode), word, Some(group)))
    }

    fn set(
        node: &Node,
        (region, offset): (Arc<RegionCore>, usize),
        (access, mode): (Access, Mode),
        word: WatchedWord,
        group: Option<Box<WatchedGroup>>,
    ) -> Tripwire {
        let core = Arc::new(TripwireCore {
            region,
            offset,
            access,
            mode,
            word,
            group,
            armed: AtomicBool::new(false),
            fired: AtomicBool::new(false),
            firings: AtomicU64::new(0),
            subscription: Mutex::new(None),
        });
        core.region.watchers().add(&core);
        Tripwire { core, node: node.clone(), endpoint: None }
    }

    /// From now on [`wait`](Self::wait) ends with an error when the connection does that `endpoint` is one end of: for a word
    /// that only its peer writes. What the peer wrote before its end is told first.
    pub fn bind(&mut self, endpoint: &Endpoint) {
        self.endpoint = Some(endpoint.core().clone());
    }

    /// Another tripwire on the same word.
    pub(crate) fn beside(&self, mode: Mode) -> Result<Tripwire> {
        Self::on_word(&self.node, &self.core.region, self.core.offset, self.core.access, mode)
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
            if let Some(endpoint) = &self.endpoint {
                endpoint.check_open()?;
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
        self.core.armed.store(false, Ordering::Release);
        self.core.unsubscribe();
        let mut watchers = self.core.region.watchers();
        if watchers.remove(&self.core) {
            self.core.clear_bits();
        }
    }
}

impl TripwireCore {
    pub(crate) fn place(&self) -> (usize, Access) {
        (self.offset, self.access)
    }

    /// Whether it watches a group of words, and this is one of them.
    pub(crate) fn has_in_group(&self, offset: usize, access: Access) -> bool {
        let covers = |group: &WatchedGroup| group.ranges.iter().any(|range| range.contains(&offset));
        self.access == access && self.group.as_deref().is_some_and(covers)
    }

    pub(crate) fn is_group(&self) -> bool {
        self.group.is_some()
    }

    pub(crate) fn is_armed(&self) -> bool {
        self.armed.load(Ordering::Acquire)
    }

    fn words(&self) -> &[WatchedWord] {
        self.group.as_deref().map_or(std::slice::from_ref(&self.word), |group| &group.words)
    }

    pub(crate) fn arm(&self) {
        self.armed.store(true, Ordering::Release);
        self.words().iter().for_each(WatchedWord::arm);
    }

    /// Clears the bits of all its words.
    pub(crate) fn clear_bits(&self) {
        self.words().iter().for_each(|word| _ = word.disarm());
    }

    /// Several tripwires may share a word and so a bit: then the bit stays, and a firing finds nobody armed.
    pub(crate) fn disarm(&self) {
        self.armed.store(false, Ordering::Release);
        if !self.region.watchers().shares(self) {
            self.clear_bits();
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
        if self.is_armed() && !self.words().iter().all(WatchedWord::is_armed) {
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
