//! The header of a reply (RFC 5531 §9): accepted, with a verifier and one of six states, or denied.
//!
//! ```text
//! | xid | 1 | 0 | verifier | state | low, high if the version is unknown | results ...
//! | xid | 1 | 1 | 0 | low | high |       another version of RPC was asked for
//! | xid | 1 | 1 | 1 | reason |           the credential or verifier is refused
//! ```

use super::{Auth, REPLY, Xid, direction};
use crate::xdr::{Error, Reader, Writer};
use std::fmt;

/// The length of the header of a success whose verifier has no body.
pub const PLAIN_LEN: usize = 24;

/// The header of most replies: success, and a verifier that says nothing.
#[inline]
#[must_use]
pub fn success_header(xid: Xid) -> [u8; PLAIN_LEN] {
    let mut header = [0; PLAIN_LEN];
    header[..4].copy_from_slice(&xid.0.to_be_bytes());
    header[4..8].copy_from_slice(&REPLY.to_be_bytes());
    header
}

/// The results of a message that has that header.
#[inline]
#[must_use]
pub fn success(message: &[u8], xid: Xid) -> Option<&[u8]> {
    let (header, results) = message.split_first_chunk()?;
    (*header == success_header(xid)).then_some(results)
}

/// The value of a reply header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr<'a> {
    /// The number of the call.
    pub xid: Xid,
    /// What became of it.
    pub body: Body<'a>,
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body<'a> {
    /// The server knows the caller.
    Accepted {
        /// What shows that it is the server.
        verifier: Auth<'a>,
        /// How the call went.
        state: Accepted,
    },
    /// The server did not look at the call.
    Denied(Denied),
}

/// How an accepted call went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// The results follow.
    Success,
    /// The program is not here.
    ProgramUnavailable,
    /// The version of the program is not here.
    ProgramMismatch {
        /// The lowest version that is.
        low: u32,
        /// The highest version that is.
        high: u32,
    },
    /// The procedure is not here.
    ProcedureUnavailable,
    /// The arguments cannot be decoded.
    GarbageArguments,
    /// The server had no memory, or another trouble of its own.
    SystemError,
}

/// Why a call was denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// The version of RPC is not spoken.
    RpcMismatch {
        /// The lowest version spoken.
        low: u32,
        /// The highest version spoken.
        high: u32,
    },
    /// The credential or the verifier is refused.
    AuthError(AuthError),
}

/// Why a credential or a verifier is refused (RFC 5531 §9, `auth_stat`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthError {
    /// The credential is not well formed.
    BadCredential,
    /// The credential was refused; begin a new session.
    RejectedCredential,
    /// The verifier is not well formed.
    BadVerifier,
    /// The verifier has expired or was used before.
    RejectedVerifier,
    /// The flavor is too weak.
    TooWeak,
    /// The verifier of a reply was bad.
    InvalidResponse,
    /// Any other reason.
    Failed,
    /// A reason that only its flavor knows.
    Other(u32),
}

impl AuthError {
    /// Its number.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            AuthError::BadCredential => 1,
            AuthError::RejectedCredential => 2,
            AuthError::BadVerifier => 3,
            AuthError::RejectedVerifier => 4,
            AuthError::TooWeak => 5,
            AuthError::InvalidResponse => 6,
            AuthError::Failed => 7,
            AuthError::Other(number) => number,
        }
    }

    /// The reason with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        match number {
            1 => AuthError::BadCredential,
            2 => AuthError::RejectedCredential,
            3 => AuthError::BadVerifier,
            4 => AuthError::RejectedVerifier,
            5 => AuthError::TooWeak,
            6 => AuthError::InvalidResponse,
            7 => AuthError::Failed,
            other => AuthError::Other(other),
        }
    }
}

impl<'a> Repr<'a> {
    /// Reads the header of a message: its value, and the results behind it.
    #[inline]
    pub fn parse(message: &'a [u8]) -> Result<(Self, &'a [u8]), Error> {
        match Self::parse_plain(message) {
            Some(parsed) => Ok(parsed),
            None => Self::parse_any(message),
        }
    }

    /// The header that most replies have: success, and a verifier without a body. `None`: it is another one.
    #[inline]
    fn parse_plain(message: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (head, results) = message.split_first_chunk::<PLAIN_LEN>()?;
        let (words, _) = head.as_chunks::<4>();
        let word = |at: usize| u32::from_be_bytes(words[at]);
        if (word(1), word(2), word(4), word(5)) != (REPLY, 0, 0, 0) {
            return None;
        }
        let verifier = Auth { flavor: word(3), body: &[] };
        Some((Self { xid: Xid(word(0)), body: Body::Accepted { verifier, state: Accepted::Success } }, results))
    }

    #[inline(never)]
    fn parse_any(message: &'a [u8]) -> Result<(Self, &'a [u8]), Error> {
        let mut input = Reader::new(message);
        let xid = Xid(input.u32()?);
        let kind = direction(&mut input)?;
        if kind != REPLY {
            return Err(Error::Value { name: "the msg_type of a reply", found: kind as i32 });
        }
        let body = match input.u32()? {
            0 => Body::Accepted { verifier: Auth::parse(&mut input)?, state: Accepted::parse(&mut input)? },
            1 => Body::Denied(Denied::parse(&mut input)?),
            found => return Err(Error::Value { name: "reply_stat", found: found as i32 }),
        };
        Ok((Self { xid, body }, input.rest()))
    }

    /// Appends the header to a message.
    #[inline]
    pub fn emit(&self, out: &mut Writer<'_>) -> Result<(), Error> {
        match &self.body {
            Body::Accepted { verifier, state: Accepted::Success } if verifier.body.is_empty() => {
                out.words([self.xid.0, REPLY, 0, verifier.flavor, 0, 0])
            }
            Body::Accepted { verifier, state } => {
                out.words([self.xid.0, REPLY, 0])?;
                verifier.emit(out)?;
                state.emit(out)
            }
            Body::Denied(denied) => {
                out.words([self.xid.0, REPLY, 1])?;
                denied.emit(out)
            }
        }
    }
}

impl Accepted {
    fn parse(input: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(match input.u32()? {
            0 => Accepted::Success,
            1 => Accepted::ProgramUnavailable,
            2 => Accepted::ProgramMismatch { low: input.u32()?, high: input.u32()? },
            3 => Accepted::ProcedureUnavailable,
            4 => Accepted::GarbageArguments,
            5 => Accepted::SystemError,
            found => return Err(Error::Value { name: "accept_stat", found: found as i32 }),
        })
    }

    fn emit(self, out: &mut Writer<'_>) -> Result<(), Error> {
        out.u32(match self {
            Accepted::Success => 0,
            Accepted::ProgramUnavailable => 1,
            Accepted::ProgramMismatch { .. } => 2,
            Accepted::ProcedureUnavailable => 3,
            Accepted::GarbageArguments => 4,
            Accepted::SystemError => 5,
        })?;
        if let Accepted::ProgramMismatch { low, high } = self {
            out.u32(low)?;
            out.u32(high)?;
        }
        Ok(())
    }
}

impl Denied {
    fn parse(input: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(match input.u32()? {
            0 => Denied::RpcMismatch { low: input.u32()?, high: input.u32()? },
            1 => Denied::AuthError(AuthError::from_number(input.u32()?)),
            found => return Err(Error::Value { name: "reject_stat", found: found as i32 }),
        })
    }

    fn emit(self, out: &mut Writer<'_>) -> Result<(), Error> {
        match self {
            Denied::RpcMismatch { low, high } => {
                out.u32(0)?;
                out.u32(low)?;
                out.u32(high)
            }
            Denied::AuthError(error) => {
                out.u32(1)?;
                out.u32(error.number())
            }
        }
    }
}

impl fmt::Display for Repr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reply {}: ", self.xid)?;
        match &self.body {
            Body::Accepted { state, .. } => state.fmt(f),
            Body::Denied(denied) => denied.fmt(f),
        }
    }
}

impl fmt::Display for Accepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Accepted::Success => f.write_str("success"),
            Accepted::ProgramUnavailable => f.write_str("the program is not here"),
            Accepted::ProgramMismatch { low, high } => write!(f, "the program has versions {low} to {high}"),
            Accepted::ProcedureUnavailable => f.write_str("the procedure is not here"),
            Accepted::GarbageArguments => f.write_str("the arguments cannot be decoded"),
            Accepted::SystemError => f.write_str("the server has trouble of its own"),
        }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Denied::RpcMismatch { low, high } => write!(f, "the server speaks RPC versions {low} to {high}"),
            Denied::AuthError(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AuthError::BadCredential => "bad credential",
            AuthError::RejectedCredential => "credential rejected",
            AuthError::BadVerifier => "bad verifier",
            AuthError::RejectedVerifier => "verifier rejected",
            AuthError::TooWeak => "authentication too weak",
            AuthError::InvalidResponse => "invalid verifier in the reply",
            AuthError::Failed => "authentication failed",
            AuthError::Other(number) => return write!(f, "authentication error {number}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(state: Accepted) -> Body<'static> {
        Body::Accepted { verifier: Auth::NONE, state }
    }

    /// Every state, as the words behind `| xid | 1 |`.
    fn golden() -> Vec<(Vec<u32>, Body<'static>)> {
        let mut table = vec![
            (vec![0, 0, 0, 0], accepted(Accepted::Success)),
            (vec![0, 0, 0, 1], accepted(Accepted::ProgramUnavailable)),
            (vec![0, 0, 0, 2, 3, 4], accepted(Accepted::ProgramMismatch { low: 3, high: 4 })),
            (vec![0, 0, 0, 3], accepted(Accepted::ProcedureUnavailable)),
            (vec![0, 0, 0, 4], accepted(Accepted::GarbageArguments)),
            (vec![0, 0, 0, 5], accepted(Accepted::SystemError)),
            (vec![1, 0, 2, 2], Body::Denied(Denied::RpcMismatch { low: 2, high: 2 })),
        ];
        for number in 1..=14 {
            table.push((vec![1, 1, number], Body::Denied(Denied::AuthError(AuthError::from_number(number)))));
        }
        table
    }

    #[test]
    fn parses_and_emits_every_state() {
        for (words, body) in golden() {
            let words = [vec![7, 1], words].concat();
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
            let with_results = [bytes.as_slice(), &[9]].concat();
            let (repr, results) = Repr::parse(&with_results).unwrap();
            assert_eq!(repr, Repr { xid: Xid(7), body });
            assert_eq!(results, [9]);
            let mut out = Vec::new();
            repr.emit(&mut Writer::new(&mut out, 100)).unwrap();
            assert_eq!(out, bytes);
            for len in 0..bytes.len() {
                assert!(matches!(Repr::parse(&bytes[..len]), Err(Error::Truncated { .. })), "{body:?}, {len} bytes");
            }
        }
    }

    #[test]
    fn the_header_of_most_replies_is_what_the_general_way_makes_of_it() {
        let mut out = Vec::new();
        Repr { xid: Xid(7), body: accepted(Accepted::Success) }.emit(&mut Writer::new(&mut out, 100)).unwrap();
        assert_eq!(out, success_header(Xid(7)));
        out.push(9);
        assert_eq!(success(&out, Xid(7)), Some([9].as_slice()));
        assert_eq!(success(&out, Xid(8)), None);
        for at in 0..PLAIN_LEN {
            let mut other = out.clone();
            other[at] ^= 1;
            assert_eq!(success(&other, Xid(7)), None, "byte {at}");
            assert_eq!(success(&out[..at], Xid(7)), None, "{at} bytes");
        }
    }

    #[test]
    fn states_that_do_not_exist_are_refused() {
        let parse = |words: &[u32]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
            Repr::parse(&bytes).map(|_| ()).unwrap_err()
        };
        assert!(matches!(parse(&[7, 1, 2]), Error::Value { name: "reply_stat", found: 2 }));
        assert!(matches!(parse(&[7, 1, 0, 0, 0, 6]), Error::Value { name: "accept_stat", found: 6 }));
        assert!(matches!(parse(&[7, 1, 1, 2]), Error::Value { name: "reject_stat", found: 2 }));
        assert!(matches!(parse(&[7, 2]), Error::Value { name: "msg_type", found: 2 }));
    }

    #[test]
    fn plain_replies_are_what_the_general_way_makes_of_them() {
        let words: &[u32] = &[7, 1, 0, 0, 0, 0, 9];
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
