//! What the card of a link looks up before it touches a region: its descriptor, and the pages. The node decides whether a cookie is
//! good; the caches decide whether the card can ask it now, or drops the packet until the host has filled them.

use std::collections::HashMap;

use sidestep_fabric::cookie::{Cookie, RegionId};

use crate::card::{Counters, Path};
use crate::cbh::{CbhCache, CbhLookup, Descriptor};
use crate::config::Config;
use crate::id::{Address, BufferId, Cbh, Frame, Key, PAGE, Page, ProcessId, Rights};
use crate::vmh::cache::Tag;
use crate::vmh::{Engine, Entry, Lookup, Slot, VmhCache};

#[derive(Debug)]
pub(super) struct Caches {
    vmh: VmhCache,
    cbh: CbhCache,
    /// The host's table: where the pages of a region are, as addresses would be given out. It has genuine regions alone.
    places: HashMap<RegionId, (u64, u64)>,
    next_page: u64,
    misses: Vec<Missing>,
}

/// What the host is to fill.
#[derive(Debug)]
enum Missing {
    Buffer(Slot, Cbh, bool),
    Line(Slot, Tag),
}

impl Caches {
    pub(super) fn new(config: &Config) -> Caches {
        let (vmh, cbh) = (VmhCache::new(config.vmh), CbhCache::new(config.cbh));
        Caches { vmh, cbh, places: HashMap::new(), next_page: 0, misses: Vec::new() }
    }

    /// Whether everything is there for an access to a range. If not, the host is told. `is_genuine` asks the node, on a miss alone.
    pub(super) fn find(
        &mut self,
        cookie: &Cookie,
        (offset, len): (u64, u64),
        path: Path,
        counters: &mut Counters,
        is_genuine: impl FnOnce() -> bool,
    ) -> bool {
        let buffer = BufferId(cookie.region().0);
        let cbh = Cbh { process: ProcessId(cookie.generation()), buffer };
        match self.cbh.lookup(cbh) {
            CbhLookup::Hit(_) => counters.cbh_hits += 1,
            // The node says why.
            CbhLookup::Negative => {
                counters.cbh_hits += 1;
                self.cbh.invalidate(cbh);
                return true;
            }
            CbhLookup::Pending => return false,
            CbhLookup::Miss(slot) => {
                counters.cbh_misses += 1;
                let genuine = is_genuine();
                if genuine {
                    self.place(cookie);
                }
                self.misses.push(Missing::Buffer(slot, cbh, genuine));
                return false;
            }
        }
        let Some(&(first, pages)) = self.places.get(&cookie.region()) else { return true };
        let last = offset.saturating_add(len.max(1) - 1) / PAGE as u64;
        for page in (offset / PAGE as u64..=last).take_while(|page| *page < pages) {
            let found = self.vmh.lock(Engine::Receive, NODE, Page(first + page));
            counters.count(path, &found);
            match found {
                // Whoever uses it gives it back before the next is looked up.
                Lookup::Hit { .. } | Lookup::Invalid(_) => self.vmh.unlock(Engine::Receive),
                Lookup::Pending => return false,
                Lookup::Miss { slot, tag } => {
                    self.misses.push(Missing::Line(slot, tag));
                    return false;
                }
            }
        }
        true
    }

    /// The host resolves what was missed. `true` if there was anything.
    pub(super) fn resolve(&mut self) -> bool {
        let any = !self.misses.is_empty();
        for missing in self.misses.drain(..) {
            match missing {
                Missing::Buffer(slot, cbh, genuine) => drop(self.cbh.fill(slot, cbh, genuine.then_some(DESCRIPTOR))),
                Missing::Line(slot, tag) => {
                    let entries = vec![Entry::Frame(Frame(0)); self.vmh.line_pages()];
                    self.vmh.fill(slot, tag, entries);
                }
            }
        }
        any
    }

    fn place(&mut self, cookie: &Cookie) {
        let pages = (cookie.len() as u64).div_ceil(PAGE as u64);
        let place = self.places.entry(cookie.region()).or_insert((0, 0));
        if place.1 != pages {
            *place = (self.next_page, pages);
            self.next_page += pages;
        }
    }
}

/// The node, as the process whose pages they are.
const NODE: ProcessId = ProcessId(1);

/// That there is one is all that counts: the node checks cookies.
const DESCRIPTOR: Descriptor =
    Descriptor { address: Address(0), len: 0, key: Key(0), rights: Rights { send: true, fetch: true }, notify: false };
