//! Registered memory: handles, protection tags, rights.

use std::{
    ptr::NonNull,
    sync::{
        Arc, RwLock,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
};

use sidestep_fabric::{Node, Region};
use sidestep_shm::{Memory, Word64};
use sidestep_sys::{
    lock::{Mutex, MutexGuard},
    slab::Slab,
};

use crate::{
    attributes::{MAX_PTAGS, MAX_REGIONS, MemAttributes},
    code::Status,
    descriptor::{List, Segment},
    error::{Error, Result},
    fifo::Fifo,
};

/// A protection tag: memory and VIs that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ptag(pub u32);

/// Names registered memory, here and at the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MemHandle(pub u32);

/// Memory that the library allocated and registered: peers place large messages straight into it.
#[derive(Debug, Clone)]
pub struct Buffer {
    registration: Arc<Registration>,
}

/// One registration.
#[derive(Debug)]
pub(crate) struct Registration {
    pub(crate) handle: MemHandle,
    pub(crate) base: u64,
    pub(crate) region: Region,
    /// Whether the library allocated it.
    pub(crate) own: bool,
    alive: AtomicBool,
    /// Whether a peer was told that it can reach this through the kernel.
    told: AtomicBool,
    /// Raised when peers lose the reach they had.
    turn: AtomicU32,
    ptag: AtomicU32,
    rights: AtomicU32,
}

/// A registration as peers know it: handle and how often they lost their reach; turn of the gate it is reached through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key(u64, u64);

impl Key {
    /// In the place of a turn, for what is not reached through a gate.
    const MAPPED: u64 = u64::MAX;

    /// The turn of the gate that it is reached through, if it is.
    pub(crate) fn turn(&self) -> Option<u64> {
        (self.1 != Key::MAPPED).then_some(self.1)
    }

    /// Whether it was told under a turn of the gate that is over.
    pub(crate) fn is_before(&self, turn: u64) -> bool {
        self.1 < turn
    }
}

/// What peers could reach and no longer may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Withdrawn {
    /// Nothing that they knew of.
    Unknown,
    /// Memory that the library allocated.
    Mapped,
    /// Memory of the program, through the kernel.
    Attached,
}

/// Bytes of a registration.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) registration: Arc<Registration>,
    pub(crate) offset: usize,
    pub(crate) len: usize,
}

#[derive(Debug)]
pub(crate) struct MemoryTable {
    entries: RwLock<Slab<Arc<Registration>>>,
    ptags: Mutex<Slab<usize>>,
    /// Raised when an entry goes or changes: whoever remembers one looks again.
    epoch: AtomicU64,
}

const RDMA_WRITE: u32 = 1;
const RDMA_READ: u32 = 2;

impl Buffer {
    /// What names it in segments.
    pub fn handle(&self) -> MemHandle {
        self.registration.handle
    }

    /// Address of the first byte.
    pub fn address(&self) -> u64 {
        self.registration.base
    }

    /// Where it lies in this process.
    pub fn base(&self) -> NonNull<u8> {
        self.registration.region.base()
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.registration.region.len()
    }

    /// Whether it has no bytes; never true.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A part of it, for a descriptor. Whether it lies within is checked when it is posted.
    pub fn segment(&self, offset: usize, len: usize) -> Segment {
        Segment { address: self.address() + offset as u64, handle: self.handle(), len: len as u32 }
    }

    /// A word of it, at a multiple of eight.
    pub fn word(&self, offset: usize) -> Result<Word64> {
        Ok(self.registration.region.word64(offset)?)
    }

    /// The memory itself.
    pub fn memory(&self) -> Memory {
        self.registration.region.span().memory().clone()
    }

    /// Copies bytes in.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        Ok(self.registration.region.write(offset, bytes)?)
    }

    /// Copies bytes out.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<()> {
        Ok(self.registration.region.read(offset, bytes)?)
    }
}

impl MemoryTable {
    pub(crate) fn new() -> MemoryTable {
        let (entries, ptags) = (RwLock::new(Slab::new(MAX_REGIONS)), Mutex::new(Slab::new(MAX_PTAGS)));
        MemoryTable { entries, ptags, epoch: AtomicU64::new(0) }
    }

    pub(crate) fn create_ptag(&self) -> Result<Ptag> {
        let full = Error::Limit { what: "protection tags", limit: MAX_PTAGS };
        self.ptags().insert(0).map(Ptag).ok_or(full)
    }

    pub(crate) fn destroy_ptag(&self, ptag: Ptag) -> Result<()> {
        let mut ptags = self.ptags();
        match ptags.get(ptag.0) {
            None => Err(Error::Ptag),
            Some(0) => {
                ptags.remove(ptag.0);
                Ok(())
            }
            Some(_) => Err(Error::InUse("the protection tag")),
        }
    }

    /// Counts a user of a tag in or out.
    pub(crate) fn use_ptag(&self, ptag: Ptag, one_more: bool) -> Result<()> {
        let users = self.ptags().get_mut(ptag.0).map(|users| {
            *users = if one_more { *users + 1 } else { users.saturating_sub(1) };
        });
        users.ok_or(Error::Ptag)
    }

    /// Registers memory of the caller.
    pub(crate) fn register(&self, node: &Node, memory: Memory, attributes: &MemAttributes) -> Result<MemHandle> {
        Ok(self.add(Region::over(node, memory)?, attributes, false)?.handle)
    }

    /// Allocates and registers.
    pub(crate) fn allocate(&self, node: &Node, len: usize, attributes: &MemAttributes) -> Result<Buffer> {
        Ok(Buffer { registration: self.add(Region::new(node, len)?, attributes, true)? })
    }

    fn add(&self, region: Region, attributes: &MemAttributes, own: bool) -> Result<Arc<Registration>> {
        self.use_ptag(attributes.ptag, true)?;
        let mut made = None;
        let inserted = self.entries.write().expect("no panic in the memory table").insert_with(|id| {
            let registration = Arc::new(Registration {
                handle: MemHandle(id),
                base: region.base().as_ptr() as u64,
                region,
                own,
                alive: AtomicBool::new(true),
                told: AtomicBool::new(false),
                turn: AtomicU32::new(0),
                ptag: AtomicU32::new(attributes.ptag.0),
                rights: AtomicU32::new(rights(attributes)),
            });
            made = Some(registration.clone());
            registration
        });
        match (inserted, made) {
            (Some(_), Some(made)) => Ok(made),
            _ => {
                self.use_ptag(attributes.ptag, false)?;
                Err(Error::Limit { what: "registered regions", limit: MAX_REGIONS })
            }
        }
    }

    /// Ends a registration; `address` must be where it begins.
    pub(crate) fn deregister(&self, address: u64, handle: MemHandle) -> Result<Withdrawn> {
        let mut entries = self.entries.write().expect("no panic in the memory table");
        entries.get(handle.0).filter(|entry| entry.base == address).ok_or(Error::Invalid("the memory handle"))?;
        let entry = entries.remove(handle.0).expect("found above");
        drop(entries);
        // SeqCst, as in `offer`: either that finds it gone, or this finds that it was offered.
        entry.alive.store(false, Ordering::SeqCst);
        self.epoch.fetch_add(1, Ordering::AcqRel);
        let withdrawn = entry.withdraw()?;
        self.use_ptag(entry.ptag(), false)?;
        Ok(withdrawn)
    }

    pub(crate) fn find(&self, handle: MemHandle) -> Option<Arc<Registration>> {
        self.entries.read().expect("no panic in the memory table").get(handle.0).cloned()
    }

    /// Memory that peers of this tag may write or read.
    pub(crate) fn reachable(&self, ptag: Ptag, most: usize) -> Vec<Arc<Registration>> {
        let entries = self.entries.read().expect("no panic in the memory table");
        let open = |entry: &&Arc<Registration>| entry.ptag() == ptag && (entry.allows_write() || entry.allows_read());
        entries.iter().filter(open).take(most).cloned().collect()
    }

    pub(crate) fn query(&self, address: u64, handle: MemHandle) -> Result<MemAttributes> {
        let entry = self.find(handle).filter(|entry| entry.contains(address, 0));
        Ok(entry.ok_or(Error::Invalid("the memory handle"))?.attributes())
    }

    /// Changes attributes.
    pub(crate) fn set(&self, address: u64, handle: MemHandle, attributes: &MemAttributes) -> Result<Withdrawn> {
        let entry = self.find(handle).filter(|entry| entry.contains(address, 0));
        let entry = entry.ok_or(Error::Invalid("the memory handle"))?;
        self.use_ptag(attributes.ptag, true)?;
        self.use_ptag(entry.ptag(), false)?;
        let (ptag, held) = (entry.ptag(), entry.rights.load(Ordering::Acquire));
        entry.ptag.store(attributes.ptag.0, Ordering::SeqCst);
        entry.rights.store(rights(attributes), Ordering::SeqCst);
        self.epoch.fetch_add(1, Ordering::AcqRel);
        let less = ptag != attributes.ptag || held & !rights(attributes) != 0;
        if less { entry.withdraw() } else { Ok(Withdrawn::Unknown) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.read().expect("no panic in the memory table").is_empty()
    }

    pub(crate) fn no_ptags(&self) -> bool {
        self.ptags().is_empty()
    }

    #[inline]
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    fn ptags(&self) -> MutexGuard<'_, Slab<usize>> {
        self.ptags.lock().expect("no panic with tags")
    }
}

impl Registration {
    /// Names it as peers know it: another one after they lost their reach.
    #[inline]
    pub(crate) fn key(&self) -> Key {
        Key(u64::from(self.handle.0) << 32 | u64::from(self.turn()), Key::MAPPED)
    }

    /// As `key`, for a peer that reaches it through the kernel while its gate is at this turn.
    pub(crate) fn key_at(&self, turn: u64) -> Key {
        Key(u64::from(self.handle.0) << 32, turn)
    }

    /// A peer is about to be told that it can reach this memory through the kernel. Attributes that are read from now on
    /// are those that hold until [`withdraw`](Self::withdraw) tells that it was. `false`: it is gone.
    pub(crate) fn offer(&self) -> bool {
        self.told.store(true, Ordering::SeqCst);
        self.alive.load(Ordering::SeqCst)
    }

    /// How often peers have lost their reach.
    #[inline]
    pub(crate) fn turn(&self) -> u32 {
        self.turn.load(Ordering::Acquire)
    }

    /// Takes back what peers can reach: whoever has the pages mapped keeps the old ones.
    fn withdraw(&self) -> Result<Withdrawn> {
        if self.own {
            self.turn.fetch_add(1, Ordering::AcqRel);
            self.region.withdraw()?;
            return Ok(Withdrawn::Mapped);
        }
        Ok(if self.told.load(Ordering::SeqCst) { Withdrawn::Attached } else { Withdrawn::Unknown })
    }

    #[inline]
    pub(crate) fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn ptag(&self) -> Ptag {
        Ptag(self.ptag.load(Ordering::SeqCst))
    }

    pub(crate) fn allows_write(&self) -> bool {
        self.rights.load(Ordering::SeqCst) & RDMA_WRITE != 0
    }

    pub(crate) fn allows_read(&self) -> bool {
        self.rights.load(Ordering::SeqCst) & RDMA_READ != 0
    }

    pub(crate) fn attributes(&self) -> MemAttributes {
        MemAttributes { ptag: self.ptag(), rdma_write: self.allows_write(), rdma_read: self.allows_read() }
    }

    #[inline]
    pub(crate) fn contains(&self, address: u64, len: u64) -> bool {
        let size = self.region.len() as u64;
        address.checked_sub(self.base).is_some_and(|offset| offset <= size && len <= size - offset)
    }
}

/// The few registrations that a VI used last.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    epoch: u64,
    entries: [Option<Arc<Registration>>; 4],
    /// Those that receives held which are done: the next receives are likely to be in the same memory. As many as were posted
    /// at once.
    spare: Fifo<Arc<Registration>>,
}

impl Recent {
    /// The bytes that a segment names, if the tag allows it.
    #[inline]
    pub(crate) fn resolve(&mut self, table: &MemoryTable, segment: &Segment, ptag: Ptag) -> Result<Piece, Status> {
        let spare = self.spare.pop();
        let registration = self.find(table, segment.handle).ok_or(Status::PROTECTION_ERROR)?;
        let len = segment.len as usize;
        if registration.ptag() != ptag || !registration.contains(segment.address, len as u64) {
            return Err(Status::PROTECTION_ERROR);
        }
        let offset = (segment.address - registration.base) as usize;
        let registration = match spare {
            Some(spare) if Arc::ptr_eq(&spare, registration) => spare,
            _ => registration.clone(),
        };
        Ok(Piece { registration, offset, len })
    }

    /// Takes back what a receive held. Counting it out, and in again for the next one, would cost more than keeping it.
    #[inline]
    pub(crate) fn keep(&mut self, pieces: List<Piece>) {
        if let List::One(piece) = pieces {
            self.spare.push(piece.registration);
        }
    }

    /// The memory that a segment names and where in it, if the tag allows it: for use within a call.
    #[inline]
    pub(crate) fn check(&mut self, table: &MemoryTable, segment: &Segment, ptag: Ptag) -> Option<(&Region, usize)> {
        let entry = self.find(table, segment.handle)?;
        let usable = entry.ptag() == ptag && entry.contains(segment.address, u64::from(segment.len));
        usable.then(|| (&entry.region, (segment.address - entry.base) as usize))
    }

    /// A registration by its handle.
    #[inline]
    pub(crate) fn find(&mut self, table: &MemoryTable, handle: MemHandle) -> Option<&Arc<Registration>> {
        let epoch = table.epoch();
        if epoch != self.epoch {
            *self = Recent { epoch, ..Recent::default() };
        }
        let place = &mut self.entries[handle.0 as usize % 4];
        if place.as_ref().is_none_or(|entry| entry.handle != handle) {
            *place = table.find(handle);
        }
        place.as_ref()
    }
}

fn rights(attributes: &MemAttributes) -> u32 {
    (if attributes.rdma_write { RDMA_WRITE } else { 0 }) | (if attributes.rdma_read { RDMA_READ } else { 0 })
}
