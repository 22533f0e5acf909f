//! The trait of every value that has a CDR encoding, and the built-in types.

use super::{Decoder, Encoder, Error};

/// A value that is encoded in CDR.
pub trait Cdr: Sized {
    /// The fewest bytes that a value takes. It bounds what the length of a sequence can make us allocate.
    const MIN_LEN: usize;

    /// Writes the value.
    fn encode(&self, encoder: &mut Encoder) -> Result<(), Error>;

    /// Reads a value.
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Error>;

    /// Writes the elements of a sequence or an array.
    fn encode_all(items: &[Self], encoder: &mut Encoder) -> Result<(), Error> {
        items.iter().try_for_each(|item| item.encode(encoder))
    }

    /// Reads `count` elements of a sequence.
    fn decode_all(count: usize, decoder: &mut Decoder<'_>) -> Result<Vec<Self>, Error> {
        // Few are fetched one by one, many all at once.
        if count > FETCHED && decoder.lies_elsewhere(count * Self::MIN_LEN) {
            return Err(Error::Elsewhere);
        }
        // A value may be larger in memory than on the wire: what is allocated at once is never more
        // than the bytes that are there.
        let mut items = Vec::with_capacity(count.min(decoder.remaining() / size_of::<Self>().max(1)));
        for _ in 0..count {
            items.push(Self::decode(decoder)?);
        }
        Ok(items)
    }
}

/// How many values of a sequence that lies elsewhere are read one by one.
const FETCHED: usize = 8;

macro_rules! number {
    ($($type:ident),*) => {$(
        impl Cdr for $type {
            const MIN_LEN: usize = size_of::<$type>();

            fn encode(&self, encoder: &mut Encoder) -> Result<(), Error> {
                encoder.$type(*self);
                Ok(())
            }

            fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
                decoder.$type()
            }
        }
    )*};
}

number!(u16, i16, u32, i32, u64, i64, f32, f64);

impl Cdr for u8 {
    const MIN_LEN: usize = 1;

    fn encode(&self, encoder: &mut Encoder) -> Result<(), Error> {
        encoder.u8(*self);
        Ok(())
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        decoder.u8()
    }

    fn encode_all(items: &[Self], encoder: &mut Encoder) -> Result<(), Error> {
        encoder.raw(items);
        Ok(())
    }

    fn decode_all(count: usize, decoder: &mut Decoder<'_>) -> Result<Vec<Self>, Error> {
        decoder.copied(count)
    }
}

impl Cdr for bool {
    const MIN_LEN: usize = 1;

    fn encode(&self, encoder: &mut Encoder) -> Result<(), Error> {
        encoder.u8(u8::from(*self));
        Ok(())
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        decoder.bool()
    }
}

impl Cdr for String {
    const MIN_LEN: usize = 4;

    fn encode(&self, encoder: &mut Encoder) -> Result<(), Error> {
        encoder.string(self)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        decoder.string()
    }
}

/// Nothing: the result of an operation that returns void.
impl Cdr for () {
    const MIN_LEN: usize = 0;

    fn encode(&self, _: &mut Encoder) -> Result<(), Error> {
        Ok(())
    }

    fn decode(_: &mut Decoder<'_>) -> Result<Self, Error> {
        Ok(())
    }
}

impl<T: Cdr> Cdr for Vec<T> {
    const MIN_LEN: usize = 4;

    fn encode(&self, encoder: &mut Encoder) -> Result<(), Error> {
        encoder.sequence(self)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        let count = decoder.length(T::MIN_LEN)?;
        decoder.nested(|decoder| T::decode_all(count, decoder))
    }
}

impl<T: Cdr, const N: usize> Cdr for [T; N] {
    const MIN_LEN: usize = N * T::MIN_LEN;

    fn encode(&self, encoder: &mut Encoder) -> Result<(), Error> {
        T::encode_all(self, encoder)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        if Self::MIN_LEN > decoder.remaining() {
            let (needed, have) = (Self::MIN_LEN, decoder.remaining());
            return Err(Error::Truncated { at: decoder.position(), needed, have });
        }
        let items = T::decode_all(N, decoder)?;
        let found = items.len();
        items.try_into().map_err(|_| Error::Bound { limit: N, found })
    }
}

impl<T: Cdr> Cdr for Box<T> {
    const MIN_LEN: usize = T::MIN_LEN;

    fn encode(&self, encoder: &mut Encoder) -> Result<(), Error> {
        T::encode(self, encoder)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        decoder.nested(|decoder| T::decode(decoder)).map(Box::new)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::*;

    /// A type that contains itself, as IDL allows it through a sequence.
    #[derive(Debug, PartialEq, Clone)]
    struct Tree(Vec<Tree>);

    impl Cdr for Tree {
        const MIN_LEN: usize = 4;

        fn encode(&self, encoder: &mut Encoder) -> Result<(), Error> {
            self.0.encode(encoder)
        }

        fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
            Vec::decode(decoder).map(Tree)
        }
    }

    #[test]
    fn recursion_ends_before_the_stack_does() {
        let bytes = 1u32.to_ne_bytes().repeat(1 << 20);
        assert_eq!(Tree::decode(&mut Decoder::new(&bytes, Format::NATIVE)), Err(Error::Depth));
        let tree = Tree(vec![Tree(vec![]), Tree(vec![Tree(vec![])])]);
        let mut encoder = Encoder::new(Vec::new(), Format::NATIVE);
        tree.encode(&mut encoder).unwrap();
        assert_eq!(Tree::decode(&mut Decoder::new(encoder.bytes(), Format::NATIVE)), Ok(tree));
    }
}
