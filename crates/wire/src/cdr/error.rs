//! Why a value has no bytes, or bytes have no value.

/// Why a value could not be encoded or decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes end before the value does.
    #[error("{needed} bytes are needed at byte {at}, {have} are there")]
    Truncated {
        /// Where the value begins.
        at: usize,
        /// How many bytes it needs, as far as is known.
        needed: usize,
        /// How many bytes there are.
        have: usize,
    },
    /// The bytes are there, and lie where they cannot be read one by one.
    #[error("the bytes have to be fetched first")]
    Elsewhere,
    /// A boolean that is neither zero nor one.
    #[error("a boolean has the value {found}")]
    Boolean {
        /// The octet found.
        found: u8,
    },
    /// Text that its code set cannot express, that does not end in a zero, or that holds one before.
    #[error("text is not valid in {code_set}")]
    Text {
        /// The name of the code set.
        code_set: &'static str,
    },
    /// Wide text in a version of GIOP that does not have it.
    #[error("GIOP 1.0 has no wide text")]
    WideText,
    /// An ordinal that the enumeration does not have.
    #[error("{enumeration} has no member {found}")]
    Enumeration {
        /// The name of the enumeration, or what was read.
        enumeration: &'static str,
        /// The ordinal found.
        found: u32,
    },
    /// A union whose discriminator does not belong to the member that it holds.
    #[error("the discriminator of {union} does not select this member")]
    Discriminator {
        /// The name of the union.
        union: &'static str,
    },
    /// A sequence or a string is longer than its type allows.
    #[error("{found} elements where {limit} are allowed")]
    Bound {
        /// The greatest length.
        limit: usize,
        /// The length found.
        found: usize,
    },
    /// A fixed-point number has a nibble that is not a digit, or more digits than its type.
    #[error("not a fixed-point number of {digits} digits")]
    Fixed {
        /// The digits of the type.
        digits: u16,
    },
    /// Values lie within each other deeper than [`super::MAX_DEPTH`].
    #[error("values are nested too deeply")]
    Depth,
    /// A kind of type that does not exist, or that is not spoken here, such as a value type.
    #[error("type code kind {found:#x} is not supported")]
    Kind {
        /// The kind found.
        found: u32,
    },
    /// An indirection that does not point back to a type code of the same message.
    #[error("a type code refers to byte {target}, where no type code begins")]
    Indirection {
        /// Where it points.
        target: i64,
    },
    /// A type code that refers to a type outside of itself, or whose parts do not fit together.
    #[error("a type code is inconsistent")]
    TypeCode,
    /// A value is longer than a GIOP message can be.
    #[error("{found} bytes are more than a length field can hold")]
    Length {
        /// The length found.
        found: usize,
    },
}
