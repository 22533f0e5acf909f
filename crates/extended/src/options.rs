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
}

/// The variable of the environment that has the port.
pub const PORT_VARIABLE: &str = "SIDESTEP_EXTENDED_PORT";

impl Options {
    /// What the environment says: the port in [`PORT_VARIABLE`], if that is set and not empty.
    pub fn from_environment() -> Result<Options> {
        let text = std::env::var_os(PORT_VARIABLE).unwrap_or_default();
        Options::parse(&text.to_string_lossy())
    }

    fn parse(text: &str) -> Result<Options> {
        match (text.is_empty(), text.parse::<NonZeroU16>()) {
            (true, _) => Ok(Options::default()),
            (false, Ok(port)) => Ok(Options { port: Some(port.get()) }),
            (false, Err(_)) => Err(Error::Port(text.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_a_number_or_nothing() {
        assert_eq!(Options::parse(""), Ok(Options { port: None }));
        assert_eq!(Options::parse("7471"), Ok(Options { port: Some(7471) }));
        for text in ["0", "65536", "-1", "x", "7471 "] {
            assert_eq!(Options::parse(text), Err(Error::Port(text.to_string())));
        }
    }
}
