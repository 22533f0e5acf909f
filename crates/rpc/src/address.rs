//! Where a server is: `tcp:HOST:PORT`, `udp:HOST:PORT`, `rdma:HOST:PORT`, `unix:PATH`, `shm:NAME`, `vi:NAME` or
//! `vi-iwarp:HOST:PORT`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::Error;

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Address {
    /// `tcp:HOST:PORT`.
    Tcp(String),
    /// `udp:HOST:PORT`.
    Udp(String),
    /// `rdma:HOST:PORT`, RPC over RDMA on iWARP.
    Rdma(String),
    /// `unix:PATH`.
    Unix(PathBuf),
    /// `shm:NAME`, a name of the fabric on this host; or `vmmc:NAME`, on the cards of a program that provides that link.
    Fabric(String),
    /// `vi:NAME`, a VI on this host, over shared memory.
    Vi(String),
    /// `vi-iwarp:HOST:PORT`, a VI over iWARP.
    ViIwarp(String),
}

const SCHEMES: &str = "it does not begin with tcp:, udp:, rdma:, unix:, shm:, vi: or vi-iwarp:";

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = |reason| Error::Address { address: text.to_owned(), reason };
        let (scheme, rest) = text.split_once(':').ok_or(bad(SCHEMES))?;
        let with_port = |rest: &str| match rest.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(rest.to_owned()),
            _ => Err(bad("it does not end with a host and a port")),
        };
        match scheme {
            "tcp" => with_port(rest).map(Address::Tcp),
            "udp" => with_port(rest).map(Address::Udp),
            "rdma" => with_port(rest).map(Address::Rdma),
            "unix" if rest.is_empty() => Err(bad("it has no path")),
            "unix" => Ok(Address::Unix(rest.into())),
            "shm" | "vi" if rest.is_empty() => Err(bad("it has no name")),
            "shm" | "vmmc" => Ok(Address::Fabric(text.to_owned())),
            "vi" => Ok(Address::Vi(rest.to_owned())),
            "vi-iwarp" => with_port(rest).map(Address::ViIwarp),
            _ => Err(bad(SCHEMES)),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(rest) => write!(f, "tcp:{rest}"),
            Address::Udp(rest) => write!(f, "udp:{rest}"),
            Address::Rdma(rest) => write!(f, "rdma:{rest}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Fabric(name) => f.write_str(name),
            Address::Vi(name) => write!(f, "vi:{name}"),
            Address::ViIwarp(rest) => write!(f, "vi-iwarp:{rest}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_shown() {
        let fabric = ["shm:store", "vmmc:shm:store", "vi:store", "vi-iwarp:host:20050"];
        let sockets = ["tcp:127.0.0.1:111", "udp:[::1]:111", "rdma:host:20049", "unix:/run/rpcbind.sock"];
        for good in fabric.into_iter().chain(sockets) {
            assert_eq!(good.parse::<Address>().unwrap().to_string(), good);
        }
        for bad in
            ["", "tcp", "tcp:host", "tcp::111", "tcp:host:70000", "unix:", "shm:", "vi:", "vi-iwarp:x", "http:host:80"]
        {
            assert!(bad.parse::<Address>().is_err(), "{bad}");
        }
    }
}
