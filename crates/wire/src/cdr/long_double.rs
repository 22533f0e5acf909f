//! The sixteen-byte floating-point number of IEEE 754, which Rust has no stable type for.

use super::{Cdr, Decoder, Encoder, Error, Path, TypeCode, Typed};

/// A `long double`: the bits of an IEEE 754 binary128.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LongDouble(pub u128);

const FRACTION_BITS: u32 = 112;
const DOUBLE_FRACTION_BITS: u32 = 52;
const BIAS: i32 = 16383;
const DOUBLE_BIAS: i32 = 1023;
const MAX_EXPONENT: u32 = 0x7fff;

impl From<f64> for LongDouble {
    /// Every double is a long double, exactly.
    fn from(value: f64) -> Self {
        let bits = value.to_bits();
        let sign = u128::from(bits >> 63) << 127;
        let fraction = bits & ((1 << DOUBLE_FRACTION_BITS) - 1);
        let widened = u128::from(fraction) << (FRACTION_BITS - DOUBLE_FRACTION_BITS);
        let (exponent, fraction) = match (bits >> DOUBLE_FRACTION_BITS) as i32 & 0x7ff {
            0 if fraction == 0 => (0, 0),
            // A subnormal double: its first one bit becomes the one that is not written.
            0 => {
                let shift = fraction.leading_zeros() - (63 - DOUBLE_FRACTION_BITS);
                let exponent = BIAS - DOUBLE_BIAS + 1 - shift as i32;
                (exponent as u32, (widened << shift) & ((1 << FRACTION_BITS) - 1))
            }
            0x7ff => (MAX_EXPONENT, widened),
            exponent => ((exponent - DOUBLE_BIAS + BIAS) as u32, widened),
        };
        Self(sign | (u128::from(exponent) << FRACTION_BITS) | fraction)
    }
}

impl LongDouble {
    /// The double next to it towards zero.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        let sign = if self.0 >> 127 == 1 { -1.0 } else { 1.0 };
        let exponent = (self.0 >> FRACTION_BITS) as i32 & MAX_EXPONENT as i32;
        let fraction = self.0 & ((1 << FRACTION_BITS) - 1);
        if exponent == MAX_EXPONENT as i32 {
            return if fraction == 0 { sign * f64::INFINITY } else { f64::NAN };
        }
        let double_fraction = (fraction >> (FRACTION_BITS - DOUBLE_FRACTION_BITS)) as u64;
        let magnitude = match exponent - BIAS + DOUBLE_BIAS {
            normal @ 1..=2046 => f64::from_bits(((normal as u64) << DOUBLE_FRACTION_BITS) | double_fraction),
            2047.. => f64::MAX,
            small @ -51..=0 => f64::from_bits((double_fraction | (1 << DOUBLE_FRACTION_BITS)) >> (1 - small)),
            _ => 0.0,
        };
        sign * magnitude
    }
}

impl Cdr for LongDouble {
    const MIN_LEN: usize = 16;

    fn encode(&self, encoder: &mut Encoder) -> Result<(), Error> {
        encoder.u128(self.0);
        Ok(())
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        decoder.u128().map(Self)
    }
}

impl Typed for LongDouble {
    fn type_code_in(_: &mut Path) -> TypeCode {
        TypeCode::LongDouble
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_double_comes_back() {
        for value in [0.0, -0.0, 1.0, -1.5, f64::MAX, f64::MIN_POSITIVE, 5e-324, 1.1e-310, f64::INFINITY] {
            assert_eq!(LongDouble::from(value).to_f64().to_bits(), value.to_bits(), "{value:e}");
        }
        assert!(LongDouble::from(f64::NAN).to_f64().is_nan());
        assert_eq!(LongDouble::from(1.0).0, 0x3fff << 112);
    }
}
