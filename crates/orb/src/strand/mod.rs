//! Connections that carry messages. Each kind of transport is one file.

mod fabric;
mod socket;

use std::fmt;
use std::io;
use std::time::Instant;

pub(crate) use fabric::{FabricListener, FabricStrand, io_error};
pub(crate) use socket::{Socket, SocketListener};

/// One connection.
///
/// - `send` sends all or fails; after a failure the connection is of no use.
/// - `receive` waits for at least one byte; zero is the end.
/// - A deadline that passes is [`io::ErrorKind::TimedOut`], and the connection stays usable for `receive`.
/// - `close` may be called by any thread and wakes those that wait.
/// - One thread sends at a time, and one receives.
pub(crate) trait Strand: Send + Sync {
    fn send(&self, bytes: &[u8], deadline: Option<Instant>) -> io::Result<()>;
    fn receive(&self, into: &mut [u8], deadline: Option<Instant>) -> io::Result<usize>;
    fn close(&self);
}

/// Where connections come in.
pub(crate) trait Listener: Send + Sync {
    /// Waits for a connection; fails once the listener is closed.
    fn accept(&self) -> io::Result<Box<dyn Strand>>;
    fn close(&self);
    fn endpoint(&self) -> Endpoint;
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Endpoint {
    Tcp { host: String, port: u16 },
    Unix { path: String },
    Fabric { name: String },
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp { host, port } => write!(f, "tcp:{host}:{port}"),
            Endpoint::Unix { path } => write!(f, "unix:{path}"),
            Endpoint::Fabric { name } => write!(f, "fabric:{name}"),
        }
    }
}
