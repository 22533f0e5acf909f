//! A small naming service that keeps its names in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::cos_naming::naming_context::{AlreadyBound, CannotProceed, InvalidName, NotEmpty, NotFound, NotFoundReason};
use super::cos_naming::naming_context_ext::InvalidAddress;
use super::cos_naming::{
    Binding, BindingIterator, BindingIteratorServant, BindingIteratorSkeleton, BindingType, NameComponent,
    NamingContext, NamingContextBindContextError, NamingContextBindError, NamingContextBindNewContextError,
    NamingContextDestroyError, NamingContextExt, NamingContextExtResolveStrError, NamingContextExtServant,
    NamingContextExtSkeleton, NamingContextExtToNameError, NamingContextExtToStringError, NamingContextExtToUrlError,
    NamingContextRebindContextError, NamingContextRebindError, NamingContextResolveError, NamingContextServant,
    NamingContextUnbindError,
};
use super::text::{parse_name, show_name};
use crate::exception::{Completion, Kind};
use crate::poa::{IdAssignment, Lifespan, Policies};
use crate::{Current, Object, Orb, Poa, PoaError, ResolveError, Servant, Stub, SystemException};

/// A naming service. Its root context is `corbaname::HOST:PORT` for everybody.
#[derive(Debug)]
pub struct NameServer {
    root: NamingContextExt,
}

/// Why a naming service could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NameServerError {
    /// The adapter refused.
    #[error(transparent)]
    Adapter(#[from] PoaError),
    /// The broker listens nowhere.
    #[error(transparent)]
    Reference(#[from] ResolveError),
}

impl NameServer {
    /// Starts the service in this broker, which has to listen somewhere.
    pub fn start(orb: &Orb) -> Result<Self, NameServerError> {
        let policies =
            Policies { lifespan: Lifespan::Persistent, id_assignment: IdAssignment::User, ..Policies::default() };
        let manager = orb.root_poa().manager().clone();
        let poa = orb.root_poa().create_poa("names", policies, Some(manager))?;
        let graph = Arc::new(Graph { poa, next: Mutex::new(0), contexts: Mutex::default() });
        let root = graph.new_context()?;
        orb.name_key("NameService", root.object())?;
        orb.register_initial_reference("NameService", root.object());
        Ok(Self { root })
    }

    /// The root context.
    #[must_use]
    pub fn root(&self) -> &NamingContextExt {
        &self.root
    }
}

/// All contexts of one service.
struct Graph {
    poa: Poa,
    next: Mutex<u64>,
    contexts: Mutex<BTreeMap<Vec<u8>, Arc<Context>>>,
}

/// The names of one context.
struct Context {
    graph: Weak<Graph>,
    // Keeps the graph while the root lives.
    _keep: Arc<Graph>,
    bindings: Mutex<BTreeMap<(String, String), (Object, BindingType)>>,
}

type Bindings = BTreeMap<(String, String), (Object, BindingType)>;

/// What goes wrong on the way along a name.
enum Fault {
    NotFound(NotFound),
    CannotProceed(CannotProceed),
    InvalidName,
    System(SystemException),
}

macro_rules! faults {
    ($($error:ty),*) => {$(
        impl From<Fault> for $error {
            fn from(fault: Fault) -> Self {
                match fault {
                    Fault::NotFound(exception) => Self::NotFound(exception),
                    Fault::CannotProceed(exception) => Self::CannotProceed(exception),
                    Fault::InvalidName => Self::InvalidName(InvalidName {}),
                    Fault::System(exception) => Self::System(exception),
                }
            }
        }
    )*};
}

faults!(
    NamingContextBindError,
    NamingContextRebindError,
    NamingContextBindContextError,
    NamingContextRebindContextError,
    NamingContextResolveError,
    NamingContextUnbindError,
    NamingContextBindNewContextError,
    NamingContextExtResolveStrError
);

/// The servant of a context.
struct ContextServant(Arc<Context>);

impl Graph {
    fn new_context(self: &Arc<Self>) -> Result<NamingContextExt, PoaError> {
        let id = self.new_id();
        let context = Context { graph: Arc::downgrade(self), _keep: self.clone(), bindings: Mutex::default() };
        let context = Arc::new(context);
        let servant: Arc<dyn Servant> = Arc::new(NamingContextExtSkeleton(ContextServant(context.clone())));
        self.poa.activate_object_with_id(&id, servant)?;
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), context);
        self.poa.id_to_reference(&id).map(NamingContextExt::from_object)
    }

    fn new_id(&self) -> Vec<u8> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        *next += 1;
        next.to_be_bytes().to_vec()
    }

    /// The context that an object is, if it is one of ours.
    fn own(&self, object: &Object) -> Option<Arc<Context>> {
        let id = self.poa.reference_to_id(object).ok()?;
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }
}

impl Context {
    fn bindings(&self) -> MutexGuard<'_, Bindings> {
        self.bindings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Walks along all components but the last, and calls `at` with the context that has the last one.
    ///
    /// A context of another service is told to the client, which asks there.
    fn walk<T>(
        self: &Arc<Self>,
        name: &[NameComponent],
        at: impl FnOnce(&Arc<Context>, &NameComponent) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let (last, way) = name.split_last().ok_or(Fault::InvalidName)?;
        let mut current = self.clone();
        for (index, component) in way.iter().enumerate() {
            let rest = |from: usize| name[from..].to_vec();
            let found = current.bindings().get(&key(component)).cloned();
            current = match found {
                None => {
                    let why = NotFoundReason::MissingNode;
                    return Err(Fault::NotFound(NotFound { why, rest_of_name: rest(index) }));
                }
                Some((_, BindingType::Nobject)) => {
                    let why = NotFoundReason::NotContext;
                    return Err(Fault::NotFound(NotFound { why, rest_of_name: rest(index) }));
                }
                Some((object, BindingType::Ncontext)) => {
                    let own = current.graph.upgrade().and_then(|graph| graph.own(&object));
                    let cxt = Some(NamingContext::from_object(object));
                    own.ok_or_else(|| Fault::CannotProceed(CannotProceed { cxt, rest_of_name: rest(index + 1) }))?
                }
            };
        }
        at(&current, last)
    }

    fn put(
        self: &Arc<Self>,
        name: &[NameComponent],
        object: Option<Object>,
        kind: BindingType,
        replace: bool,
    ) -> Result<bool, Fault> {
        let object = object.ok_or(Fault::System(Kind::BadParam.raised(Completion::No)))?;
        self.walk(name, |context, last| {
            let mut bindings = context.bindings();
            let before = bindings.get(&key(last)).map(|(_, kind)| *kind);
            match before {
                Some(_) if !replace => return Ok(false),
                Some(before) if before != kind => {
                    let why = match kind {
                        BindingType::Ncontext => NotFoundReason::NotContext,
                        BindingType::Nobject => NotFoundReason::NotObject,
                    };
                    return Err(Fault::NotFound(NotFound { why, rest_of_name: vec![last.clone()] }));
                }
                _ => {}
            }
            bindings.insert(key(last), (object, kind));
            Ok(true)
        })
    }

    fn find(self: &Arc<Self>, name: &[NameComponent]) -> Result<Object, Fault> {
        self.walk(name, |context, last| {
            let found = context.bindings().get(&key(last)).map(|(object, _)| object.clone());
            found.ok_or_else(|| missing(last))
        })
    }
}

fn missing(component: &NameComponent) -> Fault {
    let why = NotFoundReason::MissingNode;
    Fault::NotFound(NotFound { why, rest_of_name: vec![component.clone()] })
}

fn key(component: &NameComponent) -> (String, String) {
    (component.id.clone(), component.kind.clone())
}

fn broken(_: PoaError) -> SystemException {
    Kind::ObjAdapter.raised(Completion::No)
}

impl NamingContextServant for ContextServant {
    fn bind(&self, n: Vec<NameComponent>, obj: Option<Object>) -> Result<(), NamingContextBindError> {
        match self.0.put(&n, obj, BindingType::Nobject, false)? {
            true => Ok(()),
            false => Err(AlreadyBound {}.into()),
        }
    }

    fn rebind(&self, n: Vec<NameComponent>, obj: Option<Object>) -> Result<(), NamingContextRebindError> {
        Ok(self.0.put(&n, obj, BindingType::Nobject, true).map(drop)?)
    }

    fn bind_context(
        &self,
        n: Vec<NameComponent>,
        nc: Option<NamingContext>,
    ) -> Result<(), NamingContextBindContextError> {
        match self.0.put(&n, nc.map(|nc| nc.object().clone()), BindingType::Ncontext, false)? {
            true => Ok(()),
            false => Err(AlreadyBound {}.into()),
        }
    }

    fn rebind_context(
        &self,
        n: Vec<NameComponent>,
        nc: Option<NamingContext>,
    ) -> Result<(), NamingContextRebindContextError> {
        Ok(self.0.put(&n, nc.map(|nc| nc.object().clone()), BindingType::Ncontext, true).map(drop)?)
    }

    fn resolve(&self, n: Vec<NameComponent>) -> Result<Option<Object>, NamingContextResolveError> {
        Ok(self.0.find(&n).map(Some)?)
    }

    fn unbind(&self, n: Vec<NameComponent>) -> Result<(), NamingContextUnbindError> {
        Ok(self
            .0
            .walk(&n, |context, last| context.bindings().remove(&key(last)).map(drop).ok_or_else(|| missing(last)))?)
    }

    fn new_context(&self) -> Result<Option<NamingContext>, SystemException> {
        let graph = self.0.graph.upgrade().ok_or(Kind::ObjectNotExist.raised(Completion::No))?;
        Ok(Some(graph.new_context().map_err(broken)?.into()))
    }

    fn bind_new_context(
        &self,
        n: Vec<NameComponent>,
    ) -> Result<Option<NamingContext>, NamingContextBindNewContextError> {
        let context = self.new_context()?;
        let object = context.as_ref().map(|context| context.object().clone());
        match self.0.put(&n, object, BindingType::Ncontext, false)? {
            true => Ok(context),
            false => Err(AlreadyBound {}.into()),
        }
    }

    fn destroy(&self) -> Result<(), NamingContextDestroyError> {
        if !self.0.bindings().is_empty() {
            return Err(NotEmpty {}.into());
        }
        if let (Some(current), Some(graph)) = (Current::get(), self.0.graph.upgrade()) {
            graph.contexts.lock().unwrap_or_else(PoisonError::into_inner).remove(&*current.object_id);
            current.poa.deactivate_object(&current.object_id).map_err(broken)?;
        }
        Ok(())
    }

    fn list(&self, how_many: u32) -> Result<(Vec<Binding>, Option<BindingIterator>), SystemException> {
        let mut all: Vec<Binding> = self
            .0
            .bindings()
            .iter()
            .map(|((id, kind), (_, binding_type))| Binding {
                binding_name: vec![NameComponent { id: id.clone(), kind: kind.clone() }],
                binding_type: *binding_type,
            })
            .collect();
        let rest = all.split_off(all.len().min(how_many as usize));
        if rest.is_empty() {
            return Ok((all, None));
        }
        let graph = self.0.graph.upgrade().ok_or(Kind::ObjectNotExist.raised(Completion::No))?;
        let id = graph.new_id();
        let iterator = BindingIteratorSkeleton(Rest(Mutex::new(rest.into())));
        graph.poa.activate_object_with_id(&id, Arc::new(iterator)).map_err(broken)?;
        let iterator = graph.poa.id_to_reference(&id).map_err(broken)?;
        Ok((all, Some(BindingIterator::from_object(iterator))))
    }
}

impl NamingContextExtServant for ContextServant {
    fn to_string(&self, n: Vec<NameComponent>) -> Result<String, NamingContextExtToStringError> {
        if n.is_empty() { Err(InvalidName {}.into()) } else { Ok(show_name(&n)) }
    }

    fn to_name(&self, sn: String) -> Result<Vec<NameComponent>, NamingContextExtToNameError> {
        parse_name(&sn).map_err(|_| InvalidName {}.into())
    }

    fn to_url(&self, addr: String, sn: String) -> Result<String, NamingContextExtToUrlError> {
        if addr.is_empty() {
            return Err(InvalidAddress {}.into());
        }
        parse_name(&sn).map_err(|_| InvalidName {})?;
        Ok(format!("corbaname:{addr}#{sn}"))
    }

    fn resolve_str(&self, sn: String) -> Result<Option<Object>, NamingContextExtResolveStrError> {
        let name = parse_name(&sn).map_err(|_| InvalidName {})?;
        Ok(self.0.find(&name).map(Some)?)
    }
}

/// What a list left over.
struct Rest(Mutex<std::collections::VecDeque<Binding>>);

impl BindingIteratorServant for Rest {
    fn next_one(&self) -> Result<(bool, Binding), SystemException> {
        let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let none = Binding { binding_name: Vec::new(), binding_type: BindingType::Nobject };
        Ok((next.is_some(), next.unwrap_or(none)))
    }

    fn next_n(&self, how_many: u32) -> Result<(bool, Vec<Binding>), SystemException> {
        let mut rest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = rest.len().min(how_many as usize);
        let some: Vec<_> = rest.drain(..count).collect();
        Ok((!some.is_empty(), some))
    }

    fn destroy(&self) -> Result<(), SystemException> {
        if let Some(current) = Current::get() {
            current.poa.deactivate_object(&current.object_id).map_err(broken)?;
        }
        Ok(())
    }
}
