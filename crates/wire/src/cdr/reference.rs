//! References as values: every one may be nil.

use super::{Cdr, Decoder, Encoder, Error, Path, TypeCode, Typed};
use crate::ior::Ior;

/// A reference to an object of one interface.
pub trait Reference: Sized {
    /// The repository id of the interface.
    const TYPE_ID: &'static str;

    /// The name of the interface.
    const NAME: &'static str;

    /// A reference to what is not nil. The context of the decoder says whose reference it becomes.
    fn from_ior(ior: Ior, decoder: &Decoder<'_>) -> Result<Self, Error>;

    /// Where the object is.
    fn ior(&self) -> &Ior;
}

impl Encoder<'_> {
    /// Writes a reference.
    pub fn reference<T: Reference>(&mut self, reference: Option<&T>) -> Result<(), Error> {
        match reference {
            Some(reference) => reference.ior().encode(self),
            None => Ior::default().encode(self),
        }
    }
}

impl<T: Reference> Cdr for Option<T> {
    const MIN_LEN: usize = 8;

    fn encode(&self, encoder: &mut Encoder) -> Result<(), Error> {
        encoder.reference(self.as_ref())
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        let ior = Ior::decode(decoder)?;
        if ior.is_nil() { Ok(None) } else { T::from_ior(ior, decoder).map(Some) }
    }
}

impl<T: Reference> Typed for Option<T> {
    fn type_code_in(_: &mut Path) -> TypeCode {
        TypeCode::reference(T::TYPE_ID, T::NAME)
    }
}
