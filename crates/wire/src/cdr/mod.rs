//! Common Data Representation, the encoding of CORBA's values (CORBA 3.3 part 2 §9.3).
//!
//! A primitive of `n` bytes lies at a multiple of `n` from the beginning of its message or of its
//! encapsulation, in the byte order of whoever wrote it. [`Encoder`] and [`Decoder`] do the primitives;
//! [`Cdr`] is what every IDL type implements, and [`Typed`] adds the [`TypeCode`] that an [`Any`] carries.
//!
//! What is decoded may be hostile. No length is believed before the bytes that it announces are known
//! to be there, recursion stops at [`MAX_DEPTH`], and every fault is an [`Error`], never a panic.

mod any;
mod bounded;
mod decoder;
mod encoder;
mod error;
mod fixed;
mod long_double;
mod reference;
mod text;
mod transcode;
mod type_code;
mod type_code_cdr;
mod value;

pub use any::Any;
pub use bounded::{BoundedSequence, BoundedString, BoundedWString};
pub use decoder::{Decoder, Source};
pub use encoder::{Encapsulation, Encoder, Outlet};
pub use error::Error;
pub use fixed::Fixed;
pub use long_double::LongDouble;
pub use reference::Reference;
pub use text::{CharSet, UTF16, WChar, WString};
pub use type_code::{Alias, Enumeration, Member, Named, Path, Structure, TypeCode, Typed, Union, UnionMember};
pub use value::Cdr;

/// How many sequences, structures of a [`TypeCode`] or encapsulations may lie within each other.
///
/// A recursive type may nest as deep as its message is long; the stack of a thread is shorter.
pub const MAX_DEPTH: u16 = 100;

/// The byte order of a message or an encapsulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// The most significant byte first.
    Big,
    /// The least significant byte first.
    Little,
}

impl ByteOrder {
    /// The order of this machine.
    pub const NATIVE: Self = if cfg!(target_endian = "little") { Self::Little } else { Self::Big };

    /// The order that the lowest bit of a flags octet names.
    #[must_use]
    pub fn from_flag(flag: u8) -> Self {
        if flag & 1 == 0 { Self::Big } else { Self::Little }
    }

    /// The bit of a flags octet.
    #[must_use]
    pub fn flag(self) -> u8 {
        u8::from(self == Self::Little)
    }
}

/// What decides how a value becomes bytes, besides the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// The byte order.
    pub order: ByteOrder,
    /// The minor version of GIOP 1.x. Wide text differs between 1.1 and 1.2, and 1.0 has none.
    pub minor: u8,
    /// The code set of `char` and `string` that both ends agreed on. Wide text is UTF-16 always.
    pub chars: CharSet,
}

impl Format {
    /// The order of this machine, GIOP 1.2 and UTF-8.
    pub const NATIVE: Self = Self { order: ByteOrder::NATIVE, minor: 2, chars: CharSet::Utf8 };
}
