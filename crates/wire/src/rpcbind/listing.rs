//! One of the addresses of a program, as version 4 lists them.

use std::fmt;

use super::MAX_TEXT;
use crate::xdr::{Error, Reader, Writer, Xdr};

/// An address of a program with what is known of its transport (`rpcb_entry`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The universal address, as the caller can reach it.
    pub address: String,
    /// The network identifier.
    pub network: String,
    /// What the transport promises: [`Listing::DATAGRAMS`] or [`Listing::STREAM`].
    pub semantics: u32,
    /// The protocol family: `inet`, `inet6` or `loopback`.
    pub family: String,
    /// The protocol: `tcp`, `udp`, or `-` for none.
    pub protocol: String,
}

impl Listing {
    /// Messages that may get lost (`NC_TPI_CLTS`).
    pub const DATAGRAMS: u32 = 1;
    /// A connection that is closed in order (`NC_TPI_COTS_ORD`).
    pub const STREAM: u32 = 3;
}

impl Xdr for Listing {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), Error> {
        out.string(&self.address, MAX_TEXT)?;
        out.string(&self.network, MAX_TEXT)?;
        out.u32(self.semantics)?;
        out.string(&self.family, MAX_TEXT)?;
        out.string(&self.protocol, MAX_TEXT)
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self {
            address: input.string(MAX_TEXT)?.to_owned(),
            network: input.string(MAX_TEXT)?.to_owned(),
            semantics: input.u32()?,
            family: input.string(MAX_TEXT)?.to_owned(),
            protocol: input.string(MAX_TEXT)?.to_owned(),
        })
    }
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Listing { address, network, semantics, family, protocol } = self;
        write!(f, "at {network} {address}, family {family} protocol {protocol} semantics {semantics}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_and_emits_a_golden_listing() {
        let golden = b"\0\0\0\x0d127.0.0.1.8.1\0\0\0\0\0\0\x03tcp\0\0\0\0\x03\0\0\0\x04inet\0\0\0\x03tcp\0";
        let listing = Listing::decode(&mut Reader::new(golden)).unwrap();
        assert_eq!(listing.to_string(), "at tcp 127.0.0.1.8.1, family inet protocol tcp semantics 3");
        let mut out = Vec::new();
        listing.encode(&mut Writer::new(&mut out, 64)).unwrap();
        assert_eq!(out, golden);
    }
}
