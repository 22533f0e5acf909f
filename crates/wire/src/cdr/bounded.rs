//! Sequences and strings with a greatest length.

use std::ops::Deref;

use super::{Cdr, Decoder, Encoder, Error, Path, TypeCode, Typed, WString};

macro_rules! bounded_text {
    ($name:ident, $inner:ty, $kind:ident, $what:literal) => {
        #[doc = concat!("A ", $what, " of at most `N` characters.")]
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name<const N: u32>($inner);

        impl<const N: u32> $name<N> {
            /// The text.
            #[must_use]
            pub fn into_inner(self) -> $inner {
                self.0
            }
        }

        impl<const N: u32> TryFrom<$inner> for $name<N> {
            type Error = Error;

            fn try_from(value: $inner) -> Result<Self, Error> {
                check(value.chars().count(), N)?;
                Ok(Self(value))
            }
        }

        impl<const N: u32> TryFrom<&str> for $name<N> {
            type Error = Error;

            fn try_from(value: &str) -> Result<Self, Error> {
                <$inner>::from(value).try_into()
            }
        }

        impl<const N: u32> Deref for $name<N> {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl<const N: u32> Cdr for $name<N> {
            const MIN_LEN: usize = 4;

            fn encode(&self, encoder: &mut Encoder) -> Result<(), Error> {
                self.0.encode(encoder)
            }

            fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
                <$inner>::decode(decoder)?.try_into()
            }
        }

        impl<const N: u32> Typed for $name<N> {
            fn type_code_in(_: &mut Path) -> TypeCode {
                TypeCode::$kind(N)
            }
        }
    };
}

bounded_text!(BoundedString, String, String, "string");
bounded_text!(BoundedWString, WString, WString, "wide string");

/// A sequence of at most `N` elements.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BoundedSequence<T, const N: u32>(Vec<T>);

impl<T, const N: u32> BoundedSequence<T, N> {
    /// The elements.
    #[must_use]
    pub fn into_inner(self) -> Vec<T> {
        self.0
    }
}

impl<T, const N: u32> Default for BoundedSequence<T, N> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T, const N: u32> TryFrom<Vec<T>> for BoundedSequence<T, N> {
    type Error = Error;

    fn try_from(items: Vec<T>) -> Result<Self, Error> {
        check(items.len(), N)?;
        Ok(Self(items))
    }
}

impl<T, const N: u32> Deref for BoundedSequence<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Cdr, const N: u32> Cdr for BoundedSequence<T, N> {
    const MIN_LEN: usize = 4;

    fn encode(&self, encoder: &mut Encoder) -> Result<(), Error> {
        encoder.sequence(&self.0)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        let count = decoder.length(T::MIN_LEN)?;
        check(count, N)?;
        decoder.nested(|decoder| T::decode_all(count, decoder)).map(Self)
    }
}

impl<T: Typed, const N: u32> Typed for BoundedSequence<T, N> {
    fn type_code_in(path: &mut Path) -> TypeCode {
        TypeCode::Sequence(T::type_code_in(path).into(), N)
    }
}

fn check(found: usize, limit: u32) -> Result<(), Error> {
    let limit = limit as usize;
    if found > limit { Err(Error::Bound { limit, found }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::*;

    #[test]
    fn more_than_the_bound_is_refused_on_both_ways() {
        assert!(BoundedString::<2>::try_from("abc").is_err());
        assert!(BoundedSequence::<u8, 2>::try_from(vec![1, 2, 3]).is_err());
        let mut encoder = Encoder::new(Vec::new(), Format::NATIVE);
        encoder.octets(&[1, 2, 3]).unwrap();
        let decoded = BoundedSequence::<u8, 2>::decode(&mut Decoder::new(encoder.bytes(), Format::NATIVE));
        assert_eq!(decoded, Err(Error::Bound { limit: 2, found: 3 }));
    }
}
