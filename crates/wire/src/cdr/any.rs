//! A value with its type.

use std::any::Any as Context;

use super::{Cdr, Decoder, Encoder, Error, Format, Path, TypeCode, Typed, transcode};

/// A value of any type, with the description of its type.
///
/// The value is kept encoded, in the order of this machine, so that one that is only passed on need
/// not be understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Any {
    type_code: TypeCode,
    bytes: Vec<u8>,
}

impl Any {
    /// An `any` that holds this value.
    pub fn new<T: Typed>(value: &T) -> Result<Self, Error> {
        let mut encoder = Encoder::new(Vec::new(), Format::NATIVE);
        value.encode(&mut encoder)?;
        Ok(Self { type_code: T::type_code(), bytes: encoder.into_bytes() })
    }

    /// The type of the value.
    #[must_use]
    pub fn type_code(&self) -> &TypeCode {
        &self.type_code
    }

    /// The value, or `None` if it has another type.
    pub fn get<T: Typed>(&self) -> Result<Option<T>, Error> {
        self.decode_with(Decoder::new(&self.bytes, Format::NATIVE))
    }

    /// The value, made with this context, which object references need (see [`Decoder::with_context`]).
    pub fn get_with<T: Typed>(&self, context: &dyn Context) -> Result<Option<T>, Error> {
        self.decode_with(Decoder::new(&self.bytes, Format::NATIVE).with_context(context))
    }

    fn decode_with<T: Typed>(&self, mut decoder: Decoder<'_>) -> Result<Option<T>, Error> {
        if T::type_code().equivalent(&self.type_code) { T::decode(&mut decoder).map(Some) } else { Ok(None) }
    }
}

impl Default for Any {
    /// An `any` that holds nothing.
    fn default() -> Self {
        Self { type_code: TypeCode::Null, bytes: Vec::new() }
    }
}

impl Cdr for Any {
    const MIN_LEN: usize = 4;

    fn encode(&self, encoder: &mut Encoder) -> Result<(), Error> {
        self.type_code.encode(encoder)?;
        transcode::copy(&self.type_code, &mut Decoder::new(&self.bytes, Format::NATIVE), encoder)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        let type_code = TypeCode::decode(decoder)?;
        let mut encoder = Encoder::new(Vec::new(), Format::NATIVE);
        decoder.nested(|decoder| transcode::copy(&type_code, decoder, &mut encoder))?;
        Ok(Self { type_code, bytes: encoder.into_bytes() })
    }
}

impl Typed for Any {
    fn type_code_in(_: &mut Path) -> TypeCode {
        TypeCode::Any
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{ByteOrder, CharSet, WString};
    use super::*;

    fn through(any: &Any, format: Format) -> Any {
        let mut encoder = Encoder::new(Vec::new(), format);
        any.encode(&mut encoder).unwrap();
        Any::decode(&mut Decoder::new(encoder.bytes(), format)).unwrap()
    }

    #[test]
    fn a_value_survives_every_format() {
        let text = Any::new(&vec!["é".to_owned(), String::new()]).unwrap();
        let wide = Any::new(&WString::from("€")).unwrap();
        let nested = Any::new(&vec![Any::new(&1.5f64).unwrap(), Any::default(), Any::new(&7u64).unwrap()]).unwrap();
        for order in [ByteOrder::Big, ByteOrder::Little] {
            for chars in [CharSet::Latin1, CharSet::Utf8] {
                for minor in [1, 2] {
                    for any in [&text, &wide, &nested] {
                        assert_eq!(&through(any, Format { order, minor, chars }), any);
                    }
                }
            }
        }
        assert_eq!(text.get::<Vec<String>>(), Ok(Some(vec!["é".to_owned(), String::new()])));
        assert_eq!(text.get::<String>(), Ok(None));
    }

    #[test]
    fn values_without_bytes_are_not_repeated_for_ever() {
        let empty = TypeCode::structure("IDL:E:1.0", "E", vec![]);
        let mut encoder = Encoder::new(Vec::new(), Format::NATIVE);
        TypeCode::Array(Arc::new(empty), u32::MAX).encode(&mut encoder).unwrap();
        assert_eq!(Any::decode(&mut Decoder::new(encoder.bytes(), Format::NATIVE)), Err(Error::TypeCode));
    }
}
