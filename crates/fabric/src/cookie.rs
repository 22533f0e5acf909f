//! Cookies: what a remote node needs to name a region. A capability: whoever holds one may use it, and nobody
//! can make one up.

use std::fmt;

use crate::error::{Error, Result};

/// Names a region of its owner, with rights. 48 bytes on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
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
    /// Everything. Only such a cookie lets a peer on the same host map the pages.
    pub const ALL: Rights = Rights(7);

    /// Both together.
    pub const fn and(self, other: Rights) -> Rights {
        Rights(self.0 | other.0)
    }

    /// Whether all of `other` is allowed.
    pub const fn allow(self, other: Rights) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    pub(crate) const fn from_bits(bits: u8) -> Option<Rights> {
        if bits <= 7 { Some(Rights(bits)) } else { None }
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
        bytes[field::KEY].copy_from_slice(&self.key.to_le_bytes());
        bytes[field::REGION].copy_from_slice(&self.region.0.to_le_bytes());
        bytes[field::GENERATION].copy_from_slice(&self.generation.to_le_bytes());
        bytes[field::LEN].copy_from_slice(&self.len.to_le_bytes());
        bytes[field::RIGHTS] = self.rights.bits();
        bytes
    }

    /// Reads the form that travels. Says nothing about whether the owner honours it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Cookie> {
        let must = "a cookie of 48 bytes with known rights and zero padding";
        let bad = || Error::Size { what: "cookie", must, value: bytes.len() };
        let bytes: &[u8; Cookie::WIRE_LEN] = bytes.try_into().map_err(|_| bad())?;
        if bytes[field::RIGHTS + 1..].iter().any(|byte| *byte != 0) {
            return Err(bad());
        }
        let word = |range: std::ops::Range<usize>| {
            bytes[range].iter().rev().fold(0u128, |value, byte| value << 8 | u128::from(*byte))
        };
        Ok(Cookie {
            key: word(field::KEY),
            region: RegionId(word(field::REGION) as u32),
            generation: word(field::GENERATION) as u32,
            len: word(field::LEN) as u64,
            rights: Rights::from_bits(bytes[field::RIGHTS]).ok_or_else(bad)?,
        })
    }
}

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

mod field {
    use std::ops::Range;

    pub const KEY: Range<usize> = 0..16;
    pub const REGION: Range<usize> = 16..20;
    pub const GENERATION: Range<usize> = 20..24;
    pub const LEN: Range<usize> = 24..32;
    pub const RIGHTS: usize = 32;
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
