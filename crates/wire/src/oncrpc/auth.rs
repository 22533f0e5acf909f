//! Who calls, and how that is shown (RFC 5531 §8.2): a flavor and at most 400 bytes that only it understands.

use crate::xdr::{Error, Reader, Writer};
use std::fmt;

/// The greatest length of a body (RFC 5531 §8.2).
pub const MAX_BODY: u32 = 400;
/// The greatest length of a machine's name in AUTH_SYS (RFC 5531 appendix A).
pub const MAX_MACHINE: u32 = 255;
/// The greatest number of groups in AUTH_SYS.
pub const MAX_GROUPS: usize = 16;

/// A credential or a verifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Auth<'a> {
    /// Which kind it is: one of the constants of this type, or any other.
    pub flavor: u32,
    /// What that kind carries.
    pub body: &'a [u8],
}

impl<'a> Auth<'a> {
    /// No authentication.
    pub const AUTH_NONE: u32 = 0;
    /// User and groups as the caller states them ([`AuthSys`]).
    pub const AUTH_SYS: u32 = 1;
    /// A short name that a server gave for an AUTH_SYS credential.
    pub const AUTH_SHORT: u32 = 2;
    /// GSS-API (RFC 2203).
    pub const RPCSEC_GSS: u32 = 6;

    /// No authentication.
    pub const NONE: Auth<'static> = Auth { flavor: Auth::AUTH_NONE, body: &[] };

    /// Takes one from a message.
    pub fn parse(input: &mut Reader<'a>) -> Result<Self, Error> {
        Ok(Self { flavor: input.u32()?, body: input.opaque(MAX_BODY)? })
    }

    /// Appends it to a message.
    #[inline]
    pub fn emit(&self, out: &mut Writer<'_>) -> Result<(), Error> {
        if self.body.is_empty() {
            return out.words([self.flavor, 0]);
        }
        out.u32(self.flavor)?;
        out.opaque(self.body, MAX_BODY)
    }
}

impl fmt::Display for Auth<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.flavor {
            Self::AUTH_NONE => f.write_str("AUTH_NONE"),
            Self::AUTH_SYS => f.write_str("AUTH_SYS"),
            Self::AUTH_SHORT => f.write_str("AUTH_SHORT"),
            Self::RPCSEC_GSS => f.write_str("RPCSEC_GSS"),
            other => write!(f, "flavor {other}"),
        }
    }
}

/// The body of an AUTH_SYS credential (RFC 5531 appendix A).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthSys<'a> {
    /// Any number that the caller's machine chooses.
    pub stamp: u32,
    /// The name of the caller's machine.
    pub machine: &'a [u8],
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    groups: [u32; MAX_GROUPS],
    group_count: usize,
}

impl<'a> AuthSys<'a> {
    /// A credential. Groups beyond the sixteenth are left out, as everybody does.
    #[must_use]
    pub fn new(stamp: u32, machine: &'a [u8], uid: u32, gid: u32, groups: &[u32]) -> Self {
        let mut kept = [0; MAX_GROUPS];
        let group_count = groups.len().min(MAX_GROUPS);
        kept[..group_count].copy_from_slice(&groups[..group_count]);
        Self { stamp, machine, uid, gid, groups: kept, group_count }
    }

    /// The further groups.
    #[must_use]
    pub fn groups(&self) -> &[u32] {
        &self.groups[..self.group_count]
    }

    /// Reads a body, whole.
    pub fn parse(body: &'a [u8]) -> Result<Self, Error> {
        let mut input = Reader::new(body);
        let (stamp, machine) = (input.u32()?, input.opaque(MAX_MACHINE)?);
        let (uid, gid) = (input.u32()?, input.u32()?);
        let group_count = input.length(MAX_GROUPS as u32)?;
        let mut groups = [0; MAX_GROUPS];
        for group in &mut groups[..group_count] {
            *group = input.u32()?;
        }
        input.finish()?;
        Ok(Self { stamp, machine, uid, gid, groups, group_count })
    }

    /// Appends a body.
    pub fn emit(&self, out: &mut Writer<'_>) -> Result<(), Error> {
        out.u32(self.stamp)?;
        out.opaque(self.machine, MAX_MACHINE)?;
        out.u32(self.uid)?;
        out.u32(self.gid)?;
        out.array(self.groups(), MAX_GROUPS as u32, |out, group| out.u32(*group))
    }
}

impl fmt::Display for AuthSys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "uid {} gid {} at {}", self.uid, self.gid, String::from_utf8_lossy(self.machine))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_and_emits_the_golden_body() {
        let golden = b"\0\0\0\x07\0\0\0\x02pc\0\0\0\0\x03\xe8\0\0\0\x64\0\0\0\x02\0\0\0\x04\0\0\0\x1b";
        let sys = AuthSys::parse(golden).unwrap();
        assert_eq!(sys, AuthSys::new(7, b"pc", 1000, 100, &[4, 27]));
        assert_eq!(sys.to_string(), "uid 1000 gid 100 at pc");
        let mut out = Vec::new();
        sys.emit(&mut Writer::new(&mut out, 400)).unwrap();
        assert_eq!(out, golden);
        assert!(AuthSys::parse(&golden[..27]).is_err());
        // A seventeenth group.
        let groups = [b"\0\0\0\x07\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x11".as_slice(), &[0; 68]].concat();
        assert_eq!(AuthSys::parse(&groups), Err(Error::Length { length: 17, limit: 16 }));
    }

    #[test]
    fn a_body_has_at_most_400_bytes() {
        let long = [b"\0\0\0\x06\0\0\x01\x91".as_slice(), &[0; 404]].concat();
        assert_eq!(Auth::parse(&mut Reader::new(&long)), Err(Error::Length { length: 401, limit: 400 }));
    }
}
