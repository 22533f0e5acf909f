//! Connections that carry messages. Each kind of transport is one file.
//!
//! A strand owns its buffers: the ring of a channel, the registered buffers of a VI, the socket of the kernel. What is sent
//! goes there from wherever it lies, in as many pieces as a message has; what has come is copied out, or looked at there.

mod fabric;
mod socket;
mod via;
mod watch;

use std::fmt;
use std::io;
use std::time::Instant;

use crate::assembler::Message;

pub(crate) use fabric::{FabricListener, FabricStrand, io_error};
pub(crate) use socket::{Socket, SocketListener};
pub(crate) use via::{Card, Flow, ViaListener, ViaStrand};
pub(crate) use watch::Watch;

/// One connection.
///
/// - `send` sends all or fails; after a failure the connection is of no use. With `more`, other bytes of the same message
///   follow at once, and the peer need not see these before.
/// - `receive` waits for at least one byte; zero is the end.
/// - `show` lets a large message be looked at where it lies, and takes it; the transport waits until all of it is there. It
///   does nothing where messages cannot be looked at, or the next one is small, in fragments or too large for that.
/// - A deadline that passes is [`io::ErrorKind::TimedOut`], and the connection stays usable for `receive`. One that has
///   passed already means: do not wait.
/// - `close` may be called by any thread and wakes those that wait.
/// - One thread sends at a time, and one receives.
pub(crate) trait Strand: Send + Sync {
    fn send(&self, bytes: &[u8], more: bool, deadline: Option<Instant>) -> io::Result<()>;
    fn receive(&self, into: &mut [u8], deadline: Option<Instant>) -> io::Result<usize>;
    fn close(&self);

    fn show(&self, _: &mut Look<'_>, _: Option<Instant>) -> io::Result<bool> {
        Ok(false)
    }

    /// Whether `receive` may find something now. Costs no system call; a strand that cannot tell says no.
    fn has_news(&self) -> bool {
        false
    }

    /// Reports to `watch` when something has come that was not taken, or the connection has ended.
    fn attach(&self, watch: &Watch, token: u64) -> io::Result<()>;
}

/// What to do with a message that lies in the memory of a transport.
pub(crate) struct Look<'a> {
    /// The smallest message that is worth it, and the largest that is taken.
    pub(crate) sizes: std::ops::RangeInclusive<usize>,
    /// Where the beginning of the message is copied to.
    pub(crate) head: &'a mut Vec<u8>,
    pub(crate) take: &'a mut dyn FnMut(&Message<'_>),
}

/// Where connections come in.
pub(crate) trait Listener: Send + Sync {
    /// Waits for a connection; fails once the listener is closed.
    fn accept(&self) -> io::Result<Box<dyn Strand>>;
    fn close(&self);
    fn endpoint(&self) -> Endpoint;
    /// What tells which of its strands have news.
    fn watch(&self) -> io::Result<Watch>;
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Endpoint {
    Tcp { host: String, port: u16 },
    Unix { path: String },
    Fabric { name: String },
    Via { name: String, flow: Flow },
}

impl Endpoint {
    /// What a reference calls an endpoint of the fabric or of VIA.
    pub(crate) fn fabric_name(&self) -> Option<String> {
        match self {
            Endpoint::Fabric { name } => Some(name.clone()),
            Endpoint::Via { name, flow } => Some(format!("{}{name}", flow.scheme())),
            Endpoint::Tcp { .. } | Endpoint::Unix { .. } => None,
        }
    }

    /// The endpoint that a reference calls so.
    pub(crate) fn of_fabric_name(name: &str) -> Self {
        let via = [Flow::Credits, Flow::Provider].into_iter().find_map(|flow| {
            let name = name.strip_prefix(flow.scheme())?.to_owned();
            Some(Endpoint::Via { name, flow })
        });
        via.unwrap_or_else(|| Endpoint::Fabric { name: name.to_owned() })
    }

    /// The faster, the smaller.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Endpoint::Fabric { .. } => 0,
            Endpoint::Via { .. } => 1,
            Endpoint::Unix { .. } => 2,
            Endpoint::Tcp { .. } => 3,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp { host, port } => write!(f, "tcp:{host}:{port}"),
            Endpoint::Unix { path } => write!(f, "unix:{path}"),
            Endpoint::Fabric { name } => write!(f, "fabric:{name}"),
            Endpoint::Via { name, flow } => write!(f, "{}{name}", flow.scheme()),
        }
    }
}
