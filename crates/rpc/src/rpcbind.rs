//! Telling and asking where programs listen (RFC 1833).

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use sidestep_wire::rpcbind::{self as wire, MAX_ENTRIES, PROGRAM, procedure, socket_address, universal_address};
pub use sidestep_wire::rpcbind::{Entry, Mapping, PORT};

use crate::xdr::Xdr;
use crate::{Client, Error, Procedure};

/// Where rpcbind takes registrations of its own host, in the order in which they are tried.
const LOCAL: [&str; 3] = ["unix:/run/rpcbind.sock", "unix:/var/run/rpcbind.sock", "tcp:127.0.0.1:111"];

/// A connection to an rpcbind.
#[derive(Debug, Clone)]
pub struct Binder {
    client: Client,
}

impl Binder {
    /// Connects to the rpcbind of this host.
    pub fn local() -> Result<Self, Error> {
        let mut outcome = Self::connect(LOCAL[0]);
        for address in &LOCAL[1..] {
            if outcome.is_ok() {
                break;
            }
            outcome = Self::connect(address);
        }
        outcome
    }

    /// Connects to an rpcbind at an address.
    pub fn connect(address: &str) -> Result<Self, Error> {
        Client::connect(address).map(Self::new)
    }

    /// Asks through a client.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Registers. The owner is whoever rpcbind sees. `false` if another registration is in the way.
    pub fn set(&self, entry: &Entry) -> Result<bool, Error> {
        self.client.call(version4(procedure::SET), |out| out.value(entry), |input| input.bool())
    }

    /// Takes back the registrations of a version of a program: those for a network, or all if that is empty. `false` if
    /// there was none, or somebody else's.
    pub fn unset(&self, program: u32, version: u32, network: &str) -> Result<bool, Error> {
        let entry = question(program, version, network);
        self.client.call(version4(procedure::UNSET), |out| out.value(&entry), |input| input.bool())
    }

    /// The universal address of a version of a program on a network, if it is registered. The list is asked for:
    /// rpcbind tells a single address only of the network over which it is asked.
    pub fn address(&self, program: u32, version: u32, network: &str) -> Result<Option<String>, Error> {
        let mut entries = self.list()?.into_iter();
        let found =
            entries.find(|entry| (entry.program, entry.version, entry.network.as_str()) == (program, version, network));
        Ok(found.map(|entry| entry.address))
    }

    /// The port of a version of a program, by the port mapper's version 2: [`Mapping::TCP`] or [`Mapping::UDP`].
    pub fn port(&self, program: u32, version: u32, protocol: u32) -> Result<Option<u16>, Error> {
        let mapping = Mapping { program, version, protocol, port: 0 };
        let get = Procedure { program: PROGRAM, version: 2, procedure: procedure::GET };
        let port = self.client.call(get, |out| out.value(&mapping), |input| input.u32())?;
        Ok(u16::try_from(port).ok().filter(|port| *port != 0))
    }

    /// Every registration.
    pub fn list(&self) -> Result<Vec<Entry>, Error> {
        self.client.call(version4(procedure::DUMP), |_| Ok(()), |input| input.list(MAX_ENTRIES, Entry::decode))
    }
}

/// Finds where a program listens on a host, and connects to it. The network is `tcp` or `udp`.
pub fn connect(host: &str, program: u32, version: u32, network: &str) -> Result<Client, Error> {
    let binder = Binder::connect(&format!("tcp:{host}:{}", wire::PORT))?;
    let protocol = if network == "udp" { Mapping::UDP } else { Mapping::TCP };
    match binder.port(program, version, protocol)? {
        Some(port) => Client::connect(&format!("{network}:{host}:{port}")),
        None => Err(Error::NotRegistered { program, version, network: network.to_owned() }),
    }
}

/// The address of a client or server, from what rpcbind says of it.
#[must_use]
pub fn address(network: &str, universal: &str) -> Option<crate::Address> {
    Some(match network {
        "tcp" | "tcp6" => crate::Address::Tcp(socket_address(universal)?.to_string()),
        "udp" | "udp6" => crate::Address::Udp(socket_address(universal)?.to_string()),
        "local" => crate::Address::Unix(universal.into()),
        _ => return None,
    })
}

fn version4(procedure: u32) -> Procedure {
    Procedure { program: PROGRAM, version: 4, procedure }
}

fn question(program: u32, version: u32, network: &str) -> Entry {
    Entry { program, version, network: network.to_owned(), address: String::new(), owner: String::new() }
}

/// The network identifiers and universal addresses of sockets and of paths of UNIX sockets.
pub(crate) fn universal_addresses(
    sockets: &[(&'static str, SocketAddr)],
    paths: &[PathBuf],
) -> Vec<(&'static str, String)> {
    let of_socket = |(network, address): &(&'static str, SocketAddr)| {
        let network = match (*network, address.is_ipv4()) {
            ("tcp", false) => "tcp6",
            ("udp", false) => "udp6",
            ("rdma", false) => "rdma6",
            (network, _) => network,
        };
        (network, universal_address(*address))
    };
    sockets.iter().map(of_socket).chain(paths.iter().map(|path| ("local", absolute(path)))).collect()
}

/// What a server has registered, which is taken back with it.
pub(crate) struct Registration {
    binder: Binder,
    program: u32,
    version: u32,
    networks: Vec<&'static str>,
}

impl Registration {
    pub fn make(
        rpcbind: Option<&str>,
        (program, version): (u32, u32),
        sockets: &[(&'static str, SocketAddr)],
        paths: &[PathBuf],
    ) -> Result<Self, Error> {
        let binder = rpcbind.map_or_else(Binder::local, Binder::connect)?;
        let mut made = Registration { binder, program, version, networks: Vec::new() };
        for (network, address) in universal_addresses(sockets, paths) {
            made.add(network, address)?;
        }
        Ok(made)
    }

    fn add(&mut self, network: &'static str, address: String) -> Result<(), Error> {
        let entry = Entry { address, ..question(self.program, self.version, network) };
        // What a server of the same user left behind when it died is in the way of nobody.
        if !self.binder.set(&entry)? {
            self.binder.unset(self.program, self.version, network)?;
            if !self.binder.set(&entry)? {
                return Err(Error::NotTaken { program: self.program, version: self.version });
            }
        }
        self.networks.push(network);
        Ok(())
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        for network in &self.networks {
            // An rpcbind that has ended has forgotten it.
            let _ = self.binder.unset(self.program, self.version, network);
        }
    }
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}
