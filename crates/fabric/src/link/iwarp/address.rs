//! Names of this link: `HOST:PORT`, or `HOST:PORT/SERVICE` where several share a port.

use std::net::{SocketAddr, ToSocketAddrs};

use crate::error::{Error, Result};

/// The part of a name that a socket has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Address<'a> {
    /// As it was given: `HOST:PORT`.
    pub(super) text: &'a str,
    host: &'a str,
    pub(super) port: u16,
}

/// Whether a name is of lines over streams that the caller has connected: no port belongs to it.
pub(super) fn is_in_place(name: &str) -> bool {
    name.starts_with("in-place/")
}

const MUST: &str = "HOST:PORT or HOST:PORT/SERVICE, with a host that can be resolved and a port from 1 to 65535";

impl<'a> Address<'a> {
    /// Takes a name apart.
    pub(super) fn parse(name: &'a str) -> Result<Address<'a>> {
        let bad = || Error::Name { name: name.to_string(), must: MUST };
        let text = name.split_once('/').map_or(name, |(text, _)| text);
        let (host, port) = text.rsplit_once(':').ok_or_else(bad)?;
        match port.parse() {
            Ok(port) if port != 0 && !host.is_empty() => Ok(Address { text, host, port }),
            _ => Err(bad()),
        }
    }

    /// Where that is. Only a host that is no number asks the system's resolver.
    pub(super) fn resolve(&self) -> Result<Vec<SocketAddr>> {
        if let Ok(address) = self.text.parse() {
            return Ok(vec![address]);
        }
        let found = (self.host, self.port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
        match found {
            Ok(found) if !found.is_empty() => Ok(found),
            _ => Err(Error::Name { name: self.text.to_string(), must: MUST }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let address = Address::parse("10.0.0.1:4791/echo").expect("a name");
        assert_eq!((address.text, address.port), ("10.0.0.1:4791", 4791));
        assert_eq!(address.resolve().expect("a number"), ["10.0.0.1:4791".parse().expect("an address")]);
        let address = Address::parse("[::1]:7").expect("a name");
        assert_eq!(address.resolve().expect("a number"), ["[::1]:7".parse().expect("an address")]);
        for name in ["", "echo", "host:", ":7", "host:0", "host:70000", "host:x", "/host:7"] {
            assert!(matches!(Address::parse(name), Err(Error::Name { .. })), "{name}");
        }
    }
}
