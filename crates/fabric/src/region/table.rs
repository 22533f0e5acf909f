//! The regions of a node.

use std::sync::{Arc, RwLock};

use sidestep_shm::Memory;

use super::{Layout, RegionCore};
use crate::{cookie::RegionId, error::Result};

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
            slots.generations[at] = core.cookies.generation().wrapping_add(1);
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
