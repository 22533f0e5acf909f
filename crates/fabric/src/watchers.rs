//! Who watches which word of a region.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    sync::Arc,
};

use sidestep_shm::watch::WATCHED_WORD;

use crate::tripwire::{Access, TripwireCore};

/// The tripwires of a region, by word. Most words have one. A tripwire is taken out when its handle is dropped.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    first: HashMap<u64, Arc<TripwireCore>, BuildHasherDefault<WordHasher>>,
    others: HashMap<u64, Vec<Arc<TripwireCore>>, BuildHasherDefault<WordHasher>>,
    /// Those that watch a group of words: few, so all of them are looked at.
    groups: Vec<Arc<TripwireCore>>,
}

/// Keys are numbers of words, chosen by this process: spreading them is enough.
#[derive(Debug, Default)]
pub(crate) struct WordHasher(u64);

impl Hasher for WordHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, value: u64) {
        // The golden ratio spreads neighbours; the swap brings the well-mixed bits to where the table looks.
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).swap_bytes();
    }
}

impl Watchers {
    pub(crate) fn add(&mut self, tripwire: &Arc<TripwireCore>) {
        let key = key(tripwire.place());
        let watcher = tripwire.clone();
        if tripwire.is_group() {
            return self.groups.push(watcher);
        }
        match self.first.get(&key) {
            Some(_) => self.others.entry(key).or_default().push(watcher),
            None => drop(self.first.insert(key, watcher)),
        }
    }

    /// Takes a tripwire out. `true` if no other one watches a word of it.
    pub(crate) fn remove(&mut self, tripwire: &Arc<TripwireCore>) -> bool {
        let is_it = |watcher: &Arc<TripwireCore>| Arc::ptr_eq(watcher, tripwire);
        if tripwire.is_group() {
            self.groups.retain(|watcher| !is_it(watcher));
            return self.first.is_empty() && self.groups.is_empty();
        }
        let (offset, access) = tripwire.place();
        let is_alone = self.remove_from_word(key((offset, access)), is_it);
        is_alone && !self.groups.iter().any(|group| group.has_in_group(offset, access))
    }

    /// `true` if no other one watches the word.
    fn remove_from_word(&mut self, key: u64, is_it: impl Fn(&Arc<TripwireCore>) -> bool) -> bool {
        let Some(others) = self.others.get_mut(&key) else {
            self.first.remove(&key);
            return true;
        };
        let other = others.iter().position(is_it);
        let taken = others.swap_remove(other.unwrap_or(0));
        if others.is_empty() {
            self.others.remove(&key);
        }
        if other.is_none() {
            self.first.insert(key, taken);
        }
        false
    }

    /// Whether another tripwire may watch a word of this one.
    pub(crate) fn shares(&self, tripwire: &TripwireCore) -> bool {
        if tripwire.is_group() {
            return !self.is_alone();
        }
        let (offset, access) = tripwire.place();
        self.others.contains_key(&key((offset, access)))
            || self.groups.iter().any(|group| group.has_in_group(offset, access))
    }

    /// Whether a group is all that there is.
    fn is_alone(&self) -> bool {
        self.first.is_empty() && self.groups.len() == 1
    }

    /// Fires whatever watches a word.
    pub(crate) fn fire(&self, offset: usize, access: Access) {
        let key = key((offset, access));
        if let Some(first) = self.first.get(&key) {
            first.fire();
        }
        if !self.others.is_empty() {
            self.others.get(&key).into_iter().flatten().for_each(|tripwire| tripwire.fire());
        }
        for group in self.groups.iter().filter(|group| group.has_in_group(offset, access) && group.is_armed()) {
            // Its other words have nothing to tell before it is armed again, which may be as soon as it has fired.
            if self.is_alone() {
                group.clear_bits();
            }
            group.fire();
        }
    }

    /// Fires every tripwire whose armed bit is gone without a report.
    pub(crate) fn fire_spent(&self) {
        let all = self.first.values().chain(self.others.values().flatten()).chain(&self.groups);
        all.for_each(|tripwire| tripwire.fire_if_spent());
    }
}

fn key((offset, access): (usize, Access)) -> u64 {
    (offset / WATCHED_WORD) as u64 * 2 + access as u64
}
