//! The adapter itself: its place among the others, and its life.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use sidestep_sys::lock::{Guard, Lock};

use super::activation::Active;
use super::{ObjectKey, PoaError, PoaManager, Policies, ServantActivator, ServantLocator};
use crate::call::Servant;
use crate::orb::Core;
use crate::{Object, Orb};

/// An object adapter. Cloning it gives another handle to the same adapter.
#[derive(Clone)]
pub struct Poa(pub(super) Arc<Adapter>);

pub(super) struct Adapter {
    name: String,
    pub(super) orb: Weak<Core>,
    parent: Option<Poa>,
    pub(super) policies: Policies,
    pub(super) manager: Arc<PoaManager>,
    /// The object key up to the object id.
    pub(super) key_prefix: Vec<u8>,
    pub(super) state: Lock<State>,
    /// Held while a servant is made, so that one object gets one servant.
    pub(super) incarnating: Mutex<()>,
}

#[derive(Default)]
pub(super) struct State {
    children: HashMap<String, Poa>,
    pub(super) active: Active,
    pub(super) default_servant: Option<Arc<dyn Servant>>,
    pub(super) activator: Option<Arc<dyn ServantActivator>>,
    pub(super) locator: Option<Arc<dyn ServantLocator>>,
    adapter_activator: Option<Arc<AdapterActivator>>,
    pub(super) destroyed: bool,
}

type AdapterActivator = dyn Fn(&Poa, &str) -> bool + Send + Sync;

impl Poa {
    pub(crate) fn root(orb: Weak<Core>, incarnation: u64) -> Self {
        // The root has no name, so its prefix is always short enough.
        let policies = Policies::default();
        let key_prefix = ObjectKey::prefix(policies.lifespan, incarnation, &[]).unwrap_or_default();
        Self::new(String::new(), orb, None, policies, Arc::default(), key_prefix)
    }

    fn new(
        name: String,
        orb: Weak<Core>,
        parent: Option<Poa>,
        policies: Policies,
        manager: Arc<PoaManager>,
        key_prefix: Vec<u8>,
    ) -> Self {
        let (state, incarnating) = (Lock::default(), Mutex::default());
        Self(Arc::new(Adapter { name, orb, parent, policies, manager, key_prefix, state, incarnating }))
    }

    /// Its name; the root has none.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The adapter that it was made in.
    #[must_use]
    pub fn parent(&self) -> Option<&Poa> {
        self.0.parent.as_ref()
    }

    /// What decides whether its requests are served.
    #[must_use]
    pub fn manager(&self) -> &Arc<PoaManager> {
        &self.0.manager
    }

    /// Makes an adapter within this one. Without a manager it gets its own, which holds requests at first.
    pub fn create_poa(
        &self,
        name: &str,
        policies: Policies,
        manager: Option<Arc<PoaManager>>,
    ) -> Result<Poa, PoaError> {
        policies.check()?;
        let orb = self.orb()?;
        let mut names = self.path();
        names.push(name);
        let key_prefix = ObjectKey::prefix(policies.lifespan, orb.incarnation(), &names)?;
        let mut state = self.state();
        if state.destroyed {
            return Err(PoaError::Destroyed);
        }
        if state.children.contains_key(name) {
            return Err(PoaError::AdapterAlreadyExists(name.to_owned()));
        }
        let manager = manager.unwrap_or_default();
        let child = Self::new(name.to_owned(), self.0.orb.clone(), Some(self.clone()), policies, manager, key_prefix);
        state.children.insert(name.to_owned(), child.clone());
        Ok(child)
    }

    /// The adapter of this name within this one. With `activate`, one that is not there may be made.
    pub fn find_poa(&self, name: &str, activate: bool) -> Result<Poa, PoaError> {
        let missing = || PoaError::AdapterNonExistent(name.to_owned());
        let activator = {
            let state = self.state();
            if let Some(child) = state.children.get(name) {
                return Ok(child.clone());
            }
            state.adapter_activator.clone()
        };
        match activator {
            Some(activator) if activate && activator(self, name) => {
                self.state().children.get(name).cloned().ok_or_else(missing)
            }
            _ => Err(missing()),
        }
    }

    /// Sets what makes adapters that requests ask for. It returns whether it has made one.
    pub fn set_adapter_activator(&self, activator: impl Fn(&Poa, &str) -> bool + Send + Sync + 'static) {
        self.state().adapter_activator = Some(Arc::new(activator));
    }

    /// Destroys the adapter and those within it. With `etherealize`, servants are taken back by the activator.
    pub fn destroy(&self, etherealize: bool) {
        let children = {
            let mut state = self.state();
            state.destroyed = true;
            std::mem::take(&mut state.children)
        };
        children.values().for_each(|child| child.destroy(etherealize));
        if let Some(parent) = &self.0.parent {
            parent.state().children.remove(&self.0.name);
        }
        self.deactivate_all(etherealize);
    }

    /// Makes the managers of this adapter and of all within it inactive.
    pub(crate) fn deactivate_managers(&self) {
        self.0.manager.deactivate();
        let children: Vec<_> = self.state().children.values().cloned().collect();
        children.iter().for_each(Poa::deactivate_managers);
    }

    pub(crate) fn find(&self, name: &str) -> Option<Poa> {
        self.find_poa(name, true).ok()
    }

    pub(super) fn orb(&self) -> Result<Orb, PoaError> {
        self.0.orb.upgrade().map(Orb::from_core).ok_or(PoaError::Destroyed)
    }

    #[inline]
    pub(super) fn state(&self) -> Guard<'_, State> {
        self.0.state.lock()
    }

    /// The reference of an object of this adapter.
    pub(super) fn reference(&self, id: &[u8], type_id: &str) -> Result<Object, PoaError> {
        let orb = self.orb()?;
        let key = [&self.0.key_prefix, id].concat();
        orb.reference(type_id, &key).map_err(|_| PoaError::TooLong)
    }

    fn path(&self) -> Vec<&str> {
        let mut path = Vec::new();
        let mut current = self;
        while let Some(parent) = &current.0.parent {
            path.push(current.name());
            current = parent;
        }
        path.reverse();
        path
    }
}

impl std::fmt::Debug for Poa {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "adapter {:?}", self.path())
    }
}
