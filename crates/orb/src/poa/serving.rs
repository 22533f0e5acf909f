//! A servant while it serves a request, and where it came from.

use std::cell::RefCell;
use std::sync::Arc;

use super::Poa;
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

/// A servant that a request has been led to.
pub(crate) struct Serving {
    pub(super) poa: Poa,
    pub(super) id: Arc<[u8]>,
    pub(super) servant: Option<Arc<dyn Servant>>,
    pub(super) source: Source,
}

/// Who has to be told when the request is done.
pub(super) enum Source {
    ActiveMap,
    Locator(Arc<dyn ServantLocator>, String),
    Default,
}

impl Serving {
    pub(crate) fn servant(&self) -> &dyn Servant {
        match &self.servant {
            Some(servant) => &**servant,
            None => &NoServant,
        }
    }

    pub(crate) fn dispatch(&self, call: &mut Call<'_>) -> Result<(), SystemException> {
        let current = Current { poa: self.poa.clone(), object_id: self.id.clone() };
        let outer = CURRENT.replace(Some(current));
        let _restore = Restore(Some(outer));
        self.servant().dispatch(call)
    }
}

/// Stands for the servant of a request that is over.
struct NoServant;

impl Servant for NoServant {
    fn type_ids(&self) -> &'static [&'static str] {
        &[]
    }

    fn dispatch(&self, call: &mut Call<'_>) -> Result<(), SystemException> {
        Err(call.unknown_operation())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let Some(servant) = self.servant.take() else { return };
        match &self.source {
            Source::ActiveMap => {
                drop(servant);
                self.poa.leave(&self.id);
            }
            Source::Locator(locator, operation) => locator.postinvoke(&self.id, &self.poa, operation, servant),
            Source::Default => {}
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
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

impl Current {
    /// The request that this thread serves, if it serves one. A default servant learns here which object it is.
    #[must_use]
    pub fn get() -> Option<Self> {
        CURRENT.with_borrow(Clone::clone)
    }
}

impl std::fmt::Debug for Current {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "object {:02x?} of {:?}", self.object_id, self.poa)
    }
}

/// Puts back what was current before, also when a servant panics.
struct Restore(Option<Option<Current>>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0.take().flatten());
    }
}
