//! Values to bytes.

use super::text::{self, CharSet};
use super::{ByteOrder, Cdr, Error, Format};

/// Writes values behind each other into a growing buffer.
///
/// The buffer's first byte is the origin of alignment, so a message is encoded from its GIOP header on.
///
/// Large blocks of octets need not go through the buffer. A first encoder only counts them ([`Encoder::counting`]), so that
/// the length of the message is known; a second one hands everything on in order ([`Encoder::streaming`]).
pub struct Encoder<'a> {
    buffer: Vec<u8>,
    /// The bytes that are not in the buffer: they were counted, or handed on.
    passed: usize,
    origin: usize,
    format: Format,
    /// Blocks of at least so many octets do not go through the buffer.
    direct: usize,
    /// Encapsulations that have not ended. Their length is written last, so they stay in the buffer.
    open: u32,
    outlet: Option<&'a mut dyn Outlet>,
}

/// Where the bytes of a message go while it is encoded.
pub trait Outlet {
    /// Takes the next bytes. Whoever implements this remembers a failure, and takes nothing after it.
    fn put(&mut self, bytes: &[u8]);
}

/// An encapsulation that has been begun and not yet ended.
#[must_use = "an encapsulation has to be ended"]
#[derive(Debug)]
pub struct Encapsulation {
    length_at: usize,
    outer_origin: usize,
}

macro_rules! number {
    ($name:ident, $type:ty, $what:literal) => {
        #[doc = concat!("Writes ", $what, ".")]
        #[inline]
        pub fn $name(&mut self, value: $type) {
            self.align(size_of::<$type>());
            match self.format.order {
                ByteOrder::Big => self.buffer.extend_from_slice(&value.to_be_bytes()),
                ByteOrder::Little => self.buffer.extend_from_slice(&value.to_le_bytes()),
            }
        }
    };
}

impl<'a> Encoder<'a> {
    /// An encoder that appends to `buffer`, whose first byte is the origin of alignment.
    #[inline]
    #[must_use]
    pub fn new(buffer: Vec<u8>, format: Format) -> Self {
        Self { buffer, passed: 0, origin: 0, format, direct: usize::MAX, open: 0, outlet: None }
    }

    /// The same encoder, which only counts blocks of at least `direct` octets.
    #[inline]
    #[must_use]
    pub fn counting(self, direct: usize) -> Self {
        Self { direct: direct.max(1), ..self }
    }

    /// The same encoder, which hands blocks of at least `direct` octets to `outlet`, and what was written before them.
    #[must_use]
    pub fn streaming(self, direct: usize, outlet: &'a mut dyn Outlet) -> Self {
        Self { direct: direct.max(1), outlet: Some(outlet), ..self }
    }

    /// Whether blocks were counted, so that the buffer is not the whole message.
    #[inline]
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.passed > 0
    }

    /// Hands on what is left, and returns the empty buffer.
    pub fn flush(mut self) -> Vec<u8> {
        self.hand_on();
        self.buffer
    }

    /// The bytes written.
    #[inline]
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.buffer
    }

    /// The bytes written so far.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// The bytes written so far, to be corrected.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    /// The number of bytes written so far.
    #[inline]
    #[must_use]
    pub fn position(&self) -> usize {
        self.passed + self.buffer.len()
    }

    /// Forgets what was written behind `position`, if it is still in the buffer.
    #[inline]
    pub fn truncate(&mut self, position: usize) {
        self.buffer.truncate(position.saturating_sub(self.passed));
    }

    /// How values are encoded.
    #[inline]
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Pads with zeros to a multiple of `size` from the origin, which is a power of two of at most 8.
    #[inline]
    pub fn align(&mut self, size: usize) {
        debug_assert!(matches!(size, 1 | 2 | 4 | 8));
        let at = self.position() - self.origin;
        let missing = at.wrapping_neg() & (size - 1);
        if missing > 0 {
            self.buffer.extend_from_slice(&[0; 8][..missing]);
        }
    }

    /// Writes an octet.
    #[inline]
    pub fn u8(&mut self, value: u8) {
        self.buffer.push(value);
    }

    number!(u16, u16, "an unsigned short");
    number!(i16, i16, "a short");
    number!(u32, u32, "an unsigned long");
    number!(i32, i32, "a long");
    number!(u64, u64, "an unsigned long long");
    number!(i64, i64, "a long long");
    number!(f32, f32, "a float");
    number!(f64, f64, "a double");

    /// Writes the sixteen bytes of a long double, aligned to eight.
    pub fn u128(&mut self, value: u128) {
        self.align(8);
        match self.format.order {
            ByteOrder::Big => self.buffer.extend_from_slice(&value.to_be_bytes()),
            ByteOrder::Little => self.buffer.extend_from_slice(&value.to_le_bytes()),
        }
    }

    /// Writes bytes as they are.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        if bytes.len() < self.direct || self.open > 0 {
            return self.buffer.extend_from_slice(bytes);
        }
        self.pass(bytes);
    }

    /// Bytes that do not go through the buffer.
    #[cold]
    fn pass(&mut self, bytes: &[u8]) {
        self.hand_on();
        if let Some(outlet) = &mut self.outlet {
            outlet.put(bytes);
        }
        self.passed += bytes.len();
    }

    fn hand_on(&mut self) {
        if let Some(outlet) = &mut self.outlet {
            outlet.put(&self.buffer);
            self.passed += self.buffer.len();
            self.buffer.clear();
        }
    }

    /// Writes a length as an unsigned long.
    #[inline]
    pub fn length(&mut self, length: usize) -> Result<(), Error> {
        self.u32(u32::try_from(length).map_err(|_| Error::Length { found: length })?);
        Ok(())
    }

    /// Writes a sequence of octets.
    #[inline]
    pub fn octets(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.length(bytes.len())?;
        self.raw(bytes);
        Ok(())
    }

    /// Writes a sequence.
    pub fn sequence<T: Cdr>(&mut self, items: &[T]) -> Result<(), Error> {
        self.length(items.len())?;
        T::encode_all(items, self)
    }

    /// Writes a string in the agreed code set.
    pub fn string(&mut self, value: &str) -> Result<(), Error> {
        if value.contains('\0') {
            return Err(Error::Text { code_set: self.format.chars.name() });
        }
        match self.format.chars {
            CharSet::Utf8 => self.identifier(value.as_bytes()),
            CharSet::Latin1 => {
                self.length(value.chars().count() + 1)?;
                for each in value.chars() {
                    self.u8(text::latin1(each)?);
                }
                self.u8(0);
                Ok(())
            }
        }
    }

    /// Writes a string that is the same in every code set: a repository id, the name of an operation.
    #[inline]
    pub fn identifier(&mut self, value: &[u8]) -> Result<(), Error> {
        self.length(value.len() + 1)?;
        self.raw(value);
        self.u8(0);
        Ok(())
    }

    /// Begins an encapsulation: a length, a byte order, and an alignment of its own.
    pub fn begin_encapsulation(&mut self) -> Encapsulation {
        self.u32(0);
        let encapsulation = Encapsulation { length_at: self.position() - 4, outer_origin: self.origin };
        self.origin = self.position();
        self.open += 1;
        self.u8(self.format.order.flag());
        encapsulation
    }

    /// Ends an encapsulation and writes its length in front of it.
    pub fn end_encapsulation(&mut self, encapsulation: Encapsulation) -> Result<(), Error> {
        let begin = encapsulation.length_at + 4;
        let found = self.position() - begin;
        self.open -= 1;
        let length = u32::try_from(found).map_err(|_| Error::Length { found })?;
        self.origin = encapsulation.outer_origin;
        self.patch_u32(encapsulation.length_at, length);
        Ok(())
    }

    /// Overwrites the unsigned long at `at`, which has been written before and is in the buffer.
    #[inline]
    pub fn patch_u32(&mut self, at: usize, value: u32) {
        let bytes = match self.format.order {
            ByteOrder::Big => value.to_be_bytes(),
            ByteOrder::Little => value.to_le_bytes(),
        };
        let at = at - self.passed;
        self.buffer[at..at + 4].copy_from_slice(&bytes);
    }
}

impl std::fmt::Debug for Encoder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Encoder at byte {} of {:?}", self.position(), self.format)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_primitive_lies_at_a_multiple_of_its_size() {
        for (order, golden) in [
            (ByteOrder::Big, [1, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4]),
            (ByteOrder::Little, [1, 0, 2, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]),
        ] {
            let mut encoder = Encoder::new(Vec::new(), Format { order, ..Format::NATIVE });
            encoder.u8(1);
            encoder.u16(2);
            encoder.u32(3);
            encoder.u64(4);
            assert_eq!(encoder.bytes(), golden);
        }
    }

    #[test]
    fn an_encapsulation_aligns_from_its_own_beginning() {
        let mut encoder = Encoder::new(Vec::new(), Format { order: ByteOrder::Big, ..Format::NATIVE });
        encoder.u8(9);
        let inner = encoder.begin_encapsulation();
        encoder.u64(1);
        encoder.end_encapsulation(inner).unwrap();
        encoder.u16(2);
        let golden = [9, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2];
        assert_eq!(encoder.bytes(), golden);
    }

    #[test]
    fn blocks_past_the_buffer_make_the_same_message() {
        struct Taken(Vec<Vec<u8>>);

        impl Outlet for Taken {
            fn put(&mut self, bytes: &[u8]) {
                self.0.push(bytes.to_vec());
            }
        }

        let block = [7; 100];
        let write = |encoder: &mut Encoder<'_>| {
            encoder.u8(1);
            encoder.octets(&block).unwrap();
            let inner = encoder.begin_encapsulation();
            encoder.octets(&block).unwrap();
            encoder.end_encapsulation(inner).unwrap();
            encoder.octets(&block[..99]).unwrap();
            encoder.u64(2);
        };
        let mut whole = Encoder::new(Vec::new(), Format::NATIVE);
        write(&mut whole);
        assert!(!whole.is_partial());
        let mut counted = Encoder::new(Vec::new(), Format::NATIVE).counting(100);
        write(&mut counted);
        assert_eq!((counted.is_partial(), counted.position()), (true, whole.position()));
        let mut taken = Taken(Vec::new());
        let mut streamed = Encoder::new(Vec::new(), Format::NATIVE).streaming(100, &mut taken);
        write(&mut streamed);
        assert_eq!(streamed.flush(), []);
        assert_eq!(taken.0.len(), 3);
        assert_eq!(taken.0.concat(), whole.into_bytes());
    }

    #[test]
    fn text_that_the_code_set_lacks_is_refused() {
        let format = Format { chars: CharSet::Latin1, ..Format::NATIVE };
        assert_eq!(Encoder::new(Vec::new(), format).string("€"), Err(Error::Text { code_set: "ISO 8859-1" }));
        assert!(Encoder::new(Vec::new(), format).string("a\0b").is_err());
        assert!(Encoder::new(Vec::new(), format).string("é").is_ok());
    }
}
