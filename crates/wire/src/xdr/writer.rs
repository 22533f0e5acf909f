//! Appends XDR items to a message.

use std::fmt;

use super::nesting::Nesting;
use super::{Error, Xdr, padded};

/// The end of a message that grows, up to a limit.
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    limit: usize,
    nesting: Nesting,
    /// Where the beginning of the message goes once it has a long item, and how much of it is there.
    place: Option<&'a mut dyn Place>,
    placed: usize,
}

/// Memory of a transport that the beginning of a message is written to, so that long items are copied once.
pub trait Place {
    /// Takes the next bytes of the message, all of both parts or nothing: whether it has.
    fn put(&mut self, parts: [&[u8]; 2]) -> bool;

    /// Appends everything that it has taken, and has taken nothing then. `false`: it is lost.
    fn take_back(&mut self, into: &mut Vec<u8>) -> bool;
}

/// The shortest item that goes to its place: a shorter one is copied twice in less time than it takes to find the place.
const LONG: usize = 1 << 10;

impl<'a> Writer<'a> {
    /// Behind what `out` holds, which may become `limit` bytes long.
    #[inline]
    pub fn new(out: &'a mut Vec<u8>, limit: usize) -> Self {
        Self { out, limit, nesting: Nesting::default(), place: None, placed: 0 }
    }

    /// The same, where the message may go to a place. `out` is the end of the message that is not there.
    #[inline]
    pub fn with_place(out: &'a mut Vec<u8>, limit: usize, place: Option<&'a mut dyn Place>) -> Self {
        Self { place, ..Self::new(out, limit) }
    }

    /// How much of the message is in its place.
    #[inline]
    #[must_use]
    pub fn placed(&self) -> usize {
        self.placed
    }

    /// Unsigned integers, one after the other, with one look at the limit.
    #[inline]
    pub fn words<const N: usize>(&mut self, words: [u32; N]) -> Result<(), Error> {
        self.put(words.map(u32::to_be_bytes).as_flattened())
    }

    /// An unsigned integer.
    #[inline]
    pub fn u32(&mut self, value: u32) -> Result<(), Error> {
        self.put(&value.to_be_bytes())
    }

    /// An integer.
    #[inline]
    pub fn i32(&mut self, value: i32) -> Result<(), Error> {
        self.put(&value.to_be_bytes())
    }

    /// An unsigned hyper integer.
    #[inline]
    pub fn u64(&mut self, value: u64) -> Result<(), Error> {
        self.put(&value.to_be_bytes())
    }

    /// A hyper integer.
    #[inline]
    pub fn i64(&mut self, value: i64) -> Result<(), Error> {
        self.put(&value.to_be_bytes())
    }

    /// An integer of 8 bits, in the four bytes of an int.
    pub fn i8(&mut self, value: i8) -> Result<(), Error> {
        self.i32(value.into())
    }

    /// An unsigned integer of 8 bits, in the four bytes of an int.
    pub fn u8(&mut self, value: u8) -> Result<(), Error> {
        self.i32(value.into())
    }

    /// An integer of 16 bits, in the four bytes of an int.
    pub fn i16(&mut self, value: i16) -> Result<(), Error> {
        self.i32(value.into())
    }

    /// An unsigned integer of 16 bits, in the four bytes of an int.
    pub fn u16(&mut self, value: u16) -> Result<(), Error> {
        self.i32(value.into())
    }

    /// A single-precision number.
    pub fn f32(&mut self, value: f32) -> Result<(), Error> {
        self.put(&value.to_be_bytes())
    }

    /// A double-precision number.
    pub fn f64(&mut self, value: f64) -> Result<(), Error> {
        self.put(&value.to_be_bytes())
    }

    /// A boolean.
    pub fn bool(&mut self, value: bool) -> Result<(), Error> {
        self.u32(u32::from(value))
    }

    /// A length of at most `limit`.
    pub fn length(&mut self, length: usize, limit: u32) -> Result<(), Error> {
        match u32::try_from(length) {
            Ok(short) if short <= limit => self.u32(short),
            _ => Err(Error::Length { length, limit: limit as usize }),
        }
    }

    /// Bytes and their fill.
    pub fn fixed(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.put(bytes)?;
        self.put(&[0; 3][..padded(bytes.len()) - bytes.len()])
    }

    /// A length of at most `limit`, then the bytes and their fill.
    pub fn opaque(&mut self, bytes: &[u8], limit: u32) -> Result<(), Error> {
        self.length(bytes.len(), limit)?;
        self.fixed(bytes)
    }

    /// A string of at most `limit` bytes.
    pub fn string(&mut self, text: &str, limit: u32) -> Result<(), Error> {
        self.opaque(text.as_bytes(), limit)
    }

    /// A length of at most `limit`, then the items.
    pub fn array<T>(
        &mut self,
        items: &[T],
        limit: u32,
        item: impl FnMut(&mut Self, &T) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.length(items.len(), limit)?;
        self.items(items, item)
    }

    /// The items alone.
    pub fn items<T>(
        &mut self,
        items: &[T],
        mut item: impl FnMut(&mut Self, &T) -> Result<(), Error>,
    ) -> Result<(), Error> {
        items.iter().try_for_each(|value| item(self, value))
    }

    /// A boolean, then the item if there is one.
    pub fn optional<T>(
        &mut self,
        value: Option<&T>,
        item: impl FnOnce(&mut Self, &T) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.bool(value.is_some())?;
        value.map_or(Ok(()), |value| self.nested(|out| item(out, value)))
    }

    /// An item that may contain items of its own kind.
    pub fn nested(&mut self, item: impl FnOnce(&mut Self) -> Result<(), Error>) -> Result<(), Error> {
        self.nesting.enter()?;
        let done = self.inside(item);
        self.nesting.leave();
        done
    }

    /// The stack that an item takes is taken here, and not before it is known that there is enough.
    #[inline(never)]
    fn inside(&mut self, item: impl FnOnce(&mut Self) -> Result<(), Error>) -> Result<(), Error> {
        item(self)
    }

    /// A value of a type that has one representation.
    pub fn value<T: Xdr>(&mut self, value: &T) -> Result<(), Error> {
        value.encode(self)
    }

    /// A linked list, the idiom of RPC: a boolean before each value, false at the end.
    pub fn list<T>(
        &mut self,
        items: &[T],
        mut item: impl FnMut(&mut Self, &T) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for value in items {
            self.bool(true)?;
            item(self, value)?;
        }
        self.bool(false)
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if bytes.len() > self.limit.saturating_sub(self.placed + self.out.len()) {
            return Err(Error::Full { limit: self.limit });
        }
        if bytes.len() < LONG || !self.put_in_place(bytes)? {
            self.out.extend_from_slice(bytes);
        }
        Ok(())
    }

    /// Puts a long item to its place, with everything before it. `false`: it must go where the rest of the message is.
    #[inline(never)]
    fn put_in_place(&mut self, bytes: &[u8]) -> Result<bool, Error> {
        let Some(place) = &mut self.place else { return Ok(false) };
        if place.put([self.out, bytes]) {
            self.placed += self.out.len() + bytes.len();
            self.out.clear();
            return Ok(true);
        }
        // What is there comes back, and the message is as if there were no place.
        if self.placed > 0 {
            let end = std::mem::take(self.out);
            if !place.take_back(self.out) {
                return Err(Error::Full { limit: self.placed });
            }
            self.out.extend_from_slice(&end);
            self.placed = 0;
        }
        self.place = None;
        Ok(false)
    }
}

impl fmt::Debug for Writer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Writer { out, limit, placed, .. } = self;
        f.debug_struct("Writer").field("placed", placed).field("out", out).field("limit", limit).finish_non_exhaustive()
    }
}
