//! Connections that carry messages. Each kind of transport is one file.
//!
//! A strand owns its buffers: the ring of a channel, the registered buffers of a VI, the socket of the kernel. What is sent
//! goes there from wherever it lies, in as many pieces as a message has; what has come is copied out, or looked at there.

mod fabric;
mod links;
mod socket;
mod via;
mod watch;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use crate::assembler::Message;

pub(crate) use fabric::{FabricListener, connect_fabric, io_error};
pub(crate) use links::{Links, is_far};
pub(crate) use socket::{SocketListener, connect_tcp, connect_unix};
pub(crate) use via::{Card, Flow, ViaListener, connect_via};
pub(crate) use watch::Watch;

/// One connection, in its parts: one thread sends, another receives, and any may close it.
pub(crate) struct Strand {
    pub(crate) sender: Box<dyn SendHalf>,
    pub(crate) receiver: Box<dyn ReceiveHalf>,
    pub(crate) closer: Arc<dyn Close>,
}

/// The side of a connection that sends.
pub(crate) trait SendHalf: Send {
    /// Sends all or fails; after a failure the connection is of no use. With `more`, other bytes of the same message follow
    /// at once, and the peer need not see these before.
    fn send(&mut self, bytes: &[u8], more: bool, deadline: Option<Instant>) -> io::Result<()>;

    /// Sends a whole message if that is done at once; false if it is not, and then nothing was sent. May be called with a
    /// lock held: it waits for nothing, and costs no system call but to wake the peer.
    fn try_send(&mut self, _: &[u8]) -> io::Result<bool> {
        Ok(false)
    }
}

/// The side of a connection that receives.
///
/// A deadline that passes is [`io::ErrorKind::TimedOut`], and the connection stays usable. One that has passed already means:
/// do not wait.
pub(crate) trait ReceiveHalf: Send {
    /// Waits for at least one byte; zero is the end.
    fn receive(&mut self, into: &mut [u8], deadline: Option<Instant>) -> io::Result<usize>;

    /// The same where a message begins. `None` if at least so many bytes have come: the message may be worth to be shown.
    fn receive_below(&mut self, _: usize, into: &mut [u8], deadline: Option<Instant>) -> io::Result<Option<usize>> {
        self.receive(into, deadline).map(Some)
    }

    /// Lets a large message be looked at where it lies, and takes it; the transport waits until all of it is there. Does
    /// nothing where messages cannot be looked at, or the next one is small, in fragments or too large for that.
    fn show(&mut self, _: &mut Look<'_>, _: Option<Instant>) -> io::Result<bool> {
        Ok(false)
    }

    /// Whether `receive` may find something now. Costs no system call; a strand that cannot tell says no.
    fn has_news(&mut self) -> bool {
        false
    }

    /// Reports to `watch` when something has come that was not taken, or the connection has ended.
    fn attach(&mut self, watch: &Watch, token: u64) -> io::Result<()>;
}

/// Ends a connection.
pub(crate) trait Close: Send + Sync {
    /// Wakes those that send and receive; they fail from now on.
    fn close(&self);
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
    fn accept(&self) -> io::Result<Strand>;
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

    /// The better, the smaller: what stays on this host, and then what its server offers besides what every broker can do.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Endpoint::Fabric { name } if !is_far(name) => 0,
            Endpoint::Via { .. } => 1,
            Endpoint::Unix { .. } => 2,
            Endpoint::Fabric { .. } => 3,
            Endpoint::Tcp { .. } => 4,
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
