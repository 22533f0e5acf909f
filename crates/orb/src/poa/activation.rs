//! Objects and their servants: activating, finding, deactivating.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use super::entry::Entry;
use super::hash::Seeded;
use super::serving::Source;
use super::{
    IdAssignment, IdUniqueness, ObjectKey, Poa, PoaError, Refusal, RequestProcessing, Retention, ServantActivator,
    ServantLocator, Serving,
};
use crate::call::Servant;
use crate::exception::{Completion, Kind, OMG};
use crate::object::OBJECT_ID;
use crate::route::routes;
use crate::{Object, Stub};

/// The objects that have a servant.
#[derive(Default)]
pub(super) struct Active {
    objects: HashMap<Arc<[u8]>, Arc<Entry>, Seeded>,
    /// How many objects each servant serves, and one of them, by the address of the servant.
    servants: HashMap<usize, (usize, Arc<[u8]>)>,
    next_id: u64,
}

impl Active {
    fn add(&mut self, id: &[u8], poa: &Poa, servant: Arc<dyn Servant>) {
        let (address, id) = (address(&servant), Arc::<[u8]>::from(id));
        self.servants.entry(address).or_insert_with(|| (0, id.clone())).0 += 1;
        self.objects.insert(id.clone(), Arc::new(Entry::new(id, poa, servant)));
    }

    /// Takes an object out; says whether its servant serves others.
    fn take(&mut self, id: &[u8]) -> Option<(Arc<dyn Servant>, bool)> {
        let servant = self.objects.remove(id)?.take_servant()?;
        let address = address(&servant);
        let remaining = match self.servants.get_mut(&address) {
            Some((count, _)) if *count > 1 => {
                *count -= 1;
                true
            }
            _ => {
                self.servants.remove(&address);
                false
            }
        };
        Some((servant, remaining))
    }
}

fn address(servant: &Arc<dyn Servant>) -> usize {
    Arc::as_ptr(servant).cast::<()>() as usize
}

impl Poa {
    /// Activates an object with this servant and returns its typed reference, as on the first page of this crate.
    pub fn activate<T: Stub>(&self, servant: impl Servant) -> Result<T, PoaError> {
        let servant: Arc<dyn Servant> = Arc::new(servant);
        let id = self.activate_object(servant)?;
        self.id_to_reference(&id).map(T::from_object)
    }

    /// Activates an object whose id the adapter chooses.
    pub fn activate_object(&self, servant: Arc<dyn Servant>) -> Result<Vec<u8>, PoaError> {
        if self.0.policies.id_assignment != IdAssignment::System {
            return Err(PoaError::WrongPolicy("ids are chosen by the user"));
        }
        let id = self.new_id()?;
        self.activate_object_with_id(&id, servant)?;
        Ok(id)
    }

    /// Activates the object with this id.
    pub fn activate_object_with_id(&self, id: &[u8], servant: Arc<dyn Servant>) -> Result<(), PoaError> {
        self.check_retains()?;
        let mut state = self.state();
        if state.destroyed {
            return Err(PoaError::Destroyed);
        }
        if state.active.objects.contains_key(id) {
            return Err(PoaError::ObjectAlreadyActive);
        }
        let known = state.active.servants.contains_key(&address(&servant));
        if known && self.0.policies.id_uniqueness == IdUniqueness::Unique {
            return Err(PoaError::ServantAlreadyActive);
        }
        state.active.add(id, self, servant);
        Ok(())
    }

    /// Deactivates an object. Requests that it serves now are finished.
    pub fn deactivate_object(&self, id: &[u8]) -> Result<(), PoaError> {
        self.check_retains()?;
        {
            let state = self.state();
            let serving = state.active.objects.get(id).and_then(|entry| entry.deactivate(self));
            if serving.ok_or(PoaError::ObjectNotActive)? > 0 {
                return Ok(());
            }
        }
        self.remove(id, false, true);
        Ok(())
    }

    /// A reference to an object that need not be active.
    pub fn create_reference(&self, type_id: &str) -> Result<Object, PoaError> {
        let id = self.new_id()?;
        self.reference(&id, type_id)
    }

    /// A reference to the object with this id, which need not be active.
    pub fn create_reference_with_id(&self, id: &[u8], type_id: &str) -> Result<Object, PoaError> {
        self.reference(id, type_id)
    }

    /// The reference of an active object.
    pub fn id_to_reference(&self, id: &[u8]) -> Result<Object, PoaError> {
        let servant = self.id_to_servant(id)?;
        self.reference(id, servant.type_ids().first().copied().unwrap_or(OBJECT_ID))
    }

    /// The servant of an active object, or the default servant.
    pub fn id_to_servant(&self, id: &[u8]) -> Result<Arc<dyn Servant>, PoaError> {
        let state = self.state();
        let active = state.active.objects.get(id).and_then(|entry| entry.servant());
        active.or_else(|| state.default_servant.clone()).ok_or(PoaError::ObjectNotActive)
    }

    /// The id of an object that the servant serves.
    pub fn servant_to_id(&self, servant: &Arc<dyn Servant>) -> Result<Vec<u8>, PoaError> {
        let state = self.state();
        let known = state.active.servants.get(&address(servant));
        known.map(|(_, id)| id.to_vec()).ok_or(PoaError::ServantNotActive)
    }

    /// The id of an object by its reference.
    pub fn reference_to_id(&self, object: &Object) -> Result<Vec<u8>, PoaError> {
        let orb = self.orb()?;
        let routes = routes(object.ior());
        let own = routes.iter().find(|route| orb.listens_on(&route.endpoint)).ok_or(PoaError::WrongAdapter)?;
        own.key.strip_prefix(self.0.key_prefix.as_slice()).map(<[u8]>::to_vec).ok_or(PoaError::WrongAdapter)
    }

    /// Sets the servant of all objects that are not active.
    pub fn set_servant(&self, servant: Arc<dyn Servant>) -> Result<(), PoaError> {
        self.check_processing(RequestProcessing::DefaultServant)?;
        self.state().default_servant = Some(servant);
        Ok(())
    }

    /// Sets what makes servants; needs retention.
    pub fn set_servant_activator(&self, activator: Arc<dyn ServantActivator>) -> Result<(), PoaError> {
        self.check_processing(RequestProcessing::ServantManager)?;
        self.check_retains()?;
        self.state().activator = Some(activator);
        Ok(())
    }

    /// Sets what finds servants; there must be no retention.
    pub fn set_servant_locator(&self, locator: Arc<dyn ServantLocator>) -> Result<(), PoaError> {
        self.check_processing(RequestProcessing::ServantManager)?;
        if self.0.policies.retention == Retention::Retain {
            return Err(PoaError::WrongPolicy("the adapter retains servants, so it takes an activator"));
        }
        self.state().locator = Some(locator);
        Ok(())
    }

    /// The servant for a request.
    pub(crate) fn serve(&self, key: &ObjectKey<'_>, operation: &str) -> Result<Serving, Refusal> {
        self.0.manager.admit()?;
        let none = Kind::ObjectNotExist.with_minor(OMG | 2, Completion::No);
        // Whoever calls again finds the object gone, or made anew.
        let leaving = Kind::Transient.raised(Completion::No);
        let serving = |id: &[u8], servant, source| Serving::found(self.clone(), id.into(), servant, source);
        let retains = self.0.policies.retention == Retention::Retain;
        {
            let state = self.state();
            if state.destroyed {
                return Err(none.into());
            }
            if let Some(entry) = state.active.objects.get(key.id) {
                return Serving::active(entry.clone()).ok_or(leaving.into());
            }
            if let Some(servant) = &state.default_servant {
                return Ok(serving(key.id, servant.clone(), Source::Default));
            }
            if let Some(locator) = state.locator.clone().filter(|_| !retains) {
                drop(state);
                let servant = locator.preinvoke(key.id, self, operation)?;
                return Ok(serving(key.id, servant, Source::Locator(locator, operation.to_owned())));
            }
            if state.activator.is_none() {
                return Err(match self.0.policies.request_processing {
                    RequestProcessing::ActiveObjectsOnly => none.into(),
                    _ => Kind::ObjAdapter.with_minor(OMG | 3, Completion::No).into(),
                });
            }
        }
        self.incarnate(key.id)?;
        let state = self.state();
        Serving::active(state.active.objects.get(key.id).ok_or(none)?.clone()).ok_or(leaving.into())
    }

    fn incarnate(&self, id: &[u8]) -> Result<(), Refusal> {
        let _one_at_a_time = self.0.incarnating.lock().unwrap_or_else(PoisonError::into_inner);
        let activator = {
            let state = self.state();
            if state.active.objects.contains_key(id) {
                return Ok(());
            }
            state.activator.clone()
        };
        let missing = Kind::ObjAdapter.with_minor(OMG | 4, Completion::No);
        let servant = activator.ok_or(missing)?.incarnate(id, self)?;
        let wrong = |_| Refusal::System(Kind::ObjAdapter.raised(Completion::No));
        self.activate_object_with_id(id, servant).map_err(wrong)
    }

    pub(super) fn deactivate_all(&self, etherealize: bool) {
        let idle: Vec<Arc<[u8]>> = {
            let state = self.state();
            let idle = state.active.objects.values().filter(|entry| entry.deactivate(self) == Some(0));
            idle.map(|entry| entry.id.clone()).collect()
        };
        idle.iter().for_each(|id| self.remove(id, true, etherealize));
    }

    /// Takes an object out of the map and tells the activator, without holding the lock.
    pub(super) fn remove(&self, id: &[u8], cleanup: bool, etherealize: bool) {
        let (taken, activator) = {
            let mut state = self.state();
            (state.active.take(id), state.activator.clone())
        };
        if let (Some((servant, remaining)), Some(activator), true) = (taken, activator, etherealize) {
            activator.etherealize(id, self, servant, cleanup, remaining);
        }
    }

    fn new_id(&self) -> Result<Vec<u8>, PoaError> {
        if self.0.policies.id_assignment != IdAssignment::System {
            return Err(PoaError::WrongPolicy("ids are chosen by the user"));
        }
        let mut state = self.state();
        state.active.next_id += 1;
        Ok(state.active.next_id.to_be_bytes().to_vec())
    }

    fn check_retains(&self) -> Result<(), PoaError> {
        match self.0.policies.retention {
            Retention::Retain => Ok(()),
            Retention::NonRetain => Err(PoaError::WrongPolicy("the adapter does not retain servants")),
        }
    }

    fn check_processing(&self, wanted: RequestProcessing) -> Result<(), PoaError> {
        match self.0.policies.request_processing == wanted {
            true => Ok(()),
            false => Err(PoaError::WrongPolicy("requests for objects that are not active go elsewhere")),
        }
    }
}
