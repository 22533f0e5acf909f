//! An object that has a servant, and the requests that are in it.

use std::sync::{Arc, Weak};

use sidestep_sys::lock::Lock;

use super::adapter::Adapter;
use super::{Poa, PoaManager};
use crate::call::Servant;

/// An active object. Whoever keeps one may serve later requests with it, without asking the adapter, as long as they
/// [`enter`](Entry::enter): an object that was deactivated is never entered again, and its servant is not kept here.
pub(crate) struct Entry {
    pub(super) id: Arc<[u8]>,
    adapter: Weak<Adapter>,
    manager: Arc<PoaManager>,
    state: Lock<State>,
}

struct State {
    /// `None` once the object is gone.
    servant: Option<Arc<dyn Servant>>,
    /// A second handle of it, which requests take and give back: that needs no counting.
    spare: Option<Arc<dyn Servant>>,
    /// How many requests are in the servant.
    serving: usize,
    /// The object is no longer active: its servant goes with the last request.
    leaving: bool,
    /// The adapter, for the last request of an object that is leaving.
    kept: Option<Poa>,
}

impl Entry {
    pub(super) fn new(id: Arc<[u8]>, poa: &Poa, servant: Arc<dyn Servant>) -> Self {
        let state =
            State { spare: Some(servant.clone()), servant: Some(servant), serving: 0, leaving: false, kept: None };
        Self { id, adapter: Arc::downgrade(&poa.0), manager: poa.0.manager.clone(), state: Lock::new(state) }
    }

    /// Whether requests get through at the moment, without waiting for it.
    #[inline]
    pub(super) fn is_admitted(&self) -> bool {
        self.manager.is_active()
    }

    /// A request enters the servant; `None` if the object is leaving.
    #[inline]
    pub(super) fn enter(&self) -> Option<Arc<dyn Servant>> {
        let mut state = self.state.lock();
        if state.leaving {
            return None;
        }
        let servant = state.spare.take().or_else(|| state.servant.clone())?;
        state.serving += 1;
        Some(servant)
    }

    /// A request is done. After the last one of an object that is leaving, the adapter lets the servant go.
    #[inline]
    pub(super) fn leave(&self, servant: Arc<dyn Servant>) {
        let mut state = self.state.lock();
        state.serving -= 1;
        if state.spare.is_none() {
            state.spare = Some(servant);
        }
        if state.leaving && state.serving == 0 {
            let kept = state.kept.take();
            drop(state);
            if let Some(poa) = kept {
                poa.remove(&self.id, false, true);
            }
        }
    }

    /// The object is no longer active from now on: the number of requests in it, unless it was leaving already.
    pub(super) fn deactivate(&self, poa: &Poa) -> Option<usize> {
        let mut state = self.state.lock();
        if state.leaving {
            return None;
        }
        state.leaving = true;
        if state.serving > 0 {
            state.kept = Some(poa.clone());
        }
        Some(state.serving)
    }

    pub(super) fn servant(&self) -> Option<Arc<dyn Servant>> {
        self.state.lock().servant.clone()
    }

    /// Takes the servant of an object that is gone.
    pub(super) fn take_servant(&self) -> Option<Arc<dyn Servant>> {
        let mut state = self.state.lock();
        state.spare = None;
        state.servant.take()
    }

    /// The adapter. It is there while a request is in the servant: its parent or its broker has it, and later
    /// [`Entry::deactivate`] keeps it.
    pub(super) fn poa(&self) -> Option<Poa> {
        self.adapter.upgrade().map(Poa)
    }
}
