//! The header of a call (RFC 5531 §9).
//!
//! ```text
//! | xid | 0 | RPC version 2 | program | version | procedure | credential | verifier | arguments ...
//! ```

use super::{Auth, CALL, VERSION, Xid, direction};
use crate::xdr::{Error, Reader, Writer};
use std::fmt;

/// The length of a header whose credential and verifier have no body.
const PLAIN_LEN: usize = 40;

/// The value of a call header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr<'a> {
    /// The number by which the reply finds the call.
    pub xid: Xid,
    /// The program.
    pub program: u32,
    /// Its version.
    pub version: u32,
    /// Its procedure.
    pub procedure: u32,
    /// Who calls.
    pub credential: Auth<'a>,
    /// What shows that it is the caller.
    pub verifier: Auth<'a>,
}

impl<'a> Repr<'a> {
    /// Reads the header of a message: its value, and the arguments behind it.
    #[inline]
    pub fn parse(message: &'a [u8]) -> Result<(Self, &'a [u8]), Error> {
        match Self::parse_plain(message) {
            Some(parsed) => Ok(parsed),
            None => Self::parse_any(message),
        }
    }

    /// The header that most calls have: nothing in credential and verifier but their flavors. `None`: it is another one.
    #[inline]
    fn parse_plain(message: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (head, arguments) = message.split_first_chunk::<PLAIN_LEN>()?;
        let (words, _) = head.as_chunks::<4>();
        let word = |at: usize| u32::from_be_bytes(words[at]);
        if (word(1), word(2), word(7), word(9)) != (CALL, VERSION, 0, 0) {
            return None;
        }
        let auth = |at: usize| Auth { flavor: word(at), body: &[] };
        let (program, version, procedure) = (word(3), word(4), word(5));
        let (credential, verifier) = (auth(6), auth(8));
        Some((Self { xid: Xid(word(0)), program, version, procedure, credential, verifier }, arguments))
    }

    #[inline(never)]
    fn parse_any(message: &'a [u8]) -> Result<(Self, &'a [u8]), Error> {
        let mut input = Reader::new(message);
        let xid = Xid(input.u32()?);
        let kind = direction(&mut input)?;
        if kind != CALL {
            return Err(Error::Value { name: "the msg_type of a call", found: kind as i32 });
        }
        let found = input.u32()?;
        if found != VERSION {
            return Err(Error::RpcVersion { xid: xid.0, found });
        }
        let (program, version, procedure) = (input.u32()?, input.u32()?, input.u32()?);
        let (credential, verifier) = (Auth::parse(&mut input)?, Auth::parse(&mut input)?);
        Ok((Self { xid, program, version, procedure, credential, verifier }, input.rest()))
    }

    /// Appends the header to a message.
    #[inline]
    pub fn emit(&self, out: &mut Writer<'_>) -> Result<(), Error> {
        let Repr { xid: Xid(xid), program, version, procedure, credential, verifier } = *self;
        if credential.body.is_empty() && verifier.body.is_empty() {
            let (credential, verifier) = (credential.flavor, verifier.flavor);
            return out.words([xid, CALL, VERSION, program, version, procedure, credential, 0, verifier, 0]);
        }
        out.words([xid, CALL, VERSION, program, version, procedure])?;
        credential.emit(out)?;
        verifier.emit(out)
    }
}

impl fmt::Display for Repr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Repr { xid, program, version, procedure, credential, .. } = self;
        write!(f, "call {xid}: program {program} version {version} procedure {procedure}, {credential}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The null call of rpcbind version 2, with one word of arguments.
    const GOLDEN: [u8; 44] = [
        0x12, 0x34, 0x56, 0x78, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0x86, 0xa0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9,
    ];

    #[test]
    fn parses_and_emits_the_golden_header() {
        let (repr, arguments) = Repr::parse(&GOLDEN).unwrap();
        let none = Auth::NONE;
        let xid = Xid(0x1234_5678);
        assert_eq!(repr, Repr { xid, program: 100_000, version: 2, procedure: 0, credential: none, verifier: none });
        assert_eq!(arguments, [0, 0, 0, 9]);
        let mut out = Vec::new();
        repr.emit(&mut Writer::new(&mut out, 100)).unwrap();
        assert_eq!(out, GOLDEN[..40]);
        assert_eq!(repr.to_string(), "call 0x12345678: program 100000 version 2 procedure 0, AUTH_NONE");
        for len in 0..40 {
            assert!(matches!(Repr::parse(&GOLDEN[..len]), Err(Error::Truncated { .. })), "{len} bytes");
        }
    }

    #[test]
    fn other_versions_and_replies_are_refused() {
        let mut other = GOLDEN;
        other[11] = 3;
        assert_eq!(Repr::parse(&other), Err(Error::RpcVersion { xid: 0x1234_5678, found: 3 }));
        let mut reply = GOLDEN;
        reply[7] = 1;
        assert!(matches!(Repr::parse(&reply), Err(Error::Value { found: 1, .. })));
    }

    #[test]
    fn plain_calls_are_what_the_general_way_makes_of_them() {
        let words: &[u32] = &[7, 0, 2, 100_000, 2, 0, 0, 0, 0, 0, 9];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        for end in 0..=bytes.len() {
            assert_eq!(Repr::parse(&bytes[..end]), Repr::parse_any(&bytes[..end]), "{end} bytes");
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 2, 4, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] = value;
                assert_eq!(Repr::parse(&bytes), Repr::parse_any(&bytes), "byte {at} is {value}");
            }
        }
    }
}
