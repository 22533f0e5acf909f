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

mod issued;
mod layout;
mod slice;
mod table;

use std::{
    ptr::NonNull,
    sync::{Arc, OnceLock, atomic::Ordering},
};

use sidestep_shm::{
    self as shm, Memory, Span, Word32, Word64,
    attach::Gate,
    watch::{Watch, watch_len},
};
use sidestep_sys::{
    clock,
    lock::{Mutex, MutexGuard},
};

use self::issued::IssuedCookies;
pub use self::slice::RegionSlice;
pub(crate) use self::{layout::Layout, table::RegionTable};
use crate::{
    cookie::{Cookie, RegionId, Rights},
    error::{Refusal, Result},
    link::{Atomic, Pages},
    node::Node,
    peer::PeerId,
    tripwire::Access,
    watchers::Watchers,
};

/// Memory that peers can reach by cookies. Dropping it takes all its cookies back.
#[derive(Debug)]
pub struct Region {
    core: Arc<RegionCore>,
    node: Node,
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
    reached_by: Mutex<ReachedBy>,
    cookies: IssuedCookies,
    tripwires: Mutex<Watchers>,
}

/// Who reaches the memory without its owner.
#[derive(Debug, Default)]
struct ReachedBy {
    /// The peers that got pages since the last revocation.
    pages: Vec<PeerId>,
    /// The gates of the peers that were told where memory of the program lies.
    gates: Vec<Arc<Gate>>,
}

impl Region {
    /// A region of fresh shared memory.
    pub fn new(node: &Node, len: usize) -> Result<Region> {
        Ok(Region { core: node.regions().create(len)?, node: node.clone() })
    }

    /// A region of memory that the caller owns. No system call is made; the pages are never mapped elsewhere. On one host
    /// RDMA queues of peers copy into and out of it through the kernel, where that lets them and nothing is watched.
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
    ///
    /// On links that map, a peer with [`Rights::ALL`] maps the pages for reading and writing, and a peer with
    /// [`Rights::READ`] for reading: its reads then need nothing of this process. The first of them that opens the region
    /// decides which of the two it is until the next revocation; the others, and all other rights, are served access by
    /// access.
    pub fn cookie(&self, rights: Rights) -> Cookie {
        self.core.cookies.issue(rights, None)
    }

    /// A cookie that expires after `lifetime_ns`. Such a cookie never lets a peer map the pages.
    pub fn cookie_for(&self, rights: Rights, lifetime_ns: u64) -> Cookie {
        self.core.cookies.issue(rights, Some(clock::now().saturating_add(lifetime_ns)))
    }

    /// Takes every cookie of the region back. Where a peer has the pages mapped, the region moves to fresh pages
    /// with the same content at the same address. The peer keeps the old ones: what it writes there is lost, and what it
    /// reads there is what they held at this moment, until it hears of the revocation.
    pub fn revoke(&mut self) -> Result<()> {
        self.withdraw()
    }

    /// As `revoke`, for a layer above that shares the region and settles by itself who may still use it.
    pub fn withdraw(&self) -> Result<()> {
        let mapped_by = self.core.revoke()?;
        self.node.announce_revoked(&mapped_by, self.core.id, self.core.cookies.generation());
        Ok(())
    }

    /// A part of the region.
    pub fn slice(&self, offset: usize, len: usize) -> Result<RegionSlice> {
        self.core.slice(offset, len)
    }

    /// The whole region.
    pub fn all(&self) -> RegionSlice {
        RegionSlice::new(self.core.clone(), 0, self.len())
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
        self.core.check(offset, 4)?;
        Ok(self.core.data.memory().word32(offset)?)
    }

    pub(crate) fn core(&self) -> &Arc<RegionCore> {
        &self.core
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let next = self.node.regions().remove(&self.core);
        // Only its owner issues cookies, who has let go of it.
        if !self.core.cookies.were_never_issued() {
            let mapped_by = self.core.retire();
            self.node.announce_revoked(&mapped_by, self.core.id, next);
        }
    }
}

impl RegionCore {
    fn new(
        (id, generation): (RegionId, u32),
        (layout, memory, data): (Layout, Memory, Span),
        shareable: bool,
    ) -> RegionCore {
        RegionCore {
            id,
            data,
            layout,
            memory,
            watches: OnceLock::new(),
            shareable,
            reached_by: Mutex::default(),
            cookies: IssuedCookies::new(id, layout.len, generation),
            tripwires: Mutex::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.layout.len
    }

    /// A cookie for all rights.
    pub(crate) fn cookie(&self) -> Cookie {
        self.cookies.issue(Rights::ALL, None)
    }

    pub(crate) fn slice(self: &Arc<Self>, offset: usize, len: usize) -> Result<RegionSlice> {
        self.check(offset, len)?;
        Ok(RegionSlice::new(self.clone(), offset, len))
    }

    /// Whether these bytes are there.
    pub(crate) fn check(&self, offset: usize, len: usize) -> Result<()> {
        if offset.checked_add(len).is_none_or(|end| end > self.layout.len) {
            return Err(shm::Error::Range { offset, len, size: self.layout.len }.into());
        }
        Ok(())
    }

    pub(crate) fn word64(&self, offset: usize) -> Result<Word64> {
        self.check(offset, 8)?;
        Ok(self.data.memory().word64(offset)?)
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
            // Whoever copies past the node fires nothing.
            self.shut_gates();
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

    /// Where memory of the program lies, and for which turn of a gate, for a peer that copies through the kernel. `None` if
    /// it may not, or the memory is watched: nobody would hear of what such a copy touches.
    pub(crate) fn locate(&self, cookie: &Cookie, gate: &Arc<Gate>) -> Option<(u64, u64)> {
        let valid = self.cookies.valid();
        let entry = valid.admit_cookie(cookie).ok()?;
        let gates = &mut self.reached_by().gates;
        if self.shareable || entry.expires.is_some() || self.watches.get().is_some() {
            return None;
        }
        if !gates.iter().any(|told| Arc::ptr_eq(told, gate)) {
            gates.push(gate.clone());
        }
        // A revocation waits for the lock on the cookies: what it takes back is of this turn, or a later one.
        Some((self.data.place(0) as u64, gate.turn()))
    }

    /// When this returns, no peer copies into or out of this memory through the kernel, nor will it before it is told again.
    fn shut_gates(&self) {
        shut(std::mem::take(&mut self.reached_by().gates));
    }

    fn reached_by(&self) -> MutexGuard<'_, ReachedBy> {
        self.reached_by.lock().expect("no panic while telling who reaches a region")
    }

    /// Takes every cookie back, and moves to fresh pages if a peer has the present ones. Returns those peers.
    fn revoke(&self) -> Result<Vec<PeerId>> {
        self.revoke_after(
            |mapped_by| if mapped_by.is_empty() { Ok(()) } else { Ok(self.memory.renew("sidestep-region")?) },
        )
    }

    /// As `revoke`, for memory that nobody uses any more.
    fn retire(&self) -> Vec<PeerId> {
        self.revoke_after(|_| Ok(())).unwrap_or_default()
    }

    /// Takes every cookie back, if `before` succeeds.
    fn revoke_after(&self, before: impl FnOnce(&[PeerId]) -> Result<()>) -> Result<Vec<PeerId>> {
        let ReachedBy { pages, gates } = self.cookies.revoke(|| {
            let mut reached_by = self.reached_by();
            before(&reached_by.pages)?;
            Ok(std::mem::take(&mut *reached_by))
        })?;
        shut(gates);
        Ok(pages)
    }

    /// The pages for a peer, if the cookie allows mapping them.
    pub(crate) fn grant(&self, peer: PeerId, cookie: &Cookie, maps: bool) -> Result<Option<Pages>, Refusal> {
        let valid = self.cookies.valid();
        let entry = valid.admit_cookie(cookie)?;
        let wanted = cookie.rights().sharing().filter(|_| maps && self.shareable && entry.expires.is_none());
        let Some(sharing) = wanted else { return Ok(None) };
        let mapped_by = &mut self.reached_by().pages;
        // A file is sealed for all: the first peer that gets the pages decides whether they are mapped for writing.
        if !self.memory.settle(sharing).unwrap_or(false) {
            return Ok(None);
        }
        if !mapped_by.contains(&peer) {
            mapped_by.push(peer);
        }
        // Settled and taken while the cookies are locked: after a revocation these would be the fresh ones.
        let len = self.memory.len();
        Ok(self.memory.descriptor().map(|descriptor| Pages { descriptor, len }))
    }

    pub(crate) fn place(&self, cookie: &Cookie, offset: u64, bytes: &[u8]) -> Result<(), Refusal> {
        let valid = self.cookies.valid();
        let at = valid.admit(cookie, Rights::WRITE, (offset, bytes.len() as u64))?;
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
        let valid = self.cookies.valid();
        let range = (offset, len as u64);
        let at = valid.admit(cookie, Rights::WRITE, range)?;
        let span = self.data.memory().span(at, len).map_err(|_| Refusal::Range { offset, len: range.1 })?;
        fill(&span);
        Ok(())
    }

    pub(crate) fn fetch(&self, cookie: &Cookie, offset: u64, bytes: &mut [u8]) -> Result<(), Refusal> {
        let len = bytes.len() as u64;
        let valid = self.cookies.valid();
        let at = valid.admit(cookie, Rights::READ, (offset, len))?;
        self.data.copy_out(at, bytes).map_err(|_| Refusal::Range { offset, len })?;
        self.touched(at, bytes.len(), Access::Read);
        Ok(())
    }

    pub(crate) fn atomic(&self, cookie: &Cookie, offset: u64, atomic: Atomic) -> Result<u64, Refusal> {
        let valid = self.cookies.valid();
        let at = valid.admit(cookie, Rights::ATOMIC, (offset, 8))?;
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

/// Takes back what these gates let through: when this returns, no copy goes on.
fn shut(gates: Vec<Arc<Gate>>) {
    gates.iter().for_each(|gate| gate.withdraw());
}

/// Performs an atomic operation on a word.
pub(crate) fn perform(word: &Word64, atomic: Atomic) -> u64 {
    match atomic {
        Atomic::CompareSwap { expected, new } => word.compare_swap(expected, new),
        Atomic::FetchAdd(value) => word.fetch_add(value, Ordering::AcqRel),
    }
}
