//! The broker: what it listens on, the references it makes, and where it begins and ends.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sidestep_wire::giop::{Version, header};
use sidestep_wire::ior::component::{CodeSetChoice, Component};
use sidestep_wire::ior::corbaloc::{Address, Location};
use sidestep_wire::ior::{self, iiop};

use crate::assembler::Message;
use crate::call::Answer;
use crate::cdr::{CharSet, UTF16};
use crate::client::{Connection, Pool, Reply};
use crate::exception::{Completion, Kind, OMG, SystemException};
use crate::poa::{ObjectKey, Poa, Refusal, Serving};
use crate::route::host_name;
use crate::server::{Counters, Server, Session, serve};
use crate::settings::{Builder, Settings};
use crate::strand::{
    Endpoint, Links, Listener, Strand, connect_fabric, connect_tcp, connect_unix, connect_via, is_far,
};
use crate::{Ior, Object, naming};

/// A broker. Cloning it gives another handle to the same one.
#[derive(Clone)]
pub struct Orb(Arc<Core>);

/// What the handles share.
pub struct Core {
    settings: Settings,
    server: Server,
    pool: Pool,
    root: OnceLock<Poa>,
    /// References by the names that `resolve_initial_references` knows.
    initial: Mutex<HashMap<String, String>>,
    /// Object keys that people can write, and the keys that they stand for.
    named_keys: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
    /// Tells transient objects of this process from those of others.
    incarnation: u64,
    links: Links,
    /// References that were made.
    references: AtomicUsize,
}

/// How many initial references may stand for each other, in case they go in a circle.
const MOST_NAMES: usize = 8;

/// Why a name is not known, or text is not a reference.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// There is no initial reference of this name.
    #[error("there is no initial reference {0:?}")]
    InvalidName(String),
    /// The text is not a reference.
    #[error(transparent)]
    Malformed(#[from] ior::Error),
    /// A naming service was asked, and the call failed.
    #[error("the naming service failed: {0}")]
    Naming(String),
    /// The reference is nil.
    #[error("the reference is nil")]
    Nil,
}

impl Orb {
    /// Settings for a broker.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A broker with the settings of a command line: `-ORBInitRef NAME=REFERENCE`, `-ORBDefaultInitRef PREFIX`,
    /// `-ORBendPoint giop:tcp:HOST:PORT` or `giop:unix:PATH`, `-ORBclientCallTimeOutPeriod MILLISECONDS`.
    ///
    /// What it understands is taken out of `arguments`.
    pub fn init(arguments: &mut Vec<String>) -> io::Result<Self> {
        Builder::from_arguments(arguments)?.build()
    }

    pub(crate) fn start(settings: Settings, listeners: Vec<Arc<dyn Listener>>, links: Links) -> io::Result<Self> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let incarnation = since.as_nanos() as u64 ^ (u64::from(std::process::id()) << 40);
        let initial = Mutex::new(settings.initial.clone());
        let server = Server::new(listeners, settings.threads);
        let core = Arc::new(Core {
            settings,
            server,
            pool: Pool::default(),
            root: OnceLock::new(),
            initial,
            named_keys: Mutex::default(),
            incarnation,
            links,
            references: AtomicUsize::new(0),
        });
        let root = Poa::root(Arc::downgrade(&core), incarnation);
        core.root.get_or_init(|| root);
        let orb = Orb(core);
        orb.server().start(&orb)?;
        Ok(orb)
    }

    /// The adapter that every other one is within. Its manager holds requests until it is activated.
    ///
    /// # Panics
    /// Never: it is made together with the broker.
    #[must_use]
    pub fn root_poa(&self) -> &Poa {
        self.0.root.get().expect("made by `start`")
    }

    /// The reference that a text stands for: `IOR:`, `corbaloc:` or `corbaname:`.
    pub fn string_to_object(&self, text: &str) -> Result<Object, ResolveError> {
        self.object_of(text, MOST_NAMES)
    }

    /// The same, by at most so many initial references that stand for each other.
    fn object_of(&self, text: &str, names: usize) -> Result<Object, ResolveError> {
        let text = text.trim();
        if text.get(..4).is_some_and(|scheme| scheme.eq_ignore_ascii_case("ior:")) {
            let ior: Ior = text.parse()?;
            return if ior.is_nil() { Err(ResolveError::Nil) } else { Ok(Object::new(self.clone(), ior)) };
        }
        let location: Location = text.parse()?;
        let object = if location.addresses.contains(&Address::Initial) {
            self.initial(&String::from_utf8_lossy(&location.key), names)?
        } else {
            Object::new(self.clone(), location.to_ior()?)
        };
        match location.name.filter(|name| !name.is_empty()) {
            Some(name) => naming::resolve(&object, &name).map_err(|error| ResolveError::Naming(error.to_string())),
            None => Ok(object),
        }
    }

    /// The reference of a service that this broker was told about.
    pub fn resolve_initial_references(&self, name: &str) -> Result<Object, ResolveError> {
        self.initial(name, MOST_NAMES)
    }

    fn initial(&self, name: &str, names: usize) -> Result<Object, ResolveError> {
        let unknown = || ResolveError::InvalidName(name.to_owned());
        let names = names.checked_sub(1).ok_or_else(unknown)?;
        let known = self.0.initial.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        match (known, &self.0.settings.default_initial) {
            (Some(text), _) => self.object_of(&text, names),
            (None, Some(prefix)) => self.object_of(&format!("{prefix}/{name}"), names),
            (None, None) => Err(unknown()),
        }
    }

    /// The names that [`Orb::resolve_initial_references`] knows.
    #[must_use]
    pub fn list_initial_services(&self) -> Vec<String> {
        let known = self.0.initial.lock().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<_> = known.keys().cloned().collect();
        names.sort();
        names
    }

    /// Tells this broker about a service.
    pub fn register_initial_reference(&self, name: &str, object: &Object) {
        let mut known = self.0.initial.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(name.to_owned(), object.ior().to_string());
    }

    /// Lets an object of this broker be called under a key that people can write in a `corbaloc:`.
    pub fn name_key(&self, key: &str, object: &Object) -> Result<(), ResolveError> {
        let routes = crate::route::routes(object.ior());
        let own = routes.iter().find(|route| self.listens_on(&route.endpoint)).ok_or(ResolveError::Nil)?;
        let mut keys = self.0.named_keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.insert(key.as_bytes().to_vec(), own.key.clone());
        Ok(())
    }

    /// What the threads that serve requests have done.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.server().counters()
    }

    /// Waits until the broker is shut down.
    pub fn run(&self) {
        self.server().wait();
    }

    /// Ends every connection. Requests that are being served are finished.
    pub fn shutdown(&self) {
        // Requests that adapters hold would keep their threads for ever.
        self.root_poa().deactivate_managers();
        self.server().stop();
        self.root_poa().destroy(true);
        self.0.pool.close();
        self.0.links.close();
    }

    /// Closes the connections to servers; the next call makes a new one. Calls that are under way fail with `COMM_FAILURE`.
    pub fn disconnect(&self) {
        self.0.pool.close();
    }

    pub(crate) fn from_core(core: Arc<Core>) -> Self {
        Orb(core)
    }

    pub(crate) fn server(&self) -> &Server {
        &self.0.server
    }

    pub(crate) fn incarnation(&self) -> u64 {
        self.0.incarnation
    }

    /// The newest version of GIOP that is spoken.
    pub(crate) fn version(&self) -> Version {
        self.0.settings.version
    }

    pub(crate) fn message_limit(&self) -> usize {
        self.0.settings.message_limit
    }

    /// The smallest sequence of octets that goes straight to where it belongs.
    pub(crate) fn direct(&self) -> usize {
        self.0.settings.direct
    }

    /// Which of the connections to its server a new reference uses.
    pub(crate) fn new_slot(&self) -> usize {
        match self.0.settings.connections {
            0 | 1 => 0,
            connections => self.0.references.fetch_add(1, Ordering::Relaxed) % connections,
        }
    }

    pub(crate) fn default_timeout(&self) -> Option<Duration> {
        self.0.settings.timeout
    }

    pub(crate) fn listens_on(&self, endpoint: &Endpoint) -> bool {
        self.server().endpoints().contains(endpoint)
    }

    pub(crate) fn connection(
        &self,
        (endpoint, slot): (&Endpoint, usize),
        version: Version,
        chars: CharSet,
        deadline: Option<Instant>,
    ) -> io::Result<Arc<Connection>> {
        let sizes = self.direct()..=self.message_limit();
        self.0.pool.connection((endpoint, slot), version, chars, sizes, || self.connect(endpoint, deadline))
    }

    fn connect(&self, endpoint: &Endpoint, deadline: Option<Instant>) -> io::Result<Strand> {
        Ok(match endpoint {
            Endpoint::Tcp { host, port } => connect_tcp(host, *port, deadline)?,
            Endpoint::Unix { path } => connect_unix(path)?,
            Endpoint::Fabric { name } => connect_fabric(&self.0.links.node(name)?, name, deadline)?,
            Endpoint::Via { name, flow } => connect_via(&self.0.links.card()?, name, *flow, deadline)?,
        })
    }

    /// A reference to an object of this broker, with everything that the broker listens on.
    pub(crate) fn reference(&self, type_id: &str, key: &[u8]) -> Result<Object, crate::cdr::Error> {
        let code_sets = Component::CodeSets {
            chars: CodeSetChoice { native: CharSet::Utf8.id(), conversion: vec![CharSet::Latin1.id()] },
            wide: CodeSetChoice { native: UTF16, conversion: Vec::new() },
        };
        let mut components = vec![code_sets];
        let mut first = None;
        for endpoint in self.server().endpoints() {
            match endpoint {
                Endpoint::Tcp { host, port } if first.is_none() => first = Some((host.clone(), *port)),
                Endpoint::Tcp { host, port } => {
                    components.push(Component::Alternate { host: host.clone(), port: *port });
                }
                Endpoint::Unix { path } => {
                    components.push(Component::Unix { host: host_name(), path: path.clone() });
                }
                // Any host may go there.
                Endpoint::Fabric { name } if is_far(name) => {
                    components.push(Component::Fabric { host: String::new(), name: name.clone() });
                }
                Endpoint::Fabric { .. } | Endpoint::Via { .. } => {
                    let name = endpoint.fabric_name().unwrap_or_default();
                    components.push(Component::Fabric { host: host_name(), name });
                }
            }
        }
        let (host, port) = first.unwrap_or_else(|| (host_name(), 0));
        let version = self.0.settings.version;
        let profile = iiop::Repr { version, host, port, object_key: key.to_vec(), components };
        let ior = Ior { type_id: type_id.to_owned(), profiles: vec![profile.emit()?] };
        Ok(Object::new(self.clone(), ior))
    }

    /// Serves a request of this process; the reply may be put into `buffer`. `None` if it is a oneway.
    pub(crate) fn serve_locally(&self, bytes: &[u8], buffer: Vec<u8>) -> Option<Reply> {
        let header = header::Repr::parse(&header::Header::new_checked(bytes).ok()?).ok()?;
        let mut session = Session::local(buffer);
        match serve(self, &Message { header, bytes, rest: None, joints: &[] }, &mut session, None).ok()? {
            Answer::Reply => Reply::in_buffer(session.into_reply(), CharSet::Utf8),
            Answer::Nothing | Answer::Sent | Answer::Lost => None,
        }
    }

    /// The servant of the object with this key.
    pub(crate) fn find_servant(&self, key: &[u8], operation: &str) -> Result<Serving, Refusal> {
        let named;
        let key = match ObjectKey::parse(key) {
            Some(key) => key,
            None => {
                let keys = self.0.named_keys.lock().unwrap_or_else(PoisonError::into_inner);
                named = keys.get(key).cloned().ok_or_else(not_exist)?;
                ObjectKey::parse(&named).ok_or_else(not_exist)?
            }
        };
        if key.incarnation.is_some_and(|incarnation| incarnation != self.0.incarnation) {
            return Err(not_exist());
        }
        let mut child = None;
        for name in key.names() {
            let name = std::str::from_utf8(name).map_err(|_| not_exist())?;
            child = Some(child.as_ref().unwrap_or(self.root_poa()).find(name).ok_or_else(not_exist)?);
        }
        child.as_ref().unwrap_or(self.root_poa()).serve(&key, operation)
    }

    /// Whether the object with this key is here.
    pub(crate) fn locate(&self, key: &[u8]) -> Result<(), Refusal> {
        self.find_servant(key, "_locate").map(drop)
    }
}

fn not_exist() -> Refusal {
    SystemException { kind: Kind::ObjectNotExist, minor: OMG | 2, completed: Completion::No }.into()
}

impl std::fmt::Debug for Orb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("broker on")?;
        self.server().endpoints().iter().try_for_each(|endpoint| write!(f, " {endpoint}"))
    }
}
