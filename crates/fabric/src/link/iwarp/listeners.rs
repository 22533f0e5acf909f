//! The ports on which peers arrive, and the names under which they are listened.

use std::{
    collections::{HashMap, HashSet},
    os::fd::{AsFd, OwnedFd},
};

use rustix::io::Errno;
use sidestep_shm::{
    self as shm,
    doorbell::{Doorbell, Sleeper},
};

use super::{
    address::{self, Address},
    network::Network,
    socket,
};
use crate::{error::Result, link::LinkOptions};

/// The listening sockets of a link.
#[derive(Debug)]
pub(super) struct Listeners {
    /// By `HOST:PORT`.
    ports: HashMap<String, Port>,
    /// Names of lines over streams of the caller.
    in_place: HashSet<String>,
    next: u64,
    /// A descriptor in reserve, for turning peers away when there are no others.
    spare: Option<Doorbell>,
}

#[derive(Debug)]
struct Port {
    socket: OwnedFd,
    token: u64,
    number: u16,
    names: Vec<String>,
}

/// Tokens of listening sockets have this bit.
pub(super) const LISTENER: u64 = 1 << 40;

impl Listeners {
    pub(super) fn new() -> Result<Listeners> {
        Ok(Listeners { ports: HashMap::new(), in_place: HashSet::new(), next: 0, spare: Some(Doorbell::new()?) })
    }

    /// Listens under a name; peers show up in `ready`.
    pub(super) fn add(&mut self, name: &str, network: &dyn Network, ready: &Sleeper) -> Result<()> {
        if address::is_in_place(name) {
            let is_new = self.in_place.insert(name.to_string());
            return if is_new { Ok(()) } else { Err(shm::Error::NameTaken(name.to_string()).into()) };
        }
        let address = Address::parse(name)?;
        if let Some(port) = self.ports.get_mut(address.text) {
            if port.names.iter().any(|taken| taken == name) {
                return Err(shm::Error::NameTaken(name.to_string()).into());
            }
            port.names.push(name.to_string());
            return Ok(());
        }
        let socket = socket::listen(network, address.resolve()?[0], name)?;
        let token = LISTENER | self.next;
        self.next += 1;
        ready.add_level(socket.as_fd(), token)?;
        let port = Port { socket, token, number: address.port, names: vec![name.to_string()] };
        self.ports.insert(address.text.to_string(), port);
        Ok(())
    }

    /// Stops that.
    pub(super) fn remove(&mut self, name: &str, ready: &Sleeper) {
        if self.in_place.remove(name) {
            return;
        }
        let Ok(address) = Address::parse(name) else { return };
        let Some(port) = self.ports.get_mut(address.text) else { return };
        port.names.retain(|other| other != name);
        if port.names.is_empty() {
            ready.remove(port.socket.as_fd());
            self.ports.remove(address.text);
        }
    }

    /// The one name of the same port and service as one that a peer used: it may know this host by another name, or the
    /// listener may have given none.
    pub(super) fn local_name(&self, name: &str) -> Option<String> {
        let address = Address::parse(name).ok()?;
        let service = &name[address.text.len()..];
        let names = self.ports.values().filter(|port| port.number == address.port).flat_map(|port| &port.names);
        let same = |known: &&String| Address::parse(known).is_ok_and(|of| known[of.text.len()..] == *service);
        let mut matching = names.filter(same);
        match (matching.next(), matching.next()) {
            (Some(only), None) => Some(only.clone()),
            _ => None,
        }
    }

    /// The next peer that has arrived at a port. When the descriptors are used up, one peer is turned away.
    pub(super) fn accept(&mut self, token: u64, options: &LinkOptions) -> Option<OwnedFd> {
        let port = self.ports.values().find(|port| port.token == token)?;
        match socket::accept(port.socket.as_fd(), options) {
            Ok(accepted) => accepted,
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                drop(self.spare.take());
                drop(socket::accept(port.socket.as_fd(), options));
                self.spare = Doorbell::new().ok();
                None
            }
            Err(_) => None,
        }
    }
}
