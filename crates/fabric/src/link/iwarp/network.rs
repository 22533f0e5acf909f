//! How a link reaches the network: the seam behind which tests put hosts of their own.

use std::{fmt, io, net::SocketAddr, os::fd::OwnedFd, sync::Arc};

use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};
use sidestep_sys::descriptor;

/// Where sockets come from, and what addresses mean there.
pub trait Network: fmt::Debug + Send + Sync {
    /// A TCP socket for an address. It does not block.
    fn socket(&self, address: &SocketAddr) -> io::Result<OwnedFd>;

    /// Where to listen for an address that someone named.
    fn listen_at(&self, address: SocketAddr) -> io::Result<SocketAddr> {
        Ok(address)
    }

    /// Where to look for whoever listens at an address that someone named.
    fn connect_to(&self, address: SocketAddr) -> Vec<SocketAddr> {
        vec![address]
    }

    /// The link has a new stream, connected or accepted. It is closed when the link lets go of it.
    fn opened(&self, stream: &Arc<OwnedFd>) {
        let _ = stream;
    }
}

/// The network of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostNetwork;

impl Network for HostNetwork {
    fn socket(&self, address: &SocketAddr) -> io::Result<OwnedFd> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        Ok(descriptor::keep(socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?))
    }
}
