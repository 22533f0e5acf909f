//! Cookies: what a remote node needs to name a region. A capability: whoever holds one may use it, and nobody
//! can make one up.

use std::{
    fmt,
    hash::{Hash, Hasher},
};

use sidestep_shm::memfd::Sharing;
use sidestep_wire::cursor::little::{Reader, Writer};

use crate::error::{Error, Result};

/// Names a region of its owner, with rights. 48 bytes on the wire.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cookie {
    /// Random; bound to region, generation and rights by the owner's table.
    pub(crate) key: u128,
    pub(crate) region: RegionId,
    pub(crate) generation: u32,
    pub(crate) len: u64,
    pub(crate) rights: Rights,
}

/// The number of a region at its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegionId(pub u32);

/// What a cookie allows.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rights(u8);

impl Rights {
    /// Nothing.
    pub const NONE: Rights = Rights(0);
    /// Remote reads.
    pub const READ: Rights = Rights(1);
    /// Remote writes.
    pub const WRITE: Rights = Rights(2);
    /// Remote compare-swap and fetch-add.
    pub const ATOMIC: Rights = Rights(4);
    /// Everything. Such a cookie lets a peer on the same host map the pages; so does `READ` alone, for reading.
    pub const ALL: Rights = Rights(7);

    /// Both together.
    pub const fn and(self, other: Rights) -> Rights {
        Rights(self.0 | other.0)
    }

    /// Whether all of `other` is allowed.
    pub const fn allow(self, other: Rights) -> bool {
        self.0 & other.0 == other.0
    }

    /// How a peer may map pages. With a part of the rights to write it may not: a mapping cannot be limited to that part.
    pub(crate) fn sharing(self) -> Option<Sharing> {
        match self {
            Rights::ALL => Some(Sharing::ReadWrite),
            Rights::READ => Some(Sharing::ReadOnly),
            _ => None,
        }
    }

    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    pub(crate) const fn from_bits(bits: u8) -> Option<Rights> {
        if bits <= 7 { Some(Rights(bits)) } else { None }
    }

    pub(crate) fn read(fields: &mut Reader<'_>) -> std::result::Result<Rights, &'static str> {
        Rights::from_bits(fields.u8()?).ok_or("rights are unknown")
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return out.write_str("nothing");
        }
        let names = [(Rights::READ, "read"), (Rights::WRITE, "write"), (Rights::ATOMIC, "atomic")];
        let mut first = true;
        for (right, name) in names {
            if self.allow(right) {
                if !first {
                    out.write_str("+")?;
                }
                out.write_str(name)?;
                first = false;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Rights {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl Cookie {
    /// Bytes of a cookie on the wire.
    pub const WIRE_LEN: usize = 48;

    /// Length of the region in bytes.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether the region has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What it allows.
    pub fn rights(&self) -> Rights {
        self.rights
    }

    /// Which region of its owner it names.
    pub fn region(&self) -> RegionId {
        self.region
    }

    /// Which generation of the region it belongs to.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// The form that travels.
    pub fn to_bytes(&self) -> [u8; Cookie::WIRE_LEN] {
        let mut bytes = [0; Cookie::WIRE_LEN];
        Writer::new(&mut bytes[..])
            .u128(self.key)
            .u32(self.region.0)
            .u32(self.generation)
            .u64(self.len)
            .u8(self.rights.bits());
        bytes
    }

    /// Reads the form that travels. Says nothing about whether the owner honours it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Cookie> {
        let must = "a cookie of 48 bytes with known rights and zero padding";
        let bad = || Error::Size { what: "cookie", must, value: bytes.len() };
        Cookie::read(&mut Reader::new(bytes)).ok().filter(|_| bytes.len() == Cookie::WIRE_LEN).ok_or_else(bad)
    }

    /// Reads it where it stands within a message; `Err` says what is wrong with it.
    pub(crate) fn read(fields: &mut Reader<'_>) -> std::result::Result<Cookie, &'static str> {
        let cookie = Cookie {
            key: fields.u128()?,
            region: RegionId(fields.u32()?),
            generation: fields.u32()?,
            len: fields.u64()?,
            rights: Rights::read(fields)?,
        };
        if fields.array::<PADDING>()? == [0; PADDING] { Ok(cookie) } else { Err("a cookie is malformed") }
    }
}

impl Hash for Cookie {
    /// By the key alone, which is random: two cookies of one region seldom share it.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u128(self.key);
    }
}

/// Bytes behind the rights that are zero.
const PADDING: usize = 15;

impl fmt::Debug for Cookie {
    /// Without the key: a log is not a place for capabilities.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "Cookie(region {} generation {}, {} bytes, {})",
            self.region.0, self.generation, self.len, self.rights
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_form_comes_back() {
        let cookie = Cookie {
            key: 0x0123_4567_89ab_cdef_0123_4567_89ab_cdee,
            region: RegionId(7),
            generation: 9,
            len: 4096,
            rights: Rights::READ.and(Rights::ATOMIC),
        };
        assert_eq!(Cookie::from_bytes(&cookie.to_bytes()), Ok(cookie));
        assert_eq!(cookie.rights().to_string(), "read+atomic");
        assert!(!format!("{cookie:?}").contains("cdee"));
    }

    #[test]
    fn short_long_and_padded_forms_are_refused() {
        assert!(Cookie::from_bytes(&[0; 47]).is_err());
        assert!(Cookie::from_bytes(&[0; 49]).is_err());
        let mut bytes = [0; 48];
        bytes[32] = 8;
        assert!(Cookie::from_bytes(&bytes).is_err());
        bytes[32] = 7;
        bytes[40] = 1;
        assert!(Cookie::from_bytes(&bytes).is_err());
    }
}
