//! Fixed-point numbers of constants: decimal digits, computed as CORBA 3.3 part 1 §7.4.9 says.

use std::cmp::Ordering;

/// The most digits that a fixed-point number has.
pub(super) const MAX_DIGITS: usize = 31;

/// `unscaled` divided by ten to the power of `scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fixed {
    pub(super) unscaled: i128,
    pub(super) scale: i16,
}

impl Fixed {
    /// A literal, without the `D` at its end.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits: Option<Vec<u8>> = whole.chars().chain(fraction.chars()).map(digit).collect();
        // A literal keeps all its digits or is refused; what is computed is cut off.
        let significant = digits.as_ref()?.iter().skip_while(|digit| **digit == 0).count();
        let trailing = fraction.chars().rev().take_while(|each| *each == '0').count();
        if significant.saturating_sub(trailing) > MAX_DIGITS || fraction.len() - trailing > MAX_DIGITS {
            return None;
        }
        Self::of(false, digits?, fraction.len())
    }

    /// How many digits there are, with the zeros right behind the point.
    pub(super) fn digits(self) -> u16 {
        let significant = self.unscaled.unsigned_abs().checked_ilog10().map_or(1, |log| log + 1);
        u16::try_from(significant).unwrap_or(u16::MAX).max(self.scale.unsigned_abs())
    }

    pub(super) fn negated(self) -> Self {
        Self { unscaled: -self.unscaled, ..self }
    }

    /// The number with this many digits, of which `scale` stand behind the point. `None` if its whole part is longer. What is
    /// behind the last digit is cut off.
    pub(super) fn fitted(self, digits: u16, scale: i16) -> Option<Self> {
        let mut unscaled = self.unscaled;
        for _ in scale..self.scale {
            unscaled /= 10;
        }
        for _ in self.scale..scale {
            unscaled = unscaled.checked_mul(10)?;
        }
        let fitted = Self { unscaled, scale };
        let limit = 10_i128.checked_pow(u32::from(digits))?;
        (unscaled.abs() < limit).then_some(fitted)
    }

    pub(super) fn plus(self, other: Self) -> Option<Self> {
        let scale = self.scale.max(other.scale);
        let (left, right) = (self.aligned(scale), other.aligned(scale));
        if (self.unscaled < 0) == (other.unscaled < 0) {
            return Self::of(self.unscaled < 0, sum(&left, &right), scale_len(scale));
        }
        match left.cmp(&right) {
            Ordering::Less => Self::of(other.unscaled < 0, difference(&right, &left), scale_len(scale)),
            _ => Self::of(self.unscaled < 0, difference(&left, &right), scale_len(scale)),
        }
    }

    pub(super) fn times(self, other: Self) -> Option<Self> {
        let factor = other.unscaled.unsigned_abs();
        let mut product = Vec::new();
        let mut carry = 0_u128;
        // The carry and a digit times the factor stay below 10 to the power of 33.
        for digit in self.magnitude().into_iter().rev() {
            carry += u128::from(digit) * factor;
            product.push(last_digit(carry));
            carry /= 10;
        }
        while carry > 0 {
            product.push(last_digit(carry));
            carry /= 10;
        }
        product.reverse();
        Self::of(self.is_negative() != other.is_negative(), product, scale_len(self.scale) + scale_len(other.scale))
    }

    pub(super) fn divided_by(self, other: Self) -> Option<Self> {
        let divisor = other.unscaled.unsigned_abs();
        if divisor == 0 {
            return None;
        }
        let mut quotient = Vec::new();
        let mut remainder = 0_u128;
        let mut step = |digit: u8, quotient: &mut Vec<u8>| {
            remainder = remainder * 10 + u128::from(digit);
            quotient.push(last_digit(remainder / divisor));
            remainder %= divisor;
            remainder == 0
        };
        let mut exact = false;
        for digit in self.magnitude() {
            exact = step(digit, &mut quotient);
        }
        let mut scale = i32::from(self.scale) - i32::from(other.scale);
        // As many digits as there can be, and those that make the scale positive.
        let most = 2 * MAX_DIGITS as i32;
        while scale < 0 || (!exact && scale < most) {
            exact = step(0, &mut quotient);
            scale += 1;
        }
        Self::of(self.is_negative() != other.is_negative(), quotient, usize::try_from(scale).ok()?)
    }

    /// From digits, the most significant first, `scale` of them behind the point. What does not fit behind the point is cut
    /// off; `None` if the whole part does not fit.
    fn of(negative: bool, mut digits: Vec<u8>, mut scale: usize) -> Option<Self> {
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        digits.drain(..zeros);
        while scale > 0 && (digits.len().max(scale) > MAX_DIGITS || digits.last().is_none_or(|last| *last == 0)) {
            digits.pop();
            scale -= 1;
        }
        if digits.len() > MAX_DIGITS {
            return None;
        }
        let unscaled = digits.into_iter().fold(0, |unscaled, digit| unscaled * 10 + i128::from(digit));
        Some(Self { unscaled: if negative { -unscaled } else { unscaled }, scale: i16::try_from(scale).ok()? })
    }

    fn is_negative(self) -> bool {
        self.unscaled < 0
    }

    /// The digits, the most significant first.
    fn magnitude(self) -> Vec<u8> {
        self.unscaled.unsigned_abs().to_string().chars().filter_map(digit).collect()
    }

    /// The digits with so many behind the point, as long as every other number's.
    fn aligned(self, scale: i16) -> Vec<u8> {
        let mut digits = self.magnitude();
        digits.extend(std::iter::repeat_n(0, scale_len(scale - self.scale)));
        let mut aligned = vec![0; (2 * MAX_DIGITS + 1).saturating_sub(digits.len())];
        aligned.append(&mut digits);
        aligned
    }
}

fn digit(each: char) -> Option<u8> {
    each.to_digit(10).and_then(|digit| u8::try_from(digit).ok())
}

fn last_digit(number: u128) -> u8 {
    (number % 10) as u8
}

fn scale_len(scale: i16) -> usize {
    usize::try_from(scale).unwrap_or(0)
}

fn sum(left: &[u8], right: &[u8]) -> Vec<u8> {
    let mut carry = 0;
    let mut sum: Vec<u8> = Vec::new();
    for (left, right) in left.iter().zip(right).rev() {
        let digit = left + right + carry;
        sum.push(digit % 10);
        carry = digit / 10;
    }
    sum.reverse();
    sum
}

/// `left - right`, if `left` is not smaller.
fn difference(left: &[u8], right: &[u8]) -> Vec<u8> {
    let mut borrow = 0;
    let mut difference: Vec<u8> = Vec::new();
    for (left, right) in left.iter().zip(right).rev() {
        let digit = 10 + left - right - borrow;
        difference.push(digit % 10);
        borrow = u8::from(digit < 10);
    }
    difference.reverse();
    difference
}

#[cfg(test)]
mod tests {
    use super::Fixed;

    fn fixed(text: &str) -> Fixed {
        match text.strip_prefix('-') {
            Some(text) => fixed(text).negated(),
            None => Fixed::parse(text).expect("a number"),
        }
    }

    fn shown(value: Option<Fixed>) -> String {
        value.map_or_else(|| "none".to_owned(), |value| format!("{}e-{}", value.unscaled, value.scale))
    }

    // The results are those of omniidl 4.2.5.
    #[test]
    fn numbers_are_computed_in_decimal() {
        assert_eq!(shown(fixed("1.5").times(fixed("2.25"))), "3375e-3");
        assert_eq!(shown(fixed("10").plus(fixed("-0.5"))), "95e-1");
        assert_eq!(shown(fixed("-10").plus(fixed("0.5"))), "-95e-1");
        assert_eq!(shown(fixed("0.5").plus(fixed("-0.5"))), "0e-0");
        assert_eq!(shown(fixed("9.9").plus(fixed("0.1"))), "10e-0");
        assert_eq!(shown(fixed("1").divided_by(fixed("7"))), "1428571428571428571428571428571e-31");
        assert_eq!(shown(fixed("100000000000").divided_by(fixed("7"))), "1428571428571428571428571428571e-20");
        assert_eq!(shown(fixed("-3").divided_by(fixed("0.02"))), "-150e-0");
        assert_eq!(shown(fixed("1").divided_by(fixed("0"))), "none");
        let long = fixed("99999999999999999999.12345").times(fixed("1.000001"));
        assert_eq!(shown(long), "1000000999999999999991234491234e-10");
        assert_eq!(shown(fixed("1234567890123456789012345678901").times(fixed("10.5"))), "none");
    }

    #[test]
    fn literals_have_at_most_31_digits() {
        assert_eq!(shown(Fixed::parse("0012.500")), "125e-1");
        assert_eq!(Fixed::parse("0.05").map(Fixed::digits), Some(2));
        assert_eq!(shown(Fixed::parse(&"9".repeat(31))), format!("{}e-0", "9".repeat(31)));
        assert_eq!(Fixed::parse(&"9".repeat(32)), None);
        assert_eq!(Fixed::parse(&format!("0.{}1", "0".repeat(31))), None);
        assert_eq!(Fixed::parse("1.2.3"), None);
    }

    #[test]
    fn a_type_cuts_off_or_refuses() {
        assert_eq!(shown(fixed("1.239").fitted(5, 2)), "123e-2");
        assert_eq!(shown(fixed("1.5").fitted(5, 2)), "150e-2");
        assert_eq!(shown(fixed("12345.6").fitted(5, 2)), "none");
    }
}
