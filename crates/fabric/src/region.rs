//! Regions: memory that can be the source or target of transfers.
//!
//! A region's own memory is a sealed memfd laid out as
//!
//! ```text
//!   data (rounded up to 64) | armed bits for writes | armed bits for reads
//! ```
//!
//! so that a peer that maps it also sees which words the owner watches. Memory of the caller has its armed bits
//! on the heap; it is never mapped, the link places data into it by copy.

use std::{
    ptr::NonNull,
    sync::{
        Arc, OnceLock, RwLock, RwLockReadGuard,
        atomic::{AtomicU32, Ordering},
    },
};

use sidestep_shm::{
    self as shm, Memory, Span, Word32, Word64,
    watch::{Watch, watch_len},
};
use sidestep_sys::{
    clock,
    lock::{Mutex, MutexGuard},
};

use crate::{
    cookie::{Cookie, RegionId, Rights},
    error::{Error, Refusal, Result},
    link::{Atomic, Pages, PeerId, may_map},
    node::Node,
    random::Random,
    tripwire::Access,
    watchers::Watchers,
};

/// Memory that peers can reach by cookies. Dropping it takes all its cookies back.
#[derive(Debug)]
pub struct Region {
    core: Arc<RegionCore>,
    node: Node,
}

/// A part of a region of this node, for use as source or target of transfers.
#[derive(Debug, Clone)]
pub struct RegionSlice {
    core: Arc<RegionCore>,
    offset: usize,
    len: usize,
}

#[derive(Debug)]
pub(crate) struct RegionCore {
    pub(crate) id: RegionId,
    pub(crate) data: Span,
    layout: Layout,
    memory: Memory,
    /// The armed bits for writes and for reads; for memory of the caller, made when the first tripwire is set.
    watches: OnceLock<[Watch; 2]>,
    /// Whether pages may be handed out at all.
    shareable: bool,
    /// The peers that got pages since the last revocation.
    mapped_by: Mutex<Vec<PeerId>>,
    generation: AtomicU32,
    /// Read while a cookie is used, written while cookies are issued or revoked: nothing lands after a revocation.
    issued: RwLock<Vec<Issued>>,
    tripwires: Mutex<Watchers>,
}

/// Where the parts of a region's memory lie, computed alike by owner and peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) len: usize,
    pub(crate) writes: usize,
    pub(crate) reads: usize,
    pub(crate) total: usize,
}

/// No cookie that lets a peer write to a region is issued as long as this lives.
#[derive(Debug)]
pub(crate) struct Still<'a>(#[expect(dead_code, reason = "held, not looked at")] RwLockReadGuard<'a, Vec<Issued>>);

#[derive(Debug, Clone, Copy)]
struct Issued {
    key: u128,
    rights: Rights,
    expires: Option<u64>,
}

impl Layout {
    pub(crate) fn new(len: usize) -> Result<Layout> {
        let bad = Error::Size { what: "region", must: "between 1 byte and 1 TiB", value: len };
        if len == 0 || len > 1 << 40 {
            return Err(bad);
        }
        let writes = len.next_multiple_of(64);
        let reads = (writes + watch_len(len)).next_multiple_of(64);
        Ok(Layout { len, writes, reads, total: (reads + watch_len(len)).next_multiple_of(64) })
    }

    pub(crate) fn watch(&self, memory: &Memory, access: Access) -> Result<Watch> {
        let offset = match access {
            Access::Write => self.writes,
            Access::Read => self.reads,
        };
        Ok(Watch::new(memory, offset, self.len)?)
    }
}

impl Region {
    /// A region of fresh shared memory.
    pub fn new(node: &Node, len: usize) -> Result<Region> {
        Ok(Region { core: node.regions().create(len)?, node: node.clone() })
    }

    /// A region of memory that the caller owns. No system call is made; the pages are never mapped elsewhere.
    ///
    /// The `unsafe` step is [`shm::Memory::from_raw`], which makes the `memory`.
    pub fn over(node: &Node, memory: Memory) -> Result<Region> {
        let layout = Layout::new(memory.len())?;
        Ok(Region { core: node.regions().register(layout, memory, false)?, node: node.clone() })
    }

    /// The node it belongs to.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.core.layout.len
    }

    /// Whether the region has no bytes; never true.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Address of the first byte, for programs that keep their own data here.
    pub fn base(&self) -> NonNull<u8> {
        self.core.data.memory().base()
    }

    /// A cookie for this region. The same rights give the same cookie until the next revocation.
    pub fn cookie(&self, rights: Rights) -> Cookie {
        self.core.issue(rights, None)
    }

    /// A cookie that expires after `lifetime_ns`. Such a cookie never lets a peer map the pages.
    pub fn cookie_for(&self, rights: Rights, lifetime_ns: u64) -> Cookie {
        self.core.issue(rights, Some(clock::now().saturating_add(lifetime_ns)))
    }

    /// Takes every cookie of the region back. Where a peer has the pages mapped, the region moves to fresh pages
    /// with the same content at the same address; the peer keeps the old ones, and what it writes there is lost.
    pub fn revoke(&mut self) -> Result<()> {
        self.withdraw()
    }

    /// As `revoke`, for a layer above that shares the region and settles by itself who may still use it.
    pub fn withdraw(&self) -> Result<()> {
        let mapped_by = self.core.revoke()?;
        self.node.announce_revoked(&mapped_by, self.core.id, self.core.generation.load(Ordering::Acquire));
        Ok(())
    }

    /// A part of the region.
    pub fn slice(&self, offset: usize, len: usize) -> Result<RegionSlice> {
        self.core.slice(offset, len)
    }

    /// The whole region.
    pub fn all(&self) -> RegionSlice {
        RegionSlice { core: self.core.clone(), offset: 0, len: self.len() }
    }

    /// Copies bytes in. Peers see them as any local store; no tripwire fires.
    #[inline]
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        Ok(self.core.data.copy_in(offset, bytes)?)
    }

    /// Copies bytes in, the last word as one, and after the bytes before it: a program may poll it.
    #[inline]
    pub fn write_in_order(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        Ok(self.core.data.copy_in_order(offset, bytes)?)
    }

    /// Copies bytes out. A peer with rights may be changing them meanwhile.
    #[inline]
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<()> {
        Ok(self.core.data.copy_out(offset, bytes)?)
    }

    /// Its bytes, for a layer above that has the kernel copy them.
    pub fn span(&self) -> &Span {
        &self.core.data
    }

    /// A 64-bit word of the region.
    pub fn word64(&self, offset: usize) -> Result<Word64> {
        self.core.word64(offset)
    }

    /// A 32-bit word of the region.
    pub fn word32(&self, offset: usize) -> Result<Word32> {
        Ok(self.core.data.memory().word32(self.core.checked(offset, 4)?)?)
    }

    pub(crate) fn core(&self) -> &Arc<RegionCore> {
        &self.core
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let next = self.node.regions().remove(self.core.id);
        let mapped_by = self.core.mapped_by.lock().expect("no panic while granting");
        self.node.announce_revoked(&mapped_by, self.core.id, next);
    }
}

impl RegionSlice {
    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the slice has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where it starts in its region.
    pub fn offset(&self) -> usize {
        self.offset
    }

    pub(crate) fn core(&self) -> &Arc<RegionCore> {
        &self.core
    }

    /// A part of it.
    pub(crate) fn part(&self, at: usize, len: usize) -> RegionSlice {
        let at = at.min(self.len);
        RegionSlice { core: self.core.clone(), offset: self.offset + at, len: len.min(self.len - at) }
    }

    /// As long as this is held, no peer can change the bytes. `None` if one may at any time.
    pub(crate) fn hold_still(&self) -> Option<Still<'_>> {
        let issued = self.core.issued();
        let writable = |entry: &Issued| entry.rights.allow(Rights::WRITE) || entry.rights.allow(Rights::ATOMIC);
        (!issued.iter().any(writable)).then_some(Still(issued))
    }

    pub(crate) fn span(&self) -> Result<Span> {
        Ok(self.core.data.memory().span(self.offset, self.len)?)
    }

    pub(crate) fn word64(&self, at: usize) -> Result<Word64> {
        if at + 8 > self.len {
            return Err(shm::Error::Range { offset: at, len: 8, size: self.len }.into());
        }
        self.core.word64(self.offset + at)
    }
}

impl RegionCore {
    pub(crate) fn len(&self) -> usize {
        self.layout.len
    }

    pub(crate) fn slice(self: &Arc<Self>, offset: usize, len: usize) -> Result<RegionSlice> {
        self.checked(offset, len)?;
        Ok(RegionSlice { core: self.clone(), offset, len })
    }

    fn checked(&self, offset: usize, len: usize) -> Result<usize> {
        if offset.checked_add(len).is_none_or(|end| end > self.layout.len) {
            return Err(shm::Error::Range { offset, len, size: self.layout.len }.into());
        }
        Ok(offset)
    }

    pub(crate) fn word64(&self, offset: usize) -> Result<Word64> {
        Ok(self.data.memory().word64(self.checked(offset, 8)?)?)
    }

    /// The armed bits, made if need be.
    pub(crate) fn watch(&self, access: Access) -> Result<&Watch> {
        if self.watches.get().is_none() {
            let made = if self.shareable {
                [self.layout.watch(&self.memory, Access::Write)?, self.layout.watch(&self.memory, Access::Read)?]
            } else {
                let bits = watch_len(self.layout.len);
                let heap = Memory::heap(2 * bits)?;
                [Watch::new(&heap, 0, self.layout.len)?, Watch::new(&heap, bits, self.layout.len)?]
            };
            let _ = self.watches.set(made);
        }
        let watches = self.watches.get().expect("set above, by this thread or another");
        Ok(&watches[access as usize])
    }

    /// After this node itself placed or read bytes on behalf of a peer: fires what watches them.
    pub(crate) fn touched(&self, offset: usize, len: usize, access: Access) {
        if let Some(watches) = self.watches.get() {
            watches[access as usize].fire(offset, len, |word| self.fired(word, access));
        }
    }

    pub(crate) fn issue(&self, rights: Rights, expires: Option<u64>) -> Cookie {
        let mut issued = self.issued.write().expect("no panic while issuing");
        let now = if issued.iter().any(|entry| entry.expires.is_some()) { clock::now() } else { 0 };
        issued.retain(|entry| entry.expires.is_none_or(|expires| expires > now));
        let known = issued.iter().find(|entry| entry.rights == rights && entry.expires.is_none());
        let key = match (known, expires) {
            (Some(entry), None) => entry.key,
            _ => {
                let key = Random::key();
                issued.push(Issued { key, rights, expires });
                key
            }
        };
        Cookie {
            key,
            region: self.id,
            generation: self.generation.load(Ordering::Acquire),
            len: self.layout.len as u64,
            rights,
        }
    }

    /// Takes every cookie back, and moves to fresh pages if a peer has the present ones. Returns those peers.
    fn revoke(&self) -> Result<Vec<PeerId>> {
        let mut issued = self.issued.write().expect("no panic while issuing");
        let mut mapped_by = self.mapped_by.lock().expect("no panic while granting");
        if !mapped_by.is_empty() {
            self.memory.renew("sidestep-region")?;
        }
        issued.clear();
        self.generation.fetch_add(1, Ordering::AcqRel);
        Ok(std::mem::take(&mut *mapped_by))
    }

    fn issued(&self) -> RwLockReadGuard<'_, Vec<Issued>> {
        self.issued.read().expect("no panic while issuing")
    }

    /// Whether the owner honours a cookie for `wanted` on a range: the one place that decides.
    fn admit(
        &self,
        issued: &[Issued],
        cookie: &Cookie,
        wanted: Rights,
        (offset, len): (u64, u64),
    ) -> Result<usize, Refusal> {
        self.admit_cookie(issued, cookie)?;
        if !cookie.rights.allow(wanted) {
            return Err(Refusal::Rights { held: cookie.rights, wanted });
        }
        match offset.checked_add(len) {
            Some(end) if end <= self.layout.len as u64 => Ok(offset as usize),
            _ => Err(Refusal::Range { offset, len }),
        }
    }

    fn admit_cookie(&self, issued: &[Issued], cookie: &Cookie) -> Result<Issued, Refusal> {
        let generation = self.generation.load(Ordering::Acquire);
        if cookie.generation != generation {
            let earlier = generation.wrapping_sub(cookie.generation) < 1 << 31;
            return Err(if earlier { Refusal::Revoked } else { Refusal::Forged });
        }
        let entry = issued.iter().find(|entry| entry.key == cookie.key && entry.rights == cookie.rights);
        let entry = *entry.ok_or(Refusal::Forged)?;
        if cookie.len != self.layout.len as u64 {
            return Err(Refusal::Forged);
        }
        if entry.expires.is_some_and(|expires| clock::now() >= expires) {
            return Err(Refusal::Expired);
        }
        Ok(entry)
    }

    /// The pages for a peer, if the cookie allows mapping them.
    pub(crate) fn grant(&self, peer: PeerId, cookie: &Cookie, maps: bool) -> Result<Option<Pages>, Refusal> {
        let issued = self.issued();
        let entry = self.admit_cookie(&issued, cookie)?;
        if !maps || !self.shareable || entry.expires.is_some() || !may_map(entry.rights) {
            return Ok(None);
        }
        let mut mapped_by = self.mapped_by.lock().expect("no panic while granting");
        if !mapped_by.contains(&peer) {
            mapped_by.push(peer);
        }
        // Taken while the cookies are locked: after a revocation these would be the fresh ones.
        let len = self.memory.len();
        Ok(self.memory.descriptor().map(|descriptor| Pages { descriptor, len }))
    }

    pub(crate) fn place(&self, cookie: &Cookie, offset: u64, bytes: &[u8]) -> Result<(), Refusal> {
        let issued = self.issued();
        let at = self.admit(&issued, cookie, Rights::WRITE, (offset, bytes.len() as u64))?;
        // The last word may be a flag that someone polls.
        self.data.copy_in_order(at, bytes).map_err(|_| Refusal::Range { offset, len: bytes.len() as u64 })?;
        self.touched(at, bytes.len(), Access::Write);
        Ok(())
    }

    /// Lets `fill` put bytes to their place while the cookie is good: nothing lands after a revocation.
    pub(crate) fn land(
        &self,
        cookie: &Cookie,
        (offset, len): (u64, usize),
        fill: &mut dyn FnMut(&Span),
    ) -> Result<(), Refusal> {
        let issued = self.issued();
        let range = (offset, len as u64);
        let at = self.admit(&issued, cookie, Rights::WRITE, range)?;
        let span = self.data.memory().span(at, len).map_err(|_| Refusal::Range { offset, len: range.1 })?;
        fill(&span);
        Ok(())
    }

    pub(crate) fn fetch(&self, cookie: &Cookie, offset: u64, bytes: &mut [u8]) -> Result<(), Refusal> {
        let len = bytes.len() as u64;
        let issued = self.issued();
        let at = self.admit(&issued, cookie, Rights::READ, (offset, len))?;
        self.data.copy_out(at, bytes).map_err(|_| Refusal::Range { offset, len })?;
        self.touched(at, bytes.len(), Access::Read);
        Ok(())
    }

    pub(crate) fn atomic(&self, cookie: &Cookie, offset: u64, atomic: Atomic) -> Result<u64, Refusal> {
        let issued = self.issued();
        let at = self.admit(&issued, cookie, Rights::ATOMIC, (offset, 8))?;
        let word = self.word64(at).map_err(|_| Refusal::Range { offset, len: 8 })?;
        let held = perform(&word, atomic);
        self.touched(at, 8, Access::Write);
        Ok(held)
    }

    pub(crate) fn watchers(&self) -> MutexGuard<'_, Watchers> {
        self.tripwires.lock().expect("no panic in tripwire table")
    }

    /// Fires whatever watches the word at `offset`.
    pub(crate) fn fired(&self, offset: usize, access: Access) {
        self.watchers().fire(offset, access);
    }

    /// Fires every tripwire whose armed bit is gone without a report.
    pub(crate) fn fired_unknown(&self) {
        self.watchers().fire_spent();
    }
}

/// Performs an atomic operation on a word.
pub(crate) fn perform(word: &Word64, atomic: Atomic) -> u64 {
    match atomic {
        Atomic::CompareSwap { expected, new } => word.compare_swap(expected, new),
        Atomic::FetchAdd(value) => word.fetch_add(value, Ordering::AcqRel),
    }
}

/// The regions of a node, by number. A number that is used again starts with a later generation.
#[derive(Debug, Default)]
pub(crate) struct RegionTable {
    slots: RwLock<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    regions: Vec<Option<Arc<RegionCore>>>,
    generations: Vec<u32>,
    free: Vec<u32>,
}

impl RegionTable {
    /// A region of fresh shared memory.
    pub(crate) fn create(&self, len: usize) -> Result<Arc<RegionCore>> {
        let layout = Layout::new(len)?;
        self.register(layout, Memory::create("sidestep-region", layout.total)?, true)
    }

    /// Memory of which a page costs nothing before it is touched, as long as memory is plentiful.
    pub(crate) fn create_sparse(&self, len: usize) -> Result<Arc<RegionCore>> {
        let layout = Layout::new(len)?;
        self.register(layout, Memory::create_sparse("sidestep-arena", layout.total)?, true)
    }

    fn register(&self, layout: Layout, memory: Memory, shareable: bool) -> Result<Arc<RegionCore>> {
        let data = memory.span(0, layout.len)?;
        Ok(self.insert(|id, generation| RegionCore {
            id,
            data,
            layout,
            memory,
            watches: OnceLock::new(),
            shareable,
            mapped_by: Mutex::default(),
            generation: AtomicU32::new(generation),
            issued: RwLock::default(),
            tripwires: Mutex::default(),
        }))
    }

    fn insert(&self, make: impl FnOnce(RegionId, u32) -> RegionCore) -> Arc<RegionCore> {
        let mut slots = self.slots.write().expect("no panic in region table");
        let id = match slots.free.pop() {
            Some(id) => id,
            None => {
                slots.regions.push(None);
                slots.generations.push(1);
                slots.regions.len() as u32 - 1
            }
        };
        let core = Arc::new(make(RegionId(id), slots.generations[id as usize]));
        slots.regions[id as usize] = Some(core.clone());
        core
    }

    /// Takes a region out. The next one of that number begins with the generation that is returned.
    pub(crate) fn remove(&self, id: RegionId) -> u32 {
        let mut slots = self.slots.write().expect("no panic in region table");
        let at = id.0 as usize;
        if let Some(core) = slots.regions.get_mut(at).and_then(Option::take) {
            slots.generations[at] = core.generation.load(Ordering::Acquire).wrapping_add(1);
            slots.free.push(id.0);
        }
        slots.generations[at]
    }

    pub(crate) fn find(&self, id: RegionId) -> Option<Arc<RegionCore>> {
        let slots = self.slots.read().expect("no panic in region table");
        slots.regions.get(id.0 as usize)?.clone()
    }

    pub(crate) fn all(&self) -> Vec<Arc<RegionCore>> {
        let slots = self.slots.read().expect("no panic in region table");
        slots.regions.iter().flatten().cloned().collect()
    }
}
