//! Where the links of a process are made: a port of its NIC, which other processes call.

use std::sync::Arc;

use sidestep_fabric::Node;
use sidestep_vi::{Connecting, ConnectionRequest, Error, NetAddress, Nic};

use super::{Link, Options, packet};
use crate::carrier::Host;

/// The port of a process.
#[derive(Debug)]
pub struct Port {
    nic: Nic,
    place: Place,
    address: NetAddress,
    options: Options,
    host: &'static Host,
}

/// Where a port is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Under the identity of its process.
    Process([u64; 2]),
    /// Under this number, on this host.
    Number(u16),
}

/// A link that another process wants.
#[derive(Debug)]
pub struct Caller(ConnectionRequest);

/// A link to another process that is being connected.
#[derive(Debug)]
pub struct Call {
    link: Arc<Link>,
    connecting: Connecting,
}

/// Why there is no link.
#[derive(Debug)]
pub enum Refusal {
    /// There is no memory for it.
    Memory(sidestep_shm::Error),
    /// The other process is gone, or does not want it.
    Gone,
    /// Something else is missing.
    Other,
}

impl Port {
    /// Opens a port on the link of this scheme, at the first of these places that is free. Links are made with these options.
    pub fn open(
        node: &Node,
        scheme: &str,
        places: impl IntoIterator<Item = Place>,
        options: Options,
        host: &'static Host,
    ) -> Option<Port> {
        let nic = Nic::on(node.clone(), scheme, "sockets").ok()?;
        let place = places.into_iter().find(|place| nic.listen(&place.address()).is_ok())?;
        Some(Port { nic, place, address: place.address(), options, host })
    }

    /// Where it is.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Who calls, if someone does.
    pub fn poll(&self) -> Option<Caller> {
        self.nic.poll_request(&self.address).ok()?.map(Caller)
    }

    /// A link for who calls, which [is ready](Link::is_ready) soon.
    pub fn answer(&self, caller: Caller) -> Result<Arc<Link>, Refusal> {
        let Caller(mut request) = caller;
        let link = self.link()?;
        request.accept(link.vi()).map_err(|_| Refusal::Gone)?;
        Ok(link)
    }

    /// Calls the port at this place, under a name that tells what for.
    pub fn call(&self, place: Place, name: &[u8]) -> Result<Call, Refusal> {
        let link = self.link()?;
        let connecting = link.vi().begin_connect(&NetAddress::new(&[], name), &place.address());
        connecting.map(|connecting| Call { link, connecting }).map_err(|_| Refusal::Other)
    }

    fn link(&self) -> Result<Arc<Link>, Refusal> {
        Link::new(&self.nic, self.options, self.host).map_err(|error| match error {
            Error::Fabric(sidestep_fabric::Error::Memory(error)) => Refusal::Memory(error),
            _ => Refusal::Other,
        })
    }
}

impl Place {
    fn address(&self) -> NetAddress {
        match self {
            Place::Process(words) => NetAddress::new(&[], &packet::note(*words)),
            Place::Number(number) => NetAddress::new(&[127, 0, 0, 1], format!("127.0.0.1:{number}/sockets").as_bytes()),
        }
    }
}

impl Caller {
    /// What it says that it calls for. Anybody can call, and say anything.
    pub fn name(&self) -> &[u8] {
        &self.0.remote().discriminator
    }
}

impl Call {
    /// The link, once the other process has answered; or the call, to be looked at again.
    pub fn poll(mut self) -> Result<Result<Arc<Link>, Call>, Refusal> {
        match self.connecting.poll() {
            Ok(true) => Ok(Ok(self.link)),
            Ok(false) => Ok(Err(self)),
            Err(_) => Err(Refusal::Gone),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_addresses() {
        assert_eq!(Place::Number(50_000).address().discriminator, b"127.0.0.1:50000/sockets");
        assert_ne!(Place::Process([1, 2]).address(), Place::Process([2, 1]).address());
    }
}
