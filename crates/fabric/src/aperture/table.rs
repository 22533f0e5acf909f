//! The apertures of a node.

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
};

use sidestep_sys::lock::{Mutex, MutexGuard};

use super::{ApertureCore, Location, Reports, State};
use crate::{
    cookie::{Cookie, RegionId},
    error::CloseReason,
    link::{Mapping, Outcome},
    peer::PeerId,
};

/// The apertures of a node. Mapped ones are kept for the next use of the same cookie.
#[derive(Debug, Default)]
pub(crate) struct Apertures {
    open: Mutex<HashMap<(PeerId, Cookie), Arc<ApertureCore>>>,
    /// Pages that peers have sent ahead.
    offered: Mutex<HashMap<(PeerId, Cookie), Mapping>>,
}

/// Regions whose pages may be kept that were sent ahead; further ones are asked for when they are needed.
const KEPT_OFFERED: usize = 256;
/// And of one peer, so that it does not keep the others out.
const KEPT_OFFERED_BY_PEER: usize = 32;

/// How many apertures that nobody uses are kept.
const KEPT_APERTURES: usize = 256;

impl Apertures {
    pub(super) fn find_or_insert(&self, peer: PeerId, cookie: &Cookie) -> (Arc<ApertureCore>, bool) {
        let mut open = self.lock();
        if let Some(core) = open.get(&(peer, *cookie))
            && !matches!(core.state.get(), Some(State::Refused(_)))
            && core.failed.get().is_none()
        {
            return (core.clone(), false);
        }
        if open.len() >= KEPT_APERTURES {
            open.retain(|_, core| Arc::strong_count(core) > 1);
        }
        let core = Arc::new(ApertureCore {
            peer,
            cookie: *cookie,
            state: OnceLock::new(),
            revoked: AtomicBool::new(false),
            closed: OnceLock::new(),
            in_flight: AtomicU32::new(0),
            asked: AtomicU64::new(0),
            landed: AtomicU64::new(0),
            failed: OnceLock::new(),
            waiting: Mutex::default(),
            reports: Reports::default(),
            location: Location::default(),
        });
        open.insert((peer, *cookie), core.clone());
        (core, true)
    }

    pub(super) fn forget(&self, core: &Arc<ApertureCore>) {
        self.lock().remove(&(core.peer, core.cookie));
    }

    /// Keeps pages that were sent ahead. They may come late: the cookie travels another way, through shared memory. Then they
    /// open what was asked for, or are of no use if that was answered before.
    pub(crate) fn offered(&self, peer: PeerId, cookie: &Cookie, pages: Mapping) {
        // Held from here on: whoever opens an aperture enters it in the table, and then looks for pages.
        let mut offered = self.offered.lock().expect("no panic in aperture table");
        let asked = self.lock().get(&(peer, *cookie)).cloned();
        if let Some(core) = asked {
            drop(offered);
            return core.opened(Outcome::Mapped(pages));
        }
        let of_peer = offered.keys().filter(|(of, _)| *of == peer).count();
        if offered.len() < KEPT_OFFERED && of_peer < KEPT_OFFERED_BY_PEER {
            offered.insert((peer, *cookie), pages);
        }
    }

    pub(super) fn open_from_offered(&self, core: &ApertureCore) -> bool {
        let pages = self.offered.lock().expect("no panic in aperture table").remove(&(core.peer, core.cookie));
        match pages {
            Some(pages) => core.opened(Outcome::Mapped(pages)),
            None => return false,
        }
        true
    }

    /// The owner tells where memory of its program lies.
    pub(crate) fn located(&self, peer: PeerId, cookie: &Cookie, address: u64, turn: u64) {
        if let Some(core) = self.lock().get(&(peer, *cookie)).filter(|core| core.is_proxied()) {
            core.location.told(address, turn);
        }
    }

    /// The owner took back every cookie of a region before `generation`.
    pub(crate) fn revoked(&self, peer: PeerId, region: RegionId, generation: u32) {
        let is_void = |of: &PeerId, cookie: &Cookie| {
            let earlier = generation.wrapping_sub(cookie.generation()).wrapping_sub(1) < 1 << 31;
            *of == peer && cookie.region() == region && earlier
        };
        self.offered.lock().expect("no panic in aperture table").retain(|(of, cookie), _| !is_void(of, cookie));
        self.lock().retain(|(of, cookie), core| {
            let hit = is_void(of, cookie);
            if hit {
                core.revoked.store(true, Ordering::Release);
            }
            !hit
        });
    }

    pub(crate) fn peer_closed(&self, peer: PeerId, reason: CloseReason) {
        self.offered.lock().expect("no panic in aperture table").retain(|(of, _), _| *of != peer);
        self.lock().retain(|(of, _), core| {
            let hit = *of == peer;
            if hit {
                let _ = core.closed.set(reason);
            }
            !hit
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(PeerId, Cookie), Arc<ApertureCore>>> {
        self.open.lock().expect("no panic in aperture table")
    }
}
