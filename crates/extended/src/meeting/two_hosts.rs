//! Two ends on two hosts, or in two network namespaces: a second TCP connection between the same two addresses, on one port that
//! both ends are told, over which the fabric's link between hosts goes.
//!
//! **What the proof is worth.** Each end sees that the line comes from the address of the other end of the connection, and
//! that whoever speaks there names the connection. So another host can pose as the other end only if it could have taken
//! over the connection itself, by having its packets. But any process of that *host* can: what it has to say (addresses and
//! ports) is told to everybody there. Nothing that the two kernels know of the connection is hidden from a host's own users or
//! from the path and can be read by both ends, so there is nothing better to ask for.
//!
//! One process of a host can listen on the port at a time. So whoever waits does so in turns, and leaves the port to others between
//! them.

use std::{net::SocketAddr, time::Duration};

use sidestep_fabric::{self as fabric, CloseReason, Endpoint, Listener, Node, PeerId};
use sidestep_shm as shm;
use sidestep_sockets::kernel::{self, TCP_ESTABLISHED, address::Key};

use super::{Hello, Place};
use crate::error::{Error, Result};

/// Both ends of the connection, as seen from one of them.
pub(super) struct TwoHosts {
    fd: i32,
    key: Key,
    port: u16,
}

/// Between two attempts to reach the other end. Each is a TCP connection.
const PAUSE: Duration = Duration::from_millis(10);
/// How long one process keeps the port, if others want it too.
const TURN: Duration = Duration::from_millis(200);

impl TwoHosts {
    pub(super) fn new(fd: i32, key: Key, port: u16) -> TwoHosts {
        // The name of a namespace means nothing in another.
        TwoHosts { fd, key: Key { namespace: 0, ..key }, port }
    }

    /// The name under which the end that waits listens: an address of its host, and a number for the connection.
    fn name(&self, waits: &Key) -> String {
        format!("iwarp:{}/{:016x}", SocketAddr::new(waits.local.ip(), self.port), super::number(waits))
    }
}

impl Place for TwoHosts {
    fn key(&self) -> Key {
        self.key
    }

    fn ask(&self, node: &Node, deadline: u64, hello: Hello<'_>) -> Result<Option<Endpoint>> {
        let from = (self.key.local.ip(), deadline);
        match node.begin_connect_from(&self.name(&self.key.reversed()), from, hello) {
            // The other end listens when it comes to that. Whoever cannot reach its port finds nobody there, either.
            Err(fabric::Error::NobodyListens(_) | fabric::Error::TimedOut(_)) => Ok(None),
            Err(fabric::Error::Memory(shm::Error::System { .. })) => Ok(None),
            started => Ok(Some(started?)),
        }
    }

    fn listen(&self, node: &Node) -> Result<Option<Listener>> {
        match node.listen(&self.name(&self.key)) {
            Err(fabric::Error::Memory(shm::Error::NameTaken(_))) => Ok(None),
            listener => Ok(Some(listener?)),
        }
    }

    fn check_peer(&self, node: &Node, peer: PeerId) -> Result<()> {
        match node.peer(peer).address() {
            Some(address) if address == self.key.remote.ip() => Ok(()),
            Some(_) => Err(Error::Unproven),
            // It has gone meanwhile.
            None => Err(CloseReason::Died.into()),
        }
    }

    fn check_standing(&self) -> Result<()> {
        match kernel::state(self.fd) {
            Ok(TCP_ESTABLISHED) => Ok(()),
            Ok(_) => Err(Error::NotConnected { fd: self.fd, errno: libc::ENOTCONN }),
            Err(kernel::Errno(errno)) => Err(Error::NotConnected { fd: self.fd, errno }),
        }
    }

    fn longest_pause(&self) -> Duration {
        PAUSE
    }

    fn turn(&self) -> Option<Duration> {
        Some(TURN)
    }
}
