//! Whether requests get through to adapters.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use crate::exception::{Completion, Kind, OMG, SystemException};

/// What happens to requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ManagerState {
    /// They wait.
    #[default]
    Holding,
    /// They are served.
    Active,
    /// They fail with `TRANSIENT`, so that clients try again.
    Discarding,
    /// They fail, for ever.
    Inactive,
}

/// The state of one or several adapters. It begins by holding requests.
#[derive(Debug, Default)]
pub struct PoaManager {
    state: Mutex<ManagerState>,
    /// Whether the state is `Active`, for whoever only wants to know that.
    active: AtomicBool,
    changed: Condvar,
}

impl PoaManager {
    /// Serves requests.
    pub fn activate(&self) -> Result<(), SystemException> {
        self.change(ManagerState::Active)
    }

    /// Lets requests wait.
    pub fn hold_requests(&self) -> Result<(), SystemException> {
        self.change(ManagerState::Holding)
    }

    /// Lets requests fail for now.
    pub fn discard_requests(&self) -> Result<(), SystemException> {
        self.change(ManagerState::Discarding)
    }

    /// Lets requests fail for ever.
    pub fn deactivate(&self) {
        // Becoming inactive is always possible.
        let _ = self.change(ManagerState::Inactive);
    }

    /// What happens to requests now.
    #[must_use]
    pub fn state(&self) -> ManagerState {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, to: ManagerState) -> Result<(), SystemException> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if *state == ManagerState::Inactive && to != ManagerState::Inactive {
            return Err(Kind::BadInvOrder.raised(Completion::No));
        }
        *state = to;
        self.active.store(to == ManagerState::Active, Ordering::Release);
        self.changed.notify_all();
        Ok(())
    }

    /// Whether requests are served now.
    #[inline]
    pub(super) fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire)
    }

    /// Waits until requests are served, or says why this one is not.
    pub(super) fn admit(&self) -> Result<(), SystemException> {
        if self.is_active() {
            return Ok(());
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *state {
                ManagerState::Active => return Ok(()),
                ManagerState::Discarding => return Err(Kind::Transient.with_minor(OMG | 1, Completion::No)),
                ManagerState::Inactive => return Err(Kind::ObjAdapter.with_minor(OMG | 1, Completion::No)),
                ManagerState::Holding => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}
