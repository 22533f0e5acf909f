//! Object references (CORBA 3.3 part 2 §7.6, §9.6, §9.7).
//!
//! A reference says what an object is (a repository id) and where: one profile for each way to reach
//! it. [`iiop`] is the profile that every broker understands; [`component`] are the additions that a
//! profile may carry; [`corbaloc`] are references that people can write.

pub mod component;
pub mod corbaloc;
pub mod iiop;

use std::fmt;
use std::str::FromStr;

use crate::cdr::{self, Cdr, Decoder, Encoder, Format, Path, TypeCode, Typed};

/// The tag of an IIOP profile.
pub const TAG_INTERNET_IOP: u32 = 0;

/// The tag of a profile that is only a list of components.
pub const TAG_MULTIPLE_COMPONENTS: u32 = 1;

/// A reference to an object; without profiles it is nil.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Ior {
    /// The repository id of the most derived interface, as far as is known.
    pub type_id: String,
    /// The ways to reach the object.
    pub profiles: Vec<Profile>,
}

/// One way to reach an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Profile {
    /// What the data is.
    pub tag: u32,
    /// The data, an encapsulation.
    pub data: Vec<u8>,
}

/// Why text is not a reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It begins with neither `IOR:`, `corbaloc:` nor `corbaname:`.
    #[error("a reference begins with IOR:, corbaloc: or corbaname:, not with {found:?}")]
    Scheme {
        /// The beginning of the text.
        found: String,
    },
    /// The digits behind `IOR:` are not pairs of hexadecimal digits.
    #[error("character {at} of the reference is not a hexadecimal digit, or one is missing")]
    Hex {
        /// Where.
        at: usize,
    },
    /// An address of a `corbaloc:` is not understood.
    #[error("the address {address:?} is not understood: {expected}")]
    Address {
        /// The address.
        address: String,
        /// What was expected.
        expected: &'static str,
    },
    /// An escape of a `corbaloc:` is not `%` and two hexadecimal digits.
    #[error("the escape at character {at} of {text:?} is not % and two hexadecimal digits")]
    Escape {
        /// The text with the escape.
        text: String,
        /// Where.
        at: usize,
    },
    /// The bytes are not a reference.
    #[error(transparent)]
    Cdr(#[from] cdr::Error),
}

impl Ior {
    /// Whether it refers to nothing.
    #[must_use]
    pub fn is_nil(&self) -> bool {
        self.profiles.is_empty()
    }
}

impl Cdr for Ior {
    const MIN_LEN: usize = 8;

    fn encode(&self, encoder: &mut Encoder) -> Result<(), cdr::Error> {
        encoder.identifier(self.type_id.as_bytes())?;
        encoder.sequence(&self.profiles)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, cdr::Error> {
        Ok(Self { type_id: identifier(decoder)?, profiles: Vec::decode(decoder)? })
    }
}

impl Typed for Ior {
    fn type_code_in(_: &mut Path) -> TypeCode {
        TypeCode::reference("IDL:omg.org/CORBA/Object:1.0", "Object")
    }
}

impl Cdr for Profile {
    const MIN_LEN: usize = 8;

    fn encode(&self, encoder: &mut Encoder) -> Result<(), cdr::Error> {
        encoder.u32(self.tag);
        encoder.octets(&self.data)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, cdr::Error> {
        Ok(Self { tag: decoder.u32()?, data: decoder.octets()?.to_vec() })
    }
}

/// `IOR:` and the bytes of an encapsulation in hexadecimal digits.
impl fmt::Display for Ior {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = encapsulate(|encoder| self.encode(encoder)).map_err(|_| fmt::Error)?;
        f.write_str("IOR:")?;
        bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Ior {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let digits = match text.get(..4) {
            Some(scheme) if scheme.eq_ignore_ascii_case("ior:") => &text.as_bytes()[4..],
            _ => return Err(Error::Scheme { found: text.chars().take(10).collect() }),
        };
        let nibble = |index: usize| {
            let digit = digits.get(index).and_then(|digit| char::from(*digit).to_digit(16));
            digit.map(|digit| digit as u8).ok_or(Error::Hex { at: index + 5 })
        };
        let bytes = (0..digits.len())
            .step_by(2)
            .map(|index| Ok(nibble(index)? << 4 | nibble(index + 1)?))
            .collect::<Result<Vec<_>, Error>>()?;
        Ok(Self::decode(&mut Decoder::of_encapsulation(&bytes, Format::NATIVE)?)?)
    }
}

/// The bytes of an encapsulation that is not part of a message: a byte order, and what `write` writes.
pub fn encapsulate(write: impl FnOnce(&mut Encoder) -> Result<(), cdr::Error>) -> Result<Vec<u8>, cdr::Error> {
    let mut encoder = Encoder::new(Vec::new(), Format::NATIVE);
    encoder.u8(Format::NATIVE.order.flag());
    write(&mut encoder)?;
    Ok(encoder.into_bytes())
}

/// Reads a string that is the same in every code set.
fn identifier(decoder: &mut Decoder<'_>) -> Result<String, cdr::Error> {
    let bytes = decoder.identifier()?;
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| cdr::Error::Text { code_set: "UTF-8" })
}

#[cfg(test)]
mod tests;
