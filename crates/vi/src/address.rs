//! Addresses of connection points, and the names of the fabric they stand for.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

use sidestep_fabric::link::Capabilities;
use sidestep_wire::cursor::little::Writer;

use crate::{
    attributes::MAX_DISCRIMINATOR,
    error::{Error, Result},
};

/// A host and a discriminator: where one waits for connections.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NetAddress {
    /// The host: four bytes of IPv4, or what a NIC gave as its own.
    pub host: Vec<u8>,
    /// Which point at the host.
    pub discriminator: Vec<u8>,
}

impl NetAddress {
    /// An address.
    pub fn new(host: &[u8], discriminator: &[u8]) -> NetAddress {
        NetAddress { host: host.to_vec(), discriminator: discriminator.to_vec() }
    }

    /// The name under which the fabric knows who waits here.
    pub(crate) fn name(&self, link: &Capabilities) -> Result<String> {
        if self.discriminator.len() > MAX_DISCRIMINATOR {
            return Err(Error::Invalid("a discriminator of this length"));
        }
        let scheme = link.scheme;
        if link.distant {
            return Ok(format!("{scheme}:{}/via-{}", self.socket(&self.discriminator), hash(&self.discriminator)));
        }
        Ok(format!("{scheme}:via-{}", digest(&self.discriminator)))
    }

    /// The name under which two peers meet, whoever comes first.
    pub(crate) fn meeting(&self, other: &NetAddress, link: &Capabilities) -> Result<String> {
        if self.discriminator.len().max(other.discriminator.len()) > MAX_DISCRIMINATOR {
            return Err(Error::Invalid("a discriminator of this length"));
        }
        let (mut one, mut two) = (&self.discriminator, &other.discriminator);
        if one > two {
            (one, two) = (two, one);
        }
        let mut both = Vec::new();
        Writer::new(&mut both).u32(one.len() as u32).bytes(one).bytes(two);
        let scheme = link.scheme;
        if link.distant {
            // Between hosts, the one whose discriminator comes first is where they meet.
            let host = if *one == self.discriminator { self } else { other };
            return Ok(format!("{scheme}:{}/viapeer-{}", host.socket(one), hash(&both)));
        }
        Ok(format!("{scheme}:viapeer-{}", digest(&both)))
    }

    /// Names between hosts are those of TCP sockets. Where one for a discriminator is: `HOST:PORT` if it begins so, with or without more behind a slash, or the
    /// port of this host if it is a decimal number, or else a port that follows from its bytes.
    fn socket(&self, discriminator: &[u8]) -> String {
        let text = std::str::from_utf8(discriminator).unwrap_or_default();
        let first = text.split_once('/').map_or(text, |(first, _)| first);
        if let Ok(address) = first.parse::<SocketAddrV4>() {
            return address.to_string();
        }
        let host = <[u8; 4]>::try_from(&self.host[..]).map_or(Ipv4Addr::UNSPECIFIED, Ipv4Addr::from);
        let port = first.parse::<u16>().ok().filter(|port| *port != 0);
        let spread = || FIRST_PORT + (fnv(discriminator) % u128::from(PORTS)) as u16;
        format!("{host}:{}", port.unwrap_or_else(spread))
    }

    /// Whether the host is this one.
    pub(crate) fn is_here(&self, own: &[u8]) -> bool {
        if self.host.is_empty() || self.host == own || self.host.iter().all(|byte| *byte == 0) {
            return true;
        }
        match <[u8; 4]>::try_from(&self.host[..]) {
            Ok(host) => {
                let host = Ipv4Addr::from(host);
                host.is_loopback() || UdpSocket::bind((host, 0)).is_ok()
            }
            // Six bytes are a station address; only our own is known, and it was compared above.
            Err(_) => false,
        }
    }
}

/// Short bytes in hexadecimal, longer ones by a 128-bit hash (FNV-1a): a name has at most 64 bytes.
fn digest(bytes: &[u8]) -> String {
    if bytes.len() <= 24 {
        return bytes.iter().fold(String::from("x"), |text, byte| text + &format!("{byte:02x}"));
    }
    hash(bytes)
}

fn hash(bytes: &[u8]) -> String {
    format!("h{:032x}", fnv(bytes))
}

fn fnv(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(BASIS, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

/// The ports that discriminators are spread over.
const FIRST_PORT: u16 = 20_000;
const PORTS: u16 = 12_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn link(scheme: &'static str, distant: bool) -> Capabilities {
        Capabilities { scheme, distant, served: distant, gathers: false, max_transfer: 1, max_message: 1 }
    }

    #[test]
    fn names_between_hosts_are_sockets() {
        let name = |host: &[u8], discriminator: &[u8]| {
            NetAddress::new(host, discriminator).name(&link("iwarp", true)).unwrap()
        };
        assert!(name(&[10, 0, 0, 1], b"4791").starts_with("iwarp:10.0.0.1:4791/via-h"));
        assert!(name(&[], b"4791").starts_with("iwarp:0.0.0.0:4791/via-h"));
        assert!(name(&[10, 0, 0, 1], b"127.0.0.9:99/x").starts_with("iwarp:127.0.0.9:99/via-h"));
        assert!(name(&[10, 0, 0, 1], b"printer").starts_with("iwarp:10.0.0.1:2"));
        assert!(name(&[255; 4], &[255; 64]).len() <= 6 + 64);
        let (a, b) = (NetAddress::new(&[10, 0, 0, 1], b"a"), NetAddress::new(&[10, 0, 0, 2], b"b"));
        assert_eq!(a.meeting(&b, &link("iwarp", true)).unwrap(), b.meeting(&a, &link("iwarp", true)).unwrap());
        assert!(a.meeting(&b, &link("iwarp", true)).unwrap().starts_with("iwarp:10.0.0.1:"));
    }

    #[test]
    fn both_sides_meet_under_one_name() {
        let (a, b) = (NetAddress::new(&[127, 0, 0, 1], b"a"), NetAddress::new(&[127, 0, 0, 1], &[7; 60]));
        assert_eq!(a.meeting(&b, &link("shm", false)).unwrap(), b.meeting(&a, &link("shm", false)).unwrap());
        assert!(a.meeting(&b, &link("shm", false)).unwrap().len() <= 64);
        assert!(b.name(&link("shm", false)).unwrap().len() <= 64);
        assert_ne!(a.name(&link("shm", false)).unwrap(), b.name(&link("shm", false)).unwrap());
        assert!(NetAddress::new(&[], &[0; 65]).name(&link("shm", false)).is_err());
        assert!(a.is_here(&[]) && !NetAddress::new(&[192, 0, 2, 1], b"").is_here(&[127, 0, 0, 1]));
    }
}
