//! The trunks of a NIC: finding the one to a peer, and looking at all of them.
//!
//! A program with one peer looks at one word. With several, whoever polls looks first at the few trunks that had something
//! last, and takes it from there; at all of them only if there was nothing, or if that is a while ago. So a busy server pays
//! for the peers that are busy, and a poll that finds nothing has looked everywhere.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use sidestep_fabric::{Node, PeerId};
use sidestep_shm::attach::Gate;
use sidestep_sys::{
    cpu,
    lock::{Lock, Mutex, MutexGuard, Threads},
};

use super::Trunk;
use crate::memory::Withdrawn;

#[derive(Debug)]
pub(crate) struct Trunks {
    threads: Threads,
    /// The first one, which is often the only one.
    first: OnceLock<Arc<Trunk>>,
    /// Whether there is or was another.
    several: AtomicBool,
    /// Whether the program has polled several since the service thread last asked.
    touched: AtomicBool,
    /// The places of those that had something last, in 16 bits each. Only a hint.
    warm: AtomicU64,
    /// When all were looked at last, in ticks of the processor.
    looked: AtomicU64,
    all: Lock<Arc<[Arc<Trunk>]>>,
    /// Where peers copy through the kernel: also those whose connection has ended, as long as their processes live.
    gates: Mutex<Vec<Arc<Gate>>>,
    /// Held while one is looked for and made.
    making: Mutex<()>,
    /// Departures of the node whose peers' trunks have been forgotten.
    forgotten: AtomicU64,
}

/// Ticks after which all are looked at although some had something: about 20 microseconds.
const WHILE: u64 = 1 << 16;
/// Trunks that are looked at first.
const WARM: u32 = 4;
const PLACE_BITS: u32 = u64::BITS / WARM;

impl Trunks {
    pub(crate) fn new(threads: Threads) -> Trunks {
        Trunks {
            threads,
            first: OnceLock::new(),
            several: AtomicBool::new(false),
            touched: AtomicBool::new(false),
            warm: AtomicU64::new(0),
            looked: AtomicU64::new(0),
            all: Lock::within(threads, Arc::default()),
            gates: Mutex::default(),
            making: Mutex::default(),
            forgotten: AtomicU64::new(0),
        }
    }

    /// The trunk to a peer, made if there is none.
    pub(crate) fn of(&self, node: &Node, peer: PeerId) -> sidestep_fabric::Result<Arc<Trunk>> {
        let made = self.make(node, peer);
        // Whoever wanted to forget some meanwhile has left it to this thread.
        self.forget_departed(node);
        made
    }

    fn make(&self, node: &Node, peer: PeerId) -> sidestep_fabric::Result<Arc<Trunk>> {
        let _making = self.making.lock().expect("no panic with trunks");
        let all = self.list();
        if let Some(trunk) = all.iter().find(|trunk| trunk.peer == peer && trunk.is_alive()) {
            return Ok(trunk.clone());
        }
        let trunk = Arc::new(Trunk::new(node, peer, self.threads)?);
        self.gates().extend(trunk.gate().cloned());
        let first = self.first.get_or_init(|| trunk.clone());
        self.several.store(!Arc::ptr_eq(first, &trunk), Ordering::Release);
        *self.all.lock() = self.standing(&all).chain([trunk.clone()]).collect();
        Ok(trunk)
    }

    /// Forgets those to peers that have gone since the last time: such a peer does not come again under the same number.
    /// Connections tell less: they may have ended before their peer went, and end before its memory is closed.
    pub(crate) fn forget_departed(&self, node: &Node) {
        let departed = node.departures();
        if self.forgotten.load(Ordering::Relaxed) != departed && self.prune() {
            self.forgotten.store(departed, Ordering::Relaxed);
        }
    }

    /// Forgets those that are of no use; `false` if another thread makes one.
    pub(crate) fn prune(&self) -> bool {
        let Ok(_making) = self.making.try_lock() else { return false };
        let all = self.list();
        let standing: Arc<[_]> = self.standing(&all).collect();
        if standing.len() < all.len() {
            *self.all.lock() = standing;
        }
        drop(all);
        self.gates().retain(|gate| !gate.is_abandoned());
        true
    }

    fn standing<'a>(&'a self, all: &'a [Arc<Trunk>]) -> impl Iterator<Item = Arc<Trunk>> + 'a {
        let held = |trunk: &Arc<Trunk>| {
            let first = self.first.get().is_some_and(|first| Arc::ptr_eq(first, trunk));
            Arc::strong_count(trunk) > 1 + usize::from(first)
        };
        // One that was never joined is for whoever is about to; if nobody is, the peer went before.
        all.iter().filter(move |trunk| trunk.is_alive() && (trunk.is_joined() || held(trunk))).cloned()
    }

    /// All of them.
    pub(crate) fn list(&self) -> Arc<[Arc<Trunk>]> {
        self.all.lock().clone()
    }

    /// Takes what has arrived on any of them, or on some if `found` says that this was what is looked for.
    #[inline]
    pub(crate) fn poll(&self, found: impl Fn() -> bool) {
        match self.first.get() {
            Some(trunk) if !self.several.load(Ordering::Acquire) => {
                trunk.touch();
                if trunk.has_news() {
                    trunk.poll(false);
                }
            }
            Some(_) => self.poll_several(found),
            None => {}
        }
    }

    fn poll_several(&self, found: impl Fn() -> bool) {
        self.touched.store(true, Ordering::Relaxed);
        let (all, warm, now) = (self.list(), self.warm.load(Ordering::Relaxed), cpu::ticks());
        for place in places(warm) {
            if let Some(trunk) = all.get(place).filter(|trunk| trunk.has_news()) {
                trunk.poll(false);
            }
        }
        if found() && now.wrapping_sub(self.looked.load(Ordering::Relaxed)) < WHILE {
            return;
        }
        self.looked.store(now, Ordering::Relaxed);
        for (place, trunk) in all.iter().enumerate() {
            if trunk.has_news() {
                trunk.poll(false);
                self.warm.store(with_place(self.warm.load(Ordering::Relaxed), place), Ordering::Relaxed);
            }
        }
    }

    /// Whether the program has polled several of them at once since this was last asked.
    pub(crate) fn were_touched(&self) -> bool {
        self.touched.swap(false, Ordering::Relaxed)
    }

    /// Memory has been withdrawn. When this returns, no peer reaches for it, and no thread of this process is at bytes of a
    /// registration that it found alive: whoever looks from now on finds it gone.
    pub(crate) fn withdraw(&self, withdrawn: Withdrawn) {
        let all = self.list();
        match withdrawn {
            Withdrawn::Unknown => {}
            Withdrawn::Mapped => all.iter().for_each(|trunk| trunk.outward().forbid()),
            Withdrawn::Attached => self.withdraw_attached(),
        }
        for trunk in all.iter() {
            drop(trunk.inward());
            drop(trunk.outward());
            if let Some(attachment) = trunk.attachment() {
                attachment.settle();
            }
        }
    }

    /// No peer reaches memory of the program through the kernel any more.
    pub(crate) fn withdraw_attached(&self) {
        self.gates().iter().for_each(|gate| gate.withdraw());
    }

    fn gates(&self) -> MutexGuard<'_, Vec<Arc<Gate>>> {
        self.gates.lock().expect("no panic with gates")
    }
}

fn places(warm: u64) -> impl Iterator<Item = usize> {
    (0..WARM).map(move |which| (warm >> (which * PLACE_BITS)) as usize & ((1 << PLACE_BITS) - 1))
}

/// The same with a place in front, unless it is there.
fn with_place(warm: u64, place: usize) -> u64 {
    if places(warm).any(|known| known == place) { warm } else { warm << PLACE_BITS | place as u64 & 0xffff }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_few_are_remembered() {
        let mut warm = 0;
        for place in [7, 300, 7, 65_535, 9] {
            warm = with_place(warm, place);
        }
        assert!(places(warm).eq([9, 65_535, 300, 7]));
        assert!(places(with_place(warm, 12)).eq([12, 9, 65_535, 300]));
    }
}
