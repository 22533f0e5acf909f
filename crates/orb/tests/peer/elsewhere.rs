//! Objects that are somewhere else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use sidestep_orb::{
    IdUniqueness, Object, Orb, Poa, Policies, Refusal, RequestProcessing, Retention, Servant, ServantLocator,
};

/// What every request is led by.
pub const LOCATED: Policies = Policies {
    lifespan: sidestep_orb::Lifespan::Transient,
    id_assignment: sidestep_orb::IdAssignment::System,
    id_uniqueness: IdUniqueness::Multiple,
    retention: Retention::NonRetain,
    request_processing: RequestProcessing::ServantManager,
};

/// Sends everything to another object.
struct Elsewhere(Object);

impl ServantLocator for Elsewhere {
    fn preinvoke(&self, _: &[u8], _: &Poa, _: &str) -> Result<Arc<dyn Servant>, Refusal> {
        Err(Refusal::Forward(self.0.clone()))
    }
}

/// An object of this broker that is at `to`.
pub fn elsewhere(orb: &Orb, to: &Object) -> Object {
    located_by(orb, Arc::new(Elsewhere(to.clone()))).create_reference("IDL:sidestep.test/Types/Peer:1.0").unwrap()
}

/// An adapter of its own for a locator.
pub fn located_by(orb: &Orb, locator: Arc<dyn ServantLocator>) -> Poa {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("located-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let poa = orb.root_poa().create_poa(&name, LOCATED, None).unwrap();
    poa.set_servant_locator(locator).unwrap();
    poa.manager().activate().unwrap();
    poa
}
