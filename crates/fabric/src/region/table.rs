//! The regions of a node.

use std::sync::{Arc, RwLock};

use sidestep_shm::Memory;
use sidestep_sys::slab::{Id, Slab};

use super::{Layout, RegionCore};
use crate::{cookie::RegionId, error::Result};

/// The regions of a node, by number. A number that is used again starts with a later generation: one that no cookie of its
/// last owner has, however often that one revoked.
#[derive(Debug, Default)]
pub(crate) struct RegionTable {
    regions: RwLock<Slab<Arc<RegionCore>, u64>>,
}

impl RegionTable {
    /// A region of fresh shared memory.
    pub(crate) fn create(&self, len: usize) -> Result<Arc<RegionCore>> {
        let layout = Layout::new(len)?;
        self.register(layout, Memory::create_settled_later("sidestep-region", layout.total)?, true)
    }

    /// Memory of which a page costs nothing before it is touched, as long as memory is plentiful.
    pub(crate) fn create_sparse(&self, len: usize) -> Result<Arc<RegionCore>> {
        let layout = Layout::new(len)?;
        self.register(layout, Memory::create_sparse("sidestep-arena", layout.total)?, true)
    }

    pub(super) fn register(&self, layout: Layout, memory: Memory, shareable: bool) -> Result<Arc<RegionCore>> {
        let data = memory.span(0, layout.len)?;
        Ok(self.insert(|id, generation| RegionCore::new((id, generation), (layout, memory, data), shareable)))
    }

    fn insert(&self, make: impl FnOnce(RegionId, u32) -> RegionCore) -> Arc<RegionCore> {
        let mut regions = self.regions.write().expect("no panic in region table");
        let id = regions.insert_with(|id| Arc::new(make(RegionId(id.place()), id.generation())));
        regions.get(id.expect("fewer regions than 32 bits number")).expect("just added").clone()
    }

    /// Takes a region out. The next one of that number begins with the generation that is returned.
    pub(crate) fn remove(&self, region: &RegionCore) -> u32 {
        let next = region.cookies.generation().wrapping_add(1);
        let mut regions = self.regions.write().expect("no panic in region table");
        if regions.at(region.id.0).is_some_and(|held| std::ptr::eq(&**held, region)) {
            regions.remove_before(region.id.0, next);
        }
        next
    }

    pub(crate) fn find(&self, id: RegionId) -> Option<Arc<RegionCore>> {
        self.regions.read().expect("no panic in region table").at(id.0).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<RegionCore>> {
        self.regions.read().expect("no panic in region table").iter().cloned().collect()
    }
}
