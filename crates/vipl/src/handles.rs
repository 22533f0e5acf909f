//! Handles: ids with generations, by kind, so that a wrong one is recognised.

use std::{
    cell::Cell,
    collections::HashMap,
    sync::{
        Arc, LazyLock, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
};

use sidestep_sys::slab::Slab;
use sidestep_vi::{Buffer, ConnectionRequest, Cq, Error, NameService, Nic, Ptag, Result, Vi};

use crate::types::Handle;

/// What a handle names, in its upper half.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Kind {
    Nic = 1,
    Vi = 2,
    Cq = 3,
    Connection = 4,
    Ptag = 5,
}

pub(crate) struct NicEntry {
    pub(crate) nic: Nic,
    pub(crate) handle: usize,
    /// What `LocalNicAddress` points to.
    pub(crate) address: Box<[u8]>,
    pub(crate) names: Mutex<Option<NameService>>,
    /// Memory that the library allocated.
    pub(crate) buffers: Mutex<HashMap<u32, Buffer>>,
    pub(crate) discovery: Mutex<Option<crate::names::Discovery>>,
}

pub(crate) struct ViEntry {
    pub(crate) vi: Vi,
    pub(crate) nic: Arc<NicEntry>,
    pub(crate) handle: usize,
}

pub(crate) struct CqEntry {
    pub(crate) cq: Cq,
    pub(crate) nic: Arc<NicEntry>,
}

pub(crate) struct ConnectionEntry {
    pub(crate) request: Mutex<Option<ConnectionRequest>>,
    pub(crate) nic: usize,
}

/// One table a kind.
pub(crate) struct Table<T> {
    kind: Kind,
    entries: Mutex<Slab<Arc<T>>>,
}

pub(crate) static NICS: LazyLock<Table<NicEntry>> = LazyLock::new(|| Table::new(Kind::Nic));
pub(crate) static VIS: LazyLock<Table<ViEntry>> = LazyLock::new(|| Table::new(Kind::Vi));
pub(crate) static CQS: LazyLock<Table<CqEntry>> = LazyLock::new(|| Table::new(Kind::Cq));
pub(crate) static CONNECTIONS: LazyLock<Table<ConnectionEntry>> = LazyLock::new(|| Table::new(Kind::Connection));

/// Raised whenever a VI is destroyed: what a thread remembers may be void.
static EPOCH: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The VI that this thread used last.
    static RECENT: Cell<Option<Recent>> = const { Cell::new(None) };
}

/// A VI, and the epoch in which it was found.
type Recent = (u64, Arc<ViEntry>);

impl<T> Table<T> {
    fn new(kind: Kind) -> Table<T> {
        Table { kind, entries: Mutex::new(Slab::new(1 << 16)) }
    }

    pub(crate) fn insert_with(&self, make: impl FnOnce(usize) -> T) -> Result<usize> {
        let id = self.lock().insert_with(|id| Arc::new(make(handle_of(self.kind, id))));
        Ok(handle_of(self.kind, id.ok_or(Error::Limit { what: "handles", limit: 1 << 16 })?))
    }

    pub(crate) fn find(&self, handle: Handle) -> Result<Arc<T>> {
        let id = id_of(self.kind, handle)?;
        self.lock().get(id).cloned().ok_or(Error::Invalid("a handle"))
    }

    pub(crate) fn remove(&self, handle: Handle) -> Result<Arc<T>> {
        let id = id_of(self.kind, handle)?;
        let removed = self.lock().remove(id).ok_or(Error::Invalid("a handle"));
        EPOCH.fetch_add(1, Ordering::AcqRel);
        removed
    }

    /// Takes out everything that `which` names, and ends it.
    pub(crate) fn remove_all(&self, which: impl Fn(&T) -> bool, end: impl Fn(&T)) {
        let ids: Vec<u32> = self.lock().ids().filter(|(_, entry)| which(entry)).map(|(id, _)| id).collect();
        for id in ids {
            // Dropped outside the lock.
            let entry = self.lock().remove(id);
            entry.iter().for_each(|entry| end(entry));
        }
        EPOCH.fetch_add(1, Ordering::AcqRel);
    }

    fn lock(&self) -> MutexGuard<'_, Slab<Arc<T>>> {
        self.entries.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

/// Does something with a VI. The one that a thread used last is at hand.
#[inline]
pub(crate) fn with_vi<R>(handle: Handle, body: impl FnOnce(&ViEntry) -> R) -> Result<R> {
    RECENT.with(|recent| {
        let epoch = EPOCH.load(Ordering::Acquire);
        // Taken out meanwhile: a handler may call in while a call is under way, and finds none at hand.
        let held = match recent.take() {
            Some(held) if held.0 == epoch && held.1.handle == handle as usize => held,
            other => look_up(other, epoch, handle)?,
        };
        let outcome = body(&held.1);
        recent.set(Some(held));
        Ok(outcome)
    })
}

/// The VI that a thread has not used last. Out of line, so that one at hand costs no more than a look.
#[cold]
#[inline(never)]
fn look_up(other: Option<Recent>, epoch: u64, handle: Handle) -> Result<Recent> {
    drop(other);
    Ok((epoch, VIS.find(handle)?))
}

/// Forgets the VI that this thread used last, which is going.
pub(crate) fn forget_recent() {
    RECENT.with(Cell::take);
}

/// A handle as C sees it.
pub(crate) fn as_handle(value: usize) -> Handle {
    std::ptr::without_provenance_mut(value)
}

pub(crate) fn ptag_handle(ptag: Ptag) -> Handle {
    as_handle(handle_of(Kind::Ptag, ptag.0))
}

pub(crate) fn ptag(handle: Handle) -> Result<Ptag> {
    id_of(Kind::Ptag, handle).map(Ptag).map_err(|_| Error::Ptag)
}

fn handle_of(kind: Kind, id: u32) -> usize {
    (kind as usize) << 32 | id as usize
}

fn id_of(kind: Kind, handle: Handle) -> Result<u32> {
    let value = handle as usize;
    if value >> 32 == kind as usize { Ok(value as u32) } else { Err(Error::Invalid("a handle")) }
}
