//! Walking through bytes whose fields follow each other: one reader and one writer for each byte order.
//!
//! [`little`] is what Sidestep's own messages use, [`big`] what the protocols of the network use. A reader takes bytes that
//! came from anybody and never panics; who writes into a fixed buffer has sized it.
//!
//! ```
//! use sidestep_wire::cursor::little::{Reader, Writer};
//!
//! let mut bytes = Vec::new();
//! Writer::new(&mut bytes).u8(7).u32(1 << 20).bytes(b"tail");
//! let mut fields = Reader::new(&bytes);
//! assert_eq!((fields.u8(), fields.u32()), (Ok(7), Ok(1 << 20)));
//! assert_eq!(fields.rest(), b"tail");
//! assert_eq!(fields.end(), Ok(()));
//! ```

/// The lowest byte first.
pub mod little {
    /// Reads fields one after another.
    pub type Reader<'a> = super::Reader<'a, false>;
    /// Writes fields one after another.
    pub type Writer<S> = super::Writer<S, false>;
}

/// The highest byte first.
pub mod big {
    /// Reads fields one after another.
    pub type Reader<'a> = super::Reader<'a, true>;
    /// Writes fields one after another.
    pub type Writer<S> = super::Writer<S, true>;
}

/// Bytes that are not what their reader expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// They end within a field.
    #[error("a message is too short")]
    Short,
    /// Something follows the last field.
    #[error("a message is too long")]
    Long,
}

impl From<Misfit> for &'static str {
    fn from(misfit: Misfit) -> &'static str {
        match misfit {
            Misfit::Short => "a message is too short",
            Misfit::Long => "a message is too long",
        }
    }
}

/// Reads fields one after another.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a, const BIG: bool> {
    bytes: &'a [u8],
}

impl<'a, const BIG: bool> Reader<'a, BIG> {
    /// From the first byte on.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The next bytes.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Misfit> {
        let (head, rest) = self.bytes.split_at_checked(len).ok_or(Misfit::Short)?;
        self.bytes = rest;
        Ok(head)
    }

    /// The next bytes, as many as the array has.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Misfit> {
        let (head, rest) = self.bytes.split_first_chunk().ok_or(Misfit::Short)?;
        self.bytes = rest;
        Ok(*head)
    }

    /// All bytes that are left.
    #[inline]
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    /// How many bytes are left.
    #[inline]
    pub const fn left(&self) -> usize {
        self.bytes.len()
    }

    /// Says whether nothing is left.
    #[inline]
    pub const fn end(&self) -> Result<(), Misfit> {
        if self.bytes.is_empty() { Ok(()) } else { Err(Misfit::Long) }
    }
}

/// Where a [`Writer`] puts its bytes: the end of a vector, or a buffer that it fills from the front.
pub trait Sink {
    /// Adds bytes.
    ///
    /// # Panics
    /// If a buffer has no room for them.
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for &mut Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

impl Sink for &mut [u8] {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        let (head, rest) = std::mem::take(self).split_at_mut(bytes.len());
        head.copy_from_slice(bytes);
        *self = rest;
    }
}

/// Writes fields one after another.
#[derive(Debug)]
pub struct Writer<S, const BIG: bool> {
    sink: S,
}

impl<S: Sink, const BIG: bool> Writer<S, BIG> {
    /// Writes to the end of a vector, or from the front of a buffer.
    #[inline]
    pub const fn new(sink: S) -> Self {
        Self { sink }
    }

    /// Writes these bytes as they are.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.sink.put(bytes);
        self
    }
}

macro_rules! numbers {
    ($($number:ident),*) => {
        impl<const BIG: bool> Reader<'_, BIG> {
            $(
                /// The next number.
                #[inline]
                pub fn $number(&mut self) -> Result<$number, Misfit> {
                    let bytes = self.array()?;
                    Ok(if BIG { $number::from_be_bytes(bytes) } else { $number::from_le_bytes(bytes) })
                }
            )*
        }

        impl<S: Sink, const BIG: bool> Writer<S, BIG> {
            $(
                /// Writes a number.
                #[inline]
                pub fn $number(&mut self, value: $number) -> &mut Self {
                    self.bytes(&if BIG { value.to_be_bytes() } else { value.to_le_bytes() })
                }
            )*
        }
    };
}

numbers!(u8, u16, u32, u64, u128);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_orders_come_back() {
        let mut little = Vec::new();
        little::Writer::new(&mut little).u8(1).u16(0x0203).u32(0x0405_0607).u64(8).u128(9);
        assert_eq!(&little[..7], [1, 3, 2, 7, 6, 5, 4]);
        let mut fields = little::Reader::new(&little);
        assert_eq!((fields.u8(), fields.u16(), fields.u32()), (Ok(1), Ok(0x0203), Ok(0x0405_0607)));
        assert_eq!((fields.u64(), fields.left(), fields.u128()), (Ok(8), 16, Ok(9)));
        assert_eq!(fields.end(), Ok(()));

        let mut big = [0; 7];
        big::Writer::new(&mut big[..]).u8(1).u16(0x0203).u32(0x0405_0607);
        assert_eq!(big, [1, 2, 3, 4, 5, 6, 7]);
        let mut fields = big::Reader::new(&big);
        assert_eq!((fields.take(1), fields.u16()), (Ok(&[1][..]), Ok(0x0203)));
        assert_eq!(fields.end(), Err(Misfit::Long));
        assert_eq!((fields.u64(), fields.left()), (Err(Misfit::Short), 4), "what is missing takes nothing");
        assert_eq!((fields.rest(), fields.end()), (&[4, 5, 6, 7][..], Ok(())));
    }
}
