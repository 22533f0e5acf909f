//! An rpcbind of our own, for hosts without one (RFC 1833, versions 2 to 4): SET, UNSET, GETPORT or GETADDR, DUMP and
//! GETTIME. Calls on behalf of others (CALLIT, BCAST, INDIRECT) are **not** there: they have been used to attack third
//! parties.
//!
//! Only callers of this host may register: over UNIX sockets, or from a loopback address. A registration belongs to the
//! user who made it over a UNIX socket; those made over loopback belong to nobody and may be taken back by anybody of
//! this host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use sidestep_wire::rpcbind::{MAX_TEXT, PROGRAM, procedure, socket_address, universal_address};

use crate::client::lock;
use crate::rpcbind::{Entry, Mapping};
use crate::xdr::{Reader, Writer};
use crate::{AuthError, Call, Peer, Refusal, Service};

/// Where the programs of this host listen. Clones share what they know.
#[derive(Debug, Clone, Default)]
pub struct Directory {
    entries: Arc<Mutex<Vec<Entry>>>,
}

/// A directory as one version of rpcbind.
#[derive(Debug)]
pub struct DirectoryService {
    directory: Directory,
    version: u32,
}

/// More registrations are refused.
const MAX_REGISTRATIONS: usize = 4096;

/// Who registered over a loopback address.
const UNKNOWN: &str = "unknown";

impl Directory {
    /// The services of all versions, for a server.
    #[must_use]
    pub fn services(&self) -> [DirectoryService; 3] {
        [2, 3, 4].map(|version| DirectoryService { directory: self.clone(), version })
    }

    fn set(&self, entry: Entry) -> bool {
        let mut entries = lock(&self.entries);
        let taken = entries.iter().any(|other| {
            (other.program, other.version, &other.network) == (entry.program, entry.version, &entry.network)
        });
        if taken || entries.len() >= MAX_REGISTRATIONS {
            return false;
        }
        entries.push(entry);
        true
    }

    /// Takes back what the caller may: its own, and what belongs to nobody; root everything.
    fn unset(&self, program: u32, version: u32, networks: &[&str], caller: &str) -> bool {
        let mut entries = lock(&self.entries);
        let before = entries.len();
        entries.retain(|entry| {
            let meant = (entry.program, entry.version) == (program, version)
                && (networks.is_empty() || networks.contains(&&*entry.network));
            let may = caller == "0" || entry.owner == caller || entry.owner == UNKNOWN;
            !(meant && may)
        });
        entries.len() < before
    }

    /// Where a program listens: this version, or else any, so that the caller can be told of the versions there.
    fn find(&self, program: u32, version: u32, network: &str) -> Option<String> {
        let entries = lock(&self.entries);
        let mut of_program = entries.iter().filter(|entry| entry.program == program && entry.network == network);
        let any = of_program.clone().next();
        let exact = of_program.find(|entry| entry.version == version);
        exact.or(any).map(|entry| entry.address.clone())
    }
}

impl Service for DirectoryService {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn call(&self, call: &Call<'_>, input: &mut Reader<'_>, out: &mut Writer<'_>) -> Result<(), Refusal> {
        match (call.procedure, self.version) {
            (0, _) => Ok(input.finish()?),
            (_, 2) => self.version2(call, input, out),
            _ => self.version4(call, input, out),
        }
    }
}

impl DirectoryService {
    fn version2(&self, call: &Call<'_>, input: &mut Reader<'_>, out: &mut Writer<'_>) -> Result<(), Refusal> {
        if call.procedure == procedure::DUMP {
            input.finish()?;
            let mappings: Vec<Mapping> = lock(&self.directory.entries).iter().filter_map(mapping).collect();
            return out.list(&mappings, |out, mapping| out.value(mapping)).map_err(Refusal::of_results);
        }
        let Mapping { program, version, protocol, port } = input.value()?;
        input.finish()?;
        let network = if protocol == Mapping::UDP { "udp" } else { "tcp" };
        let done = match call.procedure {
            procedure::SET => {
                let owner = local(call)?;
                let port = u16::try_from(port).map_err(|_| Refusal::GarbageArguments)?;
                let address = universal_address(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port));
                out.bool(self.directory.set(Entry { program, version, network: network.into(), address, owner }))
            }
            procedure::UNSET => out.bool(self.directory.unset(program, version, &["tcp", "udp"], &local(call)?)),
            procedure::GET => {
                let found = self.directory.find(program, version, network);
                out.u32(found.and_then(|found| socket_address(&found)).map_or(0, |address| address.port().into()))
            }
            _ => return Err(Refusal::ProcedureUnavailable),
        };
        done.map_err(Refusal::of_results)
    }

    fn version4(&self, call: &Call<'_>, input: &mut Reader<'_>, out: &mut Writer<'_>) -> Result<(), Refusal> {
        match call.procedure {
            procedure::DUMP => {
                input.finish()?;
                let entries = lock(&self.directory.entries).clone();
                return out.list(&entries, |out, entry| out.value(entry)).map_err(Refusal::of_results);
            }
            procedure::GET_TIME => {
                input.finish()?;
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                return out.u32(now.as_secs() as u32).map_err(Refusal::of_results);
            }
            _ => {}
        }
        let entry: Entry = input.value()?;
        input.finish()?;
        let Entry { program, version, network, .. } = &entry;
        let done = match call.procedure {
            procedure::SET => {
                let owner = local(call)?;
                out.bool(self.directory.set(Entry { owner, ..entry }))
            }
            procedure::UNSET => {
                let networks = [network.as_str()];
                let networks = if network.is_empty() { &[] } else { &networks[..] };
                out.bool(self.directory.unset(*program, *version, networks, &local(call)?))
            }
            procedure::GET | procedure::GET_VERSION_ADDRESS => {
                // The network over which the question came counts, not the one in it.
                let found = self.directory.find(*program, *version, network_of(call.peer));
                out.string(&found.map(|found| reachable(&found, call.peer)).unwrap_or_default(), MAX_TEXT)
            }
            _ => return Err(Refusal::ProcedureUnavailable),
        };
        done.map_err(Refusal::of_results)
    }
}

/// Who of this host calls; others are refused.
fn local(call: &Call<'_>) -> Result<String, Refusal> {
    match call.peer {
        Peer::Unix { uid, .. } => Ok(uid.to_string()),
        Peer::Tcp(from) | Peer::Udp(from) if from.ip().to_canonical().is_loopback() => Ok(UNKNOWN.to_owned()),
        _ => Err(Refusal::Auth(AuthError::TooWeak)),
    }
}

fn network_of(peer: &Peer) -> &'static str {
    match peer {
        Peer::Tcp(from) if from.ip().to_canonical().is_ipv4() => "tcp",
        Peer::Tcp(_) => "tcp6",
        Peer::Udp(from) if from.ip().to_canonical().is_ipv4() => "udp",
        Peer::Udp(_) => "udp6",
        Peer::Rdma(from) if from.ip().to_canonical().is_ipv4() => "rdma",
        Peer::Rdma(_) => "rdma6",
        Peer::Unix { .. } | Peer::Fabric { .. } => "local",
    }
}

/// A server that listens on every address is reached from loopback at loopback.
fn reachable(universal: &str, peer: &Peer) -> String {
    let (Some(mut address), Peer::Tcp(from) | Peer::Udp(from)) = (socket_address(universal), peer) else {
        return universal.to_owned();
    };
    if address.ip().is_unspecified() && from.ip().to_canonical().is_loopback() {
        let loopback: IpAddr = if address.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
        address.set_ip(loopback);
    }
    universal_address(address)
}

/// What version 2 knows of a registration.
fn mapping(entry: &Entry) -> Option<Mapping> {
    let protocol = match entry.network.as_str() {
        "tcp" => Mapping::TCP,
        "udp" => Mapping::UDP,
        _ => return None,
    };
    let port = socket_address(&entry.address)?.port().into();
    Some(Mapping { program: entry.program, version: entry.version, protocol, port })
}
