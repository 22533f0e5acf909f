//! Object keys: what our references carry, to find the adapter and the object again.
//!
//! ```text
//! | 0xff "SS" | 'P' persistent or 'T' transient | incarnation, 8 bytes (transient) | depth, 1 |
//! | length, 1, and name of each adapter below the root | object id |
//! ```
//! A persistent object is found again by a later process; a transient one ends with the process, which
//! the incarnation tells apart.

use super::{Lifespan, PoaError};

const MAGIC: &[u8] = b"\xffSS";

/// A key, taken apart where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ObjectKey<'a> {
    /// The process that a transient object lives in.
    pub(crate) incarnation: Option<u64>,
    names: &'a [u8],
    pub(crate) id: &'a [u8],
}

impl<'a> ObjectKey<'a> {
    /// Takes a key apart; `None` if it is not one of ours.
    pub(crate) fn parse(key: &'a [u8]) -> Option<Self> {
        let (lifespan, rest) = key.strip_prefix(MAGIC)?.split_first()?;
        let (incarnation, rest) = match lifespan {
            b'P' => (None, rest),
            b'T' => rest.split_first_chunk().map(|(it, rest)| (Some(u64::from_be_bytes(*it)), rest))?,
            _ => return None,
        };
        let (depth, names) = rest.split_first()?;
        let mut id = names;
        for _ in 0..*depth {
            let (length, rest) = id.split_first()?;
            id = rest.get(usize::from(*length)..)?;
        }
        Some(Self { incarnation, names: &names[..names.len() - id.len()], id })
    }

    /// The names of the adapters, from below the root down.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.names;
        std::iter::from_fn(move || {
            let (length, after) = rest.split_first()?;
            let (name, after) = after.split_at_checked(usize::from(*length))?;
            rest = after;
            Some(name)
        })
    }

    /// The key up to the object id.
    pub(crate) fn prefix(lifespan: Lifespan, incarnation: u64, names: &[&str]) -> Result<Vec<u8>, PoaError> {
        let mut key = MAGIC.to_vec();
        match lifespan {
            Lifespan::Persistent => key.push(b'P'),
            Lifespan::Transient => {
                key.push(b'T');
                key.extend_from_slice(&incarnation.to_be_bytes());
            }
        }
        key.push(u8::try_from(names.len()).map_err(|_| PoaError::TooLong)?);
        for name in names {
            key.push(u8::try_from(name.len()).map_err(|_| PoaError::TooLong)?);
            key.extend_from_slice(name.as_bytes());
        }
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back() {
        let mut bytes = ObjectKey::prefix(Lifespan::Transient, 7, &["a", "bc"]).unwrap();
        bytes.extend_from_slice(b"id");
        let key = ObjectKey::parse(&bytes).unwrap();
        assert_eq!((key.incarnation, key.id), (Some(7), &b"id"[..]));
        assert_eq!(key.names().collect::<Vec<_>>(), [&b"a"[..], b"bc"]);
        for cut in 0..bytes.len() - 2 {
            assert_eq!(ObjectKey::parse(&bytes[..cut]), None);
        }
    }
}
