//! Fixed-point decimal numbers.
//!
//! ```text
//! | digit | digit | ... | digit | sign |     four bits each: 0xc is plus, 0xd is minus;
//! ```
//! an even number of digits begins with a zero, so that the whole is a number of octets.

use std::fmt;

use super::{Cdr, Decoder, Encoder, Error, Path, TypeCode, Typed};

/// A decimal number of `DIGITS` digits, of which `SCALE` stand behind the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Fixed<const DIGITS: u16, const SCALE: i16>(i128);

/// The most digits that IDL allows.
pub(super) const MAX_DIGITS: u16 = 31;
const PLUS: u8 = 0xc;
const MINUS: u8 = 0xd;

impl<const DIGITS: u16, const SCALE: i16> Fixed<DIGITS, SCALE> {
    /// The number whose digits are those of `unscaled`: 1234 with a scale of 2 is 12.34.
    pub fn new(unscaled: i128) -> Result<Self, Error> {
        let limit = 10u128.pow(u32::from(DIGITS.min(MAX_DIGITS)));
        if unscaled.unsigned_abs() >= limit { Err(Error::Fixed { digits: DIGITS }) } else { Ok(Self(unscaled)) }
    }

    /// A number whose digits are known to fit, for constants.
    #[must_use]
    pub const fn constant(unscaled: i128) -> Self {
        Self(unscaled)
    }

    /// The digits as one number, without the point.
    #[must_use]
    pub fn unscaled(self) -> i128 {
        self.0
    }
}

impl<const DIGITS: u16, const SCALE: i16> Cdr for Fixed<DIGITS, SCALE> {
    const MIN_LEN: usize = DIGITS as usize / 2 + 1;

    fn encode(&self, encoder: &mut Encoder) -> Result<(), Error> {
        let mut octets = [0; MAX_DIGITS as usize / 2 + 1];
        let mut rest = self.0.unsigned_abs();
        let mut nibble = if self.0 < 0 { MINUS } else { PLUS };
        let octets = &mut octets[..Self::MIN_LEN];
        for octet in octets.iter_mut().rev() {
            *octet = nibble | (take_digit(&mut rest) << 4);
            nibble = take_digit(&mut rest);
        }
        encoder.raw(octets);
        Ok(())
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        Self::new(number_of(decoder.raw(Self::MIN_LEN)?, DIGITS)?)
    }
}

impl<const DIGITS: u16, const SCALE: i16> Typed for Fixed<DIGITS, SCALE> {
    fn type_code_in(_: &mut Path) -> TypeCode {
        TypeCode::Fixed { digits: DIGITS, scale: SCALE }
    }
}

impl<const DIGITS: u16, const SCALE: i16> fmt::Display for Fixed<DIGITS, SCALE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let digits = self.0.unsigned_abs();
        match u32::try_from(SCALE) {
            Ok(0) => write!(f, "{sign}{digits}"),
            Ok(scale) => {
                let unit = 10u128.pow(scale.min(u32::from(MAX_DIGITS)));
                write!(f, "{sign}{}.{:0width$}", digits / unit, digits % unit, width = scale as usize)
            }
            Err(_) => write!(f, "{sign}{digits}{:0width$}", 0, width = usize::from(SCALE.unsigned_abs())),
        }
    }
}

/// Checks and reads the octets of a fixed-point number.
pub(super) fn number_of(octets: &[u8], digits: u16) -> Result<i128, Error> {
    let fault = Error::Fixed { digits };
    let nibbles = octets.len() * 2;
    let nibble = |index: usize| if index % 2 == 0 { octets[index / 2] >> 4 } else { octets[index / 2] & 0xf };
    let mut value = 0i128;
    for index in 0..nibbles.saturating_sub(1) {
        let digit = nibble(index);
        if digit > 9 || value > i128::MAX / 100 {
            return Err(fault);
        }
        value = value * 10 + i128::from(digit);
    }
    match nibbles.checked_sub(1).map(nibble) {
        Some(PLUS) => Ok(value),
        Some(MINUS) => Ok(-value),
        _ => Err(fault),
    }
}

fn take_digit(rest: &mut u128) -> u8 {
    let digit = (*rest % 10) as u8;
    *rest /= 10;
    digit
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::*;

    fn bytes_of(value: &impl Cdr) -> Vec<u8> {
        let mut encoder = Encoder::new(Vec::new(), Format::NATIVE);
        value.encode(&mut encoder).unwrap();
        encoder.into_bytes()
    }

    #[test]
    fn digits_are_packed_with_the_sign_last() {
        assert_eq!(bytes_of(&Fixed::<5, 2>::new(12345).unwrap()), [0x12, 0x34, 0x5c]);
        assert_eq!(bytes_of(&Fixed::<4, 2>::new(-1234).unwrap()), [0x01, 0x23, 0x4d]);
        let decoded = Fixed::<4, 2>::decode(&mut Decoder::new(&[0x01, 0x23, 0x4d], Format::NATIVE)).unwrap();
        assert_eq!(decoded.to_string(), "-12.34");
        let most = Fixed::<31, 0>::new(10i128.pow(31) - 1).unwrap();
        assert_eq!(Fixed::decode(&mut Decoder::new(&bytes_of(&most), Format::NATIVE)), Ok(most));
    }

    #[test]
    fn what_is_not_a_number_is_refused() {
        assert!(Fixed::<3, 0>::new(1000).is_err());
        for bytes in [[0x1a, 0x2c], [0x12, 0x3e]] {
            assert!(Fixed::<3, 0>::decode(&mut Decoder::new(&bytes, Format::NATIVE)).is_err());
        }
        assert!(Fixed::<2, 0>::decode(&mut Decoder::new(&[0x12, 0x3c], Format::NATIVE)).is_err());
    }
}
