//! The side that is called.
//!
//! ```text
//! sockets ──epoll──▶ worker ── Assembler ──▶ Dispatcher ──▶ Cache ──▶ Service
//!                      └── replies ──▶ Connection (what does not fit waits there)
//! channels of the fabric, VIs, RDMA ──▶ a thread each ──▶ Dispatcher ...
//! ```

mod cache;
mod channels;
mod connection;
mod dispatch;
mod gathering;
mod lines;
mod pool;
mod rdma;
mod service;
mod vis;

pub use service::{Call, Peer, Refusal, Service};

use std::fmt;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::cache::Cache;
use self::channels::Channels;
use self::dispatch::{Authorize, Dispatcher};
use self::pool::{Pool, Source};
use self::rdma::Doors;
use self::vis::Vis;
use crate::rdma::{INLINE, inline_size};
use crate::rpcbind::{self, Registration};
use crate::{Address, AuthError, Binding, Error, MAX_MESSAGE};

/// A server that runs until it is dropped.
pub struct Server {
    pool: Pool,
    channels: Option<Channels>,
    rdma: Doors,
    vis: Vis,
    local: Vec<(&'static str, SocketAddr)>,
    paths: Vec<PathBuf>,
    services: Vec<(u32, u32)>,
    registrations: Vec<Registration>,
}

/// What a server will serve, and where.
pub struct ServerBuilder {
    services: Vec<Arc<dyn Service>>,
    sources: Vec<Source>,
    local: Vec<(&'static str, SocketAddr)>,
    paths: Vec<PathBuf>,
    names: Vec<String>,
    vis: Vec<Address>,
    rdma: Vec<TcpListener>,
    binding: Binding,
    inline: usize,
    limits: Limits,
    cache_entries: usize,
    authorize: Authorize,
}

/// What a server allows.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    pub threads: usize,
    pub max_message: usize,
    pub connections: usize,
    pub ordered: bool,
}

impl Server {
    /// Begins to build a server.
    #[must_use]
    pub fn builder() -> ServerBuilder {
        ServerBuilder {
            services: Vec::new(),
            sources: Vec::new(),
            local: Vec::new(),
            paths: Vec::new(),
            names: Vec::new(),
            vis: Vec::new(),
            rdma: Vec::new(),
            binding: Binding::NONE,
            inline: INLINE,
            limits: Limits { threads: 16, max_message: MAX_MESSAGE, connections: 16 << 10, ordered: false },
            cache_entries: 1024, // Twice what a client may reasonably have outstanding when its connection ends.
            authorize: Box::new(dispatch::authorize),
        }
    }

    /// The addresses of the TCP, UDP and RDMA sockets, in the order in which they were asked for.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.local.iter().map(|(_, address)| *address)
    }

    /// How many connections are open.
    #[must_use]
    pub fn connections(&self) -> usize {
        let channels = self.channels.as_ref().map_or(0, Channels::open);
        self.pool.connections() + channels + self.rdma.open() + self.vis.open()
    }

    /// The transports that rpcbind knows of, with the universal addresses.
    pub(crate) fn universal_addresses(&self) -> Vec<(&'static str, String)> {
        rpcbind::universal_addresses(&self.local, &self.paths)
    }

    /// Registers every service on every transport with the rpcbind at an address, until the server is dropped. Without
    /// an address, the usual places of this host are tried.
    pub fn register(&mut self, rpcbind: Option<&str>) -> Result<(), Error> {
        for (program, version) in &self.services {
            let made = Registration::make(rpcbind, (*program, *version), &self.local, &self.paths)?;
            self.registrations.push(made);
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.registrations.clear();
        self.pool.stop();
        if let Some(channels) = &mut self.channels {
            channels.stop();
        }
        self.rdma.stop();
        self.vis.stop();
        for path in &self.paths {
            // Somebody may have removed it before.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl ServerBuilder {
    /// Serves a service.
    #[must_use]
    pub fn service(mut self, service: impl Service) -> Self {
        self.services.push(Arc::new(service));
        self
    }

    /// Listens on an address of any kind, as clients state it: `tcp:HOST:PORT`, `shm:NAME` and so on.
    pub fn listen(self, address: &str) -> Result<Self, Error> {
        match address.parse()? {
            Address::Tcp(host) => self.tcp(&host),
            Address::Udp(host) => self.udp(&host),
            Address::Rdma(host) => self.rdma(&host),
            Address::Unix(path) => self.unix(path),
            Address::Fabric(name) => Ok(self.fabric(&name)),
            Address::Vi(_) | Address::ViIwarp(_) => self.vi(address),
        }
    }

    /// Listens on a TCP address; port 0 takes any.
    pub fn tcp(mut self, address: &str) -> Result<Self, Error> {
        let failed = |source| Error::Setup { what: "listen on", address: format!("tcp:{address}"), source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        self.local.push(("tcp", listener.local_addr().map_err(failed)?));
        self.sources.push(Source::Tcp(listener));
        Ok(self)
    }

    /// Listens on a UDP address; port 0 takes any.
    pub fn udp(mut self, address: &str) -> Result<Self, Error> {
        let failed = |source| Error::Setup { what: "listen on", address: format!("udp:{address}"), source };
        let socket = UdpSocket::bind(address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        self.local.push(("udp", socket.local_addr().map_err(failed)?));
        self.sources.push(Source::Udp(Arc::new(socket)));
        Ok(self)
    }

    /// Listens on an address for RPC over RDMA on iWARP; port 0 takes any. Each connection has a thread of its own.
    pub fn rdma(mut self, address: &str) -> Result<Self, Error> {
        let listener = rdma::listener(address)?;
        let failed = |source| Error::Setup { what: "listen on", address: format!("rdma:{address}"), source };
        self.local.push(("rdma", listener.local_addr().map_err(failed)?));
        self.rdma.push(listener);
        Ok(self)
    }

    /// Over RDMA: which data travel in chunks of their own.
    #[must_use]
    pub fn binding(mut self, binding: Binding) -> Self {
        self.binding = binding;
        self
    }

    /// Over RDMA: the longest message that is sent and taken inline, if the client agrees; whole KiB, 1 to 256 of them. Every
    /// connection has 32 buffers of this length.
    #[must_use]
    pub fn inline(mut self, bytes: usize) -> Self {
        self.inline = inline_size(bytes);
        self
    }

    /// Listens on a UNIX socket. The file is removed when the server is dropped.
    pub fn unix(mut self, path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let failed = |source| Error::Setup { what: "listen on", address: format!("unix:{}", path.display()), source };
        let listener = UnixListener::bind(path).map_err(failed)?;
        self.paths.push(path.to_owned());
        listener.set_nonblocking(true).map_err(failed)?;
        self.sources.push(Source::Unix(listener));
        Ok(self)
    }

    /// Listens under a name of the fabric, for example `shm:store`. Each channel has a thread of its own.
    #[must_use]
    pub fn fabric(mut self, name: &str) -> Self {
        self.names.push(name.to_owned());
        self
    }

    /// Listens for VIs at an address, `vi:NAME` or `vi-iwarp:HOST:PORT`. Each has a thread of its own.
    pub fn vi(mut self, address: &str) -> Result<Self, Error> {
        match address.parse()? {
            at @ (Address::Vi(_) | Address::ViIwarp(_)) => self.vis.push(at),
            _ => return Err(Error::Address { address: address.to_owned(), reason: "it is no address of a VI" }),
        }
        Ok(self)
    }

    /// At most this many threads for sockets. There are as many as calls that were ever executed at a time, and one. When all of
    /// them are in slow procedures, further calls over sockets wait; connections with a thread of their own do not.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.limits.threads = threads.max(1);
        self
    }

    /// The greatest length of a message.
    #[must_use]
    pub fn max_message(mut self, bytes: usize) -> Self {
        self.limits.max_message = bytes;
        self
    }

    /// At most this many connections at a time; further ones are closed.
    #[must_use]
    pub fn connections(mut self, connections: usize) -> Self {
        self.limits.connections = connections;
        self
    }

    /// Executes the calls of one connection in their order and one at a time, as services with batched calls need it.
    #[must_use]
    pub fn ordered(mut self) -> Self {
        self.limits.ordered = true;
        self
    }

    /// Remembers this many executed calls, in case that they come again. Zero remembers nothing.
    #[must_use]
    pub fn remembered_calls(mut self, entries: usize) -> Self {
        self.cache_entries = entries;
        self
    }

    /// Decides whether a caller is let in, before anything else is looked at. Without it, AUTH_NONE and well-formed
    /// AUTH_SYS credentials are, and other flavors, RPCSEC_GSS among them, are rejected.
    #[must_use]
    pub fn authorize(mut self, authorize: impl Fn(&Call<'_>) -> Result<(), AuthError> + Send + Sync + 'static) -> Self {
        self.authorize = Box::new(authorize);
        self
    }

    /// Starts the server.
    pub fn start(self) -> Result<Server, Error> {
        let failed = |source| Error::Setup { what: "start", address: "a server".to_owned(), source };
        let services = self.services.iter().map(|service| (service.program(), service.version())).collect();
        let cache = Cache::new(self.cache_entries);
        let dispatcher = Arc::new(Dispatcher::new(self.services, cache, self.authorize, self.limits.max_message));
        let channels = Channels::start(dispatcher.clone(), &self.names, &self.limits)
            .map_err(|source| Error::Setup { what: "listen on", address: self.names.join(", "), source })?;
        let rdma =
            Doors::start(dispatcher.clone(), self.rdma, (self.binding, self.inline), &self.limits).map_err(failed)?;
        let vis = Vis::start(dispatcher.clone(), &self.vis, &self.limits)?;
        let pool = Pool::start(dispatcher, self.sources, self.limits).map_err(failed)?;
        Ok(Server {
            pool,
            channels,
            rdma,
            vis,
            local: self.local,
            paths: self.paths,
            services,
            registrations: Vec::new(),
        })
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("local", &self.local).field("paths", &self.paths).finish_non_exhaustive()
    }
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder")
            .field("local", &self.local)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
