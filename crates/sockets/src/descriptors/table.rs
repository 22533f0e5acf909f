//! The table of descriptors: which numbers are streams or epoll sets of ours.
//!
//! A look-up takes no lock and frees nothing: a number leads to the index of an object that lives for ever and is used
//! again. Whoever found one takes its lock and then looks whether the number still leads there ([`Slot::is`]).

use std::{
    cell::Cell,
    sync::{
        OnceLock,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

use sidestep_sys::lock::{Lock, Mutex, MutexGuard};

use crate::{readiness::set::Set, streams::Stream};

/// What a descriptor number leads to.
#[derive(Debug, Default)]
pub struct Slot {
    /// Index of a stream plus 1, or of a set plus [`FIRST_SET`]; 0: not ours.
    what: AtomicU32,
}

/// Objects that live for ever and are used again.
#[derive(Debug)]
pub struct Pool<T: 'static> {
    chunks: [OnceLock<Box<[T]>>; POOL_CHUNKS],
    free: Lock<Free>,
}

#[derive(Debug, Default)]
struct Free {
    list: Vec<u32>,
    made: u32,
}

const CHUNK: usize = 1024;
const CHUNKS: usize = 1024;
const POOL_CHUNK: usize = 32;
const POOL_CHUNKS: usize = 1 << 13;
const FIRST_SET: u32 = 1 << 31;

static SLOTS: [OnceLock<Box<[Slot]>>; CHUNKS] = [const { OnceLock::new() }; CHUNKS];
static STREAMS: Pool<Stream> = Pool::new();
static SETS: Pool<Set> = Pool::new();
/// Changes of the table and of what belongs to a number happen under this lock.
static CHANGE: Mutex<()> = Mutex::new(());

thread_local! {
    /// This thread forks, and has the lock.
    static FORKS: Cell<bool> = const { Cell::new(false) };
}

/// The right to change the table, until it is dropped.
#[derive(Debug)]
pub struct Change(Option<MutexGuard<'static, ()>>);

/// The same from before a `fork` until after it, in both processes.
#[derive(Debug)]
pub struct Forking(Change);
/// Numbers that were ever used are below this one.
static TOP: AtomicU64 = AtomicU64::new(0);

impl Slot {
    /// Whether the number still leads to this stream.
    #[inline]
    pub fn is(&self, stream: &Stream) -> bool {
        self.what.load(Ordering::Relaxed) == stream.index + 1
    }
}

/// A stream as it was found behind a number.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    /// The stream.
    pub stream: &'static Stream,
    slot: &'static Slot,
}

impl Found {
    /// Whether the number still leads to it: to be asked under the lock of a direction.
    #[inline]
    pub fn stays(&self) -> bool {
        self.slot.is(self.stream)
    }
}

/// The stream behind a number, for a call that asks again whether the number leads to it.
#[inline]
pub fn find(fd: i32) -> Option<Found> {
    let slot = slot(fd)?;
    let what = slot.what.load(Ordering::Acquire);
    if what == 0 || what >= FIRST_SET { None } else { Some(Found { stream: STREAMS.get(what - 1)?, slot }) }
}

/// The stream behind a number.
#[inline]
pub fn stream(fd: i32) -> Option<&'static Stream> {
    Some(find(fd)?.stream)
}

/// The set behind a number.
#[inline]
pub fn set(fd: i32) -> Option<&'static Set> {
    let what = slot(fd)?.what.load(Ordering::Acquire);
    if what < FIRST_SET { None } else { SETS.get(what - FIRST_SET) }
}

/// A stream by its index.
pub fn stream_at(index: u32) -> Option<&'static Stream> {
    STREAMS.get(index)
}

/// A set by its index.
pub fn set_at(index: u32) -> Option<&'static Set> {
    SETS.get(index)
}

/// The lock under which the table changes. A thread that forks has it already: what the program's own functions for a `fork`
/// close or duplicate, they do under it.
pub fn change() -> Change {
    Change((!FORKS.get()).then(|| CHANGE.lock().unwrap_or_else(|poison| poison.into_inner())))
}

/// The lock, for a thread that forks.
pub fn forking() -> Forking {
    let change = change();
    FORKS.set(true);
    Forking(change)
}

impl Drop for Forking {
    fn drop(&mut self) {
        FORKS.set(self.0.0.is_none());
    }
}

/// A fresh stream, not yet in the table. `None`: there are too many.
pub fn new_stream() -> Option<&'static Stream> {
    STREAMS.take(Stream::new)
}

/// Gives a stream back.
pub fn recycle_stream(stream: &'static Stream) {
    STREAMS.give(stream.index);
}

/// A fresh set.
pub fn new_set() -> Option<&'static Set> {
    SETS.take(Set::new)
}

/// Gives a set back.
pub fn recycle_set(set: &'static Set) {
    SETS.give(set.index);
}

/// Lets a number lead to a stream. Under the lock of [`change`].
pub fn put_stream(fd: i32, stream: &'static Stream) -> bool {
    put(fd, stream.index + 1)
}

/// Lets a number lead to a set. Under the lock of [`change`].
pub fn put_set(fd: i32, set: &'static Set) -> bool {
    put(fd, set.index + FIRST_SET)
}

/// Lets a number lead nowhere. Under the lock of [`change`].
pub fn clear(fd: i32) {
    if let Some(slot) = slot(fd) {
        slot.what.store(0, Ordering::Release);
    }
}

/// Every number that leads to a stream or a set, from `first` to `last`.
pub fn numbers(first: u32, last: u32) -> impl Iterator<Item = i32> {
    let top = TOP.load(Ordering::Acquire);
    (u64::from(first)..top.min(u64::from(last) + 1))
        .map(|fd| fd as i32)
        .filter(|fd| slot(*fd).is_some_and(|slot| slot.what.load(Ordering::Acquire) != 0))
}

/// In a forked child: nothing is known of what other threads of the parent were doing, so nothing is used again.
pub fn forget_free() {
    STREAMS.forget_free();
    SETS.forget_free();
}

fn put(fd: i32, what: u32) -> bool {
    let Some(chunk) = usize::try_from(fd).ok().and_then(|fd| SLOTS.get(fd / CHUNK)) else { return false };
    let slots = chunk.get_or_init(|| (0..CHUNK).map(|_| Slot::default()).collect());
    if TOP.load(Ordering::Relaxed) <= fd as u64 {
        TOP.fetch_max(fd as u64 + 1, Ordering::AcqRel);
    }
    slots[fd as usize % CHUNK].what.store(what, Ordering::Release);
    true
}

/// The slot of a number, if one near it was ever used.
#[inline]
pub fn slot(fd: i32) -> Option<&'static Slot> {
    let fd = fd as usize;
    SLOTS.get(fd / CHUNK)?.get()?.get(fd % CHUNK)
}

impl<T> Pool<T> {
    const fn new() -> Pool<T> {
        Pool { chunks: [const { OnceLock::new() }; POOL_CHUNKS], free: Lock::new(Free { list: Vec::new(), made: 0 }) }
    }

    #[inline]
    fn get(&'static self, index: u32) -> Option<&'static T> {
        self.chunks.get(index as usize / POOL_CHUNK)?.get()?.get(index as usize % POOL_CHUNK)
    }

    fn take(&'static self, make: fn(u32) -> T) -> Option<&'static T> {
        let mut free = self.free.lock();
        let index = match free.list.pop() {
            Some(index) => index,
            None => {
                let first = free.made;
                let chunk = self.chunks.get(first as usize / POOL_CHUNK)?;
                chunk.get_or_init(|| (first..first + POOL_CHUNK as u32).map(make).collect());
                free.made += POOL_CHUNK as u32;
                let fresh = (first..free.made).rev();
                free.list.extend(fresh);
                free.list.pop()?
            }
        };
        self.get(index)
    }

    fn give(&'static self, index: u32) {
        self.free.lock().list.push(index);
    }

    fn forget_free(&'static self) {
        self.free.lock().list.clear();
    }
}
