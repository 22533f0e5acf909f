//! Transports as rpcbind names them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sidestep_wire::rpcbind::{Listing, Mapping, socket_address, universal_address};

use crate::Peer;
use crate::rpcbind::Entry;

/// The network identifier of the transport over which somebody calls.
pub(super) fn of_peer(peer: &Peer) -> &'static str {
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

/// The network identifier of a protocol number of version 2, if there is one.
pub(super) fn of_protocol(protocol: u32) -> Option<&'static str> {
    match protocol {
        Mapping::TCP => Some("tcp"),
        Mapping::UDP => Some("udp"),
        _ => None,
    }
}

/// The protocol family and the protocol behind a network identifier.
fn family(network: &str) -> Option<(&'static str, &'static str)> {
    Some(match network {
        "tcp" => ("inet", "tcp"),
        "udp" => ("inet", "udp"),
        "rdma" => ("inet", "rdma"),
        "tcp6" => ("inet6", "tcp"),
        "udp6" => ("inet6", "udp"),
        "rdma6" => ("inet6", "rdma"),
        "local" => ("loopback", "-"),
        _ => return None,
    })
}

/// What version 4 lists of a registration, if the caller's transport is of the same family.
pub(super) fn listing(entry: &Entry, peer: &Peer) -> Option<Listing> {
    let (family_of_caller, _) = family(of_peer(peer))?;
    let (family, protocol) = family(&entry.network).filter(|(family, _)| *family == family_of_caller)?;
    Some(Listing {
        address: reachable(&entry.address, peer),
        network: entry.network.clone(),
        semantics: if protocol == "udp" { Listing::DATAGRAMS } else { Listing::STREAM },
        family: family.to_owned(),
        protocol: protocol.to_owned(),
    })
}

/// What version 2 knows of a registration.
pub(super) fn mapping(entry: &Entry) -> Option<Mapping> {
    let protocol = [Mapping::TCP, Mapping::UDP].into_iter().find(|it| of_protocol(*it) == Some(&entry.network))?;
    let port = socket_address(&entry.address)?.port().into();
    Some(Mapping { program: entry.program, version: entry.version, protocol, port })
}

/// A server that listens on every address is reached from loopback at loopback.
pub(super) fn reachable(universal: &str, peer: &Peer) -> String {
    let (Some(mut address), Peer::Tcp(from) | Peer::Udp(from)) = (socket_address(universal), peer) else {
        return universal.to_owned();
    };
    if address.ip().is_unspecified() && from.ip().to_canonical().is_loopback() {
        let loopback: IpAddr = if address.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
        address.set_ip(loopback);
    }
    universal_address(address)
}
