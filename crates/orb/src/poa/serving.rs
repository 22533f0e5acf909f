//! A servant while it serves a request, and where it came from.

use std::cell::RefCell;
use std::sync::Arc;

use super::Poa;
use super::activation::Entry;
use crate::Object;
use crate::call::{Call, Servant};
use crate::exception::SystemException;

/// Why there is no servant for a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// The caller gets this exception.
    System(SystemException),
    /// The object is elsewhere; the caller is told where.
    Forward(Object),
}

impl From<SystemException> for Refusal {
    fn from(exception: SystemException) -> Self {
        Refusal::System(exception)
    }
}

/// Makes servants for objects when they are called, and takes them back when they are deactivated.
pub trait ServantActivator: Send + Sync + 'static {
    /// The servant of an object that is not active. It is remembered.
    fn incarnate(&self, id: &[u8], poa: &Poa) -> Result<Arc<dyn Servant>, Refusal>;

    /// The object has been deactivated, and no request is in the servant.
    ///
    /// `cleanup` if the whole adapter ends; `remaining` if the servant serves other objects.
    fn etherealize(&self, id: &[u8], poa: &Poa, servant: Arc<dyn Servant>, cleanup: bool, remaining: bool) {
        let _ = (id, poa, servant, cleanup, remaining);
    }
}

/// Finds a servant for every single request.
pub trait ServantLocator: Send + Sync + 'static {
    /// The servant for this request.
    fn preinvoke(&self, id: &[u8], poa: &Poa, operation: &str) -> Result<Arc<dyn Servant>, Refusal>;

    /// The request has been served.
    fn postinvoke(&self, id: &[u8], poa: &Poa, operation: &str, servant: Arc<dyn Servant>) {
        let _ = (id, poa, operation, servant);
    }
}

/// A servant that a request has been led to. Whoever has to know that the request is done learns it when this is dropped.
pub(crate) struct Serving {
    poa: Poa,
    target: Target,
}

enum Target {
    /// An active object.
    Active(Arc<Entry>),
    Found {
        id: Arc<[u8]>,
        servant: Arc<dyn Servant>,
        source: Source,
    },
}

/// Where the servant of an object that is not active came from.
pub(super) enum Source {
    Locator(Arc<dyn ServantLocator>, String),
    Default,
}

impl Serving {
    pub(super) fn active(poa: Poa, entry: Arc<Entry>) -> Self {
        Self { poa, target: Target::Active(entry) }
    }

    pub(super) fn new(poa: Poa, id: Arc<[u8]>, servant: Arc<dyn Servant>, source: Source) -> Self {
        Self { poa, target: Target::Found { id, servant, source } }
    }

    pub(crate) fn servant(&self) -> &Arc<dyn Servant> {
        match &self.target {
            Target::Active(entry) => &entry.servant,
            Target::Found { servant, .. } => servant,
        }
    }

    fn object_id(&self) -> &Arc<[u8]> {
        match &self.target {
            Target::Active(entry) => &entry.id,
            Target::Found { id, .. } => id,
        }
    }

    /// Carries out a request. Meanwhile it is what this thread serves.
    pub(crate) fn dispatch(self, call: &mut Call<'_>) -> Result<(), SystemException> {
        let servant = self.servant().clone();
        let _restore = Restore(CURRENT.replace(Some(self)));
        servant.dispatch(call)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        match &self.target {
            Target::Active(entry) => self.poa.leave(entry),
            Target::Found { id, servant, source: Source::Locator(locator, operation) } => {
                locator.postinvoke(id, &self.poa, operation, servant.clone());
            }
            Target::Found { source: Source::Default, .. } => {}
        }
    }
}

/// The request that this thread serves.
#[derive(Clone)]
pub struct Current {
    /// The adapter.
    pub poa: Poa,
    /// The id of the object.
    pub object_id: Arc<[u8]>,
}

thread_local! {
    static CURRENT: RefCell<Option<Serving>> = const { RefCell::new(None) };
}

impl Current {
    /// The request that this thread serves, if it serves one. A default servant learns here which object it is.
    #[must_use]
    pub fn get() -> Option<Self> {
        CURRENT.with_borrow(|serving| {
            let serving = serving.as_ref()?;
            Some(Self { poa: serving.poa.clone(), object_id: serving.object_id().clone() })
        })
    }
}

impl std::fmt::Debug for Current {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "object {:02x?} of {:?}", self.object_id, self.poa)
    }
}

/// Puts back what was current before, also when a servant panics.
struct Restore(Option<Serving>);

impl Drop for Restore {
    fn drop(&mut self) {
        // What is dropped may call others, which look at what is current.
        let served = CURRENT.replace(self.0.take());
        drop(served);
    }
}
