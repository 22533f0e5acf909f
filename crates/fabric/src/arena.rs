//! Arenas: queue blocks carved from few regions, one arena per peer, so that a connection costs neither a descriptor nor
//! a mapping, and what a peer can write is its own.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use sidestep_sys::{
    budget,
    lock::{Mutex, MutexGuard},
};

use crate::{
    error::Result,
    node::Node,
    peer::PeerId,
    queue::{BLOCK_HEADER, Kind, QueueBlock},
    region::{RegionCore, RegionTable},
};

/// The arenas of a node.
#[derive(Debug, Default)]
pub(crate) struct Arenas {
    of_peer: Mutex<HashMap<PeerId, Arc<Arena>>>,
}

#[derive(Debug, Default)]
struct Arena {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    chunks: Vec<Arc<RegionCore>>,
    /// Bytes used of the last chunk.
    used: usize,
    /// Places given back, by length.
    free: HashMap<usize, Vec<(Arc<RegionCore>, usize)>>,
}

/// A block on loan; dropping it gives the place back, so the endpoint of its connection should own it.
#[derive(Debug)]
pub struct ArenaBlock {
    pub(crate) block: QueueBlock,
    region: Arc<RegionCore>,
    offset: usize,
    len: usize,
    arena: Weak<Arena>,
}

/// The first chunk has room for so many blocks, each further one for as much as all before: a connection that stays the only
/// one between two processes does not wait for memory that nobody will use.
const FIRST: usize = 2;
const MOST_CHUNK: usize = 2 << 20;
/// So many blocks of one size that were given back keep their pages.
const WARM: usize = 16;

impl Arenas {
    /// A block for a connection with `peer`. The pages of a new region are sent ahead.
    pub(crate) fn block(&self, node: &Node, peer: PeerId, capacity: usize, kind: Kind) -> Result<ArenaBlock> {
        let arena = lock(&self.of_peer).entry(peer).or_default().clone();
        let len = (BLOCK_HEADER + capacity).next_multiple_of(128);
        let placed = lock(&arena.state).place(len, |len| {
            let region = node.regions().create_sparse(len)?;
            let offered = node.offer(peer, &region, &region.cookie());
            // The end of a peer is reported once. If it was before this, nobody else takes the region out.
            offered.inspect_err(|_| _ = node.regions().remove(&region))?;
            Ok(region)
        });
        let (region, offset) = placed.inspect_err(|_| self.forget_if_empty(peer))?;
        let block = QueueBlock::on(&region, offset, capacity, kind)?;
        Ok(ArenaBlock { block, region, offset, len, arena: Arc::downgrade(&arena) })
    }

    fn forget_if_empty(&self, peer: PeerId) {
        let mut of_peer = lock(&self.of_peer);
        if of_peer.get(&peer).is_some_and(|arena| lock(&arena.state).chunks.is_empty()) {
            of_peer.remove(&peer);
        }
    }

    /// The peer is gone. Blocks that are still held keep their regions.
    pub(crate) fn peer_closed(&self, regions: &RegionTable, peer: PeerId) {
        let Some(arena) = lock(&self.of_peer).remove(&peer) else { return };
        for chunk in &lock(&arena.state).chunks {
            regions.remove(chunk);
        }
    }
}

impl Node {
    /// Lends a block for a connection with `peer`, from memory that only this peer can write. Its pages are sent ahead. It
    /// is refused as a limit where the budget of the process ([`sidestep_sys::budget`]) has no room for it.
    pub fn lend_block(&self, peer: PeerId, capacity: usize, kind: Kind) -> Result<ArenaBlock> {
        self.core().arenas.block(self, peer, capacity, kind)
    }
}

impl ArenaBlock {
    /// The block.
    pub fn block(&self) -> &QueueBlock {
        &self.block
    }
}

impl State {
    fn place(
        &mut self,
        len: usize,
        make: impl Fn(usize) -> Result<Arc<RegionCore>>,
    ) -> Result<(Arc<RegionCore>, usize)> {
        if let Some(place) = self.free.get_mut(&len).and_then(Vec::pop) {
            return Ok(place);
        }
        let room = self.chunks.last().is_some_and(|chunk| chunk.len() - self.used >= len);
        if !room {
            let so_far: usize = self.chunks.iter().map(|chunk| chunk.len()).sum();
            let chunk = if so_far == 0 { FIRST * len } else { so_far };
            // Where memory is short, what one block needs is all that is taken.
            let made = make(chunk.min(MOST_CHUNK).max(len)).or_else(|_| make(len))?;
            self.chunks.push(made);
            self.used = 0;
        }
        let chunk = self.chunks.last().expect("pushed above if there was none").clone();
        let offset = self.used;
        self.used += len;
        Ok((chunk, offset))
    }
}

impl Drop for ArenaBlock {
    fn drop(&mut self) {
        let Some(arena) = self.arena.upgrade() else { return };
        let mut state = lock(&arena.state);
        let free = state.free.entry(self.len).or_default();
        free.push((self.region.clone(), self.offset));
        // Some stay ready for the next connections. Where memory is short the pages stay taken, too: they could not be had
        // again without asking.
        if free.len() > WARM && budget::may_touch_later() {
            let _ = self.region.data.release(self.offset, self.len);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no panic in an arena")
}
