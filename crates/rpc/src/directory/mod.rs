//! An rpcbind of our own, for hosts without one (RFC 1833, versions 2 to 4).
//!
//! Calls on behalf of others (CALLIT, BCAST, INDIRECT) are **not** there: they have been used to attack third parties. Nor are
//! conversions between universal addresses and the bytes that one system has for them. Both are answered `PROC_UNAVAIL`.
//!
//! Only callers of this host may register: over UNIX sockets, or from a loopback address. A registration belongs to the
//! user who made it over a UNIX socket; those made over loopback belong to nobody and may be taken back by anybody of
//! this host.

mod network;
mod state;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use sidestep_wire::rpcbind::{Listing, MAX_TEXT, PROGRAM, procedure, socket_address, universal_address};

use self::state::{Question, State, UNKNOWN};
use crate::client::lock;
use crate::rpcbind::{Entry, Mapping};
use crate::xdr::{Reader, Writer};
use crate::{AuthError, Call, Peer, Refusal, Server, Service};

/// Where the programs of this host listen. Clones share what they know.
#[derive(Debug, Clone, Default)]
pub struct Directory {
    state: Arc<Mutex<State>>,
}

/// A directory as one version of rpcbind.
#[derive(Debug)]
pub struct DirectoryService {
    directory: Directory,
    version: u32,
}

impl Directory {
    /// The versions of rpcbind that there are.
    const VERSIONS: [u32; 3] = [2, 3, 4];

    /// The services of all versions, for a server.
    #[must_use]
    pub fn services(&self) -> [DirectoryService; 3] {
        Self::VERSIONS.map(|version| DirectoryService { directory: self.clone(), version })
    }

    /// Lists the server of these services among the programs, on every transport that it listens on. The registrations belong
    /// to the user of this process.
    pub fn list_itself(&self, server: &Server) {
        let owner = rustix::process::geteuid().as_raw().to_string();
        let mut state = lock(&self.state);
        for (network, address) in server.universal_addresses() {
            for version in Self::VERSIONS.into_iter().rev() {
                let (network, address, owner) = (network.to_owned(), address.clone(), owner.clone());
                state.set(Entry { program: PROGRAM, version, network, address, owner });
            }
        }
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
        lock(&self.directory.state).note_call(self.version, call.procedure);
        match (call.procedure, self.version) {
            (0, _) => Ok(input.finish()?),
            (_, 2) => self.version2(call, input, out),
            _ => self.version4(call, input, out),
        }
    }
}

impl DirectoryService {
    fn version2(&self, call: &Call<'_>, input: &mut Reader<'_>, out: &mut Writer<'_>) -> Result<(), Refusal> {
        let mut argument = || -> Result<Mapping, Refusal> {
            let mapping = input.value()?;
            input.finish()?;
            Ok(mapping)
        };
        let written = match call.procedure {
            procedure::SET => {
                let (Mapping { program, version, protocol, port }, owner) = (argument()?, local(call)?);
                let port = u16::try_from(port).map_err(|_| Refusal::GarbageArguments)?;
                let address = universal_address(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port));
                let entry = network::of_protocol(protocol).map(|network| Entry {
                    program,
                    version,
                    network: network.to_owned(),
                    address,
                    owner,
                });
                out.bool(entry.is_some_and(|entry| self.set(entry)))
            }
            procedure::UNSET => {
                let Mapping { program, version, .. } = argument()?;
                out.bool(self.unset(program, version, &["tcp", "udp"], &local(call)?))
            }
            procedure::GET => {
                let Mapping { program, version, protocol, .. } = argument()?;
                let network = network::of_protocol(protocol);
                let found = network.and_then(|network| self.find(Question { program, version, network, exact: false }));
                out.u32(found.and_then(|found| socket_address(&found)).map_or(0, |address| address.port().into()))
            }
            procedure::DUMP => {
                input.finish()?;
                let mappings: Vec<Mapping> =
                    lock(&self.directory.state).entries().iter().filter_map(network::mapping).collect();
                out.list(&mappings, |out, mapping| out.value(mapping))
            }
            _ => return Err(Refusal::ProcedureUnavailable),
        };
        written.map_err(Refusal::of_results)
    }

    /// Version 3, which is a part of version 4, and that.
    fn version4(&self, call: &Call<'_>, input: &mut Reader<'_>, out: &mut Writer<'_>) -> Result<(), Refusal> {
        let is_fourth = self.version == 4;
        let mut argument = || -> Result<Entry, Refusal> {
            let entry = input.value()?;
            input.finish()?;
            Ok(entry)
        };
        let written = match call.procedure {
            procedure::SET => {
                let (entry, owner) = (argument()?, local(call)?);
                out.bool(self.set(Entry { owner, ..entry }))
            }
            procedure::UNSET => {
                let Entry { program, version, network, .. } = argument()?;
                let networks = [network.as_str()];
                let networks = if network.is_empty() { &[] } else { &networks[..] };
                out.bool(self.unset(program, version, networks, &local(call)?))
            }
            procedure::GET => self.address(call, &argument()?, false, out),
            procedure::GET_VERSION_ADDRESS if is_fourth => self.address(call, &argument()?, true, out),
            procedure::DUMP => {
                input.finish()?;
                let entries = lock(&self.directory.state).entries().to_vec();
                out.list(&entries, |out, entry| out.value(entry))
            }
            procedure::GET_TIME => {
                input.finish()?;
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                out.u32(now.as_secs() as u32)
            }
            procedure::GET_ADDRESS_LIST if is_fourth => {
                let asked = argument()?;
                let is_meant = |entry: &&Entry| (entry.program, entry.version) == (asked.program, asked.version);
                let state = lock(&self.directory.state);
                let meant = state.entries().iter().filter(is_meant);
                let found: Vec<Listing> = meant.filter_map(|entry| network::listing(entry, call.peer)).collect();
                out.list(&found, |out, listing| out.value(listing))
            }
            procedure::GET_STATISTICS if is_fourth => {
                input.finish()?;
                let statistics = lock(&self.directory.state).statistics().clone();
                out.items(&statistics, |out, statistics| out.value(statistics))
            }
            _ => return Err(Refusal::ProcedureUnavailable),
        };
        written.map_err(Refusal::of_results)
    }

    fn set(&self, entry: Entry) -> bool {
        let mut state = lock(&self.directory.state);
        let is_set = state.set(entry);
        state.note_set(self.version, is_set);
        is_set
    }

    fn unset(&self, program: u32, version: u32, networks: &[&str], caller: &str) -> bool {
        let mut state = lock(&self.directory.state);
        let is_unset = state.unset(program, version, networks, caller);
        state.note_unset(self.version, is_unset);
        is_unset
    }

    fn find(&self, question: Question<'_>) -> Option<String> {
        let mut state = lock(&self.directory.state);
        let found = state.find(question);
        state.note_lookup(self.version, question, found.is_some());
        found
    }

    /// Where a program listens on the network over which the question came, whatever network it names.
    fn address(
        &self,
        call: &Call<'_>,
        asked: &Entry,
        exact: bool,
        out: &mut Writer<'_>,
    ) -> Result<(), crate::xdr::Error> {
        let (program, version, network) = (asked.program, asked.version, network::of_peer(call.peer));
        let found = self.find(Question { program, version, network, exact });
        out.string(&found.map(|found| network::reachable(&found, call.peer)).unwrap_or_default(), MAX_TEXT)
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
