//! Takes XDR items from the bytes of one message.

use super::nesting::Nesting;
use super::{Error, Xdr, memory_limit, padded};

/// A position in the bytes of a message. Each call takes one item.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
    nesting: Nesting,
    /// The length of the message.
    whole: usize,
    /// How much memory its values take so far, without strings and opaque data, which take no more than their bytes.
    spent: usize,
}

impl<'a> Reader<'a> {
    /// At the first byte of `message`.
    #[must_use]
    pub fn new(message: &'a [u8]) -> Self {
        Self { rest: message, nesting: Nesting::default(), whole: message.len(), spent: 0 }
    }

    /// The bytes that are not taken yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Fails unless every byte is taken.
    pub fn finish(&self) -> Result<(), Error> {
        if self.rest.is_empty() { Ok(()) } else { Err(Error::Trailing { count: self.rest.len() }) }
    }

    /// An unsigned integer.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_be_bytes(self.take()?))
    }

    /// An integer.
    #[inline]
    pub fn i32(&mut self) -> Result<i32, Error> {
        Ok(i32::from_be_bytes(self.take()?))
    }

    /// An unsigned hyper integer.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, Error> {
        Ok(u64::from_be_bytes(self.take()?))
    }

    /// A hyper integer.
    #[inline]
    pub fn i64(&mut self) -> Result<i64, Error> {
        Ok(i64::from_be_bytes(self.take()?))
    }

    /// An integer of 8 bits, in the four bytes of an int.
    pub fn i8(&mut self) -> Result<i8, Error> {
        self.narrow("char")
    }

    /// An unsigned integer of 8 bits, in the four bytes of an int.
    pub fn u8(&mut self) -> Result<u8, Error> {
        self.narrow("unsigned char")
    }

    /// An integer of 16 bits, in the four bytes of an int.
    pub fn i16(&mut self) -> Result<i16, Error> {
        self.narrow("short")
    }

    /// An unsigned integer of 16 bits, in the four bytes of an int.
    pub fn u16(&mut self) -> Result<u16, Error> {
        self.narrow("unsigned short")
    }

    /// A single-precision number.
    pub fn f32(&mut self) -> Result<f32, Error> {
        Ok(f32::from_be_bytes(self.take()?))
    }

    /// A double-precision number.
    pub fn f64(&mut self) -> Result<f64, Error> {
        Ok(f64::from_be_bytes(self.take()?))
    }

    /// A boolean.
    pub fn bool(&mut self) -> Result<bool, Error> {
        match self.u32()? {
            0 => Ok(false),
            1 => Ok(true),
            found => Err(Error::Bool { found }),
        }
    }

    /// A length of at most `limit`.
    pub fn length(&mut self, limit: u32) -> Result<usize, Error> {
        let length = self.u32()?;
        if length > limit {
            return Err(Error::Length { length: length as usize, limit: limit as usize });
        }
        Ok(length as usize)
    }

    /// `len` bytes and their fill.
    pub fn fixed(&mut self, len: usize) -> Result<&'a [u8], Error> {
        let needed = padded(len);
        let Some((item, rest)) = self.rest.split_at_checked(needed) else {
            return Err(Error::Truncated { needed, have: self.rest.len() });
        };
        self.rest = rest;
        Ok(&item[..len])
    }

    /// `N` bytes and their fill, as an array.
    pub fn fixed_array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut value = [0; N];
        value.copy_from_slice(self.fixed(N)?);
        Ok(value)
    }

    /// A length of at most `limit`, then as many bytes and their fill.
    pub fn opaque(&mut self, limit: u32) -> Result<&'a [u8], Error> {
        let len = self.length(limit)?;
        // Compared before the fill is added, which could overflow where addresses have 32 bits.
        if len > self.rest.len() {
            return Err(Error::Truncated { needed: len, have: self.rest.len() });
        }
        self.fixed(len)
    }

    /// A string of at most `limit` bytes.
    pub fn string(&mut self, limit: u32) -> Result<&'a str, Error> {
        let bytes = self.opaque(limit)?;
        std::str::from_utf8(bytes).map_err(|error| Error::Utf8 { valid: error.valid_up_to() })
    }

    /// A length of at most `limit`, then as many items. An item has at least four bytes.
    pub fn array<T>(
        &mut self,
        limit: u32,
        mut item: impl FnMut(&mut Self) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let count = self.length(limit)?;
        if count > self.rest.len() / 4 {
            return Err(Error::Truncated { needed: count.saturating_mul(4), have: self.rest.len() });
        }
        // What a value takes in memory may be much more than what it takes in the message: it is accounted for before, and
        // taken as values come.
        self.spend(count, size_of::<T>())?;
        let room = self.rest.len() / size_of::<T>().max(1);
        let mut items = Vec::with_capacity(count.min(room));
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// As many items as the array has.
    pub fn items<T, const N: usize>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, Error>,
    ) -> Result<[T; N], Error> {
        if N > self.rest.len() / 4 {
            return Err(Error::Truncated { needed: N.saturating_mul(4), have: self.rest.len() });
        }
        let mut failure = None;
        let items = [(); N].map(|()| match &failure {
            None => item(self).map_err(|error| failure = Some(error)).ok(),
            Some(_) => None,
        });
        match failure {
            None => Ok(items.map(|item| item.expect("no item has failed"))),
            Some(error) => Err(error),
        }
    }

    /// A boolean, then an item if it is true.
    pub fn optional<T>(&mut self, item: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<Option<T>, Error> {
        if self.bool()? { self.nested(item).map(Some) } else { Ok(None) }
    }

    /// An item that may contain items of its own kind.
    pub fn nested<T>(&mut self, item: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        self.nesting.enter()?;
        let value = self.inside(item);
        self.nesting.leave();
        value
    }

    /// The stack that an item takes is taken here, and not before it is known that there is enough.
    #[inline(never)]
    fn inside<T>(&mut self, item: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        item(self)
    }

    /// A value of a type that has one representation.
    pub fn value<T: Xdr>(&mut self) -> Result<T, Error> {
        self.spend(1, size_of::<T>())?;
        T::decode(self)
    }

    /// A linked list, the idiom of RPC: a boolean before each value, false at the end.
    pub fn list<T>(
        &mut self,
        limit: u32,
        mut item: impl FnMut(&mut Self) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let mut items = Vec::new();
        while self.bool()? {
            if items.len() == limit as usize {
                return Err(Error::Length { length: items.len() + 1, limit: limit as usize });
            }
            self.spend(1, size_of::<T>())?;
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Values take memory, if the message may have so much.
    #[inline]
    fn spend(&mut self, count: usize, size: usize) -> Result<(), Error> {
        self.spent = self.spent.saturating_add(count.saturating_mul(size));
        let limit = memory_limit(self.whole);
        if self.spent > limit { Err(Error::Memory { limit }) } else { Ok(()) }
    }

    fn narrow<T: TryFrom<i32>>(&mut self, name: &'static str) -> Result<T, Error> {
        let found = self.i32()?;
        T::try_from(found).map_err(|_| Error::Value { name, found })
    }

    #[inline]
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let Some((item, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(Error::Truncated { needed: N, have: self.rest.len() });
        };
        self.rest = rest;
        Ok(*item)
    }
}
