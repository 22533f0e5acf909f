//! Bytes to values.

use std::any::Any;
use std::fmt;

use super::text::{self, CharSet};
use super::{ByteOrder, Error, Format, MAX_DEPTH};

/// Reads values that lie behind each other in a buffer.
///
/// Nothing is copied until a value is made, and no length is believed before its bytes are there.
///
/// The rest of a message may lie elsewhere ([`Decoder::with_rest`]): octets and text are then copied from there to where they
/// belong. What has to be borrowed, or would be slow to fetch, fails with [`Error::Elsewhere`]: the caller fetches the message.
#[derive(Clone)]
pub struct Decoder<'a> {
    data: &'a [u8],
    at: usize,
    /// How many bytes there are, with those that lie elsewhere.
    len: usize,
    elsewhere: Option<&'a dyn Source>,
    /// Where alignment begins anew: see [`Decoder::with_joints`].
    joints: &'a [usize],
    /// Where `data` begins in the message, for the indirections of type codes.
    base: usize,
    depth: u16,
    format: Format,
    context: Option<&'a dyn Any>,
}

/// The length of what stands before the bytes of a fragment in GIOP 1.1. A message has as much before its first fragment's.
const FRAGMENT_HEAD: usize = crate::giop::header::LEN;

/// Where a part of a message lies that others may still write to. Every byte is fetched before it is looked at.
pub trait Source {
    /// Copies the bytes from offset `at` of the message on; false if they are not there.
    fn copy_out(&self, at: usize, into: &mut [u8]) -> bool;

    /// Appends `count` bytes from offset `at` of the message on; false if they are not there.
    fn append_to(&self, at: usize, count: usize, into: &mut Vec<u8>) -> bool;
}

macro_rules! number {
    ($name:ident, $type:ty, $what:literal) => {
        #[doc = concat!("Reads ", $what, ".")]
        #[inline]
        pub fn $name(&mut self) -> Result<$type, Error> {
            self.align(size_of::<$type>())?;
            let bytes = self.array()?;
            Ok(match self.format.order {
                ByteOrder::Big => <$type>::from_be_bytes(bytes),
                ByteOrder::Little => <$type>::from_le_bytes(bytes),
            })
        }
    };
}

impl<'a> Decoder<'a> {
    /// A decoder of `data`, whose first byte is the origin of alignment.
    #[inline]
    #[must_use]
    pub fn new(data: &'a [u8], format: Format) -> Self {
        Self { data, at: 0, len: data.len(), elsewhere: None, joints: &[], base: 0, depth: 0, format, context: None }
    }

    /// A decoder of `data` that stands at offset `at`; `None` if that is behind the end.
    #[inline]
    #[must_use]
    pub fn at(data: &'a [u8], format: Format, at: usize) -> Option<Self> {
        if at > data.len() {
            return None;
        }
        Some(Self { data, at, len: data.len(), elsewhere: None, joints: &[], base: 0, depth: 0, format, context: None })
    }

    /// The same decoder of a message of `len` bytes, of which only the first are at hand.
    #[inline]
    #[must_use]
    pub fn with_rest(mut self, source: &'a dyn Source, len: usize) -> Self {
        self.len = len.max(self.data.len());
        self.elsewhere = Some(source);
        self
    }

    /// The same decoder of a message of GIOP 1.1 that was put together of fragments, which begin at these offsets. In this version values
    /// are aligned to where they are in their fragment, behind its header (CORBA 3.3 part 2 §9.4.9).
    #[inline]
    #[must_use]
    pub fn with_joints(mut self, joints: &'a [usize]) -> Self {
        self.joints = joints;
        self
    }

    /// The same decoder with something that values need to be made: the broker of an object reference.
    #[inline]
    #[must_use]
    pub fn with_context(mut self, context: &'a dyn Any) -> Self {
        self.context = Some(context);
        self
    }

    /// What [`Decoder::with_context`] was given, if it is a `T`.
    #[must_use]
    pub fn context<T: 'static>(&self) -> Option<&'a T> {
        self.context.and_then(|context| context.downcast_ref())
    }

    /// A decoder of an encapsulation whose bytes are `data`. Its first octet is the byte order.
    pub fn of_encapsulation(data: &'a [u8], format: Format) -> Result<Self, Error> {
        let mut inner = Self::new(data, format);
        inner.format.order = ByteOrder::from_flag(inner.u8()?);
        Ok(inner)
    }

    /// How values are encoded.
    #[inline]
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Where the next value begins, before alignment, counted from the beginning of the message.
    #[inline]
    #[must_use]
    pub fn position(&self) -> usize {
        self.base + self.at
    }

    /// How many bytes have not been read.
    #[inline]
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.len - self.at
    }

    /// The bytes at hand that have not been read.
    #[inline]
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.data.get(self.at..).unwrap_or_default()
    }

    /// Whether some of the next `count` bytes lie elsewhere.
    #[must_use]
    pub fn lies_elsewhere(&self, count: usize) -> bool {
        self.elsewhere.is_some() && count > self.rest().len()
    }

    /// Skips to a multiple of `size` from the origin, which is a power of two.
    #[inline]
    pub fn align(&mut self, size: usize) -> Result<(), Error> {
        debug_assert!(size.is_power_of_two());
        // No message is so long that this overflows.
        let aligned = (self.at + (size - 1)) & !(size - 1);
        if !self.joints.is_empty() {
            return self.align_in_fragment(size);
        }
        if aligned > self.len {
            return Err(self.truncated(aligned - self.at));
        }
        self.at = aligned;
        Ok(())
    }

    #[cold]
    fn align_in_fragment(&mut self, size: usize) -> Result<(), Error> {
        loop {
            let begun = self.joints.partition_point(|joint| *joint <= self.at);
            let ends = self.joints.get(begun).copied();
            // How much less of the fragment lies before an offset than of the message.
            let less = begun
                .checked_sub(1)
                .and_then(|last| self.joints.get(last))
                .map_or(0, |joint| joint.saturating_sub(FRAGMENT_HEAD));
            let aligned = ((self.at - less + (size - 1)) & !(size - 1)) + less;
            match ends {
                // A value that would begin behind the end of the fragment is in the next one.
                Some(end) if aligned >= end => self.at = end,
                _ if aligned > self.len => return Err(self.truncated(aligned - self.at)),
                _ => {
                    self.at = aligned;
                    return Ok(());
                }
            }
        }
    }

    /// Reads `count` bytes as they are.
    #[inline]
    pub fn raw(&mut self, count: usize) -> Result<&'a [u8], Error> {
        match self.rest().get(..count) {
            Some(bytes) => {
                self.at += count;
                Ok(bytes)
            }
            None => Err(self.missing(count)),
        }
    }

    /// Reads `count` bytes as they are, wherever they lie.
    pub fn copied(&mut self, count: usize) -> Result<Vec<u8>, Error> {
        let near = self.rest();
        if let Some(bytes) = near.get(..count) {
            self.at += count;
            return Ok(bytes.to_vec());
        }
        let Some(source) = self.elsewhere.filter(|_| count <= self.remaining()) else {
            return Err(self.missing(count));
        };
        let mut bytes = Vec::with_capacity(count);
        bytes.extend_from_slice(near);
        if !source.append_to(self.at + near.len(), count - near.len(), &mut bytes) || bytes.len() != count {
            return Err(Error::Elsewhere);
        }
        self.at += count;
        Ok(bytes)
    }

    /// Reads an octet.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Error> {
        Ok(self.array::<1>()?[0])
    }

    number!(u16, u16, "an unsigned short");
    number!(i16, i16, "a short");
    number!(u32, u32, "an unsigned long");
    number!(i32, i32, "a long");
    number!(u64, u64, "an unsigned long long");
    number!(i64, i64, "a long long");
    number!(f32, f32, "a float");
    number!(f64, f64, "a double");

    /// Reads the sixteen bytes of a long double, aligned to eight.
    pub fn u128(&mut self) -> Result<u128, Error> {
        self.align(8)?;
        let bytes = self.array()?;
        Ok(match self.format.order {
            ByteOrder::Big => u128::from_be_bytes(bytes),
            ByteOrder::Little => u128::from_le_bytes(bytes),
        })
    }

    /// Reads a boolean.
    pub fn bool(&mut self) -> Result<bool, Error> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            found => Err(Error::Boolean { found }),
        }
    }

    /// Reads the length of a sequence whose elements take at least `smallest` bytes each.
    ///
    /// Fails if the message cannot hold so many.
    #[inline]
    pub fn length(&mut self, smallest: usize) -> Result<usize, Error> {
        let count = self.u32()? as usize;
        match count.checked_mul(smallest) {
            Some(needed) if needed <= self.remaining() => Ok(count),
            needed => Err(self.truncated(needed.unwrap_or(usize::MAX))),
        }
    }

    /// Reads a sequence of octets.
    #[inline]
    pub fn octets(&mut self) -> Result<&'a [u8], Error> {
        let length = self.length(1)?;
        self.raw(length)
    }

    /// Reads a string in the agreed code set.
    pub fn string(&mut self) -> Result<String, Error> {
        let chars = self.format.chars;
        let mut next = self.clone();
        let length = next.length(1)?;
        if next.lies_elsewhere(length) {
            let bytes = next.copied(length)?;
            *self = next;
            return text_of(unterminated(&bytes)?, chars);
        }
        text_of(self.identifier()?, chars)
    }

    /// Reads a string as bytes, without the zero at its end.
    ///
    /// A length of zero, which some brokers send, is the empty string.
    #[inline]
    pub fn identifier(&mut self) -> Result<&'a [u8], Error> {
        unterminated(self.octets()?)
    }

    /// Reads an encapsulation: a decoder of its bytes, in its byte order.
    pub fn encapsulation(&mut self) -> Result<Self, Error> {
        let depth = self.deeper()?;
        let data = self.octets()?;
        let base = self.position() - data.len();
        let mut inner =
            Self { base, data, at: 0, len: data.len(), elsewhere: None, joints: &[], depth, ..self.clone() };
        inner.format.order = ByteOrder::from_flag(inner.u8()?);
        Ok(inner)
    }

    /// Reads what lies one level deeper; fails at [`MAX_DEPTH`].
    pub fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        self.enter()?;
        let value = read(self);
        self.leave();
        value
    }

    pub(super) fn enter(&mut self) -> Result<(), Error> {
        self.depth = self.deeper()?;
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    fn deeper(&self) -> Result<u16, Error> {
        if self.depth < MAX_DEPTH { Ok(self.depth + 1) } else { Err(Error::Depth) }
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        match self.rest().first_chunk() {
            Some(bytes) => {
                self.at += N;
                Ok(*bytes)
            }
            None => self.fetched(),
        }
    }

    #[cold]
    fn fetched<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        match self.elsewhere {
            Some(source) if N <= self.remaining() && self.at >= self.data.len() => {
                if !source.copy_out(self.at, &mut bytes) {
                    return Err(Error::Elsewhere);
                }
                self.at += N;
                Ok(bytes)
            }
            _ => Err(self.missing(N)),
        }
    }

    #[cold]
    fn missing(&self, needed: usize) -> Error {
        if needed <= self.remaining() { Error::Elsewhere } else { self.truncated(needed) }
    }

    #[cold]
    fn truncated(&self, needed: usize) -> Error {
        Error::Truncated { at: self.position(), needed, have: self.remaining() }
    }
}

/// A string without the zero at its end.
#[inline]
fn unterminated(bytes: &[u8]) -> Result<&[u8], Error> {
    match bytes.split_last() {
        None => Ok(bytes),
        Some((0, text)) => Ok(text),
        Some(_) => Err(Error::Text { code_set: text::TERMINATED }),
    }
}

fn text_of(bytes: &[u8], chars: CharSet) -> Result<String, Error> {
    let wrong = Error::Text { code_set: chars.name() };
    let value = match chars {
        CharSet::Utf8 => std::str::from_utf8(bytes).map_err(|_| wrong.clone())?.to_owned(),
        CharSet::Latin1 => bytes.iter().copied().map(char::from).collect(),
    };
    if value.contains('\0') { Err(wrong) } else { Ok(value) }
}

impl fmt::Debug for Decoder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Decoder at byte {} of {:?}, {} left", self.position(), self.format, self.remaining())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cdr, Encoder};
    use super::*;

    fn big(data: &[u8]) -> Decoder<'_> {
        Decoder::new(data, Format { order: ByteOrder::Big, ..Format::NATIVE })
    }

    struct Far(Vec<u8>);

    impl Source for Far {
        fn copy_out(&self, at: usize, into: &mut [u8]) -> bool {
            let bytes = self.0.get(at..at + into.len());
            bytes.map(|bytes| into.copy_from_slice(bytes)).is_some()
        }

        fn append_to(&self, at: usize, count: usize, into: &mut Vec<u8>) -> bool {
            self.0.get(at..at + count).map(|bytes| into.extend_from_slice(bytes)).is_some()
        }
    }

    #[test]
    fn a_message_may_lie_in_two_places() {
        let mut encoder = Encoder::new(Vec::new(), Format::NATIVE);
        encoder.octets(&[7; 50]).unwrap();
        encoder.u64(8);
        encoder.string("nine").unwrap();
        encoder.sequence(&[10u32; 40]).unwrap();
        let bytes = encoder.into_bytes();
        let far = Far(bytes.clone());
        for near in 0..=bytes.len() {
            let mut decoder = Decoder::new(&bytes[..near], Format::NATIVE).with_rest(&far, bytes.len());
            assert_eq!(decoder.remaining(), bytes.len());
            let first = Vec::<u8>::decode(&mut decoder);
            match first {
                // A number that lies in both places.
                Err(Error::Elsewhere) if near > 0 && near < 4 => continue,
                octets => assert_eq!(octets, Ok(vec![7; 50])),
            }
            if near % 8 != 0 && (56..64).contains(&near) {
                assert_eq!(decoder.u64(), Err(Error::Elsewhere));
                continue;
            }
            assert_eq!(decoder.u64(), Ok(8), "{near}");
            if (65..68).contains(&near) || (73..80).contains(&near) {
                continue;
            }
            assert_eq!(decoder.string().as_deref(), Ok("nine"), "{near}");
            // Many small values are not fetched one by one.
            let numbers = Vec::<u32>::decode(&mut decoder);
            assert!(numbers == Err(Error::Elsewhere) || numbers == Ok(vec![10; 40]));
            assert_eq!(numbers.is_ok(), near == bytes.len(), "{near}");
        }
        let mut short = Decoder::new(&bytes[..2], Format::NATIVE).with_rest(&far, 3);
        assert_eq!(short.u32(), Err(Error::Truncated { at: 0, needed: 4, have: 3 }));
    }

    #[test]
    fn a_length_that_the_message_cannot_hold_is_refused() {
        let error = big(&[0, 0, 0, 5, 1, 2, 3, 4]).octets();
        assert_eq!(error, Err(Error::Truncated { at: 4, needed: 5, have: 4 }));
        assert!(big(&[0xff, 0xff, 0xff, 0xff]).length(usize::MAX).is_err());
    }

    #[test]
    fn strings_end_in_a_zero() {
        assert_eq!(big(&[0, 0, 0, 3, b'h', b'i', 0]).string().as_deref(), Ok("hi"));
        assert_eq!(big(&[0, 0, 0, 0]).string().as_deref(), Ok(""));
        assert!(big(&[0, 0, 0, 2, b'h', b'i']).string().is_err());
        assert!(big(&[0, 0, 0, 3, 0, b'i', 0]).string().is_err());
        assert!(big(&[0, 0, 0, 3, 0xff, 0xff, 0]).string().is_err());
    }

    #[test]
    fn encapsulations_stop_at_the_greatest_depth() {
        let mut encoder = super::super::Encoder::new(Vec::new(), Format::NATIVE);
        let open: Vec<_> = (0..200).map(|_| encoder.begin_encapsulation()).collect();
        for each in open.into_iter().rev() {
            encoder.end_encapsulation(each).unwrap();
        }
        let bytes = encoder.into_bytes();
        let mut decoder = Decoder::new(&bytes, Format::NATIVE);
        let mut depth = 0;
        let error = loop {
            match decoder.encapsulation() {
                Ok(inner) => decoder = inner,
                Err(error) => break error,
            }
            depth += 1;
        };
        assert_eq!((depth, error), (MAX_DEPTH, Error::Depth));
    }
}
