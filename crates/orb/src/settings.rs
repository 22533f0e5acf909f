//! What a broker is told before it starts.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use sidestep_wire::giop::Version;

use crate::Orb;
use crate::server::Threads;
use crate::strand::{FabricListener, Flow, Links, Listener, SocketListener, ViaListener};

pub(crate) struct Settings {
    pub(crate) timeout: Option<Duration>,
    pub(crate) message_limit: usize,
    pub(crate) version: Version,
    pub(crate) initial: HashMap<String, String>,
    pub(crate) default_initial: Option<String>,
    pub(crate) threads: Threads,
    pub(crate) direct: usize,
    pub(crate) connections: usize,
}

/// The largest message that is taken unless told otherwise. omniORB's is 2 MB, which is too little for bulk data.
const MESSAGE_LIMIT: usize = 64 << 20;

/// From this size on, octets go straight to where they belong unless told otherwise: what is saved is more than the second
/// pass over the other values costs.
const DIRECT: usize = 8 << 10;

/// Settings of a broker.
#[must_use]
pub struct Builder {
    settings: Settings,
    listeners: Vec<Where>,
}

enum Where {
    Tcp { address: String, host: Option<String> },
    Unix { path: String },
    Fabric { name: String },
    Iwarp { address: String, host: Option<String> },
    Via { name: String, flow: Flow },
}

impl Default for Builder {
    fn default() -> Self {
        let settings = Settings {
            timeout: None,
            message_limit: MESSAGE_LIMIT,
            version: Version::V1_2,
            initial: HashMap::new(),
            default_initial: None,
            threads: Threads::default(),
            direct: DIRECT,
            connections: 1,
        };
        Self { settings, listeners: Vec::new() }
    }
}

impl Builder {
    /// Listens on a TCP address; port 0 takes any that is free. References name the address.
    pub fn tcp(mut self, address: &str) -> Self {
        self.listeners.push(Where::Tcp { address: address.to_owned(), host: None });
        self
    }

    /// Listens on a TCP address; references name `host`.
    pub fn tcp_as(mut self, address: &str, host: &str) -> Self {
        self.listeners.push(Where::Tcp { address: address.to_owned(), host: Some(host.to_owned()) });
        self
    }

    /// Listens on a UNIX socket.
    pub fn unix(mut self, path: &str) -> Self {
        self.listeners.push(Where::Unix { path: path.to_owned() });
        self
    }

    /// Listens on the fabric under a name such as `shm:echo`. Clients of this host prefer it to sockets.
    pub fn fabric(mut self, name: &str) -> Self {
        self.listeners.push(Where::Fabric { name: name.to_owned() });
        self
    }

    /// Listens for channels from other hosts, which iWARP carries, on an address with a port. References name the address, and
    /// clients prefer it to plain TCP.
    pub fn iwarp(mut self, address: &str) -> Self {
        self.listeners.push(Where::Iwarp { address: address.to_owned(), host: None });
        self
    }

    /// Listens for channels from other hosts on an address with a port; references name `host`.
    pub fn iwarp_as(mut self, address: &str, host: &str) -> Self {
        self.listeners.push(Where::Iwarp { address: address.to_owned(), host: Some(host.to_owned()) });
        self
    }

    /// Listens on VIA under a name, with credits in the messages.
    pub fn via(mut self, name: &str) -> Self {
        self.listeners.push(Where::Via { name: name.to_owned(), flow: Flow::Credits });
        self
    }

    /// Listens on VIA under a name, with the flow control of the provider.
    pub fn via_flow(mut self, name: &str) -> Self {
        self.listeners.push(Where::Via { name: name.to_owned(), flow: Flow::Provider });
        self
    }

    /// How many connections to a server the references to its objects are spread over.
    pub fn connections(mut self, count: usize) -> Self {
        self.settings.connections = count;
        self
    }

    /// Which threads serve connections.
    pub fn threads(mut self, threads: Threads) -> Self {
        self.settings.threads = threads;
        self
    }

    /// Sequences of at least so many octets go from where they lie to the transport, and from there to where they belong,
    /// without a buffer between. `usize::MAX`: none do.
    pub fn direct(mut self, octets: usize) -> Self {
        self.settings.direct = octets.max(1);
        self
    }

    /// Lets every call fail with `TIMEOUT` after this time.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = Some(timeout);
        self
    }

    /// The largest message that is taken, in bytes.
    pub fn message_limit(mut self, limit: usize) -> Self {
        self.settings.message_limit = limit;
        self
    }

    /// The newest version of GIOP that is spoken.
    pub fn giop(mut self, version: Version) -> Self {
        self.settings.version = version;
        self
    }

    /// Names a service for [`Orb::resolve_initial_references`].
    pub fn initial_reference(mut self, name: &str, reference: &str) -> Self {
        self.settings.initial.insert(name.to_owned(), reference.to_owned());
        self
    }

    /// Starts the broker.
    pub fn build(self) -> io::Result<Orb> {
        let links = Links::default();
        let mut listeners: Vec<Arc<dyn Listener>> = Vec::new();
        for listener in &self.listeners {
            listeners.push(match listener {
                Where::Tcp { address, host } => Arc::new(SocketListener::tcp(address, host.as_deref())?),
                Where::Unix { path } => Arc::new(SocketListener::unix(path)?),
                Where::Fabric { name } => Arc::new(FabricListener::new(&links.node(name)?, name)?),
                Where::Iwarp { address, host } => {
                    let name = format!("iwarp:{address}");
                    let listener = FabricListener::new(&links.node(&name)?, &name)?;
                    Arc::new(match host {
                        Some(host) => listener.known_as(host),
                        None => listener,
                    })
                }
                Where::Via { name, flow } => Arc::new(ViaListener::new(links.card()?, name, *flow)?),
            });
        }
        Orb::start(self.settings, listeners, links)
    }

    pub(crate) fn from_arguments(arguments: &mut Vec<String>) -> io::Result<Self> {
        let mut builder = Self::default();
        let mut kept = Vec::new();
        let mut given = std::mem::take(arguments).into_iter();
        while let Some(argument) = given.next() {
            if !KNOWN.contains(&argument.as_str()) {
                kept.push(argument);
                continue;
            }
            let wrong = |expected: &str| {
                io::Error::new(io::ErrorKind::InvalidInput, format!("{argument} is followed by {expected}"))
            };
            let value = given.next().ok_or_else(|| wrong("a value"))?;
            match argument.as_str() {
                "-ORBInitRef" => {
                    let (name, reference) = value.split_once('=').ok_or_else(|| wrong("NAME=REFERENCE"))?;
                    builder = builder.initial_reference(name, reference);
                }
                "-ORBDefaultInitRef" => builder.settings.default_initial = Some(value),
                "-ORBclientCallTimeOutPeriod" => {
                    let millis = value.parse().map_err(|_| wrong("a number of milliseconds"))?;
                    builder = builder.timeout(Duration::from_millis(millis));
                }
                _ => match (value.strip_prefix("giop:tcp:"), value.strip_prefix("giop:unix:")) {
                    (Some(address), _) => {
                        let address =
                            if address.starts_with(':') { format!("0.0.0.0{address}") } else { address.into() };
                        builder = builder.tcp(&address);
                    }
                    (_, Some(path)) => builder = builder.unix(path),
                    _ => return Err(wrong("giop:tcp:HOST:PORT or giop:unix:PATH")),
                },
            }
        }
        *arguments = kept;
        Ok(builder)
    }
}

const KNOWN: [&str; 4] = ["-ORBInitRef", "-ORBDefaultInitRef", "-ORBendPoint", "-ORBclientCallTimeOutPeriod"];

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "settings of a broker with {} listeners", self.listeners.len())
    }
}
