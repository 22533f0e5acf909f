//! rpcbind, the program that knows where programs listen (RFC 1833): versions 2 (the port mapper), 3 and 4.
//!
//! Version 2 names a transport by its protocol number and a port. Versions 3 and 4 name it by a network identifier
//! (`tcp`, `udp6`, `local`) and a *universal address*: for IP the address, a dot, and the two bytes of the port in
//! decimal; for a local socket its path.

mod listing;
mod statistics;

pub use listing::Listing;
pub use statistics::{Forwarded, Lookup, PROCEDURES, Statistics, VERSIONS};

use crate::xdr::{Error, Reader, Writer, Xdr};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// The program's number.
pub const PROGRAM: u32 = 100_000;
/// The port it listens on.
pub const PORT: u16 = 111;
/// The greatest number of entries that a list may have.
pub const MAX_ENTRIES: u32 = 65_536;
/// The greatest length of a network identifier, an address or an owner.
pub const MAX_TEXT: u32 = 1024;

/// Procedures of version 2; those that versions 3 and 4 share have the same numbers.
pub mod procedure {
    /// Registers.
    pub const SET: u32 = 1;
    /// Takes a registration back.
    pub const UNSET: u32 = 2;
    /// Asks for a port, or from version 3 for a universal address.
    pub const GET: u32 = 3;
    /// Lists every registration.
    pub const DUMP: u32 = 4;
    /// Has a call made on behalf of the caller, who hears nothing if it fails; in version 4 for broadcasts.
    pub const CALL_IT: u32 = 5;
    /// Asks for the time of the server, from version 3.
    pub const GET_TIME: u32 = 6;
    /// Has a universal address converted to the bytes that the server's system has for it, from version 3.
    pub const TO_TRANSPORT_ADDRESS: u32 = 7;
    /// The reverse, from version 3.
    pub const TO_UNIVERSAL_ADDRESS: u32 = 8;
    /// Asks for the universal address of exactly this version (version 4).
    pub const GET_VERSION_ADDRESS: u32 = 9;
    /// Has a call made on behalf of the caller, who hears of every failure (version 4).
    pub const INDIRECT: u32 = 10;
    /// Lists the addresses of a program in the protocol family of the caller (version 4).
    pub const GET_ADDRESS_LIST: u32 = 11;
    /// Asks what this server was asked (version 4).
    pub const GET_STATISTICS: u32 = 12;
}

/// A registration of version 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// The program.
    pub program: u32,
    /// Its version.
    pub version: u32,
    /// The protocol number of the transport: [`Mapping::TCP`] or [`Mapping::UDP`].
    pub protocol: u32,
    /// The port; ignored in a question.
    pub port: u32,
}

impl Mapping {
    /// The protocol number of TCP.
    pub const TCP: u32 = 6;
    /// The protocol number of UDP.
    pub const UDP: u32 = 17;
}

impl Xdr for Mapping {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), Error> {
        [self.program, self.version, self.protocol, self.port].into_iter().try_for_each(|word| out.u32(word))
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self { program: input.u32()?, version: input.u32()?, protocol: input.u32()?, port: input.u32()? })
    }
}

impl fmt::Display for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mapping { program, version, protocol, port } = self;
        write!(f, "program {program} version {version} protocol {protocol} port {port}")
    }
}

/// A registration of versions 3 and 4.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The program.
    pub program: u32,
    /// Its version.
    pub version: u32,
    /// The network identifier.
    pub network: String,
    /// The universal address.
    pub address: String,
    /// Who registered it.
    pub owner: String,
}

impl Xdr for Entry {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), Error> {
        out.u32(self.program)?;
        out.u32(self.version)?;
        [&self.network, &self.address, &self.owner].into_iter().try_for_each(|text| out.string(text, MAX_TEXT))
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self {
            program: input.u32()?,
            version: input.u32()?,
            network: input.string(MAX_TEXT)?.to_owned(),
            address: input.string(MAX_TEXT)?.to_owned(),
            owner: input.string(MAX_TEXT)?.to_owned(),
        })
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Entry { program, version, network, address, owner } = self;
        write!(f, "program {program} version {version} at {network} {address}, owner {owner}")
    }
}

/// The universal address of an IP address and port.
#[must_use]
pub fn universal_address(address: SocketAddr) -> String {
    let port = address.port();
    format!("{}.{}.{}", address.ip(), port >> 8, port & 0xff)
}

/// The IP address and port of a universal address, unless it is something else.
#[must_use]
pub fn socket_address(universal: &str) -> Option<SocketAddr> {
    let (rest, low) = universal.rsplit_once('.')?;
    let (host, high) = rest.rsplit_once('.')?;
    let (high, low): (u8, u8) = (high.parse().ok()?, low.parse().ok()?);
    let host: IpAddr = host.parse().ok()?;
    Some(SocketAddr::new(host, u16::from_be_bytes([high, low])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_and_emits_golden_registrations() {
        let golden = [0, 1, 0x86, 0xa3, 0, 0, 0, 3, 0, 0, 0, 6, 0, 0, 8, 1];
        let mapping = Mapping::decode(&mut Reader::new(&golden)).unwrap();
        assert_eq!(mapping, Mapping { program: 100_003, version: 3, protocol: Mapping::TCP, port: 2049 });
        let mut out = Vec::new();
        mapping.encode(&mut Writer::new(&mut out, 64)).unwrap();
        assert_eq!(out, golden);

        let golden = b"\0\x01\x86\xa3\0\0\0\x03\0\0\0\x03tcp\0\0\0\0\x0b0.0.0.0.8.1\0\0\0\0\x04root";
        let entry = Entry::decode(&mut Reader::new(golden)).unwrap();
        assert_eq!(entry.to_string(), "program 100003 version 3 at tcp 0.0.0.0.8.1, owner root");
        let mut out = Vec::new();
        entry.encode(&mut Writer::new(&mut out, 64)).unwrap();
        assert_eq!(out, golden);
    }

    #[test]
    fn universal_addresses() {
        for (socket, universal) in [("127.0.0.1:2049", "127.0.0.1.8.1"), ("[::1]:111", "::1.0.111")] {
            let socket: SocketAddr = socket.parse().unwrap();
            assert_eq!(universal_address(socket), universal);
            assert_eq!(socket_address(universal), Some(socket));
        }
        for bad in ["", "1", "1.2", "127.0.0.1", "127.0.0.1.256.1", "/run/rpcbind.sock", "127.0.0.1.8.1 "] {
            assert_eq!(socket_address(bad), None, "{bad}");
        }
    }
}
