//! What a stack is made with.

use std::num::NonZeroU16;

use crate::error::{Error, Result};

/// How a stack reaches the other ends of connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// The TCP port on which ends on two hosts, or in two network namespaces, meet: the same at both. The end with the smaller port
    /// of the connection listens there while it enables its socket, and the other one connects to it. `None`: connections of
    /// this host only.
    pub port: Option<u16>,
    /// The connection itself becomes the line, and carries iWARP from then on: no second connection, no port, on one host or between
    /// two. Both ends must want it. There is no stream of bytes any more: plain calls on the descriptor fail with `ENOTCONN`.
    pub in_place: bool,
}

/// The variable of the environment that has the port.
pub const PORT_VARIABLE: &str = "SIDESTEP_EXTENDED_PORT";
/// The variable of the environment that says whether sockets are extended in place.
pub const IN_PLACE_VARIABLE: &str = "SIDESTEP_EXTENDED_IN_PLACE";

impl Options {
    /// What the environment says: the port in [`PORT_VARIABLE`], if that is set and not empty, and whether
    /// [`IN_PLACE_VARIABLE`] is 1.
    pub fn from_environment() -> Result<Options> {
        let text = |name| std::env::var_os(name).unwrap_or_default().to_string_lossy().into_owned();
        Options::parse(&text(PORT_VARIABLE), &text(IN_PLACE_VARIABLE))
    }

    fn parse(port: &str, in_place: &str) -> Result<Options> {
        let port = match (port.is_empty(), port.parse::<NonZeroU16>()) {
            (true, _) => None,
            (false, Ok(number)) => Some(number.get()),
            (false, Err(_)) => return Err(Error::Port(port.to_string())),
        };
        let in_place = match in_place {
            "" | "0" => false,
            "1" => true,
            other => return Err(Error::InPlace(other.to_string())),
        };
        Ok(Options { port, in_place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_a_number_or_nothing() {
        assert_eq!(Options::parse("", ""), Ok(Options::default()));
        assert_eq!(Options::parse("7471", "0"), Ok(Options { port: Some(7471), in_place: false }));
        for text in ["0", "65536", "-1", "x", "7471 "] {
            assert_eq!(Options::parse(text, ""), Err(Error::Port(text.to_string())));
        }
    }

    #[test]
    fn in_place_is_said_by_a_one() {
        assert_eq!(Options::parse("", "1"), Ok(Options { port: None, in_place: true }));
        for text in ["yes", "2", " 1"] {
            assert_eq!(Options::parse("", text), Err(Error::InPlace(text.to_string())));
        }
    }
}
