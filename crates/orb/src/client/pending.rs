//! The requests of a connection that wait for their replies.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::Reply;

/// A request that waits.
pub(super) enum Slot {
    Waiting,
    Answered(Reply),
}

/// Requests by their ids. Most connections have one at a time, which needs no map.
#[derive(Default)]
pub(super) struct Pending {
    first: Option<(u32, Slot)>,
    others: HashMap<u32, Slot, BuildHasherDefault<Numbers>>,
}

impl Pending {
    pub(super) fn insert(&mut self, id: u32) {
        match &self.first {
            None => self.first = Some((id, Slot::Waiting)),
            Some(_) => drop(self.others.insert(id, Slot::Waiting)),
        }
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Slot> {
        match &mut self.first {
            Some((first, slot)) if *first == id => Some(slot),
            _ => self.others.get_mut(&id),
        }
    }

    pub(super) fn is_waiting(&mut self, id: u32) -> bool {
        matches!(self.get_mut(id), Some(Slot::Waiting))
    }

    pub(super) fn remove(&mut self, id: u32) -> Option<Slot> {
        match &self.first {
            Some((first, _)) if *first == id => self.first.take().map(|(_, slot)| slot),
            _ => self.others.remove(&id),
        }
    }
}

/// Spreads numbers that this side has chosen: they follow each other.
#[derive(Default)]
pub(super) struct Numbers(u64);

impl Hasher for Numbers {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
