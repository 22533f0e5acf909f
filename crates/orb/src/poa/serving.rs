//! A servant while it serves a request, and where it came from.

use std::cell::RefCell;
use std::sync::Arc;

use super::{Entry, Poa};
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
    /// `None` once the request is done.
    servant: Option<Arc<dyn Servant>>,
    /// What it serves. While the request is carried out, that is what is current, and this what was current before.
    target: Option<Target>,
}

/// What a servant serves.
enum Target {
    /// An active object.
    Active(Arc<Entry>),
    Found(Box<Found>),
}

/// An object that is not active, for which a servant was found.
struct Found {
    poa: Poa,
    id: Arc<[u8]>,
    source: Source,
}

/// Where the servant of an object that is not active came from.
pub(super) enum Source {
    Locator(Arc<dyn ServantLocator>, String),
    Default,
}

impl Serving {
    /// Leads a request to an active object; `None` if that is leaving.
    #[inline(always)]
    pub(super) fn active(entry: Arc<Entry>) -> Option<Self> {
        let servant = entry.enter()?;
        Some(Self { servant: Some(servant), target: Some(Target::Active(entry)) })
    }

    /// The same for an object that was served before. `None`, too, if requests do not get through at the moment: the adapter says
    /// what becomes of them.
    #[inline]
    pub(crate) fn again(entry: Arc<Entry>) -> Option<Self> {
        if entry.is_admitted() { Self::active(entry) } else { None }
    }

    pub(super) fn found(poa: Poa, id: Arc<[u8]>, servant: Arc<dyn Servant>, source: Source) -> Self {
        Self { servant: Some(servant), target: Some(Target::Found(Box::new(Found { poa, id, source }))) }
    }

    /// The repository ids of the servant.
    pub(crate) fn type_ids(&self) -> &'static [&'static str] {
        self.servant.as_ref().map_or(&[], |servant| servant.type_ids())
    }

    /// Carries out a request. Meanwhile it is what this thread serves.
    #[inline]
    pub(crate) fn dispatch(&mut self, call: &mut Call<'_>) -> Result<(), SystemException> {
        let turn = Turn::begin(self);
        match &turn.0.servant {
            Some(servant) => servant.dispatch(call),
            None => Err(call.unknown_operation()),
        }
    }

    /// The request is done. Returns the object, if it is an active one, for requests to come.
    #[inline(always)]
    pub(crate) fn leave(&mut self) -> Option<Arc<Entry>> {
        match (self.servant.take()?, self.target.take()?) {
            (servant, Target::Active(entry)) => {
                entry.leave(servant);
                Some(entry)
            }
            (servant, Target::Found(found)) => {
                if let Source::Locator(locator, operation) = &found.source {
                    locator.postinvoke(&found.id, &found.poa, operation, servant);
                }
                None
            }
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.leave();
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
    static CURRENT: RefCell<Option<Target>> = const { RefCell::new(None) };
}

impl Current {
    /// The request that this thread serves, if it serves one. A default servant learns here which object it is.
    #[must_use]
    pub fn get() -> Option<Self> {
        CURRENT.with_borrow(|target| match target.as_ref()? {
            Target::Active(entry) => Some(Self { poa: entry.poa()?, object_id: entry.id.clone() }),
            Target::Found(found) => Some(Self { poa: found.poa.clone(), object_id: found.id.clone() }),
        })
    }
}

impl std::fmt::Debug for Current {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "object {:02x?} of {:?}", self.object_id, self.poa)
    }
}

/// While it lives, what is served is current. Ends also when a servant panics, and before the servant is left: whoever is told of that
/// may look at what is current.
struct Turn<'a>(&'a mut Serving);

impl<'a> Turn<'a> {
    #[inline]
    fn begin(serving: &'a mut Serving) -> Self {
        CURRENT.with_borrow_mut(|current| std::mem::swap(current, &mut serving.target));
        Self(serving)
    }
}

impl Drop for Turn<'_> {
    #[inline]
    fn drop(&mut self) {
        CURRENT.with_borrow_mut(|current| std::mem::swap(current, &mut self.0.target));
    }
}
