//! Code sets, and text of wide characters.

use std::fmt;
use std::ops::Deref;

use super::{Cdr, Decoder, Encoder, Error};

/// The code set in which `char` and `string` are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CharSet {
    /// ISO 8859-1, what GIOP uses unless both ends agree on something else.
    Latin1,
    /// UTF-8.
    Utf8,
}

impl CharSet {
    /// The number of the code set in the registry of the OSF.
    #[must_use]
    pub fn id(self) -> u32 {
        match self {
            CharSet::Latin1 => 0x0001_0001,
            CharSet::Utf8 => 0x0501_0001,
        }
    }

    /// The code set of this number, if it is spoken here.
    #[must_use]
    pub fn from_id(id: u32) -> Option<Self> {
        [CharSet::Latin1, CharSet::Utf8].into_iter().find(|set| set.id() == id)
    }

    /// The name of the code set.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CharSet::Latin1 => "ISO 8859-1",
            CharSet::Utf8 => "UTF-8",
        }
    }
}

/// UTF-16 in the registry of the OSF, the only code set of wide text that is spoken here.
pub const UTF16: u32 = 0x0001_0109;

/// What a string is said to break when no zero ends it.
pub(super) const TERMINATED: &str = "a string ended by a zero";

const UTF16_NAME: &str = "UTF-16";
const BOM: u16 = 0xfeff;
const SWAPPED_BOM: u16 = 0xfffe;

/// A wide character. On the wire it is one unit of UTF-16, so others than those of the basic plane are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WChar(pub char);

/// A string of wide characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WString(pub String);

impl Deref for WString {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for WString {
    fn from(value: &str) -> Self {
        Self(value.to_owned())
    }
}

impl From<String> for WString {
    fn from(value: String) -> Self {
        Self(value)
    }
}

impl fmt::Display for WString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

pub(super) fn latin1(value: char) -> Result<u8, Error> {
    u8::try_from(value).map_err(|_| Error::Text { code_set: CharSet::Latin1.name() })
}

impl Cdr for char {
    const MIN_LEN: usize = 1;

    /// A `char` is one octet in every code set; one above 127 is the character of ISO 8859-1.
    fn encode(&self, encoder: &mut Encoder) -> Result<(), Error> {
        encoder.u8(latin1(*self)?);
        Ok(())
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        decoder.u8().map(char::from)
    }
}

impl Cdr for WChar {
    const MIN_LEN: usize = 2;

    fn encode(&self, encoder: &mut Encoder) -> Result<(), Error> {
        let mut units = [0; 2];
        let [unit] = self.0.encode_utf16(&mut units) else {
            return Err(Error::Text { code_set: UTF16_NAME });
        };
        match encoder.format().minor {
            0 => return Err(Error::WideText),
            1 => encoder.u16(*unit),
            _ => {
                let marked = matches!(*unit, BOM | SWAPPED_BOM);
                encoder.u8(if marked { 4 } else { 2 });
                if marked {
                    encoder.raw(&BOM.to_be_bytes());
                }
                encoder.raw(&unit.to_be_bytes());
            }
        }
        Ok(())
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        let unit = match decoder.format().minor {
            0 => return Err(Error::WideText),
            1 => decoder.u16()?,
            _ => {
                let length = decoder.u8()?;
                let mut units = utf16_units(decoder.raw(usize::from(length))?)?;
                match (units.next(), units.next()) {
                    (Some(unit), None) => unit,
                    _ => return Err(Error::Text { code_set: UTF16_NAME }),
                }
            }
        };
        char::from_u32(u32::from(unit)).map(WChar).ok_or(Error::Text { code_set: UTF16_NAME })
    }
}

impl Cdr for WString {
    const MIN_LEN: usize = 4;

    fn encode(&self, encoder: &mut Encoder) -> Result<(), Error> {
        if self.contains('\0') {
            return Err(Error::Text { code_set: UTF16_NAME });
        }
        match encoder.format().minor {
            0 => return Err(Error::WideText),
            1 => {
                encoder.length(self.encode_utf16().count() + 1)?;
                self.encode_utf16().for_each(|unit| encoder.u16(unit));
                encoder.u16(0);
            }
            _ => {
                let marked = matches!(self.encode_utf16().next(), Some(BOM | SWAPPED_BOM));
                encoder.length((self.encode_utf16().count() + usize::from(marked)) * 2)?;
                if marked {
                    encoder.raw(&BOM.to_be_bytes());
                }
                self.encode_utf16().for_each(|unit| encoder.raw(&unit.to_be_bytes()));
            }
        }
        Ok(())
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        let text = match decoder.format().minor {
            0 => return Err(Error::WideText),
            1 => {
                let length = decoder.length(2)?;
                let mut units = (0..length).map(|_| decoder.u16()).collect::<Result<Vec<_>, _>>()?;
                if units.pop().is_some_and(|last| last != 0) {
                    return Err(Error::Text { code_set: TERMINATED });
                }
                String::from_utf16(&units)
            }
            _ => String::from_utf16(&utf16_units(decoder.octets()?)?.collect::<Vec<_>>()),
        };
        match text {
            Ok(text) if !text.contains('\0') => Ok(WString(text)),
            _ => Err(Error::Text { code_set: UTF16_NAME }),
        }
    }
}

/// The units of UTF-16 in GIOP 1.2: most significant byte first, unless a mark says otherwise.
fn utf16_units(bytes: &[u8]) -> Result<impl Iterator<Item = u16>, Error> {
    let (pairs, odd) = bytes.as_chunks::<2>();
    if !odd.is_empty() {
        return Err(Error::Text { code_set: UTF16_NAME });
    }
    let (pairs, swapped) = match pairs.split_first().map(|(mark, rest)| (u16::from_be_bytes(*mark), rest)) {
        Some((BOM, rest)) => (rest, false),
        Some((SWAPPED_BOM, rest)) => (rest, true),
        _ => (pairs, false),
    };
    Ok(pairs.iter().map(move |pair| if swapped { u16::from_le_bytes(*pair) } else { u16::from_be_bytes(*pair) }))
}

#[cfg(test)]
mod tests {
    use super::super::{ByteOrder, Format};
    use super::*;

    fn bytes_of(value: &impl Cdr, minor: u8) -> Vec<u8> {
        let mut encoder = Encoder::new(Vec::new(), Format { order: ByteOrder::Little, minor, chars: CharSet::Latin1 });
        value.encode(&mut encoder).unwrap();
        encoder.into_bytes()
    }

    #[test]
    fn wide_text_of_giop_1_2_is_big_endian_and_counted_in_octets() {
        assert_eq!(bytes_of(&WString::from("aé"), 2), [4, 0, 0, 0, 0, 0x61, 0, 0xe9]);
        assert_eq!(bytes_of(&WChar('é'), 2), [2, 0, 0xe9]);
    }

    #[test]
    fn wide_text_of_giop_1_1_is_counted_in_characters_with_a_zero() {
        assert_eq!(bytes_of(&WString::from("a"), 1), [2, 0, 0, 0, 0x61, 0, 0, 0]);
    }

    #[test]
    fn a_mark_tells_the_byte_order() {
        let format = Format { order: ByteOrder::Big, minor: 2, chars: CharSet::Latin1 };
        let swapped = [0, 0, 0, 4, 0xff, 0xfe, 0x61, 0];
        assert_eq!(WString::decode(&mut Decoder::new(&swapped, format)), Ok(WString::from("a")));
        let odd = [0, 0, 0, 3, 0xff, 0xfe, 0x61];
        assert!(WString::decode(&mut Decoder::new(&odd, format)).is_err());
        let lone_surrogate = [0, 0, 0, 2, 0xd8, 0];
        assert!(WString::decode(&mut Decoder::new(&lone_surrogate, format)).is_err());
    }

    #[test]
    fn giop_1_0_has_no_wide_text() {
        let mut encoder = Encoder::new(Vec::new(), Format { minor: 0, ..Format::NATIVE });
        assert_eq!(WString::from("a").encode(&mut encoder), Err(Error::WideText));
    }
}
