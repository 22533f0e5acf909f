//! Which connection: the network namespace and the two addresses, in a form that both ends agree on.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use sidestep_wire::cursor::big;

use crate::kernel::{self, Errno, Result};

/// Names one end of a connection. The other end's key is [`Key::reversed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// SO_NETNS_COOKIE: addresses mean something only within it.
    pub namespace: u64,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
}

impl Key {
    /// The key of a connected descriptor.
    pub fn of(fd: i32) -> Result<Key> {
        let namespace = kernel::option64(fd, libc::SOL_SOCKET, kernel::SO_NETNS_COOKIE).unwrap_or(0);
        Ok(Key { namespace, local: address(fd, false)?, remote: address(fd, true)? })
    }

    /// The key of the other end.
    pub fn reversed(&self) -> Key {
        Key { local: self.remote, remote: self.local, ..*self }
    }

    /// Whether this end asks and the other waits to be asked. Servers have the smaller ports and live longer.
    pub fn asks(&self) -> bool {
        (self.local.port(), self.local.ip()) > (self.remote.port(), self.remote.ip())
    }

    /// The form kept in the registry and sent in a handshake: namespace, addresses, ports.
    pub fn to_words(&self) -> [u64; 6] {
        let [a, b] = halves(self.local.ip());
        let [c, d] = halves(self.remote.ip());
        [self.namespace, a, b, c, d, u64::from(self.local.port()) << 16 | u64::from(self.remote.port())]
    }

    /// Reads that form.
    pub fn from_words(words: [u64; 6]) -> Key {
        let [namespace, a, b, c, d, ports] = words;
        let local = SocketAddr::new(joined([a, b]), (ports >> 16) as u16);
        let remote = SocketAddr::new(joined([c, d]), ports as u16);
        Key { namespace, local, remote }
    }
}

/// IPv4 in IPv6 is IPv4: a wildcard listener sees the mapped form of what its client sees plain.
fn plain(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(ip, IpAddr::V4),
        IpAddr::V4(_) => ip,
    }
}

fn halves(ip: IpAddr) -> [u64; 2] {
    let v6 = match ip {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    let bits = u128::from(v6);
    [(bits >> 64) as u64, bits as u64]
}

fn joined([high, low]: [u64; 2]) -> IpAddr {
    plain(IpAddr::V6(Ipv6Addr::from(u128::from(high) << 64 | u128::from(low))))
}

fn address(fd: i32, of_peer: bool) -> Result<SocketAddr> {
    let (bytes, len) = kernel::address(fd, of_peer)?;
    let family = i32::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
    let port = big::Reader::new(&bytes[2..]).u16().map_err(|_| Errno(libc::EAFNOSUPPORT))?;
    match family {
        libc::AF_INET if len >= 8 => {
            Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(bytes[4], bytes[5], bytes[6], bytes[7])), port))
        }
        libc::AF_INET6 if len >= 24 => {
            let octets: [u8; 16] = bytes[8..24].try_into().expect("sixteen bytes");
            Ok(SocketAddr::new(plain(IpAddr::V6(Ipv6Addr::from(octets))), port))
        }
        _ => Err(Errno(libc::EAFNOSUPPORT)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(local: &str, remote: &str) -> Key {
        Key { namespace: 7, local: local.parse().unwrap(), remote: remote.parse().unwrap() }
    }

    #[test]
    fn words_carry_everything() {
        for key in [key("127.0.0.1:80", "127.0.0.1:40000"), key("[::1]:80", "[fe80::1:2]:1")] {
            assert_eq!(Key::from_words(key.to_words()), key);
            assert_eq!(key.reversed().reversed(), key);
        }
    }

    #[test]
    fn one_end_asks() {
        for key in [key("127.0.0.1:80", "127.0.0.1:40000"), key("127.0.0.1:5", "127.0.0.2:5")] {
            assert_ne!(key.asks(), key.reversed().asks());
        }
    }

    #[test]
    fn a_real_connection_has_keys_that_fit() {
        use std::os::fd::AsRawFd;
        let listener = std::net::TcpListener::bind("[::]:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (server, _) = listener.accept().unwrap();
        let (a, b) = (Key::of(client.as_raw_fd()).unwrap(), Key::of(server.as_raw_fd()).unwrap());
        assert_eq!(a, b.reversed());
        assert_ne!(a.namespace, 0);
    }
}
