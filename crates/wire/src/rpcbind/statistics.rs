//! What one version of rpcbind was asked, as version 4 tells it.

use std::fmt;

use super::{MAX_ENTRIES, MAX_TEXT};
use crate::xdr::{Error, Reader, Writer, Xdr};

/// Numbers of one version (`rpcb_stat`). Counters begin again at zero after 2^32.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    /// How often each procedure was called.
    pub calls: [u32; PROCEDURES],
    /// How many registrations were made.
    pub registered: u32,
    /// How many were taken back.
    pub taken_back: u32,
    /// Which addresses were asked for.
    pub lookups: Vec<Lookup>,
    /// Which calls were made on behalf of others.
    pub forwarded: Vec<Forwarded>,
}

/// How many procedures there are (`RPCBSTAT_HIGHPROC`).
pub const PROCEDURES: usize = 13;

/// The versions that have such numbers: 2, 3 and 4, in this order.
pub const VERSIONS: usize = 3;

/// How often the address of one program was asked for (`rpcbs_addrlist`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup {
    /// The program.
    pub program: u32,
    /// Its version.
    pub version: u32,
    /// How often an address was found.
    pub found: u32,
    /// How often none was.
    pub missed: u32,
    /// The network identifier.
    pub network: String,
}

/// How often one procedure was called on behalf of others (`rpcbs_rmtcalllist`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forwarded {
    /// The program.
    pub program: u32,
    /// Its version.
    pub version: u32,
    /// The procedure.
    pub procedure: u32,
    /// How often it replied.
    pub replied: u32,
    /// How often the call failed.
    pub failed: u32,
    /// How many of the calls came by INDIRECT.
    pub indirect: u32,
    /// The network identifier.
    pub network: String,
}

impl Xdr for Statistics {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), Error> {
        out.words(self.calls)?;
        out.words([self.registered, self.taken_back])?;
        out.list(&self.lookups, |out, lookup| out.value(lookup))?;
        out.list(&self.forwarded, |out, forwarded| out.value(forwarded))
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self {
            calls: input.items(Reader::u32)?,
            registered: input.u32()?,
            taken_back: input.u32()?,
            lookups: input.list(MAX_ENTRIES, Reader::value)?,
            forwarded: input.list(MAX_ENTRIES, Reader::value)?,
        })
    }
}

impl Xdr for Lookup {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), Error> {
        out.words([self.program, self.version, self.found, self.missed])?;
        out.string(&self.network, MAX_TEXT)
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self {
            program: input.u32()?,
            version: input.u32()?,
            found: input.u32()?,
            missed: input.u32()?,
            network: input.string(MAX_TEXT)?.to_owned(),
        })
    }
}

impl Xdr for Forwarded {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), Error> {
        let Forwarded { program, version, procedure, replied, failed, indirect, network } = self;
        out.words([*program, *version, *procedure, *replied, *failed, *indirect])?;
        out.string(network, MAX_TEXT)
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self {
            program: input.u32()?,
            version: input.u32()?,
            procedure: input.u32()?,
            replied: input.u32()?,
            failed: input.u32()?,
            indirect: input.u32()?,
            network: input.string(MAX_TEXT)?.to_owned(),
        })
    }
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Statistics { calls, registered, taken_back, lookups, forwarded } = self;
        write!(f, "calls {calls:?}, {registered} registered, {taken_back} taken back, ")?;
        write!(f, "{} programs looked up, {} called", lookups.len(), forwarded.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_and_emits_golden_statistics() {
        let mut golden = vec![0; 4 * PROCEDURES];
        golden[4 * 3 + 3] = 9;
        golden.extend([0, 0, 0, 2, 0, 0, 0, 1]);
        golden.extend(b"\0\0\0\x01\0\x01\x86\xa3\0\0\0\x03\0\0\0\x08\0\0\0\x01\0\0\0\x03tcp\0\0\0\0\0");
        golden
            .extend(b"\0\0\0\x01\0\x01\x86\xa3\0\0\0\x03\0\0\0\0\0\0\0\x05\0\0\0\x06\0\0\0\x07\0\0\0\x03udp\0\0\0\0\0");
        let mut input = Reader::new(&golden);
        let statistics: Statistics = input.value().unwrap();
        assert_eq!(input.finish(), Ok(()));
        assert_eq!((statistics.calls[3], statistics.registered, statistics.taken_back), (9, 2, 1));
        assert_eq!((statistics.lookups[0].found, statistics.lookups[0].missed), (8, 1));
        assert_eq!((statistics.forwarded[0].replied, statistics.forwarded[0].indirect), (5, 7));
        let mut out = Vec::new();
        statistics.encode(&mut Writer::new(&mut out, 200)).unwrap();
        assert_eq!(out, golden);
        assert!(statistics.to_string().ends_with("2 registered, 1 taken back, 1 programs looked up, 1 called"));
    }
}
