//! Types that have one representation.

use super::{Error, Reader, Writer};

/// A type with one representation in XDR. What the compiler of `.x` files makes of a structure, union or enumeration.
pub trait Xdr: Sized {
    /// Appends the value to a message.
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), Error>;

    /// Takes a value from a message.
    fn decode(input: &mut Reader<'_>) -> Result<Self, Error>;
}

/// A number of quadruple precision (RFC 4506 §4.8), which Rust does not have: its bytes, big-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Quadruple(pub [u8; 16]);

impl Xdr for () {
    fn encode(&self, _: &mut Writer<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn decode(_: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(())
    }
}

impl Xdr for Quadruple {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), Error> {
        out.fixed(&self.0)
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self(input.fixed_array()?))
    }
}

impl Xdr for u32 {
    fn encode(&self, out: &mut Writer<'_>) -> Result<(), Error> {
        out.u32(*self)
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, Error> {
        input.u32()
    }
}
